//! What a server is worth that is killed, stopped and started again (S39, reliability 3).

use crate::kit::{
    Connection, Frame, Place, Provider, Stream, message, recorded, shown_text, wait_for,
};

/// Attempts follow each other at once.
const QUICK: &str = "[agent.demo]\nllm = \"demo\"\nmodel = \"demo\"\n\
                     retry.llm = { max_retries = 9, backoff_base_secs = 0.01 }\n";

/// A reply that takes long enough to be interrupted.
const SLOW: &str = "/slow 40 a b c d e f g h i j k l m n o p q r s t";
const SLOW_REPLY: &str = "You said: a b c d e f g h i j k l m n o p q r s t";

fn find<'f>(frames: &'f [Frame], event: &str) -> &'f Frame {
    frames.iter().find(|frame| frame.event == event).unwrap_or_else(|| panic!("no {event}"))
}

#[test]
fn a_turn_that_a_kill_interrupts_goes_on_by_itself() {
    let place = Place::with_manifest(QUICK);
    let server = place.serve();
    let ann = server.client("ann");
    ann.say("s1", "t1", SLOW);
    let mut stream = ann.stream("s1", "");
    let before = stream.until(|frame| frame.is_delta() && frame.data["seq"] == 3);
    server.kill();
    // The reader has what was in flight, and then a broken connection.
    let mut seen = before;
    while let Ok(Some(frame)) = stream.try_next() {
        seen.push(frame);
    }
    let after = seen.iter().filter_map(|frame| frame.id).next_back().unwrap();
    let requested = find(&seen, "llm.call.requested").payload()["id"].as_str().unwrap().to_owned();

    let server = place.serve();
    let ann = server.client("ann");
    let resumed = ann.stream("s1", &format!("?after_seq={after}")).until_completed("t1");
    let ids: Vec<u64> = resumed.iter().filter_map(|frame| frame.id).collect();
    let expected: Vec<u64> = (after + 1..=after + ids.len() as u64).collect();
    assert_eq!(ids, expected, "no gap and no repeat");
    let errored = find(&resumed, "llm.call.errored").payload();
    assert_eq!(errored["attempt"], 1);
    assert_eq!(errored["will_retry"], true);
    assert_eq!(errored["error"]["detail"], "interrupted");
    let dispatched = find(&resumed, "llm.call.dispatched").payload();
    assert_eq!(
        (&dispatched["id"], &dispatched["attempt"]),
        (&requested.as_str().into(), &2.into())
    );
    let reply = find(&resumed, "message.new").payload();
    assert_eq!(reply["message"]["id"], format!("{requested}~2"));
    assert_eq!(reply["message"]["content"], SLOW_REPLY);
    for delta in resumed.iter().filter(|frame| frame.is_delta()) {
        assert_eq!(delta.data["call_id"], reply["message"]["id"]);
    }
    let whole = ann.stream("s1", "").until_completed("t1");
    assert_eq!(recorded(&whole), recorded(&seen) + &recorded(&resumed));
    assert_eq!(ann.conversation("s1").len(), 2);
}

#[test]
fn a_turn_goes_on_after_many_kills() {
    let place = Place::with_manifest(QUICK);
    let server = place.serve();
    let ann = server.client("ann");
    ann.say("s1", "t1", SLOW);
    ann.stream("s1", "").until(Frame::is_delta);
    server.kill();
    let mut seen = String::new();
    for round in 2..=5 {
        let server = place.serve();
        let ann = server.client("ann");
        let frames = ann.stream("s1", "").until(Frame::is_delta);
        let last = frames.last().unwrap();
        let call = find(&frames, "llm.call.requested").payload()["id"].as_str().unwrap();
        assert_eq!(last.data["call_id"], format!("{call}~{round}"));
        let bytes = recorded(&frames);
        assert!(bytes.starts_with(&seen), "what was shown stays");
        assert!(bytes.len() > seen.len());
        seen = bytes;
        server.kill();
    }
    let server = place.serve();
    let frames = server.client("ann").watch_turn("s1", "t1");
    assert_eq!(frames.last().unwrap().payload()["data"], SLOW_REPLY);
    let completed = frames.iter().filter(|frame| frame.event == "turn.completed").count();
    assert_eq!(completed, 1);
}

#[test]
fn attempts_that_kills_interrupt_are_counted() {
    let manifest = "[agent.demo]\nllm = \"demo\"\nmodel = \"demo\"\n\
                    retry.llm = { max_retries = 2, backoff_base_secs = 0.01 }\n";
    let place = Place::with_manifest(manifest);
    let server = place.serve();
    let ann = server.client("ann");
    ann.say("s1", "t1", SLOW);
    ann.stream("s1", "").until(Frame::is_delta);
    server.kill();
    let server = place.serve();
    server.client("ann").stream("s1", "").until(Frame::is_delta);
    server.kill();
    let server = place.serve();
    let frames = server.client("ann").watch_turn("s1", "t1");
    let completed = frames.last().unwrap().payload();
    assert_eq!(completed["error"]["detail"], "interrupted");
    assert_eq!(find(&frames, "turn.completed"), frames.last().unwrap());
    let ann = server.client("ann");
    ann.say("s1", "t2", "and now");
    assert_eq!(ann.watch_turn("s1", "t2").last().unwrap().payload()["data"], "You said: and now");
}

