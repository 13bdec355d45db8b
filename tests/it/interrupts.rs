//! Pauses and their answers (S42 to S44).

use serde_json::{Value, json};

use crate::kit::{Caller, Frame, Place, Provider, Response, message, shown_text};

fn interrupt(caller: &Caller, body: &Value) -> Response {
    caller.post(&caller.path("s1", "/interrupt"), body)
}

/// An answer to an interrupt over the client API.
fn resume(interrupt_id: &Value, payload: &Value) -> Value {
    json!({
        "session_id": "s1",
        "input": {
            "type": "interrupt.resume", "interrupt_id": interrupt_id, "payload": payload,
        },
    })
}

/// The same over the machine API.
fn resume_as_machine(interrupt_id: &Value) -> Value {
    json!({
        "session_id": "s1",
        "agent_id": "demo",
        "identity": { "id": "ann" },
        "payload": { "type": "interrupt.resume", "interrupt_id": interrupt_id },
    })
}

#[test]
fn a_pause_stops_the_model_and_the_answer_asks_it_again() {
    let provider = Provider::start();
    let place = Place::with_manifest(&provider.manifest());
    let server = place.serve();
    let ann = server.client("ann");
    ann.say("s1", "t1", "hello");
    let call = provider.call();
    let body = json!({ "reason": "wait", "payload": { "why": [1] } });
    let paused = interrupt(&ann, &body).expect(200);
    assert_eq!(paused["ok"], true);
    call.until_abandoned();
    let session = ann.session("s1");
    assert_eq!(session["status"], "interrupted");
    let open = json!([{
        "interrupt_id": paused["interrupt_id"], "origin": "frontend", "reason": "wait",
        "payload": { "why": [1] }, "anchor": session["messages"][0]["id"],
    }]);
    assert_eq!(session["interrupts"], open);
    let refused = ann.input(&message("s1", "t2", "more")).expect(409);
    assert_eq!(refused, json!({ "error": "session interrupted", "seq": paused["seq"] }));

    // A paused session outlives a restart as it is.
    server.kill();
    let server = place.serve();
    let ann = server.client("ann");
    assert_eq!(ann.session("s1"), session);
    assert!(provider.is_idle());
    let mut stream = ann.stream("s1", &format!("?after_seq={}", paused["seq"]));
    let taken = ann.input(&resume(&paused["interrupt_id"], &json!("go"))).expect(202);
    assert_eq!((&taken["turn_id"], &taken["session_id"]), (&"t1".into(), &"s1".into()));
    provider.call().answer("at last");
    let frames = stream.until_completed("t1");
    assert_eq!(frames[0].event, "session.interrupt_resumed");
    assert_eq!(frames[0].id, taken["seq"].as_u64());
    assert_eq!(frames[0].payload()["payload"], "go");
    assert_eq!(frames.last().unwrap().payload()["data"], "at last");
    let session = ann.session("s1");
    assert_eq!((&session["status"], &session["interrupts"]), (&"idle".into(), &json!([])));

    // Another answer changes nothing.
    let seq = frames.last().unwrap().id.unwrap();
    ann.input(&resume(&paused["interrupt_id"], &json!("late"))).expect(202);
    ann.input(&resume(&"unheard".into(), &json!(null))).expect(202);
    ann.say("s1", "t2", "more");
    let next = ann.stream("s1", &format!("?after_seq={seq}")).until(|_| true);
    assert_eq!(next[0].event, "turn.started");
    provider.call().answer("yes");
}

