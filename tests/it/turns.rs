//! Turns over both APIs: submits, the queue, and who may do what (interface 4, S17 to S19).

use serde_json::{Value, json};

use crate::kit::{Place, Provider, Response, message, recorded, shown_text};

/// A submit of the machine API for `owner`.
fn submission(owner: &str, session: &str, turn: &str, text: &str) -> Value {
    json!({
        "agent_id": "demo",
        "identity": { "id": owner },
        "session_id": session,
        "turn_id": turn,
        "payload": {
            "type": "client.message",
            "message": { "role": "user", "content": text },
        },
    })
}

fn queued(mut body: Value) -> Value {
    let envelope = if body.get("input").is_some() { &mut body["input"] } else { &mut body };
    envelope["queue"] = true.into();
    body
}

fn accepted(session: &str, turn: &str, queued: bool) -> Value {
    json!({ "session_id": session, "turn_id": turn, "queued": queued })
}

/// A 202 without the position that it tells.
fn taken(response: &Response) -> Value {
    let mut taken = response.expect(202);
    let seq = taken.as_object_mut().unwrap().remove("seq");
    assert!(seq.and_then(|seq| seq.as_u64()) > Some(0), "{}", response.text());
    taken
}

/// The types of the events of a stream, without the deltas.
fn kinds(frames: &[crate::kit::Frame]) -> Vec<&str> {
    frames.iter().filter(|frame| frame.id.is_some()).map(|frame| frame.event.as_str()).collect()
}

#[test]
fn a_turn_over_the_client_api_is_answered_recorded_and_shown() {
    let server = Place::new().serve_once();
    let ann = server.client("ann");
    ann.say("s1", "t1", "hello there");
    let frames = ann.stream("s1", "").until_completed("t1");
    assert_eq!(
        kinds(&frames),
        [
            "session.created",
            "turn.started",
            "message.new",
            "llm.call.requested",
            "llm.call.dispatched",
            "llm.call.completed",
            "message.new",
            "turn.completed",
        ]
    );
    for (place, frame) in frames.iter().filter(|frame| frame.id.is_some()).enumerate() {
        assert_eq!(frame.id, Some(place as u64 + 1), "seq is dense from 1");
        assert_eq!(frame.data["seq"], place as u64 + 1);
        assert_eq!(frame.data["session_id"], "s1");
        assert_eq!(frame.data["payload"]["type"], frame.event.as_str());
        let occurred_at = frame.data["occurred_at"].as_str().unwrap();
        assert!(occurred_at.len() == 24 && occurred_at.ends_with('Z'), "{occurred_at}");
    }
    assert_eq!(frames.last().unwrap().payload()["data"], "You said: hello there");

    let session = ann.session("s1");
    assert_eq!(session["session_id"], "s1");
    assert_eq!(session["agent_id"], "demo");
    assert_eq!(session["status"], "idle");
    assert_eq!(session["interrupts"], json!([]));
    assert_eq!(session["message_tree"]["nodes"].as_array().unwrap().len(), 2);
    assert_eq!(session["message_tree"]["head_id"], session["messages"][1]["id"]);
    let said = |role: &str, text: &str| (role.to_owned(), text.to_owned());
    assert_eq!(
        ann.conversation("s1"),
        [said("user", "hello there"), said("assistant", "You said: hello there")]
    );
}

#[test]
fn a_turn_over_the_machine_api_belongs_to_the_identity_it_names() {
    let server = Place::new().serve_once();
    let machine = server.machine();
    let answer = taken(&machine.submit(&submission("bob", "s1", "t1", "hi")));
    assert_eq!(answer, accepted("s1", "t1", false));
    let frames = machine.watch_turn("s1", "t1");
    assert_eq!(frames.last().unwrap().payload()["data"], "You said: hi");

    let bob = server.client("bob");
    assert_eq!(bob.conversation("s1").len(), 2);
    bob.say("s1", "t2", "again");
    bob.watch_turn("s1", "t2");
    assert_eq!(bob.conversation("s1").len(), 4);
}

