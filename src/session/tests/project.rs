//! Views and the work that is handed to executors.

use std::time::Duration;

use super::kit::*;
use crate::ids::Seq;
use crate::protocol::message::Role;
use crate::protocol::view::ViewRequest;
use crate::session::{Rejection, TurnRecord};

#[test]
fn a_client_reads_the_session_in_the_shape_of_the_interface() {
    let mut conversation = Conversation::new();
    conversation.accepts(ask("hello").message("m1"));
    let call = conversation.last_call_id();
    conversation.answers("hi");
    let view = serde_json::to_value(conversation.view()).unwrap();
    let hello = serde_json::json!({ "id": "m1", "role": "user", "content": "hello" });
    let hi = serde_json::json!({ "id": call.as_str(), "role": "assistant", "content": "hi" });
    let expected = serde_json::json!({
        "session_id": "s1",
        "agent_id": "helper",
        "seq": 8,
        "status": "idle",
        "title": "hello",
        "interrupts": [],
        "messages": [hello, hi],
        "message_tree": {
            "head_id": call.as_str(),
            "nodes": [{ "message": hello }, { "parent_id": "m1", "message": hi }],
        },
    });
    assert_eq!(view, expected);
}

#[test]
fn a_session_without_messages_has_no_head() {
    let mut conversation = Conversation::new();
    assert_eq!(conversation.session.view(&ViewRequest::default()), Err(Rejection::UnknownSession));
    conversation.accepts(ask("hello"));
    let first = &conversation.log[..1];
    let created = crate::session::Session::replay(key(), first);
    let view = serde_json::to_value(created.view(&ViewRequest::default()).unwrap()).unwrap();
    assert_eq!(view["message_tree"], serde_json::json!({ "head_id": null, "nodes": [] }));
    assert_eq!(view["messages"], serde_json::json!([]));
}

#[test]
fn a_turn_is_remembered_with_where_it_stands_in_the_log() {
    let mut conversation = Conversation::with_a_running_turn();
    let record = |conversation: &Conversation, id| {
        conversation.session.turn(&turn_id(id)).map(|(_, record)| record)
    };
    let started = Seq(2);
    assert_eq!(record(&conversation, "t1"), Some(TurnRecord::Running { started }));
    conversation.accepts(ask("next").turn("t2").queued());
    assert_eq!(record(&conversation, "t2"), Some(TurnRecord::Queued { queued: Seq(6) }));
    conversation.answers("hi");
    let completed = TurnRecord::Completed { started, completed: Seq(9) };
    assert_eq!(record(&conversation, "t1"), Some(completed));
    let next = TurnRecord::Running { started: Seq(10) };
    assert_eq!(record(&conversation, "t2"), Some(next));
    assert_eq!(record(&conversation, "t3"), None);
}

#[test]
fn an_executor_is_given_the_conversation_up_to_the_head_of_its_call() {
    let mut conversation = Conversation::with_a_completed_turn();
    conversation.agent.model = "demo-2".to_owned();
    conversation.agent.retry = retry(Some(240), 4, 2, 30);
    conversation.accepts(ask("more").streaming(false));
    let (id, attempt) = conversation.open();
    conversation.agent.model = "demo-3".to_owned();
    conversation.agent.retry = retry(None, 4, 2, 30);
    let work = conversation.work(&id).unwrap();
    assert_eq!((&work.id, work.attempt), (&id, attempt));
    assert_eq!((work.llm.as_str(), work.model.as_str()), ("demo", "demo-2"));
    assert!(!work.stream);
    assert_eq!(work.timeout, Some(Duration::from_mins(4)));
    let roles: Vec<Role> = work.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::User]);
}

#[test]
fn there_is_no_work_for_a_call_that_is_settled_or_unknown() {
    let mut conversation = Conversation::with_a_running_turn();
    let call = conversation.last_call_id();
    assert!(conversation.work(&call).is_some());
    conversation.answers("hi");
    assert_eq!(conversation.work(&call), None);
    conversation.accepts(ask("more"));
    assert_eq!(conversation.work(&call), None);
}

#[test]
fn a_session_owes_while_a_turn_runs() {
    let mut conversation = Conversation::new();
    assert!(!conversation.session.owes());
    conversation.accepts(ask("hello"));
    assert!(conversation.session.owes());
    conversation.fails(overloaded());
    assert!(conversation.session.owes());
    conversation.restart();
    assert!(conversation.session.owes());
    conversation.wakes_at_its_timer();
    conversation.answers("hi");
    assert!(!conversation.session.owes());
}
