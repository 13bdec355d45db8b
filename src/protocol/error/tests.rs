use std::error::Error;

use super::*;

#[derive(Debug, thiserror::Error)]
#[error("{what}")]
struct Layer {
    what: &'static str,
    source: Option<Box<dyn Error + 'static>>,
}

fn over(what: &'static str, source: Option<Layer>) -> Layer {
    Layer { what, source: source.map(|source| Box::new(source) as Box<dyn Error>) }
}

#[test]
fn a_chain_is_the_error_and_every_cause_in_one_line() {
    let refused = over("connection refused", None);
    assert_eq!(chain(&refused), "connection refused");
    let call = over("cannot call", Some(over("cannot connect", Some(refused))));
    assert_eq!(chain(&call), "cannot call: cannot connect: connection refused");
}
