use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::ids::{CallId, MessageId, tool_call_id};
use crate::protocol::event::{MessageNew, Payload};
use crate::protocol::llm::ToolCallDelta;
use crate::protocol::message::{Message, Role};
use crate::time::Timestamp;

/// A plain reading of the event stream format: fields of each frame in order.
fn frames(bytes: &[u8]) -> Vec<Vec<(String, String)>> {
    let text = std::str::from_utf8(bytes).unwrap();
    let mut frames = Vec::new();
    let mut frame = Vec::new();
    for line in text.split('\n') {
        assert!(!line.contains('\r'), "a carriage return ends a line: {line:?}");
        if line.is_empty() {
            frames.extend((!frame.is_empty()).then(|| std::mem::take(&mut frame)));
        } else {
            let (name, value) = line.split_once(": ").unwrap();
            frame.push((name.to_owned(), value.to_owned()));
        }
    }
    frames
}

fn message_event(text: &str) -> Event {
    let message = Arc::new(Message::text(Role::User, text));
    Event {
        seq: Seq(7),
        occurred_at: Timestamp::from_millis(0),
        turn_id: None,
        payload: Payload::MessageNew(MessageNew { message, parent_id: None }),
    }
}

proptest! {
    #[test]
    fn no_text_can_break_out_of_its_frame(text in "(?s)[\\r\\n\\x00\\x{2028}: a-z]{0,40}") {
        let session = SessionId::parse("s").unwrap();
        let event = message_event(&text);
        let mut out = Vec::new();
        let encoded = encode_event(&event, &session, &mut out);
        let read = frames(&out);
        prop_assert_eq!(read.len(), 1);
        let names: Vec<&str> = read[0].iter().map(|(name, _)| name.as_str()).collect();
        prop_assert_eq!(names, ["id", "event", "data"]);
        prop_assert_eq!(read[0][2].1.as_bytes(), &out[encoded.json.clone()]);
        prop_assert_eq!(Event::decode(&out[encoded.json.clone()]).unwrap(), event.clone());
        let mut again = Vec::new();
        stored_event(event.seq, event.payload.kind(), &out[encoded.json], &mut again);
        prop_assert_eq!(&out, &again);

        let reply = MessageId::parse("r").unwrap();
        let id: CallId = tool_call_id(&reply, 0);
        let tools = [ToolCallDelta { id, name: Some(text.clone()), arguments: Some(text.clone()) }];
        let delta = delta_frame(&StreamDelta {
            session_id: &session,
            call_id: &reply,
            seq: 1,
            text: Some(&text),
            reasoning: Some(&text),
            tool_calls: &tools,
            finish_reason: None,
            snapshot: false,
        });
        let read = frames(&delta);
        prop_assert_eq!(read.len(), 1);
        let value: serde_json::Value = serde_json::from_str(&read[0][1].1).unwrap();
        prop_assert_eq!(value["text"].as_str(), Some(text.as_str()));
    }
}

#[test]
fn last_event_id_wins_and_only_decimals_count() {
    assert_eq!(resume_after(Some("7"), Some("3")), Ok(Seq(7)));
    assert_eq!(resume_after(None, Some("3")), Ok(Seq(3)));
    assert_eq!(resume_after(None, None), Ok(Seq(0)));
    for bad in ["", "-1", "+1", "1.0", "x", "18446744073709551616", " 1"] {
        assert!(resume_after(Some(bad), Some("3")).is_err(), "{bad:?}");
        assert!(resume_after(None, Some(bad)).is_err(), "{bad:?}");
    }
}
