//! kill -9 at random moments, judged by what the callers remember (reliability 3, 3.2 a).
//!
//! Everything that a caller was told is kept here, outside the server: each accepted turn, and each
//! frame under its session and seq. At the end the log must agree with all of it. The page cache
//! outlives a kill, so this says nothing of power cuts; the storage tests do.
//!
//! `TURND_TORTURE_ROUNDS` says how many kills, `TURND_TORTURE_SEED` repeats a choice of them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread;

use serde_json::{Value, json};

use crate::kit::{
    Caller, Draw, Frame, Patience, Place, Response, Server, recorded, rest, seed, variable,
    wait_for,
};

const MANIFEST: &str = "\
[limits]
inputs_per_second = 0
reads_per_second = 0
mints_per_second = 0
queued_turns_max = 10

[agent.demo]
llm = \"demo\"
model = \"demo\"
retry.llm = { max_retries = 100, backoff_base_secs = 0.05, backoff_max_secs = 0.05 }
";
const ROUNDS: u64 = 5;
const SUBMITTERS: u64 = 3;
const READERS: u64 = 3;
const SESSIONS: u64 = 6;
/// Longest time from the greeting of a server to its end.
const MILLIS_PER_ROUND: u64 = 900;

/// By session and id.
type Turn = (String, String);

/// What was seen from outside.
#[derive(Default)]
struct Oracle {
    /// Turns that were answered with 202.
    accepted: BTreeSet<Turn>,
    /// Turns that were sent and not answered: they may have happened or not.
    unanswered: BTreeSet<Turn>,
    frames: BTreeMap<(String, u64), String>,
    counts: Counts,
}

#[derive(Default, Debug)]
struct Counts {
    submits: u64,
    accepted: u64,
    queued: u64,
    refused: u64,
    lost: u64,
    repeated: u64,
    frames: u64,
    seen_twice: u64,
    deltas: u64,
}

struct World {
    oracle: Mutex<Oracle>,
    turns: AtomicU64,
    /// The callers of a round go home.
    over: AtomicBool,
}

