//! What each fuzz target does with its bytes. `cargo test` runs the same over the corpus.

use turnd::control::manifest::Manifest;
use turnd::effects::llm::stream;
use turnd::ids::{SessionId, TurnId};
use turnd::protocol::event::{Envelope, Event};
use turnd::protocol::input::{Submit, SubmitBody, TokenRequest};
use turnd::protocol::json::{self, DEPTH_MAX, DecodeError, Node};
use turnd::sse;

#[path = "../../src/session/tests"]
#[expect(dead_code, reason = "only the tables of the core use all of its kit")]
mod tests {
    pub mod kit;
    pub mod model;
    pub mod random;
}

const TEXT_BYTES_MAX: usize = 1 << 20;

/// What is taken has ids that parse again, and was JSON to begin with.
pub fn client_input(bytes: &[u8]) {
    let submit = json::decode(bytes, DEPTH_MAX, |root| Submit::read_client(root, TEXT_BYTES_MAX));
    if let Ok(Submit { body: SubmitBody::Turn(turn), .. }) = submit {
        let input = serde_json::to_string(&turn.input).expect("an input encodes");
        let again = serde_json::from_str(&input).expect("its stored form reads back");
        assert_eq!(turn.input, again);
    }
}

/// As [`client_input`], with an identity; a body may also ask for a token.
pub fn machine_submit(bytes: &[u8]) {
    let submit = json::decode(bytes, DEPTH_MAX, |root| Submit::read_machine(root, TEXT_BYTES_MAX));
    let token = json::decode(bytes, DEPTH_MAX, TokenRequest::read);
    for identity in
        submit.map(|(_, identity)| identity).into_iter().chain(token.map(|t| t.identity))
    {
        let text = serde_json::to_string(&identity).expect("an identity encodes");
        assert!(!text.contains(['\n', '\r']), "an event is one line");
        assert_eq!(identity, serde_json::from_str(&text).expect("it reads back"));
    }
}

/// The tape and `serde_json` take the same texts, up to the limit of nesting, and see the same.
pub fn json(bytes: &[u8]) {
    let ours = json::decode(bytes, DEPTH_MAX, |root| {
        let oracle: serde_json::Value = serde_json::from_slice(bytes).expect("the oracle takes it");
        compare(root, &oracle);
        Ok(())
    });
    if let Err(error) = ours {
        assert!(matches!(error, DecodeError::Malformed(_)), "{error}");
        let oracle = serde_json::from_slice::<serde_json::Value>(bytes);
        assert!(oracle.map_or(true, |value| depth(&value) > DEPTH_MAX), "only we refuse: {error}");
    }
}

fn compare(node: &Node<'_>, oracle: &serde_json::Value) {
    let raw = node.raw().expect("a value has a text");
    let read: serde_json::Value = serde_json::from_str(raw.text()).expect("which is JSON");
    assert_eq!(&read, oracle);
    match oracle {
        serde_json::Value::Array(items) => {
            let nodes = node.items(usize::MAX).expect("an array");
            assert_eq!(nodes.len(), items.len());
            nodes.iter().zip(items).for_each(|(node, item)| compare(node, item));
        }
        // A key that stands twice is in the tape twice and in the oracle once.
        serde_json::Value::Object(members) => {
            let nodes = node.members().expect("an object");
            assert!(nodes.len() >= members.len());
            if nodes.len() == members.len() {
                for (key, node) in nodes {
                    compare(&node, &members[key]);
                }
            }
        }
        serde_json::Value::String(text) => assert_eq!(node.string().expect("a string"), text),
        serde_json::Value::Bool(value) => assert_eq!(node.bool().expect("a bool"), *value),
        // `-0` is an integer to the tape and a float to the oracle.
        serde_json::Value::Number(_) if raw.text() == "-0" => {}
        serde_json::Value::Number(number) => assert_eq!(node.unsigned().ok(), number.as_u64()),
        serde_json::Value::Null => assert!(node.is_null()),
    }
}

fn depth(value: &serde_json::Value) -> usize {
    match value {
        serde_json::Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        serde_json::Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        serde_json::Value::Null
        | serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::String(_) => 0,
    }
}

/// An event that reads, however it was spelled, writes and reads back as itself.
pub fn event(bytes: &[u8]) {
    let Ok(event) = Event::decode(bytes) else { return };
    let session = SessionId::parse("s").expect("an id");
    let stored = event.encode(&session);
    assert!(!stored.contains(&b'\n'), "an event is one line");
    assert_eq!(Event::decode(&stored).expect("it reads back"), event);
    let envelope = Envelope::decode(&stored).expect("its outside reads");
    assert_eq!(envelope.kind(), event.payload.kind());
    assert_eq!(envelope.turn_id.as_deref(), event.turn_id.as_ref().map(TurnId::as_str));
}

/// A provider's stream means the same wherever the network splits it; the first byte says where.
pub fn provider_stream(bytes: &[u8]) {
    let Some((at, text)) = bytes.split_first() else { return };
    let whole = stream::decode([text]);
    let (start, end) = text.split_at(usize::from(*at).min(text.len()));
    assert_eq!(stream::decode([start, end]), whole);
    assert_eq!(stream::decode(text.chunks(1)), whole);
}

/// A resume position is a plain decimal or an error.
pub fn resume(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (id, seq) = text.split_once('\n').map_or((None, text), |(id, seq)| (Some(id), seq));
    if let Ok(after) = sse::resume_after(id, Some(seq)) {
        let used = id.unwrap_or(seq);
        assert_eq!(used.trim_start_matches('0'), after.to_string().trim_start_matches('0'));
    }
}

/// A manifest is read or its problems are told, without a panic.
pub fn manifest(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Err(problems) = Manifest::parse(text) {
        assert!(!problems.is_empty(), "a refusal has a reason");
        for problem in problems {
            assert!(!problem.to_string().is_empty());
        }
    }
}

/// Any bytes are a conversation, which does as its model.
pub fn session_commands(bytes: &[u8]) {
    tests::random::run(bytes);
}