#[test]
fn a_submit_without_ids_gets_both_from_the_engine() {
    let server = Place::new().serve_once();
    let ann = server.client("ann");
    let body = json!({ "input": {
        "type": "client.message",
        "agent_id": "demo",
        "message": { "role": "user", "content": "hi" },
    }});
    let first = ann.input(&body).expect(202);
    let second = ann.input(&body).expect(202);
    assert_ne!(first["session_id"], second["session_id"]);
    assert_ne!(first["turn_id"], second["turn_id"]);
    for answer in [&first, &second] {
        let (session, turn) =
            (answer["session_id"].as_str().unwrap(), answer["turn_id"].as_str().unwrap());
        assert_eq!((session.len(), turn.len()), (36, 36), "UUIDs");
        assert_eq!(answer["queued"], false);
        let frames = ann.watch_turn(session, turn);
        assert_eq!(frames.last().unwrap().payload()["data"], "You said: hi");
    }
}

#[test]
fn a_known_turn_id_answers_that_turn_while_it_runs_waits_or_is_complete() {
    let provider = Provider::start();
    let server = Place::with_manifest(&provider.manifest()).serve_once();
    let ann = server.client("ann");
    ann.say("s1", "t1", "one");
    let call = provider.call();
    // Running: whatever the body says now.
    assert_eq!(taken(&ann.input(&message("s1", "t1", "other"))), accepted("s1", "t1", false));
    let queue = queued(message("s1", "t2", "two"));
    assert_eq!(taken(&ann.input(&queue)), accepted("s1", "t2", true));
    // Queued: with or without the wish to queue.
    assert_eq!(taken(&ann.input(&queue)), accepted("s1", "t2", true));
    assert_eq!(taken(&ann.input(&message("s1", "t2", "other"))), accepted("s1", "t2", true));
    call.answer("first");
    provider.call().answer("second");
    let mut stream = ann.stream("s1", "");
    let frames = stream.until_completed("t2");
    for turn in ["t1", "t2"] {
        let again = taken(&ann.input(&message("s1", turn, "other")));
        assert_eq!(again, accepted("s1", turn, false));
    }
    // Known turns have added nothing: the next event is of the next turn.
    ann.say("s1", "t3", "three");
    let last = frames.last().unwrap().id.unwrap();
    let next = stream.until(|frame| frame.id.is_some());
    assert_eq!((next[0].id, next[0].event.as_str()), (Some(last + 1), "turn.started"));
    provider.call().answer("third");
    stream.until_completed("t3");
    assert_eq!(ann.conversation("s1").len(), 6);
}

#[test]
fn a_second_turn_is_refused_with_the_id_of_the_running_one() {
    let provider = Provider::start();
    let server = Place::with_manifest(&provider.manifest()).serve_once();
    let ann = server.client("ann");
    ann.say("s1", "t1", "one");
    let call = provider.call();
    for response in [
        ann.input(&message("s1", "t2", "two")),
        server.machine().submit(&submission("ann", "s1", "t2", "two")),
    ] {
        let refusal = response.expect(409);
        assert_eq!(refusal, json!({ "error": "turn_already_active", "turn_id": "t1", "seq": 2 }));
    }
    call.answer("done");
    ann.watch_turn("s1", "t1");
    ann.say("s1", "t2", "two");
    provider.call().answer("done too");
    ann.watch_turn("s1", "t2");
}

