//! What the engine proposes for an agent without a worker, and takes (S14, S18, S29).

use super::kit::*;
use crate::ids::tool_call_id;
use crate::protocol::agent::RetryPolicy;
use crate::protocol::content::Content;
use crate::protocol::event::Handler;
use crate::protocol::message::Role;

const MODEL_CALLS_MAX: usize = 500;

#[test]
fn a_model_call_is_requested_from_the_head_with_what_the_agent_says() {
    let mut conversation = Conversation::new();
    let step = conversation.accepts(ask("hello").message("m1"));
    let request = only(&step.events, call_requested);
    assert_eq!(request.head_id, message_id("m1"));
    assert_eq!((request.llm.as_str(), request.model.as_str()), ("demo", "demo-1"));
    assert_eq!(request.handler, Handler::Server);
    assert_eq!(request.retry, RetryPolicy::MODEL_CALL);
}

#[test]
fn the_wish_of_the_submit_decides_about_streaming_for_the_whole_turn() {
    for (agent, wish, expected) in [
        (true, None, true),
        (false, None, false),
        (true, Some(false), false),
        (false, Some(true), true),
    ] {
        let mut conversation = Conversation::new();
        conversation.agent.stream = agent;
        let mut ask = ask("hello");
        if let Some(wish) = wish {
            ask = ask.streaming(wish);
        }
        let step = conversation.accepts(ask);
        assert_eq!(only(&step.events, call_requested).stream, expected);
        conversation.agent.stream = !expected;
        conversation.restart();
        let step = conversation.settles(tool_calls(&[("x", "{}")]));
        assert_eq!(only(&step.events, call_requested).stream, expected);
    }
}

#[test]
fn the_next_turn_takes_the_agent_as_it_is_then() {
    let mut conversation = Conversation::with_a_running_turn();
    conversation.accepts(ask("next").queued());
    conversation.agent.model = "demo-2".to_owned();
    conversation.agent.retry = retry(None, 1, 1, 1);
    let step = conversation.answers("hi");
    let request = only(&step.events, call_requested);
    assert_eq!((request.model.as_str(), request.retry.max_retries), ("demo-2", 1));
    assert_eq!(only(&step.events, call_dispatched).deadline, None);
}

#[test]
fn an_undeclared_tool_is_an_error_that_the_model_reads() {
    let mut conversation = Conversation::with_a_running_turn();
    let call = conversation.last_call_id();
    let step = conversation.settles(tool_calls(&[("weather", "{oops")]));
    let expected = [
        "llm.call.completed",
        "message.new",
        "tool.call.requested",
        "tool.call.errored",
        "message.new",
        "llm.call.requested",
        "llm.call.dispatched",
    ];
    assert_eq!(kinds(&step.events), expected);
    let id = tool_call_id(&message_id(call.as_str()), 0);
    let request = only(&step.events, tool_requested);
    assert_eq!(request.id, id);
    assert_eq!((request.name.as_str(), request.arguments.as_str()), ("weather", "{oops"));
    let result = &step.events.iter().filter_map(message_new).next_back().unwrap().message;
    assert_eq!((result.role, result.tool_call_id.as_ref()), (Role::Tool, Some(&id)));
    assert_eq!(result.name.as_deref(), Some("weather"));
    let text = "the tool `weather` is not declared".to_owned();
    assert_eq!(result.content, Some(Content::Text(text)));
    let next = only(&step.events, call_requested);
    assert_eq!(Some(&next.head_id), result.id.as_ref());
    let step = conversation.answers("I cannot know");
    assert!(only(&step.events, turn_completed).error.is_none());
}

#[test]
fn every_tool_call_of_a_batch_is_answered_before_the_model_is_asked_again() {
    let mut conversation = Conversation::with_a_running_turn();
    let step = conversation.settles(tool_calls(&[("a", ""), ("b", ""), ("a", "")]));
    let results: Vec<_> = step.events.iter().filter_map(message_new).collect();
    assert_eq!(results.len(), 4);
    let requests = step.events.iter().filter_map(tool_requested);
    let asked: Vec<_> = requests.map(|request| Some(request.id.clone())).collect();
    let answered: Vec<_> =
        results[1..].iter().map(|result| result.message.tool_call_id.clone()).collect();
    assert_eq!(asked, answered);
    let (id, _) = conversation.open();
    assert_eq!(conversation.work(&id).unwrap().messages.len(), 5);
}

#[test]
fn text_beside_tool_calls_is_kept_and_does_not_end_the_turn() {
    let mut conversation = Conversation::with_a_running_turn();
    let mut outcome = tool_calls(&[("x", "{}")]);
    if let Ok(response) = &mut outcome.result {
        response.content = Some("let me look".to_owned());
    }
    let step = conversation.settles(outcome);
    let reply = &step.events.iter().find_map(message_new).unwrap().message;
    assert_eq!(reply.content, Some(Content::Text("let me look".to_owned())));
    assert!(!step.events.iter().any(|event| turn_completed(event).is_some()));
}

#[test]
fn a_model_that_never_stops_calling_tools_is_stopped() {
    let mut conversation = Conversation::with_a_running_turn();
    for _ in 1..MODEL_CALLS_MAX {
        conversation.settles(tool_calls(&[("x", "{}")]));
    }
    let step = conversation.settles(tool_calls(&[("x", "{}")]));
    assert_eq!(step.events.last().map(|event| event.payload.kind()), Some("turn.completed"));
    let error = only(&step.events, turn_completed).error.as_ref().unwrap();
    assert_eq!(error.message, "the turn made 500 model calls without an answer");
    let requests = conversation.log.iter().filter_map(call_requested).count();
    assert_eq!(requests, MODEL_CALLS_MAX);
    conversation.accepts(ask("and again"));
    conversation.settles(tool_calls(&[("x", "{}")]));
}

#[test]
fn no_event_embeds_the_conversation() {
    let mut conversation = Conversation::with_a_completed_turn();
    let mut sizes = Vec::new();
    for turn in 0..30 {
        let id = format!("turn-{turn:03}");
        let before = conversation.log.len();
        conversation.accepts(ask("the same words every time").turn(&id));
        conversation.answers("the same answer every time");
        let events = &conversation.log[before..];
        let lengths = events.iter().map(|event| event.encode(&key().session).len());
        sizes.push(lengths.sum::<usize>());
    }
    let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
    // Only the seqs grow, from two digits to three.
    assert!(most - least < 10, "S14: {sizes:?}");
}
