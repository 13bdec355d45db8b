use std::sync::Arc;

use serde_json::Value;

use super::*;
use crate::ids::MessageId;
use crate::protocol::message::{Message, Role};
use crate::protocol::view::NodeView;

fn message(id: usize, length: usize) -> Arc<Message> {
    let id = Some(MessageId::parse(&format!("m{id}")).unwrap());
    Arc::new(Message { id, ..Message::text(Role::User, "x".repeat(length)) })
}

fn view(lengths: &[usize], with_tree: bool) -> SessionView {
    let messages: Vec<_> =
        lengths.iter().enumerate().map(|(id, length)| message(id, *length)).collect();
    let nodes = messages.iter().map(|message| NodeView {
        parent_id: message.id.clone().filter(|id| id.as_str() != "m0"),
        message: Arc::clone(message),
    });
    let tree = TreeView {
        head_id: messages.last().and_then(|message| message.id.clone()),
        nodes: nodes.collect(),
    };
    SessionView {
        session_id: SessionId::parse("s1").unwrap(),
        agent_id: AgentId::parse("demo").unwrap(),
        seq: Seq(7),
        status: SessionStatus::Idle,
        title: Some("a \"title\"".to_owned()),
        metadata: Json::parse(r#"{"a":"b"}"#),
        interrupts: Vec::new(),
        messages,
        has_more: Some(true),
        message_tree: with_tree.then_some(tree),
    }
}

fn pieces(view: SessionView) -> Vec<Bytes> {
    match reply(view).into_body() {
        ReplyBody::Full(whole) => vec![whole],
        ReplyBody::Stream(mut body) => std::iter::from_fn(|| {
            let mut context = Context::from_waker(std::task::Waker::noop());
            let Poll::Ready(frame) = body.as_mut().poll_frame(&mut context) else {
                panic!("a piece is always ready")
            };
            frame.map(|frame| frame.unwrap().into_data().unwrap())
        })
        .collect(),
    }
}

#[test]
fn the_pieces_add_up_to_the_view() {
    let many = vec![100; 3000];
    for lengths in [&[][..], &[1], &[1, 2, 3], &[70_000], &[300_000, 1, 2], &many] {
        for with_tree in [false, true] {
            let view = view(lengths, with_tree);
            let expected = serde_json::to_value(&view).unwrap();
            let pieces = pieces(view);
            assert!(pieces.iter().all(|piece| piece.len() <= PIECE_BYTES_MAX));
            let shown: Value = serde_json::from_slice(&pieces.concat()).unwrap();
            assert_eq!(shown, expected);
        }
    }
}

#[test]
fn a_short_view_has_a_length() {
    let body = reply(view(&[10], true)).into_body();
    assert!(matches!(body, ReplyBody::Full(_)));
}
