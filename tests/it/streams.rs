//! Event streams: resuming, one turn alone, late and slow watchers (interface 6, S50 to S53).

use serde_json::json;

use crate::kit::{
    Caller, Frame, Place, Provider, Server, Stream, message, recorded, shown_text, wait_for,
};

/// Two complete turns in session `s1`, and the bytes of its log.
fn two_turns(server: &Server) -> (Caller, Vec<Frame>) {
    let ann = server.client("ann");
    for turn in ["t1", "t2"] {
        ann.say("s1", turn, "hello");
        ann.watch_turn("s1", turn);
    }
    let frames = ann.stream("s1", "").until_completed("t2");
    (ann, frames)
}

pub fn ids(frames: &[Frame]) -> Vec<u64> {
    frames.iter().filter_map(|frame| frame.id).collect()
}

#[test]
fn a_stream_is_never_cached_or_buffered() {
    let server = Place::new().serve_once();
    let (ann, _) = two_turns(&server);
    for caller in [&ann, &server.machine()] {
        let stream = caller.stream("s1", "");
        let head = stream.head();
        assert_eq!(head.header("content-type"), Some("text/event-stream"));
        assert_eq!(head.header("cache-control"), Some("no-store"));
        assert_eq!(head.header("x-accel-buffering"), Some("no"));
        assert_eq!(head.header("x-content-type-options"), Some("nosniff"));
    }
}

#[test]
fn a_stream_resumes_after_every_event_with_the_same_bytes() {
    let server = Place::new().serve_once();
    let (ann, frames) = two_turns(&server);
    let whole = recorded(&frames);
    let last = frames.last().unwrap().id.unwrap();
    assert_eq!(ids(&frames), (1..=last).collect::<Vec<_>>());
    for after in 0..last {
        let (start, end): (Vec<_>, Vec<_>) =
            frames.iter().cloned().partition(|frame| frame.id <= Some(after));
        let number = after.to_string();
        // `Last-Event-ID` wins over the query.
        for (query, headers) in [
            (format!("?after_seq={after}"), &[][..]),
            (String::new(), &[("Last-Event-ID", number.as_str())]),
            (format!("?after_seq={}", last - after), &[("Last-Event-ID", number.as_str())]),
            ("?after_seq=x".to_owned(), &[("Last-Event-ID", number.as_str())]),
        ] {
            for caller in [&ann, &server.machine()] {
                let mut stream = caller.stream_with("s1", &query, headers);
                let resumed = stream.until_completed("t2");
                assert_eq!(recorded(&resumed), recorded(&end), "{query} {headers:?}");
                assert_eq!(recorded(&start) + &recorded(&resumed), whole);
            }
        }
    }
}

#[test]
fn a_place_that_is_no_number_is_a_bad_request() {
    let server = Place::new().serve_once();
    let (ann, _) = two_turns(&server);
    for value in ["x", "-1", "+1", "1.0", "1e3", "0x1", "", " ", "18446744073709551616", "1,2"] {
        let query = format!("?after_seq={}", value.replace(' ', "%20").replace('+', "%2B"));
        for caller in [&ann, &server.machine()] {
            let refusal = caller.no_stream("s1", &query, &[]).refusal(400);
            assert_eq!(refusal, "`after_seq` must be the seq of an event", "{value:?}");
            let refusal = caller.no_stream("s1", "?after_seq=1", &[("Last-Event-ID", value)]);
            let problem = "`Last-Event-ID` must be the seq of an event";
            assert_eq!(refusal.refusal(400), problem, "{value:?}");
        }
    }
    let refusal = ann.no_stream("s1", "?turn_id=a%2Fb", &[]).refusal(400);
    assert!(refusal.starts_with("`turn_id` must be 1 to 128 characters"), "{refusal}");
}

