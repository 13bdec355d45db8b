//! Tools that a front end handles: offered with an input, answered by a result or a message (S22,
//! S23, S38, S60).

use serde_json::{Value, json};

use crate::kit::{Caller, Frame, Place, Server, input, message};

/// An input that offers the tools `clock` and `door`, and says `text`.
fn with_tools(turn: &str, text: &str) -> Value {
    let tools = json!([
        { "name": "clock", "description": "Tells the time", "input": { "type": "object" } },
        { "name": "door", "handler": "worker" },
    ]);
    let fields = json!({
        "type": "client.append",
        "messages": [{ "role": "user", "content": text }],
        "client": { "tools": tools },
    });
    input("s1", turn, fields)
}

/// An answer to a call, of either kind.
fn settle(fields: &Value) -> Value {
    json!({ "session_id": "s1", "input": fields })
}

fn result(id: &str, result: &Value) -> Value {
    settle(&json!({ "type": "tool.result", "id": id, "result": result }))
}

/// Submits and waits until `count` calls wait for their client; returns their ids.
fn ask(caller: &Caller, turn: &str, text: &str, count: usize) -> Vec<String> {
    caller.input(&with_tools(turn, text)).expect(202);
    let mut stream = caller.stream("s1", "");
    let mut started = false;
    let mut ids = Vec::new();
    while ids.len() < count {
        let frame = stream.next().expect("the stream goes on");
        started |= frame.event == "turn.started" && frame.payload()["turn_id"] == turn;
        if started && frame.event == "tool.call.dispatched" {
            ids.push(frame.payload()["id"].as_str().unwrap().to_owned());
        }
    }
    ids
}

fn place() -> (Place, Server) {
    let place = Place::new();
    let server = place.serve();
    (place, server)
}

fn last_text(caller: &Caller) -> String {
    caller.conversation("s1").pop().expect("something was said").1
}

#[test]
fn a_result_continues_the_turn_that_waits_for_it() {
    let (place, server) = place();
    let ann = server.client("ann");
    let ids = ask(&ann, "t1", "/call clock {\"zone\":\"utc\"}", 1);
    let frames = ann.stream("s1", "").until(|frame| frame.event == "tool.call.requested");
    let requested = frames.last().unwrap().payload();
    assert_eq!((&requested["name"], &requested["handler"]), (&"clock".into(), &"client".into()));
    assert_eq!(requested["arguments"], "{\"zone\":\"utc\"}");
    assert_eq!(ann.session("s1")["status"], "idle");

    // A call that waits for its client outlives a restart.
    server.kill();
    let server = place.serve();
    let ann = server.client("ann");
    let taken = ann.input(&result(&ids[0], &json!("noon"))).expect(202);
    assert_eq!((&taken["turn_id"], &taken["queued"]), (&"t1".into(), &false.into()));
    let frames = ann.watch_turn("s1", "t1");
    assert_eq!(frames.last().unwrap().payload()["data"], "clock answered: noon");
    let completed = frames.iter().find(|frame| frame.event == "tool.call.completed").unwrap();
    assert_eq!(completed.id, taken["seq"].as_u64());
    let content = json!({ "content": [{ "type": "text", "text": "noon" }] });
    assert_eq!(completed.payload()["result"], content);
    let roles: Vec<String> = ann.conversation("s1").into_iter().map(|(role, _)| role).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);

    let again = ann.input(&result(&ids[0], &json!("one"))).expect(409);
    assert_eq!(again, json!({ "error": "effect is not pending", "seq": taken["seq"] }));
    assert_eq!(last_text(&ann), "clock answered: noon");
}

#[test]
fn a_message_of_the_tool_is_as_good_as_a_result() {
    let (_place, server) = place();
    let ann = server.client("ann");
    let ids = ask(&ann, "t1", "/call clock {}", 1);
    let said = json!({ "id": "m9", "role": "tool", "tool_call_id": ids[0], "content": "dusk" });
    let fields = json!({ "type": "client.append", "messages": [said] });
    let taken = ann.input(&input("s1", "r1", fields)).expect(202);
    assert_eq!(taken["turn_id"], "t1", "it continues the turn that asked");
    ann.watch_turn("s1", "t1");
    assert_eq!(last_text(&ann), "clock answered: dusk");
    assert_eq!(ann.session("s1")["messages"][2]["id"], "m9");

    // In a whole view, too.
    let ids = ask(&ann, "t2", "/call door {}", 1);
    let mut view = ann.session("s1")["messages"].as_array().unwrap().clone();
    view.push(json!({ "role": "tool", "tool_call_id": ids[0], "content": "open" }));
    let fields = json!({ "type": "client.messages", "messages": view });
    assert_eq!(ann.input(&input("s1", "r2", fields)).expect(202)["turn_id"], "t2");
    ann.watch_turn("s1", "t2");
    assert_eq!(last_text(&ann), "door answered: open");
}