#[test]
fn queued_turns_survive_a_kill_in_their_order() {
    let provider = Provider::start();
    let place = Place::with_manifest(&provider.manifest());
    let server = place.serve();
    let ann = server.client("ann");
    ann.say("s1", "t0", "text 0");
    let held = provider.call();
    for number in 1..=4 {
        let mut queue = message("s1", &format!("t{number}"), &format!("text {number}"));
        queue["input"]["queue"] = true.into();
        assert_eq!(ann.input(&queue).expect(202)["queued"], true);
    }
    server.kill();
    drop(held);
    let server = place.serve();
    let ann = server.client("ann");
    let mut held = Some(provider.call());
    // The same ids are the same turns.
    for number in 1..=4 {
        let answer = ann.input(&message("s1", &format!("t{number}"), "other")).expect(202);
        assert_eq!(answer["queued"], true);
    }
    for number in 0..=4 {
        let call = held.take().unwrap_or_else(|| provider.call());
        assert_eq!(call.last_message(), format!("text {number}"));
        assert!(provider.is_idle());
        call.answer(&format!("answer {number}"));
    }
    ann.watch_turn("s1", "t4");
    let texts: Vec<String> = ann.conversation("s1").into_iter().map(|(_, text)| text).collect();
    let expected: Vec<String> =
        (0..=4).flat_map(|n| [format!("text {n}"), format!("answer {n}")]).collect();
    assert_eq!(texts, expected);
}

#[test]
fn finished_work_is_not_done_again_after_a_kill() {
    let provider = Provider::start();
    let place = Place::with_manifest(&provider.manifest());
    let server = place.serve();
    let ann = server.client("ann");
    ann.say("s1", "t1", "one");
    provider.call().answer("first");
    let before = recorded(&ann.stream("s1", "").until_completed("t1"));
    server.kill();
    let server = place.serve();
    let ann = server.client("ann");
    assert_eq!(ann.input(&message("s1", "t1", "one")).expect(202)["queued"], false);
    assert_eq!(recorded(&ann.stream("s1", "").until_completed("t1")), before);
    ann.say("s1", "t2", "two");
    let call = provider.call();
    assert_eq!(call.last_message(), "two");
    call.answer("second");
    ann.watch_turn("s1", "t2");
    assert!(provider.is_idle());
}

#[test]
fn a_second_server_on_the_same_data_is_told_where_the_first_one_is() {
    let place = Place::new();
    let server = place.serve();
    for exit in
        [place.try_serve().err().unwrap(), place.run(&["run", "hello", "--data", "turnd-data"])]
    {
        assert_eq!(exit.code, Some(1));
        assert_eq!(exit.stdout, "");
        let line = exit.stderr.lines().last().unwrap();
        let expected = format!(
            "turnd: the server at http://{} holds the data folder turnd-data",
            server.address
        );
        assert_eq!(line, expected);
    }
    // The first one has not noticed.
    let ann = server.client("ann");
    ann.say("s1", "t1", "hello");
    ann.watch_turn("s1", "t1");
    server.kill();
    // A killed server holds nothing.
    let server = place.serve();
    assert_eq!(server.client("ann").conversation("s1").len(), 2);
}

#[test]
fn nobody_is_told_of_a_server_that_is_gone() {
    let place = Place::new();
    let server = place.serve();
    let gone = server.address.to_string();
    server.kill();
    let run = place.start(&["run", "/slow 500 a b c d e f g h i j k l m n o p"]);
    wait_for("the first word", || (!run.stdout().is_empty()).then_some(()));
    let refused = place.try_serve().err().unwrap();
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("holds the data folder turnd-data"), "{refused:?}");
    assert!(!refused.stderr.contains(&gone), "{refused:?}");
}

#[test]
fn a_stop_waits_for_the_reply_that_is_being_made() {
    let place = Place::with_manifest(QUICK);
    let server = place.serve();
    let ann = server.client("ann");
    ann.say("s1", "t1", SLOW);
    let mut stream = ann.stream("s1", "");
    let mut seen = stream.until(Frame::is_delta);
    server.terminate();
    seen.extend(stream.rest());
    let exit = server.exit();
    assert_eq!(exit.code, Some(0));
    assert_eq!(seen.last().unwrap().bytes, ": server shutting down\n\n");
    let completed = find(&seen, "turn.completed").payload();
    assert_eq!(completed["data"], SLOW_REPLY);
    assert_eq!(shown_text(&seen), SLOW_REPLY);
    let server = place.serve();
    let replayed = server.client("ann").stream("s1", "").until_completed("t1");
    assert_eq!(recorded(&replayed), recorded(&seen));
}