#[test]
fn a_place_past_the_end_waits_for_what_comes_after_it() {
    let server = Place::new().serve_once();
    let (ann, frames) = two_turns(&server);
    let last = frames.last().unwrap().id.unwrap();
    let mut at_end = ann.stream("s1", &format!("?after_seq={last}"));
    let mut past_end = ann.stream("s1", &format!("?after_seq={}", last + 3));
    let mut far_past_end = ann.stream("s1", &format!("?after_seq={}", u64::MAX));
    ann.say("s1", "t3", "hello");
    let seen = at_end.until_completed("t3");
    let end = last + 8 - 1;
    assert_eq!(ids(&seen), (last + 1..=end).collect::<Vec<_>>());
    assert_eq!(ids(&past_end.until_completed("t3")), (last + 4..=end).collect::<Vec<_>>());
    // Deltas have no place in the log, so they pass.
    let seen = far_past_end.until(|frame| {
        assert_eq!(frame.id, None);
        shown_text(std::slice::from_ref(frame)).contains("hello")
    });
    assert!(seen.iter().all(Frame::is_delta));
}

#[test]
fn deltas_are_counted_carry_no_id_and_add_up_to_the_reply() {
    let provider = Provider::start();
    let server = Place::with_manifest(&provider.manifest()).serve_once();
    let ann = server.client("ann");
    ann.say("s1", "t1", "hello");
    let mut call = provider.call();
    let mut stream = ann.stream("s1", "");
    stream.until(|frame| frame.event == "llm.call.dispatched");
    call.begin();
    let pieces = ["One", " two\n\n", "data: three", "\u{1f680}", " \u{0} end"];
    for piece in pieces {
        call.piece(piece);
    }
    call.end();
    let frames = stream.until_completed("t1");
    let deltas: Vec<&Frame> = frames.iter().filter(|frame| frame.is_delta()).collect();
    let reply = frames.iter().find(|frame| frame.event == "message.new").unwrap();
    let reply = &reply.payload()["message"];
    for (number, delta) in (1..).zip(&deltas) {
        assert!(delta.bytes.starts_with("event: llm.token.delta\ndata: {"), "{}", delta.bytes);
        assert_eq!(delta.data["type"], "llm.token.delta");
        assert_eq!(delta.data["session_id"], "s1");
        assert_eq!(delta.data["call_id"], reply["id"]);
        assert_eq!(delta.data["seq"], number);
        assert_eq!(delta.data.get("snapshot"), None);
    }
    assert_eq!(deltas.last().unwrap().data["finish_reason"], "stop");
    assert_eq!(shown_text(&frames), pieces.concat());
    assert_eq!(reply["content"], pieces.concat());
    // Between events: after the call was dispatched, before it is completed.
    let first = frames.iter().position(|frame| frame.id.is_some()).unwrap();
    assert!(frames[first..].iter().all(|frame| !frame.is_delta()));
    // None of them is in the log.
    assert!(!ann.stream("s1", "").until_completed("t1").iter().any(Frame::is_delta));
}

#[test]
fn a_late_watcher_is_shown_the_text_so_far_once_and_then_what_follows() {
    let provider = Provider::start();
    let server = Place::with_manifest(&provider.manifest()).serve_once();
    let ann = server.client("ann");
    ann.say("s1", "t1", "hello");
    let mut call = provider.call();
    let mut early = ann.stream("s1", "");
    call.begin();
    let words = ["zero ", "one ", "two ", "three ", "four "];
    let mut late: Vec<(usize, Stream, Vec<Frame>)> = Vec::new();
    for (number, word) in words.into_iter().enumerate() {
        call.piece(word);
        early.until(Frame::is_delta);
        for query in ["", "?turn_id=t1", "?after_seq=5"] {
            let mut stream = ann.stream("s1", query);
            let frames = stream.until(Frame::is_delta);
            late.push((number, stream, frames));
        }
    }
    call.end();
    let text = words.concat();
    let end = recorded(&early.until_completed("t1"));
    for (number, mut stream, mut frames) in late {
        frames.extend(stream.until_completed("t1"));
        assert_eq!(shown_text(&frames), text);
        let deltas: Vec<&Frame> = frames.iter().filter(|frame| frame.is_delta()).collect();
        assert_eq!(deltas[0].data["snapshot"], true);
        assert_eq!(deltas[0].data["text"], words[..=number].concat());
        assert_eq!(deltas[0].data["seq"], number as u64 + 1);
        assert!(deltas[1..].iter().all(|delta| delta.data.get("snapshot").is_none()));
        let seqs: Vec<u64> =
            deltas.iter().map(|delta| delta.data["seq"].as_u64().unwrap()).collect();
        let expected: Vec<u64> = (number as u64 + 1..=words.len() as u64 + 1).collect();
        assert_eq!(seqs, expected, "no gap and no repeat");
        assert!(recorded(&frames).ends_with(&end));
    }
}

