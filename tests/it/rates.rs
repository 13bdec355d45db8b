//! Rates per owner and key, and what stands in for them (L7).

use serde_json::json;

use crate::kit::{Place, Response, message, wait_for};

const SLOW: &str = "[limits]\ninputs_per_second = 1\nmints_per_second = 1\nreads_per_second = 1\n";

/// Asks until it is refused, which is sooner than any clock fills the bucket again.
fn until_refused(mut ask: impl FnMut() -> Response) -> Response {
    let answers = std::iter::repeat_with(&mut ask);
    answers.take(1000).find(|answer| answer.status == 429).expect("the rate is limited")
}

fn is_too_much(response: &Response) {
    let wait = response.header("retry-after").expect("it says when").to_owned();
    assert!(wait.parse::<u64>().unwrap() >= 1, "{wait}");
    let text = format!("too many requests; try again in {wait} s");
    assert_eq!(response.refusal(429), text);
}

#[test]
fn too_many_mints_wait_and_are_taken_again() {
    let server = Place::with_manifest(SLOW).serve_once();
    let body = json!({ "identity": { "id": "ann" } });
    let mint = || server.machine().post("/api/machine/client-tokens", &body);
    is_too_much(&until_refused(mint));
    wait_for("room for a mint", || (mint().status == 200).then_some(()));
}

#[test]
fn too_many_reads_of_one_owner_do_not_slow_another() {
    let server = Place::with_manifest("[limits]\nreads_per_second = 1").serve_once();
    let (ann, bob) = (server.client("ann"), server.client("bob"));
    is_too_much(&until_refused(|| ann.get("/api/client/sessions/s1")));
    assert_eq!(bob.get("/api/client/sessions/s1").status, 404);
    // Streams are reads; the machine's count for its key.
    is_too_much(&until_refused(|| ann.no_stream("s1", "", &[])));
    is_too_much(&until_refused(|| server.machine().no_stream("s1", "", &[])));
    // An input is none.
    ann.say("s1", "t1", "hi");
    wait_for("room for a read", || {
        (ann.get("/api/client/sessions/s1").status == 200).then_some(())
    });
}

#[test]
fn too_many_inputs_of_one_owner_are_refused_on_both_apis_and_record_nothing() {
    let server = Place::with_manifest("[limits]\ninputs_per_second = 1").serve_once();
    let (ann, bob) = (server.client("ann"), server.client("bob"));
    let mut number = 0;
    let refused = until_refused(|| {
        number += 1;
        ann.input(&message(&format!("s{number}"), "t1", "hi"))
    });
    is_too_much(&refused);
    let path = format!("/api/client/sessions/s{number}");
    assert_eq!(ann.get(&path).refusal(404), "unknown session");
    assert!(number > 4, "a burst of four seconds is taken");
    is_too_much(&until_refused(|| {
        server.machine().submit(&json!({
            "agent_id": "demo",
            "identity": { "id": "ann" },
            "payload": { "type": "client.message", "message": { "role": "user", "content": "hi" } },
        }))
    }));
    bob.say("bobs", "t1", "hi");
}

#[test]
fn a_rate_of_zero_is_no_limit() {
    let manifest = "[limits]\ninputs_per_second = 0\nmints_per_second = 0\nreads_per_second = 0\n";
    let server = Place::with_manifest(manifest).serve_once();
    let ann = server.client("ann");
    for number in 0..60 {
        server.client("ann");
        ann.say(&format!("s{}", number % 4), &format!("t{number}"), "hi");
        ann.watch_turn(&format!("s{}", number % 4), &format!("t{number}"));
    }
    for _ in 0..250 {
        assert_eq!(ann.get("/api/client/sessions/s0").status, 200);
    }
}