#[test]
fn the_model_goes_on_when_every_call_of_its_batch_is_answered() {
    let (place, server) = place();
    let ann = server.client("ann");
    let ids = ask(&ann, "t1", "/call clock {}\n/call door {}", 2);
    ann.input(&result(&ids[1], &json!({ "is": "open" }))).expect(202);
    let seq = ann.stream("s1", "").until(|frame| frame.event == "tool.call.completed");
    let seq = seq.last().unwrap().id.unwrap();
    server.kill();
    let server = place.serve();
    let ann = server.client("ann");
    let error = json!({
        "type": "tool.error", "id": ids[0], "error": "it stands still", "retryable": false,
    });
    ann.input(&settle(&error)).expect(202);
    let frames = ann.stream("s1", &format!("?after_seq={seq}")).until_completed("t1");
    let kinds: Vec<&str> = frames
        .iter()
        .filter(|frame| frame.id.is_some())
        .map(|frame| frame.event.as_str())
        .collect();
    assert_eq!(
        kinds,
        [
            "message.new",
            "tool.call.errored",
            "message.new",
            "llm.call.requested",
            "llm.call.dispatched",
            "llm.call.completed",
            "message.new",
            "turn.completed"
        ]
    );
    let said: Vec<String> = ann.conversation("s1").into_iter().map(|(_, text)| text).collect();
    assert_eq!(
        said[2..],
        ["{\"is\":\"open\"}", "it stands still", "clock answered: it stands still"]
    );
}

#[test]
fn a_user_may_go_on_without_an_answer() {
    let (_place, server) = place();
    let ann = server.client("ann");
    let ids = ask(&ann, "t1", "/call clock {}", 1);
    ann.say("s1", "t2", "never mind");
    let frames = ann.stream("s1", "").until_completed("t2");
    let errored = frames.iter().find(|frame| frame.event == "tool.call.errored").unwrap();
    assert_eq!(errored.payload()["id"], ids[0].as_str());
    let message = &errored.payload()["error"]["message"];
    assert_eq!(message, "the user continued without answering");
    let completes = |turn: &str| {
        frames.iter().position(|frame: &Frame| frame.completes(turn)).expect("it completes")
    };
    assert!(completes("t1") < completes("t2"));
    assert_eq!(last_text(&ann), "You said: never mind");
    assert_eq!(ann.input(&result(&ids[0], &json!("late"))).status, 409);
}

#[test]
fn only_an_open_call_of_the_callers_own_session_is_settled() {
    let (_place, server) = place();
    let (ann, bob, machine) = (server.client("ann"), server.client("bob"), server.machine());
    assert_eq!(ann.input(&result("x", &json!(1))).refusal(404), "unknown session");
    let ids = ask(&ann, "t1", "/call clock {}", 1);
    assert_eq!(ann.input(&result("x", &json!(1))).refusal(404), "unknown effect");
    assert_eq!(bob.input(&result(&ids[0], &json!(1))).status, 403);
    let mut stale = result(&ids[0], &json!(1));
    stale["input"]["attempt"] = 2.into();
    assert_eq!(ann.input(&stale).refusal(409), "effect is not pending");
    let nowhere = json!({ "input": { "type": "tool.result", "id": ids[0], "result": 1 } });
    assert_eq!(ann.input(&nowhere).refusal(422), "`session_id` is missing");
    // A message that waits for no call asks nothing.
    let refused = ann.input(&message("s1", "t1", "again"));
    assert_eq!(refused.expect(202)["turn_id"], "t1");

    let payload = json!({ "type": "tool.result", "id": ids[0], "result": "by the backend" });
    let body = json!({
        "session_id": "s1", "agent_id": "demo", "identity": { "id": "ann" }, "payload": payload,
    });
    assert_eq!(machine.submit(&body).expect(202)["turn_id"], "t1");
    ann.watch_turn("s1", "t1");
    assert_eq!(last_text(&ann), "clock answered: by the backend");
}

#[test]
fn a_stream_by_the_id_of_an_answer_is_of_the_turn_that_went_on() {
    let (_place, server) = place();
    let ann = server.client("ann");
    let calls = ask(&ann, "t1", "/call clock {}", 1);
    let answer = json!({ "role": "tool", "id": "r1", "tool_call_id": calls[0], "content": "12" });
    let fields = json!({ "type": "client.message", "message": answer });
    let accepted = ann.input(&input("s1", "t1-answer", fields)).expect(202);
    assert_eq!(accepted["turn_id"], "t1");
    let frames = ann.watch_turn("s1", "t1-answer");
    assert_eq!(frames.last().unwrap().payload()["turn_id"], "t1");
}

#[test]
fn a_tool_may_answer_null() {
    let (_place, server) = place();
    let ann = server.client("ann");
    let calls = ask(&ann, "t1", "/call clock {}", 1);
    ann.input(&result(&calls[0], &Value::Null)).expect(202);
    ann.watch_turn("s1", "t1");
    assert_eq!(last_text(&ann), "clock answered: null");
}