#[test]
fn a_late_watcher_of_a_slow_reply_ends_with_all_of_its_text() {
    let server = Place::new().serve_once();
    let ann = server.client("ann");
    let text: Vec<String> = (0..40).map(|number| format!("word{number}")).collect();
    ann.say("s1", "t1", &format!("/slow 50 {}", text.join(" ")));
    ann.stream("s1", "").until(Frame::is_delta);
    let mut late = ann.stream("s1", "");
    let frames = late.until_completed("t1");
    let reply = format!("You said: {}", text.join(" "));
    assert_eq!(frames.last().unwrap().payload()["data"], reply.as_str());
    assert_eq!(shown_text(&frames), reply);
    let deltas: Vec<&Frame> = frames.iter().filter(|frame| frame.is_delta()).collect();
    assert_eq!(deltas[0].data["snapshot"], true);
    assert!(deltas[1..].iter().all(|delta| delta.data.get("snapshot").is_none()));
}

#[test]
fn reasoning_and_tool_calls_are_shown_as_deltas_too() {
    let server = Place::new().serve_once();
    let ann = server.client("ann");
    two_turns(&server);
    let mut stream = ann.stream("s1", "");
    stream.until_completed("t2");
    ann.say("s1", "t3", "/think deep thought");
    let frames = stream.until_completed("t3");
    let reasoning: String = frames
        .iter()
        .filter_map(|frame| frame.data.get("reasoning").and_then(|text| text.as_str()))
        .collect();
    assert_eq!(reasoning, "deep thought");
    ann.say("s1", "t4", "/call clock {\"zone\": \"UTC\"}");
    let frames = stream.until_completed("t4");
    let pieces = frames.iter().filter_map(|frame| frame.data["tool_calls"].as_array()).flatten();
    let (mut names, mut arguments, mut shown_ids) = (String::new(), String::new(), Vec::new());
    for piece in pieces {
        names.push_str(piece["name"].as_str().unwrap_or_default());
        arguments.push_str(piece["arguments"].as_str().unwrap_or_default());
        shown_ids.push(piece["id"].clone());
    }
    assert_eq!((names.as_str(), arguments.as_str()), ("clock", "{\"zone\": \"UTC\"}"));
    let requested = frames.iter().find(|frame| frame.event == "tool.call.requested").unwrap();
    assert!(shown_ids.iter().all(|id| *id == requested.payload()["id"]), "{shown_ids:?}");
}