#[test]
fn a_pause_in_the_middle_of_a_reply_keeps_what_was_shown() {
    let server = Place::new().serve_once();
    let ann = server.client("ann");
    ann.say("s1", "t1", "/slow 40 a b c d e f g h i j k l m n o p q r s t");
    let mut stream = ann.stream("s1", "");
    let mut seen = stream.until(|frame| frame.is_delta() && frame.data["seq"] == 3);
    let body = json!({ "reason": "wait", "interrupt_id": "hold" });
    let paused = interrupt(&ann, &body).expect(200);
    assert_eq!(paused["interrupt_id"], "hold");
    assert_eq!(interrupt(&ann, &body).expect(200), paused, "the same pause once more");
    seen.extend(stream.until(|frame| frame.event == "session.interrupted"));
    let voided = seen.iter().position(|frame| frame.event == "call.voided").unwrap();
    assert!(!seen[voided..].iter().any(Frame::is_delta), "no delta follows the end of its call");
    let conversation = ann.conversation("s1");
    assert_eq!(conversation[1], ("assistant".to_owned(), shown_text(&seen)));
    let taken = ann.input(&resume(&"hold".into(), &json!(null))).expect(202);
    assert_eq!(taken["turn_id"], "t1");
    ann.watch_turn("s1", "t1");
    assert_eq!(ann.conversation("s1"), conversation, "the reply that was cut short stays");
    assert_eq!(ann.session("s1")["status"], "idle");
}

#[test]
fn who_raised_a_pause_decides_who_may_answer_it() {
    let server = Place::new().serve_once();
    let (ann, bob, machine) = (server.client("ann"), server.client("bob"), server.machine());
    assert_eq!(interrupt(&ann, &json!({ "reason": "x" })).refusal(404), "unknown session");
    ann.say("s1", "t1", "hello");
    ann.watch_turn("s1", "t1");
    let refusal = interrupt(&bob, &json!({ "reason": "x" })).refusal(403);
    assert_eq!(refusal, "not the owner of this session");
    let wrong = Caller { api: "client", ..machine.clone() };
    assert_eq!(interrupt(&wrong, &json!({ "reason": "x" })).status, 401);
    let wrong = Caller { api: "machine", ..ann.clone() };
    assert_eq!(interrupt(&wrong, &json!({ "reason": "x" })).status, 401);
    assert_eq!(interrupt(&ann, &json!({})).refusal(422), "`reason` is missing");

    let paused = interrupt(&machine, &json!({ "reason": "review" })).expect(200);
    let id = &paused["interrupt_id"];
    assert_eq!(ann.session("s1")["interrupts"][0]["origin"], "machine");
    assert_eq!(ann.input(&resume(id, &json!(1))).status, 403);
    assert_eq!(bob.input(&resume(id, &json!(1))).status, 403);
    assert_eq!(ann.session("s1")["status"], "interrupted");
    machine.submit(&resume_as_machine(id)).expect(202);
    assert_eq!(ann.session("s1")["status"], "idle");
    // What a user raised, the backend may answer too.
    let paused = interrupt(&ann, &json!({ "reason": "wait" })).expect(200);
    machine.submit(&resume_as_machine(&paused["interrupt_id"])).expect(202);
    assert_eq!(ann.session("s1")["status"], "idle");
}

#[test]
fn a_turn_that_waits_behind_a_pause_starts_after_it() {
    let provider = Provider::start();
    let place = Place::with_manifest(&provider.manifest());
    let server = place.serve();
    let ann = server.client("ann");
    ann.say("s1", "t1", "hello");
    provider.call().answer("hi");
    ann.watch_turn("s1", "t1");
    let paused = interrupt(&ann, &json!({ "reason": "wait" })).expect(200);
    let mut body = message("s1", "t2", "later");
    body["input"]["queue"] = true.into();
    assert_eq!(ann.input(&body).expect(202)["queued"], true);
    server.kill();
    let server = place.serve();
    let ann = server.client("ann");
    assert!(provider.is_idle());
    ann.input(&resume(&paused["interrupt_id"], &json!(null))).expect(202);
    let call = provider.call();
    assert_eq!(call.last_message(), "later");
    call.answer("now");
    assert_eq!(ann.watch_turn("s1", "t2").last().unwrap().payload()["data"], "now");
}
