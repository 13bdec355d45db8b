//! What readers see: pages, branches, open pauses, rows of lists (S21, S25, S42; interface 2.1).

use std::time::Duration;

use super::kit::*;
use crate::protocol::message::Message;
use crate::protocol::view::{SessionStatus, SessionView, ViewRequest};
use crate::session::{Caller, Rejection};

fn told(count: usize) -> Vec<Message> {
    let say = |at: usize| match at % 2 {
        0 => user(&format!("m{at}"), "why?"),
        _ => assistant(&format!("m{at}"), "so"),
    };
    (0..count).map(say).collect()
}

/// m0 to m5.
fn conversation() -> Conversation {
    let mut conversation = Conversation::new();
    conversation.accepts(append(&told(6)));
    conversation
}

fn page(conversation: &Conversation, limit: Option<usize>, before: Option<&str>) -> SessionView {
    let before = before.map(message_id);
    let request = ViewRequest { limit, before, without_tree: false };
    conversation.session.view(&request).unwrap()
}

fn ids(view: &SessionView) -> Vec<String> {
    view.messages.iter().map(|message| message.id.as_ref().unwrap().to_string()).collect()
}

#[test]
fn the_whole_conversation_is_shown_unless_a_page_is_asked_for() {
    let view = conversation().view();
    assert_eq!(ids(&view), ["m0", "m1", "m2", "m3", "m4", "m5"]);
    assert_eq!(view.has_more, None);
    let text = serde_json::to_string(&view).unwrap();
    assert!(!text.contains("has_more"), "{text}");
}

#[test]
fn a_page_ends_at_the_head_or_above_a_message() {
    for (limit, before, expected, more) in [
        (Some(2), None, &["m4", "m5"][..], true),
        (Some(6), None, &["m0", "m1", "m2", "m3", "m4", "m5"], false),
        (Some(7), None, &["m0", "m1", "m2", "m3", "m4", "m5"], false),
        (Some(5), None, &["m1", "m2", "m3", "m4", "m5"], true),
        (Some(2), Some("m4"), &["m2", "m3"], true),
        (Some(2), Some("m2"), &["m0", "m1"], false),
        (Some(2), Some("m1"), &["m0"], false),
        (Some(2), Some("m0"), &[], false),
        (None, Some("m3"), &["m0", "m1", "m2"], false),
        (Some(0), None, &[], true),
        (Some(0), Some("m0"), &[], false),
    ] {
        let view = page(&conversation(), limit, before);
        assert_eq!(ids(&view), expected, "{limit:?} {before:?}");
        assert_eq!(view.has_more, Some(more), "{limit:?} {before:?}");
    }
}

#[test]
fn pages_follow_the_active_branch() {
    let mut conversation = conversation();
    conversation.accepts(view(&[&told(2)[..], &[user("u9", "nine")]].concat()));
    conversation.answers("fine");
    let head = conversation.head();
    assert_eq!(ids(&page(&conversation, Some(3), None)), ["m1", "u9", head.as_str()]);
    assert_eq!(ids(&page(&conversation, Some(1), Some("u9"))), ["m1"]);
}

#[test]
fn a_page_above_a_message_of_another_branch_is_refused() {
    let mut conversation = conversation();
    conversation.accepts(view(&[&told(2)[..], &[user("u9", "nine")]].concat()));
    for before in ["m2", "m5", "unknown"] {
        let request = ViewRequest { before: Some(message_id(before)), ..ViewRequest::default() };
        let problem = "is not a message of the active conversation";
        let expected = Rejection::Invalid { path: "before".to_owned(), problem };
        assert_eq!(conversation.session.view(&request), Err(expected));
    }
    conversation.answers("fine");
}

#[test]
fn the_tree_may_be_left_out() {
    let conversation = conversation();
    let request = ViewRequest { without_tree: true, ..ViewRequest::default() };
    let view = conversation.session.view(&request).unwrap();
    assert_eq!((view.messages.len(), &view.message_tree), (6, &None));
    let text = serde_json::to_string(&view).unwrap();
    assert!(!text.contains("message_tree"), "{text}");
}

#[test]
fn a_page_comes_with_the_whole_tree_unless_it_is_left_out() {
    let view = page(&conversation(), Some(1), None);
    assert_eq!(view.message_tree.unwrap().nodes.len(), 6);
}