#[test]
fn queued_turns_run_one_after_the_other_in_the_order_of_their_arrival() {
    let provider = Provider::start();
    let server = Place::with_manifest(&provider.manifest()).serve_once();
    let (ann, machine) = (server.client("ann"), server.machine());
    ann.say("s1", "t0", "text 0");
    let mut call = provider.call();
    for number in 1..=6 {
        let (turn, text) = (format!("t{number}"), format!("text {number}"));
        let response = if number % 2 == 0 {
            ann.input(&queued(message("s1", &turn, &text)))
        } else {
            machine.submit(&queued(submission("ann", "s1", &turn, &text)))
        };
        assert_eq!(taken(&response), accepted("s1", &turn, true));
    }
    for number in 0..=6 {
        assert_eq!(call.last_message(), format!("text {number}"));
        let messages = call.request["messages"].as_array().unwrap().len();
        assert_eq!(messages, 2 * number + 1, "a turn sees the ones before it, and no later one");
        assert!(provider.is_idle(), "one turn at a time");
        call.answer(&format!("answer {number}"));
        if number == 6 {
            break;
        }
        call = provider.call();
    }
    let frames = ann.stream("s1", "").until_completed("t6");
    let of_kind = |kind: &str| -> Vec<String> {
        let frames = frames.iter().filter(|frame| frame.event == kind);
        frames.map(|frame| frame.payload()["turn_id"].as_str().unwrap().to_owned()).collect()
    };
    let order: Vec<String> = (0..=6).map(|number| format!("t{number}")).collect();
    assert_eq!(of_kind("turn.started"), order);
    assert_eq!(of_kind("turn.completed"), order);
    assert_eq!(of_kind("turn.queued"), order[1..]);
    let texts: Vec<String> = ann.conversation("s1").into_iter().map(|(_, text)| text).collect();
    let expected: Vec<String> =
        (0..=6).flat_map(|n| [format!("text {n}"), format!("answer {n}")]).collect();
    assert_eq!(texts, expected);
}

#[test]
fn a_full_queue_refuses_more_and_says_when_to_try_again() {
    let provider = Provider::start();
    let manifest = format!("[limits]\nqueued_turns_max = 2\n{}", provider.manifest());
    let server = Place::with_manifest(&manifest).serve_once();
    let ann = server.client("ann");
    ann.say("s1", "t0", "zero");
    let call = provider.call();
    for turn in ["t1", "t2"] {
        let answer = taken(&ann.input(&queued(message("s1", turn, turn))));
        assert_eq!(answer, accepted("s1", turn, true));
    }
    let full = ann.input(&queued(message("s1", "t3", "three")));
    assert_eq!(full.refusal(429), "too many queued turns; try again in 5 s");
    assert_eq!(full.header("retry-after"), Some("5"));
    // A known turn is no new one.
    let known = taken(&ann.input(&queued(message("s1", "t2", "two"))));
    assert_eq!(known, accepted("s1", "t2", true));
    call.answer("ok");
    provider.call().answer("ok");
    ann.watch_turn("s1", "t1");
    let room = taken(&ann.input(&queued(message("s1", "t3", "three"))));
    assert_eq!(room, accepted("s1", "t3", true));
    provider.call().answer("ok");
    provider.call().answer("ok");
    ann.watch_turn("s1", "t3");
}

#[test]
fn a_session_keeps_its_agent() {
    let manifest = "[agent.demo]\nllm = \"demo\"\nmodel = \"demo\"\n\
                    [agent.other]\nllm = \"demo\"\nmodel = \"demo\"\n";
    let server = Place::with_manifest(manifest).serve_once();
    let ann = server.client("ann");
    ann.say("s1", "t1", "hi");
    ann.watch_turn("s1", "t1");
    let mut other = message("s1", "t2", "hi");
    other["input"]["agent_id"] = "other".into();
    assert_eq!(ann.input(&other).refusal(409), "agent mismatch: this session runs `demo`");
    other["session_id"] = "s2".into();
    assert_eq!(taken(&ann.input(&other)), accepted("s2", "t2", false));
}

#[test]
fn an_agent_that_is_not_declared_is_not_found_and_leaves_no_session() {
    let server = Place::new().serve_once();
    let (ann, machine) = (server.client("ann"), server.machine());
    let mut body = message("s1", "t1", "hi");
    body["input"]["agent_id"] = "nobody".into();
    assert_eq!(ann.input(&body).refusal(404), "unknown agent `nobody`");
    let mut body = submission("ann", "s1", "t1", "hi");
    body["agent_id"] = "nobody".into();
    assert_eq!(machine.submit(&body).refusal(404), "unknown agent `nobody`");
    assert_eq!(ann.get("/api/client/sessions/s1").refusal(404), "unknown session");
    ann.say("s1", "t1", "hi");
    ann.watch_turn("s1", "t1");
}