#[test]
fn a_stream_of_one_turn_shows_that_turn_alone_and_closes_with_it() {
    let provider = Provider::start();
    let server = Place::with_manifest(&provider.manifest()).serve_once();
    let (ann, machine) = (server.client("ann"), server.machine());
    ann.say("s1", "t1", "one");
    let call = provider.call();
    let mut queue = message("s1", "t2", "two");
    queue["input"]["queue"] = true.into();
    ann.input(&queue).expect(202);
    // Opened while t1 runs and t2 waits.
    let watch = |turn: &str| {
        let query = format!("?turn_id={turn}");
        [ann.stream("s1", &query), machine.stream("s1", &query)]
    };
    let (running, waiting) = (watch("t1"), watch("t2"));
    call.answer("first");
    provider.call().answer("second");
    let whole = ann.stream("s1", "").until_completed("t2");
    for (turn, streams) in [("t1", running), ("t2", waiting)] {
        let of_turn: Vec<Frame> =
            whole.iter().filter(|frame| frame.data["turn_id"] == turn).cloned().collect();
        assert_eq!(of_turn[0].event, "turn.started");
        // The live ones end by themselves, and so do these, of a complete turn.
        for mut stream in streams.into_iter().chain(watch(turn)) {
            let frames = stream.rest();
            assert!(frames.last().unwrap().completes(turn));
            assert_eq!(recorded(&frames), recorded(&of_turn), "{turn}");
        }
        let middle = of_turn[2].id.unwrap();
        let resumed = ann.stream("s1", &format!("?turn_id={turn}&after_seq={middle}")).rest();
        assert_eq!(recorded(&resumed), recorded(&of_turn[3..]));
        let end = of_turn.last().unwrap().id.unwrap();
        let over = ann.stream("s1", &format!("?after_seq={end}&turn_id={turn}")).rest();
        assert_eq!(over, [], "a turn that was seen to its end is over");
    }
    for caller in [&ann, &machine] {
        assert_eq!(caller.no_stream("s1", "?turn_id=t3", &[]).refusal(404), "unknown turn");
    }
}

#[test]
fn all_watchers_see_the_same_bytes() {
    let server = Place::new().serve_once();
    let ann = server.client("ann");
    ann.say("s1", "t0", "first");
    ann.watch_turn("s1", "t0");
    let mut watchers: Vec<Stream> =
        (0..4).flat_map(|_| [ann.stream("s1", ""), server.machine().stream("s1", "")]).collect();
    for number in 1..=10 {
        let turn = format!("t{number}");
        ann.say("s1", &turn, &format!("/long {}", number * 20));
        watchers[0].until_completed(&turn);
        // Later ones join on the way.
        watchers.push(ann.stream("s1", &format!("?after_seq={number}")));
    }
    let whole = recorded(&ann.stream("s1", "").until_completed("t10"));
    let last = watchers.split_off(8);
    for mut watcher in watchers.into_iter().skip(1) {
        let frames = watcher.until_completed("t10");
        assert_eq!(recorded(&frames), whole);
        let shown: usize = frames.iter().filter(|frame| frame.is_delta()).count();
        assert!(shown > 1000, "each delta was shown");
    }
    for mut watcher in last {
        assert!(whole.ends_with(&recorded(&watcher.until_completed("t10"))));
    }
}

#[test]
fn a_watcher_that_pauses_goes_on_where_it_stood() {
    let server = Place::new().serve_once();
    let ann = server.client("ann");
    ann.say("s1", "t0", "first");
    ann.watch_turn("s1", "t0");
    let mut paused = ann.stream("s1", "");
    for number in 1..=5 {
        let turn = format!("t{number}");
        ann.say("s1", &turn, "/long 500");
        ann.watch_turn("s1", &turn);
    }
    let whole = recorded(&ann.stream("s1", "").until_completed("t5"));
    let frames = paused.until_completed("t5");
    assert_eq!(recorded(&frames), whole);
    assert_eq!(frames.iter().filter(|frame| frame.is_delta()).count(), 5 * 501);
}

#[test]
fn a_watcher_that_leaves_gives_its_place_back() {
    let server = Place::with_manifest("[limits]\nstreams_max = 3\n").serve_once();
    let (ann, _) = two_turns(&server);
    let places: Vec<Stream> = (0..3)
        .map(|_| {
            let mut stream = ann.stream("s1", "");
            stream.until_completed("t2");
            stream
        })
        .collect();
    let full = ann.no_stream("s1", "", &[]);
    assert!(full.header("retry-after").is_some());
    assert_eq!(full.refusal(503), "the server is busy or stopping; try again in 1 s");
    // A turn needs no stream.
    ann.say("s1", "t3", "hello");
    drop(places);
    wait_for("a place", || ann.try_stream("s1", "", &[]).unwrap().ok());
    // Refusals have not taken one either.
    for _ in 0..5 {
        assert_eq!(ann.no_stream("none", "", &[]).status, 404);
    }
}

