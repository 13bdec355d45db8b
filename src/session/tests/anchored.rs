//! State and configuration that a decision wrote: they hold from their anchor on, down every branch
//! below it.

use std::sync::Arc;

use super::kit::*;
use crate::protocol::agent::AgentConfig;
use crate::protocol::event::{AgentUpdated, Payload, WorkerStateUpdated};
use crate::protocol::json::Json;
use crate::protocol::message::Message;

fn state(json: &str, anchor: Option<&str>) -> Payload {
    let state = Json::parse(json).unwrap();
    let anchor = anchor.map(message_id);
    Payload::WorkerStateUpdated(WorkerStateUpdated { state, anchor })
}

fn config(model: &str, anchor: Option<&str>) -> Payload {
    let config = Arc::new(AgentConfig {
        model: model.to_owned(),
        system: Some(format!("you are {model}")),
        ..agent()
    });
    let anchor = anchor.map(message_id);
    Payload::AgentUpdated(AgentUpdated { config, anchor })
}

fn told() -> [Message; 4] {
    [user("u1", "one"), assistant("a1", "first"), user("u2", "two"), assistant("a2", "second")]
}

fn conversation() -> Conversation {
    let mut conversation = Conversation::new();
    conversation.accepts(append(&told()));
    conversation
}

fn state_of(conversation: &Conversation) -> Option<&str> {
    conversation.session.agent_state().map(Json::text)
}

/// The model that the next turn asks, and what it is told to be.
#[track_caller]
fn asked(conversation: &mut Conversation, ask: Ask) -> (String, Option<String>) {
    conversation.accepts(ask);
    let (call, _) = conversation.open();
    let work = conversation.work(&call).unwrap();
    conversation.answers("so");
    (work.model, work.system)
}

#[test]
fn without_a_decision_there_is_no_state_and_the_declared_configuration_holds() {
    let mut conversation = conversation();
    assert_eq!(state_of(&conversation), None);
    let (model, system) = asked(&mut conversation, ask("more"));
    assert_eq!((model.as_str(), system), ("demo-1", None));
}

#[test]
fn what_was_written_last_above_the_head_holds() {
    let mut conversation = conversation();
    conversation.given(state("1", Some("u1")));
    conversation.given(state("2", Some("a2")));
    assert_eq!(state_of(&conversation), Some("2"));
    conversation.given(state("3", Some("a2")));
    assert_eq!(state_of(&conversation), Some("3"), "the same place again");
    conversation.given(state("0", Some("a1")));
    assert_eq!(state_of(&conversation), Some("3"), "the nearest counts, not the latest");
    conversation.restart();
    assert_eq!(state_of(&conversation), Some("3"));
}

#[test]
fn what_was_written_before_any_message_holds_where_nothing_else_does() {
    let mut conversation = Conversation::new();
    conversation.accepts(action("begin", None));
    conversation.given(state("0", None));
    conversation.given(config("root", None));
    assert_eq!(state_of(&conversation), Some("0"));
    assert_eq!(asked(&mut conversation, ask("hello").message("m1")).0, "root");
    let head = conversation.head();
    conversation.given(state("1", Some(&head)));
    assert_eq!(state_of(&conversation), Some("1"));
    conversation.accepts(view(&[user("m1", "edited")]));
    assert_eq!(state_of(&conversation), Some("0"), "another root");
    conversation.answers("hi");
}

#[test]
fn after_a_branch_both_read_as_at_that_point() {
    let mut conversation = conversation();
    conversation.given(state("1", Some("a1")));
    conversation.given(config("early", Some("a1")));
    conversation.given(state("2", Some("a2")));
    conversation.given(config("late", Some("a2")));
    assert_eq!(asked(&mut conversation, ask("more")).0, "late");
    let branch = [&told()[..2], &[user("u9", "nine")]].concat();
    let (model, system) = asked(&mut conversation, view(&branch));
    assert_eq!((model.as_str(), system.as_deref()), ("early", Some("you are early")));
    assert_eq!(state_of(&conversation), Some("1"));
}

#[test]
fn after_an_edit_both_read_as_at_the_message_above() {
    let mut conversation = conversation();
    conversation.given(state("1", Some("u1")));
    conversation.given(config("early", Some("u1")));
    conversation.given(state("2", Some("u2")));
    conversation.given(config("late", Some("u2")));
    let edited = [&told()[..2], &[user("u2", "TWO")]].concat();
    assert_eq!(asked(&mut conversation, view(&edited)).0, "early");
    assert_eq!(state_of(&conversation), Some("1"));
    assert_eq!(asked(&mut conversation, view(&[user("u1", "ONE")])).0, "demo-1");
    assert_eq!(state_of(&conversation), None, "above the first message is nothing");
}

#[test]
fn a_move_of_the_head_brings_both_back() {
    let mut conversation = conversation();
    conversation.given(state("1", Some("a1")));
    conversation.given(state("2", Some("u2")));
    for (view_of, expected) in [(&told()[..2], "1"), (&told()[..], "2"), (&told()[..2], "1")] {
        conversation.accepts(view(view_of));
        assert_eq!(state_of(&conversation), Some(expected));
    }
}

#[test]
fn another_answer_to_a_message_is_asked_of_the_configuration_there() {
    let mut conversation = conversation();
    conversation.given(config("early", Some("u1")));
    conversation.given(config("late", Some("a2")));
    assert_eq!(asked(&mut conversation, view(&told()[..3])).0, "early");
    assert_eq!(asked(&mut conversation, view(&told()[..1])).0, "early");
}

#[test]
fn a_written_configuration_decides_about_policy_tools_and_streaming() {
    let mut conversation = conversation();
    let written = AgentConfig {
        stream: false,
        retry: retry(Some(7), 2, 1, 1),
        tools: vec![client_tool("left")],
        ..agent()
    };
    let config = Arc::new(written);
    let anchor = Some(message_id("a2"));
    conversation.given(Payload::AgentUpdated(AgentUpdated { config, anchor }));
    let step = conversation.accepts(ask("more"));
    let request = only(&step.events, call_requested);
    assert_eq!((request.stream, request.retry.max_retries), (false, 2));
    assert_eq!(request.tools, ["left"]);
    let calls = conversation.calls_tools(&["left"]);
    conversation.accepts(tool_result(&calls[0], "42"));
    conversation.answers("done");
}

#[test]
fn a_written_configuration_outlives_the_declaration() {
    let mut conversation = conversation();
    conversation.given(config("late", Some("a2")));
    conversation.declared = false;
    assert_eq!(asked(&mut conversation, ask("more")).0, "late");
    let (branch, gone) = ([user("u1", "ONE")], "the agent of this session is no longer declared");
    let step = conversation.accepts(view(&branch));
    let error = only(&step.events, turn_completed).error.as_ref().unwrap();
    assert_eq!(error.message, gone);
}