#[test]
fn a_session_is_closed_to_other_owners() {
    let server = Place::new().serve_once();
    let (ann, bob, machine) = (server.client("ann"), server.client("bob"), server.machine());
    ann.say("s1", "t1", "a secret");
    ann.watch_turn("s1", "t1");
    let before = recorded(&machine.stream("s1", "").until_completed("t1"));

    let no = "not the owner of this session";
    assert_eq!(bob.get("/api/client/sessions/s1").refusal(403), no);
    for query in ["", "?turn_id=t1", "?after_seq=2"] {
        assert_eq!(bob.no_stream("s1", query, &[]).refusal(403), no);
    }
    // Not even the id of a turn that is there is answered.
    for turn in ["t1", "t2"] {
        assert_eq!(bob.input(&message("s1", turn, "hi")).refusal(403), no);
        assert_eq!(bob.input(&queued(message("s1", turn, "hi"))).refusal(403), no);
        assert_eq!(machine.submit(&submission("bob", "s1", turn, "hi")).refusal(403), no);
    }
    ann.say("s1", "t2", "still mine");
    let frames = machine.stream("s1", "").until_completed("t2");
    let after: String = recorded(&frames);
    assert!(after.starts_with(&before));
    assert!(!after.contains("\"hi\""), "refusals add nothing: {after}");
}

#[test]
fn a_machine_caller_reads_the_sessions_of_every_owner() {
    let server = Place::new().serve_once();
    for owner in ["ann", "bob"] {
        let client = server.client(owner);
        client.say(owner, "t1", "hi");
        let seen = recorded(&client.watch_turn(owner, "t1"));
        assert_eq!(recorded(&server.machine().watch_turn(owner, "t1")), seen);
    }
}

#[test]
fn an_unknown_session_is_not_found() {
    let server = Place::new().serve_once();
    let (ann, machine) = (server.client("ann"), server.machine());
    assert_eq!(ann.get("/api/client/sessions/none").refusal(404), "unknown session");
    assert_eq!(ann.no_stream("none", "", &[]).refusal(404), "unknown session");
    assert_eq!(ann.no_stream("none", "?turn_id=t1", &[]).refusal(404), "unknown session");
    assert_eq!(machine.no_stream("none", "", &[]).refusal(404), "unknown session");
}

#[test]
fn a_call_that_fails_for_good_ends_its_turn_and_the_next_one_runs() {
    let manifest = "[agent.demo]\nllm = \"demo\"\nmodel = \"demo\"\n\
                    retry.llm = { max_retries = 3, backoff_base_secs = 0.01 }\n";
    let server = Place::with_manifest(manifest).serve_once();
    let ann = server.client("ann");
    ann.say("s1", "t1", "/fail rate_limited");
    let frames = ann.watch_turn("s1", "t1");
    let errors: Vec<&Value> = frames
        .iter()
        .filter(|frame| frame.event == "llm.call.errored")
        .map(crate::kit::Frame::payload)
        .collect();
    assert_eq!(errors.len(), 3, "one for each attempt");
    for (attempt, error) in (1..).zip(&errors) {
        assert_eq!(error["attempt"], attempt);
        assert_eq!(error["error"]["code"], "rate_limited");
        assert_eq!(error["will_retry"], attempt < 3);
        assert_eq!(error.get("retry_at").is_some(), attempt < 3);
    }
    let completed = frames.last().unwrap().payload();
    assert_eq!(completed["error"]["code"], "rate_limited");
    assert_eq!(completed.get("data"), None);
    ann.say("s1", "t2", "hello");
    let frames = ann.watch_turn("s1", "t2");
    assert_eq!(frames.last().unwrap().payload()["data"], "You said: hello");
}