#[test]
fn a_stop_ends_every_stream_with_a_comment() {
    let server = Place::new().serve_once();
    let (ann, frames) = two_turns(&server);
    let mut streams = vec![ann.stream("s1", ""), server.machine().stream("s1", "?after_seq=3")];
    for stream in &mut streams {
        stream.until_completed("t2");
    }
    let behind = ann.stream("s1", "");
    server.terminate();
    for mut stream in streams {
        let end = stream.rest();
        assert_eq!(end.len(), 1, "{end:?}");
        assert_eq!(end[0].bytes, ": server shutting down\n\n");
    }
    // One that has yet to read its log may be ended before.
    let mut behind = behind;
    let end = behind.rest();
    assert!(end.last().unwrap().is_comment());
    assert!(recorded(&frames).starts_with(&recorded(&end)));
    assert_eq!(server.exit().code, Some(0));
}

#[test]
fn the_bytes_of_a_stream_are_those_that_a_cold_start_replays() {
    let place = Place::new();
    let server = place.serve();
    let ann = server.client("ann");
    let texts = ["hello", "/long 100", "/think about \u{1f680}", "/call clock {}", "a\0b\u{2028}c"];
    ann.say("s1", "t", "first");
    let mut live = ann.stream("s1", "");
    let mut frames = live.until_completed("t");
    for (number, text) in texts.into_iter().enumerate() {
        let turn = format!("t{number}");
        ann.say("s1", &turn, text);
        frames.extend(live.until_completed(&turn));
    }
    let view = ann.session("s1");
    server.kill();
    let server = place.serve();
    let replayed = server.machine().stream("s1", "").until_completed("t4");
    assert_eq!(recorded(&replayed), recorded(&frames));
    assert_eq!(server.client("ann").session("s1"), view);
}

#[test]
fn readers_that_come_and_go_see_each_event_once() {
    let server = Place::new().serve_once();
    let ann = server.client("ann");
    ann.say("s1", "t0", "first");
    let reader = std::thread::spawn({
        let ann = ann.clone();
        move || {
            // A new connection for each event: the worst reconnecting browser.
            let (mut bytes, mut after) = (String::new(), 0);
            loop {
                let mut stream = ann.stream("s1", &format!("?after_seq={after}"));
                let seen = stream.until(|frame| frame.id.is_some());
                let event = seen.last().unwrap();
                assert_eq!(event.id, Some(after + 1));
                after += 1;
                bytes.push_str(&event.bytes);
                if event.completes("t9") {
                    return bytes;
                }
            }
        }
    });
    ann.watch_turn("s1", "t0");
    for number in 1..=9 {
        let turn = format!("t{number}");
        ann.say("s1", &turn, "/long 30");
        ann.watch_turn("s1", &turn);
    }
    let bytes = reader.join().unwrap();
    assert_eq!(bytes, recorded(&ann.stream("s1", "").until_completed("t9")));
}

#[test]
fn a_stream_that_is_not_used_up_does_not_block_its_server() {
    // A connection that is reset in the middle of a stream, many times over.
    let server = Place::new().serve_once();
    let (ann, _) = two_turns(&server);
    for _ in 0..50 {
        let mut stream = ann.stream("s1", "");
        assert_eq!(stream.until(|frame| frame.id == Some(1)).len(), 1);
    }
    ann.say("s1", "t3", "hello");
    ann.watch_turn("s1", "t3");
    assert_eq!(server.stranger().get("/healthz").expect(200), json!({ "ok": true }));
}
