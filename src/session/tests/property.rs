//! Random conversations do as the model.

use proptest::prelude::*;
use proptest::test_runner::Config;

use super::random;

/// Enough for every kind of command to meet every state; `PROPTEST_CASES` asks for more.
const CASES: u32 = 1500;
/// Most bytes of one conversation: some 60 steps.
const BYTES_MAX: usize = 250;

fn config() -> Config {
    let mut config = Config::default();
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = CASES;
    }
    config
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_random_conversation_does_as_the_model(
        bytes in prop::collection::vec(any::<u8>(), 0..BYTES_MAX),
    ) {
        random::run(&bytes);
    }
}
