//! Requests that are refused: the status, what the refusal says, and that nothing comes of them
//! (S54, S55, reliability 2.1).

mod bodies;
mod requests;

use serde_json::Value;

use crate::kit::{Caller, Place, Server, message};

const INPUT: &str = "/api/client/sessions/input";
const SUBMIT: &str = "/api/machine/sessions/submit";

/// A server with one owner; at the end of a test nothing but good requests has left a trace.
struct Bench {
    server: Server,
    ann: Caller,
    machine: Caller,
}

impl Bench {
    fn new() -> Self {
        Self::with_manifest("")
    }

    fn with_manifest(manifest: &str) -> Self {
        let server = Place::with_manifest(manifest).serve_once();
        let (ann, machine) = (server.client("ann"), server.machine());
        Self { server, ann, machine }
    }

    /// The session of every bad request was never made, and a good request is served.
    fn is_unharmed(&self) {
        let unknown = self.ann.get("/api/client/sessions/bad");
        assert_eq!(unknown.refusal(404), "unknown session");
        self.ann.say("good", "t1", "hi");
        self.ann.watch_turn("good", "t1");
    }
}

/// A good input for session `bad` with the value at a dotted path replaced.
fn input_with(path: &str, value: impl Into<Value>) -> Value {
    with(message("bad", "t1", "hi"), path, value)
}

fn with(mut body: Value, path: &str, value: impl Into<Value>) -> Value {
    let place = path.split('.').fold(&mut body, |place, name| &mut place[name]);
    *place = value.into();
    body
}
