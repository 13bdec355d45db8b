//! The fuzz targets over their committed corpora.

use std::fs;
use std::path::Path;

#[path = "../../fuzz/src/bodies.rs"]
mod bodies;

fn replay(target: &str, body: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let inputs = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut count = 0;
    for input in inputs {
        println!("{}", input.display());
        body(&fs::read(input).unwrap());
        count += 1;
    }
    assert!(count > 0, "{} is empty", folder.display());
}

#[test]
fn every_target_passes_its_corpus() {
    replay("client_input", bodies::client_input);
    replay("machine_submit", bodies::machine_submit);
    replay("json", bodies::json);
    replay("event", bodies::event);
    replay("provider_stream", bodies::provider_stream);
    replay("resume", bodies::resume);
    replay("manifest", bodies::manifest);
    replay("session_commands", bodies::session_commands);
}