#[test]
fn a_stop_that_cannot_wait_leaves_the_turn_to_the_next_start() {
    let place = Place::with_manifest(&format!("[serve]\nshutdown_secs = 1\n{QUICK}"));
    let server = place.serve();
    let ann = server.client("ann");
    ann.say("s1", "t1", "/slow 10000 held");
    let mut stream = ann.stream("s1", "");
    stream.until(|frame| frame.event == "llm.call.dispatched");
    server.terminate();
    assert_eq!(stream.rest().last().unwrap().bytes, ": server shutting down\n\n");
    assert_eq!(server.exit().code, Some(0));
    let server = place.serve();
    let ann = server.client("ann");
    let frames = ann
        .stream("s1", "")
        .until(|frame| frame.event == "llm.call.dispatched" && frame.payload()["attempt"] == 2);
    assert!(!frames.iter().any(|frame| frame.event == "turn.completed"));
}

#[test]
fn a_server_that_stops_takes_no_input_and_says_so() {
    let provider = Provider::start();
    let server = Place::with_manifest(&provider.manifest()).serve_once();
    let ann = server.client("ann");
    ann.say("s1", "t1", "hello");
    let call = provider.call();
    let mut stream = ann.stream("s1", "");
    server.terminate();
    let refused = wait_for("the server to take no more", || {
        let answer = ann.input(&message("s2", "t1", "hello"));
        (answer.status != 202).then_some(answer)
    });
    assert!(refused.header("retry-after").is_some());
    assert_eq!(refused.refusal(503), "the server is busy or stopping; try again in 1 s");
    assert_eq!(server.stranger().get("/readyz").status, 503);
    assert_eq!(server.stranger().get("/healthz").status, 200);
    assert_eq!(ann.conversation("s1").len(), 1, "reads go on");
    call.answer("done");
    let frames = stream.until_completed("t1");
    assert_eq!(frames.last().unwrap().payload()["data"], "done");
}

#[test]
fn a_stream_that_is_asked_for_while_the_server_stops_ends_as_well() {
    let place = Place::new();
    let server = place.serve();
    let ann = server.client("ann");
    for session in ["s1", "s2"] {
        ann.say(session, "t1", "hello");
        ann.watch_turn(session, "t1");
    }
    server.kill();
    let server = place.serve();
    let ann = server.client("ann");
    // A request that is half sent when the stop begins, for a session that nobody has opened.
    let request = ann.request("GET", &ann.stream_path("s1", ""), &[], &[]);
    let (start, end) = request.split_at(request.len() / 2);
    let mut late = Connection::open(server.address);
    late.send(start);
    let mut early = ann.stream("s2", "");
    early.until_completed("t1");
    server.terminate();
    early.rest();
    let stream = Stream::try_open(late, end).expect("it is answered");
    let frames = stream.unwrap_or_else(|refused| panic!("{}", refused.text())).rest();
    assert_eq!(frames.last().unwrap().bytes, ": server shutting down\n\n");
    assert_eq!(server.exit().code, Some(0));
}

#[test]
fn an_interrupt_from_the_keyboard_stops_as_well() {
    let server = Place::new().serve_once();
    server.signal("INT");
    let exit = server.exit();
    assert_eq!(exit.code, Some(0), "{exit:?}");
}

#[test]
fn a_second_signal_does_not_wait_for_calls() {
    let place = Place::with_manifest(&format!("[serve]\nshutdown_secs = 600\n{QUICK}"));
    let server = place.serve();
    let ann = server.client("ann");
    ann.say("s1", "t1", "/slow 10000 held");
    server.terminate();
    wait_for("the stop to begin", || {
        (server.stranger().get("/readyz").status == 503).then_some(())
    });
    server.terminate();
    assert_eq!(server.exit().code, Some(1));
    let server = place.serve();
    let again =
        |frame: &Frame| frame.event == "llm.call.dispatched" && frame.payload()["attempt"] == 2;
    server.client("ann").stream("s1", "").until(again);
}

#[test]
fn a_session_whose_agent_is_gone_can_be_read_and_takes_no_input() {
    let place = Place::with_manifest("[agent.demo]\nllm = \"demo\"\nmodel = \"demo\"\n");
    let server = place.serve();
    let ann = server.client("ann");
    ann.say("s1", "t1", "hello");
    ann.watch_turn("s1", "t1");
    server.kill();
    place.write_manifest("[agent.other]\nllm = \"demo\"\nmodel = \"demo\"\n");
    let server = place.serve();
    let ann = server.client("ann");
    assert_eq!(ann.conversation("s1").len(), 2);
    let refusal = ann.input(&message("s1", "t2", "hello")).refusal(404);
    assert_eq!(refusal, "unknown agent `demo`");
    // A known turn is answered all the same.
    assert_eq!(ann.input(&message("s1", "t1", "hello")).status, 202);
}