impl World {
    fn oracle(&self) -> MutexGuard<'_, Oracle> {
        self.oracle.lock().unwrap()
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

fn session(number: u64) -> String {
    format!("session-{number}")
}

fn owner(session: &str) -> String {
    format!("owner of {session}")
}

fn submission(session: &str, turn: &str, text: &str, queue: bool) -> Value {
    json!({
        "agent_id": "demo",
        "identity": { "id": owner(session) },
        "session_id": session,
        "turn_id": turn,
        "queue": queue,
        "payload": { "type": "client.message", "message": { "role": "user", "content": text } },
    })
}

#[test]
fn nothing_that_was_acknowledged_or_shown_is_lost_by_kills() {
    let rounds = variable("TURND_TORTURE_ROUNDS").unwrap_or(ROUNDS);
    let seed = seed();
    println!("torture: {rounds} rounds, TURND_TORTURE_SEED={seed}");
    let mut draw = Draw::new(seed);
    let place = Place::with_manifest(MANIFEST);
    let world =
        World { oracle: Mutex::default(), turns: AtomicU64::new(0), over: AtomicBool::new(false) };
    for _ in 0..rounds {
        let server = place.serve();
        round(&world, server, &mut draw);
    }
    let server = place.serve();
    settle_unanswered(&world, &server);
    let logs = finish(&world, &server);
    judge(&world.oracle(), &logs);
    server.kill();
    // And once more from the disk alone.
    let server = place.serve();
    for (session, log) in &logs {
        let replayed = server.machine().stream(session, "").until_completed("last");
        assert!(recorded(&replayed) == recorded(log), "{session} reads differently after a kill");
    }
    let oracle = world.oracle();
    let events: usize = logs.values().map(Vec::len).sum();
    println!(
        "torture: {rounds} kills, {} sessions, {} turns, {events} events; {:?}",
        logs.len(),
        oracle.accepted.len(),
        oracle.counts
    );
}

/// Callers work until the server is killed.
fn round(world: &World, server: Server, draw: &mut Draw) {
    world.over.store(false, Ordering::Relaxed);
    let machine = server.machine();
    thread::scope(|scope| {
        for _ in 0..SUBMITTERS {
            let (machine, draw) = (machine.clone(), Draw::new(draw.next()));
            scope.spawn(move || submit(world, &machine, draw));
        }
        for _ in 0..READERS {
            let (machine, draw) = (machine.clone(), Draw::new(draw.next()));
            scope.spawn(move || read(world, &machine, draw));
        }
        let alive = Patience::new(std::time::Duration::from_millis(draw.below(MILLIS_PER_ROUND)));
        while !alive.is_over() {
            rest();
        }
        server.kill();
        world.over.store(true, Ordering::Relaxed);
    });
}

fn submit(world: &World, machine: &Caller, mut draw: Draw) {
    while !world.is_over() {
        let lost = world.oracle().unanswered.first().cloned();
        // A turn without an answer is asked for again under its id; it may still be under way.
        let turn = match lost {
            Some(lost) if draw.below(2) == 0 => lost,
            _ => {
                let number = world.turns.fetch_add(1, Ordering::Relaxed);
                (session(draw.below(SESSIONS)), format!("turn-{number}"))
            }
        };
        let goes_on = ask(world, machine, &turn, draw.below(2) == 0)
            && (draw.below(4) != 0 || ask_again(world, machine, &mut draw));
        if !goes_on {
            return;
        }
    }
}

/// What is asked in a turn: the same whoever asks.
fn text(turn: &str) -> String {
    let Some(number) = turn.strip_prefix("turn-") else {
        return "the end".to_owned();
    };
    let mut draw = Draw::new(number.parse().unwrap());
    match draw.below(4) {
        0 => format!("/slow {} one two three {turn}", draw.below(20)),
        1 => format!("/long {}", draw.below(60) + 1),
        2 => format!("/call clock {{\"turn\":\"{turn}\"}}"),
        _ => format!("words of {turn}"),
    }
}

/// Submits once and remembers the answer. False when the server is gone.
fn ask(world: &World, machine: &Caller, key: &Turn, queue: bool) -> bool {
    let (session, turn) = key;
    let was_accepted = {
        let mut oracle = world.oracle();
        oracle.counts.submits += 1;
        oracle.unanswered.insert(key.clone());
        oracle.accepted.contains(key)
    };
    let answer = post(machine, &submission(session, turn, &text(turn), queue));
    let mut oracle = world.oracle();
    let Ok(answer) = answer else {
        oracle.counts.lost += 1;
        if !oracle.accepted.contains(key) {
            oracle.unanswered.insert(key.clone());
        }
        return false;
    };
    // Another caller who asks for the same turn puts it back if it hears nothing.
    oracle.unanswered.remove(key);
    match answer.status {
        202 => {
            let body = answer.json();
            assert_eq!((&body["session_id"], &body["turn_id"]), (&json!(session), &json!(turn)));
            oracle.counts.accepted += 1;
            oracle.counts.queued += u64::from(body["queued"] == true);
            oracle.accepted.insert(key.clone());
        }
        409 | 429 => {
            oracle.counts.refused += 1;
            assert!(!was_accepted, "{turn} was taken before: {}", answer.text());
        }
        status => panic!("{status}: {}", answer.text()),
    }
    true
}

/// Asks for a turn that was taken, with another text: the same turn is answered.
fn ask_again(world: &World, machine: &Caller, draw: &mut Draw) -> bool {
    let known = {
        let oracle = world.oracle();
        let count = oracle.accepted.len();
        let place = usize::try_from(draw.next()).unwrap_or(0).checked_rem(count);
        place.and_then(|place| oracle.accepted.iter().nth(place).cloned())
    };
    let Some((session, turn)) = known else {
        return true;
    };
    let body = submission(&session, &turn, "something else", draw.below(2) == 0);
    let Ok(answer) = post(machine, &body) else {
        world.oracle().counts.lost += 1;
        return false;
    };
    let body = answer.expect(202);
    assert_eq!((&body["session_id"], &body["turn_id"]), (&json!(session), &json!(turn)));
    world.oracle().counts.repeated += 1;
    true
}

/// The error is a connection that broke: what became of the request is not known.
fn post(machine: &Caller, body: &Value) -> io::Result<Response> {
    let headers = [("Content-Type", "application/json")];
    let body = body.to_string();
    machine.try_send("POST", "/api/machine/sessions/submit", &headers, body.as_bytes())
}

fn read(world: &World, machine: &Caller, mut draw: Draw) {
    while !world.is_over() {
        let session = session(draw.below(SESSIONS));
        let last = world.oracle().frames.keys().filter(|(of, _)| *of == session).count() as u64;
        // From the start, or from anywhere up to the end.
        let after = if draw.below(3) == 0 { 0 } else { draw.below(last + 1) };
        let opened = machine.try_stream(&session, &format!("?after_seq={after}"), &[]);
        let mut stream = match opened {
            Ok(Ok(stream)) => stream,
            Ok(Err(response)) => {
                assert_eq!(response.status, 404, "{}", response.text());
                rest();
                continue;
            }
            Err(_) => return,
        };
        let mut expected = after + 1;
        let leaves_after = draw.below(60) + last;
        for _ in 0..leaves_after {
            match stream.try_next() {
                Ok(Some(frame)) => see(world, &session, &frame, &mut expected),
                Ok(None) => panic!("a stream that nothing ends has ended"),
                Err(_) => return,
            }
        }
    }
}

/// Remembers a frame; the same place never holds other bytes.
fn see(world: &World, session: &str, frame: &Frame, expected: &mut u64) {
    let mut oracle = world.oracle();
    let Some(seq) = frame.id else {
        oracle.counts.deltas += 1;
        return;
    };
    assert_eq!(seq, *expected, "a gap or a repeat in {session}");
    *expected += 1;
    let known = oracle.frames.insert((session.to_owned(), seq), frame.bytes.clone());
    oracle.counts.frames += 1;
    if let Some(known) = known {
        oracle.counts.seen_twice += 1;
        assert_eq!(known, frame.bytes, "{session} was rewritten at {seq}");
    }
}

/// Asks once more for what was never answered; now it is.
fn settle_unanswered(world: &World, server: &Server) {
    let machine = server.machine();
    let lost = std::mem::take(&mut world.oracle().unanswered);
    for turn in lost {
        take(world, &machine, turn);
    }
}

/// Submits a turn until it is taken.
fn take(world: &World, machine: &Caller, turn: Turn) {
    let body = submission(&turn.0, &turn.1, &text(&turn.1), true);
    wait_for("room in the queue", || {
        let answer = post(machine, &body).expect("the server answers");
        (answer.status != 429).then(|| answer.expect(202))
    });
    world.oracle().accepted.insert(turn);
}

/// Adds a last turn to every session and reads the whole log when it is complete: the queue runs in
/// order, so every other turn is complete by then.
fn finish(world: &World, server: &Server) -> BTreeMap<String, Vec<Frame>> {
    let machine = server.machine();
    let sessions: BTreeSet<String> =
        world.oracle().accepted.iter().map(|(session, _)| session.clone()).collect();
    let mut logs = BTreeMap::new();
    for session in sessions {
        take(world, &machine, (session.clone(), "last".to_owned()));
        let mut log = machine.stream(&session, "").until_completed("last");
        log.retain(|frame| frame.id.is_some());
        logs.insert(session, log);
    }
    logs
}

fn judge(oracle: &Oracle, logs: &BTreeMap<String, Vec<Frame>>) {
    for (session, log) in logs {
        for (place, frame) in log.iter().enumerate() {
            assert_eq!(frame.id, Some(place as u64 + 1), "{session}: seqs are dense");
        }
        judge_turns(oracle, session, log);
    }
    for ((session, seq), bytes) in &oracle.frames {
        let log = logs.get(session).unwrap_or_else(|| panic!("{session} was seen and is gone"));
        let place = usize::try_from(*seq).unwrap() - 1;
        let kept = log.get(place).unwrap_or_else(|| panic!("{session} was seen at {seq}"));
        assert_eq!(kept.bytes, *bytes, "{session} differs at {seq} from what was seen");
    }
}

/// Each turn that was taken is there once, from its start to its end, with its own text and reply;
/// no other is.
fn judge_turns(oracle: &Oracle, session: &str, log: &[Frame]) {
    let of_turn = |kind: &str| -> Vec<String> {
        let frames = log.iter().filter(|frame| frame.event == kind);
        frames.map(|frame| frame.payload()["turn_id"].as_str().unwrap().to_owned()).collect()
    };
    let (started, completed) = (of_turn("turn.started"), of_turn("turn.completed"));
    assert_eq!(started, completed, "{session}: one turn at a time");
    let distinct: BTreeSet<&String> = completed.iter().collect();
    assert_eq!(distinct.len(), completed.len(), "{session}: no turn twice");
    let taken = oracle.accepted.iter().filter(|(of, _)| of == session);
    let taken: BTreeSet<&String> = taken.map(|(_, turn)| turn).collect();
    assert_eq!(distinct, taken, "{session}: the turns that were taken, and no others");
    for frame in log.iter().filter(|frame| frame.event == "turn.completed") {
        let payload = frame.payload();
        assert_eq!(payload.get("error"), None, "{session}: {}", frame.bytes);
        let asked = text(payload["turn_id"].as_str().unwrap());
        assert_eq!(payload["data"], reply(&asked), "{session}: {}", frame.bytes);
    }
    let said: Vec<&str> = log
        .iter()
        .filter(|frame| frame.event == "message.new")
        .filter(|frame| frame.payload()["message"]["role"] == "user")
        .map(|frame| frame.payload()["message"]["content"].as_str().unwrap())
        .collect();
    let asked: Vec<String> = started.iter().map(|turn| text(turn)).collect();
    assert_eq!(said, asked, "{session}: each text once, in the order of the turns");
}

/// What the demo model makes of a text.
fn reply(text: &str) -> String {
    let (command, rest) = text.split_once(' ').unwrap();
    match command {
        "/slow" => format!("You said: {}", rest.split_once(' ').unwrap().1),
        "/long" => {
            let words: Vec<String> =
                (1..=rest.parse::<u64>().unwrap()).map(|number| format!("word{number}")).collect();
            words.join(" ")
        }
        "/call" => "clock answered: the tool `clock` is not declared".to_owned(),
        _ => format!("You said: {text}"),
    }
}
