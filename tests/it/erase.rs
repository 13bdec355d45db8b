//! Sessions and owners that are erased.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::kit::{Caller, Place, Provider, input, message};

fn turn(caller: &Caller, session: &str, turn: &str) {
    caller.say(session, turn, "hello");
    caller.watch_turn(session, turn);
}

fn listed(caller: &Caller) -> Vec<String> {
    let page = caller.get("/api/client/sessions").expect(200);
    let items = page["items"].as_array().unwrap();
    items.iter().map(|item| item["session_id"].as_str().unwrap().to_owned()).collect()
}

fn with_image(session: &str, turn: &str) -> Value {
    let mut body = message(session, turn, "look");
    body["input"]["message"]["content"] = json!([
        { "type": "text", "text": "look" },
        { "type": "image_url", "image_url": { "url": "data:image/png;base64,aGVsbG8=" } },
    ]);
    body
}

#[test]
fn an_erased_session_is_gone_with_all_that_was_said() {
    let place = Place::new();
    let server = place.serve();
    let ann = server.client("ann");
    ann.input(&with_image("s1", "t1")).expect(202);
    ann.watch_turn("s1", "t1");
    turn(&ann, "s2", "t1");
    let uri = ann.session("s1")["messages"][0]["content"][1]["image_url"]["url"].clone();
    let image = ann.path("s1", &uri.as_str().unwrap().replace("blob://", "/blobs/"));
    assert_eq!(ann.get(&image).body, b"hello");
    let mut stream = ann.stream("s1", "");
    stream.until_completed("t1");

    assert_eq!(ann.delete(&ann.path("s1", "")).expect(200), json!({ "ok": true }));
    let end = stream.rest();
    assert_eq!(end.last().unwrap().bytes, ": session erased\n\n");
    let is_gone = |ann: &Caller| {
        assert_eq!(ann.get(&ann.path("s1", "")).refusal(404), "unknown session");
        assert_eq!(ann.no_stream("s1", "", &[]).refusal(404), "unknown session");
        assert_eq!(ann.get(&image).refusal(404), "unknown session");
        assert_eq!(ann.delete(&ann.path("s1", "")).refusal(404), "unknown session");
        assert_eq!(listed(ann), ["s2"]);
    };
    is_gone(&ann);
    server.kill();
    let server = place.serve();
    let ann = server.client("ann");
    is_gone(&ann);

    // Whoever takes the id has a session of his own.
    let bob = server.client("bob");
    turn(&bob, "s1", "t1");
    let frames = bob.stream("s1", "").until_completed("t1");
    assert_eq!(frames[0].id, Some(1));
    assert_eq!(frames[0].payload()["identity"]["id"], "bob");
    assert_eq!(bob.get(&image).refusal(404), "unknown blob");
    assert_eq!(ann.get(&ann.path("s1", "")).status, 403);
}

#[test]
fn a_session_is_erased_in_the_middle_of_a_turn() {
    let provider = Provider::start();
    let place = Place::with_manifest(&provider.manifest());
    let server = place.serve();
    let (ann, machine) = (server.client("ann"), server.machine());
    ann.say("s1", "t1", "hello");
    let call = provider.call();
    let mut stream = ann.stream("s1", "");
    assert_eq!(machine.delete(&machine.path("s1", "")).expect(200), json!({ "ok": true }));
    call.until_abandoned();
    assert_eq!(stream.rest().last().unwrap().bytes, ": session erased\n\n");
    ann.say("s1", "t1", "again");
    let call = provider.call();
    assert_eq!(call.last_message(), "again");
    call.answer("anew");
    assert_eq!(ann.stream("s1", "").until_completed("t1")[0].id, Some(1));
    assert_eq!(ann.conversation("s1").len(), 2);
    server.kill();
    let server = place.serve();
    assert_eq!(server.client("ann").conversation("s1").len(), 2);
    assert!(provider.is_idle(), "nothing of the first is owed");
}

#[test]
fn a_watcher_that_is_behind_sees_nothing_of_who_takes_the_id() {
    let server = Place::new().serve_once();
    let (ann, bob) = (server.client("ann"), server.client("bob"));
    let append = |caller: &Caller, turn: &str, text: &str, count: usize| {
        let said = json!({ "role": "user", "content": text });
        let fields = json!({ "type": "client.append", "messages": vec![said; count] });
        caller.input(&input("s1", turn, fields)).expect(202);
        caller.watch_turn("s1", turn);
    };
    // More than all buffers on the way take, in few events.
    for turn in ["t1", "t2", "t3"] {
        append(&ann, turn, &"long ".repeat(150_000), 10);
    }
    let mut behind = ann.stream("s1", "");
    ann.delete(&ann.path("s1", "")).expect(200);
    append(&bob, "t1", "bob's own", 200);
    let rest = behind.rest();
    assert!(!rest.iter().any(|frame| frame.bytes.contains("bob")), "this is not Ann's");
    assert_eq!(rest.last().unwrap().bytes, ": session erased\n\n");
    assert!(rest.len() < 40, "it was behind");
}

#[test]
fn only_the_owner_and_the_backend_erase() {
    let server = Place::new().serve_once();
    let (ann, bob, machine) = (server.client("ann"), server.client("bob"), server.machine());
    turn(&ann, "s1", "t1");
    assert_eq!(bob.delete(&bob.path("s1", "")).refusal(403), "not the owner of this session");
    let wrong = Caller { api: "machine", ..ann.clone() };
    assert_eq!(wrong.delete(&wrong.path("s1", "")).status, 401);
    assert_eq!(wrong.delete("/api/machine/owners/ann").status, 401);
    assert_eq!(ann.delete("/api/client/owners/ann").refusal(404), "unknown path");
    assert_eq!(machine.delete("/api/machine/owners/%00").status, 400);
    assert_eq!(ann.conversation("s1").len(), 2);
}