#[test]
fn the_status_is_that_of_the_active_branch_and_pauses_are_shown_of_all() {
    let mut conversation = conversation();
    conversation.accepts(interrupt("i1"));
    let status = |conversation: &Conversation| {
        let view = conversation.view();
        let open: Vec<_> = view.interrupts.iter().map(|it| it.interrupt_id.to_string()).collect();
        assert_eq!(conversation.session.summary().unwrap().status, view.status);
        (view.status, open)
    };
    let i1 = || vec!["i1".to_owned()];
    assert_eq!(status(&conversation), (SessionStatus::Interrupted, i1()));
    conversation.accepts(view(&told(4)));
    assert_eq!(status(&conversation), (SessionStatus::Idle, i1()), "above the anchor");
    conversation.accepts(view(&[&told(4)[..], &[user("u9", "nine")]].concat()));
    assert_eq!(status(&conversation), (SessionStatus::Idle, i1()), "beside the anchor");
    conversation.answers("fine");
    conversation.accepts(view(&told(6)));
    assert_eq!(status(&conversation), (SessionStatus::Interrupted, i1()));
    conversation.accepts(cancel_session());
    assert_eq!(status(&conversation), (SessionStatus::Done, vec![]));
}

#[test]
fn an_interrupt_is_shown_in_the_shape_of_the_interface() {
    let mut conversation = conversation();
    conversation.accepts(interrupt_by(Caller::Machine, Some("i1")));
    let view = serde_json::to_value(conversation.view()).unwrap();
    let expected = serde_json::json!([
        { "interrupt_id": "i1", "origin": "machine", "reason": "wait", "anchor": "m5" }
    ]);
    assert_eq!((&view["status"], &view["interrupts"]), (&"interrupted".into(), &expected));
}

#[test]
fn a_running_session_is_idle_as_far_as_its_status_goes() {
    assert_eq!(Conversation::with_a_running_turn().session.status(), SessionStatus::Idle);
}

#[test]
fn a_row_of_a_list_says_what_lists_show() {
    let mut conversation = Conversation::new();
    assert_eq!(conversation.session.summary(), None);
    conversation.accepts(ask("hello").turn("t1").metadata(r#"{"plan":"pro"}"#));
    conversation.passes(1500);
    let running = serde_json::to_value(conversation.session.summary().unwrap()).unwrap();
    let expected = serde_json::json!({
        "session_id": "s1",
        "agent_id": "helper",
        "owner_id": "zoe",
        "status": "idle",
        "title": "hello",
        "turn_id": "t1",
        "first_event_at": "2026-09-21T14:13:20.000Z",
        "last_event_at": "2026-09-21T14:13:20.000Z",
    });
    assert_eq!(running, expected);
    conversation.answers("hi");
    conversation.restart();
    let summary = conversation.session.summary().unwrap();
    assert_eq!(summary.turn_id, None);
    let age = summary.last_event_at.since(summary.first_event_at);
    assert_eq!(age, Duration::from_millis(1500));
}

#[test]
fn the_turn_of_a_row_is_the_one_that_runs_whatever_it_waits_for() {
    let turn = |conversation: &Conversation| conversation.session.summary().unwrap().turn_id;
    let (mut conversation, _) = Conversation::with_open_tools(&["left"]);
    assert_eq!(turn(&conversation), Some(turn_id("t1")));
    conversation.accepts(interrupt("i1"));
    assert_eq!(turn(&conversation), Some(turn_id("t1")));
    conversation.accepts(ask("next").turn("t2").queued());
    assert_eq!(turn(&conversation), Some(turn_id("t1")));
    conversation.accepts(cancel_turn("t1"));
    assert_eq!(turn(&conversation), Some(turn_id("t2")));
}

#[test]
fn the_metadata_of_the_owner_is_not_that_of_the_session() {
    let mut conversation = Conversation::new();
    conversation.accepts(ask("hello").metadata(r#"{"plan":"pro"}"#));
    assert_eq!(conversation.view().metadata, None);
    assert_eq!(conversation.session.summary().unwrap().metadata, None);
}

#[test]
fn the_client_s_context_is_recorded_as_it_came() {
    use crate::protocol::json::Json;
    use crate::protocol::tool::ClientContext;
    let mut conversation = Conversation::new();
    let context = ClientContext {
        tools: vec![],
        context: vec![Json::parse(r#"{"page":"cart"}"#).unwrap()],
        state: Json::parse("[1, 2]"),
        forwarded_props: Json::parse(r#"{ "a" : null }"#),
    };
    let step = conversation.accepts(append(&[user("u1", "hello")]).context(context.clone()));
    assert_eq!(only(&step.events, turn_started).client, Some(context));
    conversation.restart();
    conversation.answers("hi");
}