#[test]
fn a_provider_that_fails_once_is_asked_again() {
    let provider = Provider::start();
    let server = Place::with_manifest(&provider.manifest()).serve_once();
    let ann = server.client("ann");
    ann.say("s1", "t1", "hello");
    provider.call().fail("503 Service Unavailable", &json!({ "error": { "message": "later" } }));
    // The second attempt speaks, then breaks off; there is no third.
    let mut call = provider.call();
    call.begin();
    call.piece("half an ");
    let frames = ann.stream("s1", "").until(crate::kit::Frame::is_delta);
    assert_eq!(shown_text(&frames), "half an ");
    drop(call);
    let frames = ann.watch_turn("s1", "t1");
    assert_eq!(frames.last().unwrap().payload()["error"]["code"], "provider_error");
    assert_eq!(ann.conversation("s1").len(), 1);
}

#[test]
fn a_call_of_a_tool_that_nobody_has_is_told_to_the_model() {
    let server = Place::new().serve_once();
    let ann = server.client("ann");
    ann.say("s1", "t1", "/call clock {\"zone\":\"UTC\"}");
    let frames = ann.watch_turn("s1", "t1");
    let requested = frames.iter().find(|frame| frame.event == "tool.call.requested").unwrap();
    assert_eq!(requested.payload()["name"], "clock");
    assert_eq!(requested.payload()["arguments"], "{\"zone\":\"UTC\"}");
    let answer = "clock answered: the tool `clock` is not declared";
    assert_eq!(frames.last().unwrap().payload()["data"], answer);
    let roles: Vec<String> = ann.conversation("s1").into_iter().map(|(role, _)| role).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
}

#[test]
fn stream_false_shows_no_deltas_and_records_the_same_reply() {
    let server = Place::new().serve_once();
    let ann = server.client("ann");
    let stream_of = |session: &str, stream: bool| {
        ann.say(session, "t0", "first");
        ann.watch_turn(session, "t0");
        let mut stream_all = ann.stream(session, "");
        stream_all.until_completed("t0");
        let mut body = message(session, "t1", "/long 50");
        body["input"]["stream"] = stream.into();
        ann.input(&body).expect(202);
        stream_all.until_completed("t1")
    };
    let (shown, quiet) = (stream_of("s1", true), stream_of("s2", false));
    assert!(shown.iter().any(crate::kit::Frame::is_delta));
    assert!(!quiet.iter().any(crate::kit::Frame::is_delta));
    let data = |frames: &[crate::kit::Frame]| frames.last().unwrap().payload()["data"].clone();
    assert_eq!(data(&shown), data(&quiet));
    assert_eq!(shown_text(&shown), data(&quiet).as_str().unwrap());
}

#[test]
fn sessions_do_not_wait_for_each_other() {
    let provider = Provider::start();
    let server = Place::with_manifest(&provider.manifest()).serve_once();
    let ann = server.client("ann");
    ann.say("slow", "t1", "one");
    let held = provider.call();
    for number in 0..5 {
        let session = format!("quick{number}");
        ann.say(&session, "t1", "two");
        provider.call().answer("done");
        ann.watch_turn(&session, "t1");
    }
    held.answer("at last");
    let frames = ann.watch_turn("slow", "t1");
    assert_eq!(frames.last().unwrap().payload()["data"], "at last");
}

#[test]
fn many_large_turns_that_owe_nothing_do_not_stick() {
    let provider = Provider::start();
    let server = Place::with_manifest(&provider.manifest()).serve_once();
    let ann = server.client("ann");
    ann.say("s1", "t0", "hold on");
    let call = provider.call();
    // All together they are larger than one append may be.
    let large = "x".repeat(1_000_000);
    for number in 1..=20 {
        let mut body = queued(message("s1", &format!("t{number}"), &large));
        body["input"]["message"]["role"] = "assistant".into();
        ann.input(&body).expect(202);
    }
    call.answer("done");
    let frames = ann.watch_turn("s1", "t20");
    assert_eq!(frames.last().unwrap().event, "turn.completed");
    assert_eq!(ann.conversation("s1").len(), 22, "each is recorded");
    ann.say("s1", "t21", "and now?");
    provider.call().answer("all is well");
    ann.watch_turn("s1", "t21");
}
