//! Turns and sessions that are ended before they are done (S20).

use serde_json::json;

use crate::kit::{Caller, Frame, Place, Provider, Response, message, recorded, shown_text};

const SLOW: &str = "/slow 40 a b c d e f g h i j k l m n o p q r s t";

fn cancel(caller: &Caller, session: &str, body: &serde_json::Value) -> Response {
    caller.post(&caller.path(session, "/cancel"), body)
}

#[test]
fn a_cancel_in_the_middle_of_a_reply_keeps_what_was_shown() {
    let place = Place::new();
    let server = place.serve();
    let ann = server.client("ann");
    ann.say("s1", "t1", SLOW);
    let mut stream = ann.stream("s1", "");
    let mut seen = stream.until(|frame| frame.is_delta() && frame.data["seq"] == 3);
    let answer = cancel(&ann, "s1", &json!({ "reason": "enough" })).expect(200);
    assert_eq!((&answer["ok"], &answer["cancelled"]), (&true.into(), &true.into()));
    seen.extend(stream.until_completed("t1"));

    let completed = seen.last().unwrap();
    assert_eq!(completed.payload()["cancelled"], true);
    assert_eq!(completed.payload()["reason"], "enough");
    assert_eq!(completed.id, answer["seq"].as_u64());
    let voided = seen.iter().position(|frame| frame.event == "call.voided").unwrap();
    assert!(!seen[voided..].iter().any(Frame::is_delta), "no delta follows the end of its call");
    let session = ann.session("s1");
    assert_eq!(session["status"], "idle");
    let kept = session["messages"][1]["content"].as_str().unwrap();
    assert_eq!(kept, shown_text(&seen));
    assert!(kept.starts_with("You said: a"), "{kept}");

    // Again, and again after a restart: nothing is left to cancel, and the same is told.
    let again = json!({ "ok": true, "cancelled": false, "seq": answer["seq"] });
    assert_eq!(cancel(&ann, "s1", &json!({})).expect(200), again);
    assert_eq!(cancel(&ann, "s1", &json!({ "turn_id": "t1" })).expect(200), again);
    server.kill();
    let server = place.serve();
    let ann = server.client("ann");
    assert_eq!(cancel(&ann, "s1", &json!({ "turn_id": "t1" })).expect(200), again);
    assert_eq!(ann.session("s1"), session);
    let replayed = ann.stream("s1", "").until_completed("t1");
    assert_eq!(recorded(&replayed), recorded(&seen));
    ann.say("s1", "t2", "and now");
    assert_eq!(ann.watch_turn("s1", "t2").last().unwrap().payload()["data"], "You said: and now");
}

#[test]
fn a_cancel_tells_the_model_to_stop_and_needs_no_body() {
    let provider = Provider::start();
    let server = Place::with_manifest(&provider.manifest()).serve_once();
    let (ann, machine) = (server.client("ann"), server.machine());
    ann.say("s1", "t1", "hello");
    let call = provider.call();
    let answer = machine.send("POST", &machine.path("s1", "/cancel"), &[], &[]).expect(200);
    assert_eq!(answer["cancelled"], true);
    call.until_abandoned();
    assert_eq!(ann.conversation("s1").len(), 1, "nothing had been shown");
    assert!(provider.is_idle(), "and nothing is asked again");
}

#[test]
fn a_turn_that_waits_is_cancelled_and_the_others_go_on() {
    let provider = Provider::start();
    let server = Place::with_manifest(&provider.manifest()).serve_once();
    let ann = server.client("ann");
    ann.say("s1", "t1", "one");
    let call = provider.call();
    for turn in ["t2", "t3"] {
        let mut body = message("s1", turn, turn);
        body["input"]["queue"] = true.into();
        assert_eq!(ann.input(&body).expect(202)["queued"], true);
    }
    let mut waiting = ann.stream("s1", "?turn_id=t2");
    let answer = cancel(&ann, "s1", &json!({ "turn_id": "t2" })).expect(200);
    assert_eq!(answer["cancelled"], true);
    let ended = waiting.rest();
    assert_eq!(ended.last().unwrap().payload()["cancelled"], true);
    let again = cancel(&ann, "s1", &json!({ "turn_id": "t2" })).expect(200);
    assert_eq!((&again["cancelled"], &again["seq"]), (&false.into(), &answer["seq"]));
    call.answer("first");
    provider.call().answer("third");
    ann.watch_turn("s1", "t3");
    let said: Vec<String> = ann.conversation("s1").into_iter().map(|(_, text)| text).collect();
    assert_eq!(said, ["one", "first", "t3", "third"]);
}

#[test]
fn a_session_that_is_cancelled_is_done_for_good() {
    let place = Place::new();
    let server = place.serve();
    let ann = server.client("ann");
    ann.say("s1", "t1", "hello");
    ann.watch_turn("s1", "t1");
    let answer = cancel(&ann, "s1", &json!({ "session": true })).expect(200);
    assert_eq!(answer["cancelled"], true);
    server.kill();
    let server = place.serve();
    let ann = server.client("ann");
    assert_eq!(ann.session("s1")["status"], "done");
    let refused = ann.input(&message("s1", "t2", "more")).expect(409);
    assert_eq!(refused, json!({ "error": "session done", "seq": answer["seq"] }));
    assert_eq!(ann.input(&message("s1", "t1", "hello")).status, 202, "a known turn is told");
    let listed = ann.get("/api/client/sessions").expect(200);
    assert_eq!(listed["items"][0]["status"], "done");
}

#[test]
fn only_who_may_cancels() {
    let server = Place::new().serve_once();
    let (ann, bob) = (server.client("ann"), server.client("bob"));
    assert_eq!(cancel(&ann, "s1", &json!({})).refusal(404), "unknown session");
    ann.say("s1", "t1", "hello");
    ann.watch_turn("s1", "t1");
    assert_eq!(cancel(&bob, "s1", &json!({})).refusal(403), "not the owner of this session");
    assert_eq!(cancel(&ann, "s1", &json!({ "turn_id": "t9" })).refusal(404), "unknown turn");
    let wrong = Caller { api: "machine", ..ann.clone() };
    assert_eq!(cancel(&wrong, "s1", &json!({})).status, 401);
    let wrong = Caller { api: "client", ..server.machine() };
    assert_eq!(cancel(&wrong, "s1", &json!({})).status, 401);
    assert_eq!(cancel(&ann, "s1", &json!({ "session": "yes" })).status, 422);
    assert_eq!(cancel(&ann, "s1", &json!([])).status, 422);
}
