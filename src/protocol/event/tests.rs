//! The stored form of every event type is kept in `tests/golden/events`, one event a line: the first
//! with every field, others without the optional ones. What a stored event means never changes (S12),
//! so a line is never edited; a new optional field gets a line of its own.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::*;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/events")
}

/// Every type of the union, from the source itself.
fn kinds() -> BTreeSet<String> {
    let source = include_str!("../event.rs");
    let (_, list) = source.split_once("Payload, \"an event payload\", {\n").unwrap();
    let (list, _) = list.split_once("\n    }\n").unwrap();
    let kind = |line: &str| line.split('"').nth(1).map(str::to_owned);
    list.lines().map(|line| kind(line).unwrap()).collect()
}

#[test]
fn every_event_type_has_a_golden_file() {
    let files: BTreeSet<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .map(|name| name.trim_end_matches(".json").to_owned())
        .collect();
    assert_eq!(kinds(), files);
}

#[test]
fn every_golden_event_is_read_and_written_back_to_the_same_bytes() {
    for kind in kinds() {
        let text = std::fs::read_to_string(folder().join(format!("{kind}.json"))).unwrap();
        assert!(text.ends_with('\n'), "{kind}");
        for line in text.lines() {
            let event =
                Event::decode(line.as_bytes()).unwrap_or_else(|error| panic!("{kind}: {error}"));
            assert_eq!(event.payload.kind(), kind);
            let session_id = SessionId::parse("s1").unwrap();
            let written = String::from_utf8(event.encode(&session_id)).unwrap();
            assert_eq!(written, line, "{kind}");
        }
    }
}

fn event(payload: Payload) -> Event {
    Event { seq: Seq(1), occurred_at: Timestamp::from_millis(0), turn_id: None, payload }
}

#[test]
fn a_stored_event_is_one_line_whatever_its_texts_hold() {
    let awkward = "\r\n\n\0\u{85}\u{2028}\u{2029}\u{7f}\"\\";
    let message = Message::text(crate::protocol::message::Role::User, awkward);
    let recorded =
        event(Payload::MessageNew(MessageNew { message: Arc::new(message), parent_id: None }));
    let stored = recorded.encode(&SessionId::parse("s1").unwrap());
    let broken = stored.iter().find(|byte| **byte < b' ');
    assert_eq!(broken, None, "I12: {}", String::from_utf8_lossy(&stored));
    assert_eq!(Event::decode(&stored).unwrap(), recorded);
}

#[test]
fn an_opaque_value_with_line_breaks_does_not_break_the_line() {
    let identity = Identity {
        id: crate::ids::OwnerId::parse("zoe").unwrap(),
        metadata: Json::parse("{\r\n  \"plan\":\n\t\"pro\"\r}"),
    };
    let created = event(Payload::SessionCreated(SessionCreated {
        agent_id: AgentId::parse("helper").unwrap(),
        identity,
        ancestry: vec![],
    }));
    let stored = created.encode(&SessionId::parse("s1").unwrap());
    let text = String::from_utf8(stored).unwrap();
    assert!(!text.contains(['\r', '\n']), "I12: {text}");
    assert!(text.contains("\"plan\""));
}

#[test]
fn what_is_not_an_event_is_refused_with_a_reason() {
    let started = |payload: &str| {
        format!(
            r#"{{"session_id":"s1","seq":1,"occurred_at":"2026-09-21T14:13:20.000Z","payload":{payload}}}"#
        )
    };
    for (payload, reason) in [
        (r#"{"type":"turn.vanished"}"#, "unknown type `turn.vanished` of an event payload"),
        (
            r#"{"turn_id":"t1","type":"turn.started"}"#,
            "the type of an event payload does not come first",
        ),
        ("{}", "the type of an event payload does not come first"),
        (r#"{"type":"turn.started"}"#, "missing field `turn_id`"),
        ("7", "an event payload that starts with its type"),
    ] {
        let error = Event::decode(started(payload).as_bytes()).unwrap_err();
        assert!(error.to_string().contains(reason), "{payload}: {error}");
    }
    assert!(Event::decode(b"").is_err());
    let whole = started(r#"{"type":"turn.started","turn_id":"t1"}"#);
    assert!(Event::decode(whole.as_bytes()).is_ok());
    for end in 0..whole.len() {
        assert!(Event::decode(&whole.as_bytes()[..end]).is_err(), "cut at {end}");
    }
}

#[test]
fn a_field_of_a_later_version_is_passed_over() {
    let line = r#"{"session_id":"s1","seq":1,"occurred_at":"2026-09-21T14:13:20.000Z","shard":3,"payload":{"type":"turn.started","turn_id":"t1","run_id":"r1"}}"#;
    let decoded = Event::decode(line.as_bytes()).unwrap();
    assert_eq!(decoded.payload.kind(), "turn.started");
}