#[test]
fn an_owner_is_erased_with_every_session() {
    let place = Place::with_manifest("[limits]\ninputs_per_second = 0\n");
    let server = place.serve();
    let (ann, bob, machine) =
        (server.client("ann & co/\u{e9}"), server.client("bob"), server.machine());
    let sessions: Vec<String> = (0..70).map(|number| format!("s{number}")).collect();
    for session in &sessions {
        ann.say(session, "t1", "hello");
    }
    turn(&bob, "b1", "t1");
    for session in &sessions {
        ann.watch_turn(session, "t1");
    }
    ann.say("s7", "t2", "/slow 10000 held");
    let owner = "/api/machine/owners/ann%20%26%20co%2F%C3%A9";
    let all = json!({ "ok": true, "sessions": 70 });
    assert_eq!(machine.delete(owner).expect(200), all);
    assert_eq!(listed(&ann), [""; 0]);
    for session in &sessions {
        assert_eq!(ann.get(&ann.path(session, "")).status, 404, "{session}");
    }
    let none = json!({ "ok": true, "sessions": 0 });
    assert_eq!(machine.delete(owner).expect(200), none);
    assert_eq!(listed(&bob), ["b1"]);
    server.kill();
    let server = place.serve();
    let ann = server.client("ann & co/\u{e9}");
    assert_eq!(listed(&ann), [""; 0]);
    turn(&ann, "s1", "t1");
    assert_eq!(listed(&ann), ["s1"]);
}

/// The files below a folder that hold `marker`.
fn holding(folder: &Path, marker: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(holding(&path, marker));
        } else if fs::read(&path).unwrap().windows(marker.len()).any(|at| at == marker.as_bytes()) {
            found.push(path.display().to_string());
        }
    }
    found
}

#[test]
fn what_was_erased_is_in_no_file_after_a_compaction() {
    const SECRET: &str = "Zx81-qpw7-LmN0-vRt5-Kd93";
    let place = Place::new();
    let server = place.serve();
    let ann = server.client("ann");
    ann.say("secret", "t1", SECRET);
    ann.watch_turn("secret", "t1");
    let mut with_file = message("secret", "t2", "look");
    // The same words in base64.
    let data = "data:text/plain;base64,Wng4MS1xcHc3LUxtTjAtdlJ0NS1LZDkz";
    let file = json!({ "filename": "a.txt", "file_data": data });
    with_file["input"]["message"]["content"] = json!([{ "type": "file", "file": file }]);
    ann.input(&with_file).expect(202);
    ann.watch_turn("secret", "t2");
    turn(&ann, "kept", "t1");
    assert!(holding(&place.data(), SECRET).len() > 1, "the log and the blob hold it");

    let refused = place.run(&["compact"]);
    assert_eq!(refused.code, Some(1), "the server has the folder: {refused:?}");
    assert!(refused.stderr.starts_with("turnd: cannot compact the data folder: "), "{refused:?}");

    ann.delete(&ann.path("secret", "")).expect(200);
    server.kill();
    let exit = place.run(&["compact", "--json"]);
    assert_eq!(exit.code, Some(0), "{exit:?}");
    let sizes: Value = serde_json::from_str(&exit.stdout).unwrap();
    assert!(sizes["bytes_after"].as_u64() < sizes["bytes_before"].as_u64(), "{sizes}");
    assert_eq!(holding(&place.data(), SECRET), Vec::<String>::new());

    let server = place.serve();
    assert_eq!(listed(&server.client("ann")), ["kept"]);
    assert_eq!(server.client("ann").conversation("kept").len(), 2);
}

#[test]
fn an_input_that_meets_an_erasure_is_taken_before_or_after_it() {
    let place = Place::new();
    let server = place.serve();
    let ann = server.client("ann");
    for round in 0..20 {
        let session = format!("s{round}");
        ann.say(&session, "t1", "/slow 50 one two three four five six");
        let (erased, taken) = std::thread::scope(|threads| {
            let erased = threads.spawn(|| ann.delete(&ann.path(&session, "")).status);
            let taken = threads.spawn(|| ann.input(&message(&session, "t1", "hello")).status);
            (erased.join().unwrap(), taken.join().unwrap())
        });
        assert_eq!((erased, taken), (200, 202), "round {round}");
    }
}

#[test]
fn two_who_erase_an_owner_both_find_nobody_left() {
    let place = Place::new();
    let server = place.serve();
    let (ann, backend) = (server.client("ann"), server.machine());
    for session in ["s1", "s2", "s3", "s4"] {
        turn(&ann, session, "t1");
    }
    let count = || backend.delete("/api/machine/owners/ann").expect(200)["sessions"].as_u64();
    let counts = std::thread::scope(|threads| {
        let (one, other) = (threads.spawn(count), threads.spawn(count));
        (one.join().unwrap().unwrap(), other.join().unwrap().unwrap())
    });
    assert_eq!(counts.0 + counts.1, 4, "{counts:?}");
    assert_eq!(listed(&ann), Vec::<String>::new());
}

#[test]
fn a_session_cannot_have_the_name_of_a_path() {
    let server = Place::new().serve_once();
    for id in ["input", "submit"] {
        let refusal = server.client("ann").input(&message(id, "t1", "hello")).refusal(400);
        assert_eq!(refusal, "`session_id` is a word of the API's own paths");
    }
}
