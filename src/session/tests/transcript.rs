//! One whole conversation as it is stored, byte for byte: `tests/golden/turn.jsonl`. A change of the
//! file is a change of what earlier versions stored (S12).

use std::path::PathBuf;

use super::kit::*;
use crate::protocol::event::{CallDispatched, Event, Payload};
use crate::session::{Effect, Session};

fn golden() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/turn.jsonl")
}

/// A turn that is retried, calls a tool and answers; one that waited for it; one that fails.
fn conversation() -> Conversation {
    let mut conversation = Conversation::new();
    let first = ask("What is the weather in Oslo?").turn("t1").message("m1");
    conversation.accepts(first.metadata(r#"{ "plan": "pro" }"#));
    conversation.passes(120);
    conversation.accepts(ask("And tomorrow?").turn("t2").queued().streaming(false));
    conversation.passes(880);
    conversation.settles(failed(overloaded(), true));
    conversation.wakes_at_its_timer();
    conversation.passes(1500);
    let mut looking = tool_calls(&[("weather", "{\"in\": \"Oslo\"}")]);
    if let Ok(response) = &mut looking.result {
        response.content = Some("Let me look.".to_owned());
        response.finish_reason = Some("tool_calls".to_owned());
        response.usage = Some(usage(21, 9));
        response.cost = Some(cost("0.000345"));
    }
    conversation.settles(looking);
    conversation.passes(700);
    conversation.answers("I cannot look: \"weather\" is not there.\n");
    conversation.recovers();
    conversation.wakes_at_its_timer();
    conversation.passes(10);
    conversation.answers("Nor tomorrow.");
    conversation.passes(60_000);
    conversation.accepts(ask("Why?").turn("t3").by_a_machine());
    conversation.passes(5);
    conversation.fails(refused());
    conversation
}

#[test]
fn a_conversation_is_stored_as_it_was_by_earlier_versions() {
    let conversation = conversation();
    let lines = conversation.log.iter().map(|event| {
        let stored = event.encode(&key().session);
        String::from_utf8(stored).unwrap() + "\n"
    });
    let written: String = lines.collect();
    if std::env::var_os("TURND_WRITE_GOLDEN").is_some() {
        std::fs::write(golden(), &written).unwrap();
    }
    let kept = std::fs::read_to_string(golden()).unwrap();
    for (line, (written, kept)) in written.lines().zip(kept.lines()).enumerate() {
        assert_eq!(written, kept, "turn.jsonl:{}", line + 1);
    }
    assert_eq!(written.lines().count(), kept.lines().count());
}

#[test]
fn a_conversation_of_an_earlier_version_is_read() {
    let kept = std::fs::read_to_string(golden()).unwrap();
    let events: Vec<Event> =
        kept.lines().map(|line| Event::decode(line.as_bytes()).unwrap()).collect();
    let session = Session::replay(key(), &events);
    assert_eq!(session, conversation().session);
}

/// A log may be read up to any event: what was asked for and not ended by then is owed.
#[test]
fn every_beginning_of_a_conversation_owes_what_it_asked_for() {
    let log = conversation().log.clone();
    let mut asked: Vec<Effect> = Vec::new();
    for (at, event) in log.iter().enumerate() {
        if let Some(CallDispatched { id, attempt, .. }) = call_dispatched(event) {
            let (id, attempt) = (id.clone(), *attempt);
            asked.push(Effect::CallModel { id, attempt });
        }
        if let Payload::LlmCallCompleted(_) | Payload::LlmCallErrored(_) | Payload::CallVoided(_) =
            &event.payload
        {
            asked.clear();
        }
        let session = Session::replay(key(), &log[..=at]);
        assert_eq!(session.outstanding(), asked, "after {}", event.seq);
        if call_errored(event).is_some_and(|errored| !errored.will_retry) {
            assert_eq!(session.wake_at(), None, "after {}", event.seq);
        }
    }
}
