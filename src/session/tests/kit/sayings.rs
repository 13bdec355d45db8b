//! Messages and tools that tests speak of, and what a log says.

use std::sync::Arc;

use super::words::{call_id, message_id};
use crate::ids::CallId;
use crate::protocol::content::Content;
use crate::protocol::event::{
    CallDispatched, CallErrored, CallVoided, Event, Handler, InterruptResumed, LlmCallRequested,
    MessageNew, Payload, SessionInterrupted, ToolCallCompleted, ToolCallRequested, TurnCompleted,
    TurnStarted,
};
use crate::protocol::message::{FunctionCall, FunctionTag, Message, Role, ToolCall};
use crate::protocol::tool::AgentTool;

// Messages.

fn says(role: Role, id: &str, text: &str) -> Message {
    Message { id: Some(message_id(id)), ..Message::text(role, text) }
}

pub(crate) fn user(id: &str, text: &str) -> Message {
    says(Role::User, id, text)
}

pub(crate) fn system(id: &str, text: &str) -> Message {
    says(Role::System, id, text)
}

pub(crate) fn assistant(id: &str, text: &str) -> Message {
    says(Role::Assistant, id, text)
}

/// A message without an id.
pub(crate) fn nameless(message: Message) -> Message {
    Message { id: None, ..message }
}

/// The tool message of a call.
pub(crate) fn result_of(call: &CallId, id: &str, text: &str) -> Message {
    Message { tool_call_id: Some(call.clone()), ..says(Role::Tool, id, text) }
}

/// `message` with a call that it claims the model made.
pub(crate) fn with_a_call(message: Message, id: &str, name: &str) -> Message {
    let function = FunctionCall { name: name.to_owned(), arguments: "{}".to_owned() };
    let call = ToolCall { id: call_id(id), kind: FunctionTag::Function, function };
    Message { tool_calls: vec![call], ..message }
}

pub(crate) fn text_of(message: &Message) -> String {
    message.content.as_ref().map(Content::text).unwrap_or_default()
}

// Tools.

pub(crate) fn client_tool(name: &str) -> Arc<AgentTool> {
    Arc::new(AgentTool {
        name: name.to_owned(),
        description: None,
        input: None,
        output: None,
        handler: Handler::Client,
    })
}

// Reading the log.

pub(crate) fn kinds(events: &[Event]) -> Vec<&'static str> {
    events.iter().map(|event| event.payload.kind()).collect()
}

/// One function for each payload: what it is when the event is of that kind.
macro_rules! readers {
    ($($name:ident $variant:ident $payload:ident)*) => {$(
        pub(crate) fn $name(event: &Event) -> Option<&$payload> {
            if let Payload::$variant(payload) = &event.payload {
                return Some(payload);
            }
            None
        }
    )*};
}

readers! {
    message_new MessageNew MessageNew
    turn_started TurnStarted TurnStarted
    turn_completed TurnCompleted TurnCompleted
    interrupted SessionInterrupted SessionInterrupted
    resumed InterruptResumed InterruptResumed
    call_requested LlmCallRequested LlmCallRequested
    call_dispatched LlmCallDispatched CallDispatched
    call_errored LlmCallErrored CallErrored
    call_voided CallVoided CallVoided
    tool_requested ToolCallRequested ToolCallRequested
    tool_completed ToolCallCompleted ToolCallCompleted
    tool_errored ToolCallErrored CallErrored
}

/// The only event of `events` that `pick` takes.
#[track_caller]
pub(crate) fn only<'e, T>(events: &'e [Event], pick: impl Fn(&'e Event) -> Option<&'e T>) -> &'e T {
    let mut found = events.iter().filter_map(pick);
    let (first, second) = (found.next(), found.next());
    assert!(second.is_none(), "more than one: {:?}", kinds(events));
    first.unwrap_or_else(|| panic!("none in {:?}", kinds(events)))
}

/// The messages that `events` record, in order.
pub(crate) fn recorded(events: &[Event]) -> Vec<&Message> {
    events.iter().filter_map(message_new).map(|recorded| &*recorded.message).collect()
}
