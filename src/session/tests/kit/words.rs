//! The words that tests speak in.

use std::time::Duration;

use crate::ids::{AgentId, CallId, LlmId, MessageId, OwnerId, SessionId, SessionKey, TurnId};
use crate::protocol::agent::{AgentConfig, RetryPolicy, Seconds};
use crate::protocol::error::{ErrorCode, ErrorInfo};
use crate::protocol::event::{
    CallDispatched, CallErrored, Event, LlmCallRequested, MessageNew, Payload, TurnCompleted,
};
use crate::protocol::input::{Identity, Input};
use crate::protocol::json::Json;
use crate::protocol::llm::{Cost, LlmResponse, Usage};
use crate::protocol::message::{FunctionCall, FunctionTag, Message, Role, ToolCall};
use crate::session::{CallFailure, Caller, Command, ModelOutcome, Submission};
use crate::time::Timestamp;

pub(crate) fn key() -> SessionKey {
    SessionKey { tenant: crate::ids::local_tenant(), session: SessionId::parse("s1").unwrap() }
}

/// When conversations begin: 2026-09-21T14:13:20Z.
pub(crate) fn start() -> Timestamp {
    Timestamp::from_millis(1_790_000_000_000)
}

pub(crate) fn agent() -> AgentConfig {
    AgentConfig {
        llm: LlmId::parse("demo").unwrap(),
        model: "demo-1".to_owned(),
        system: None,
        stream: true,
        retry: RetryPolicy::MODEL_CALL,
    }
}

pub(crate) fn retry(timeout: Option<u64>, attempts: u32, base: u64, longest: u64) -> RetryPolicy {
    RetryPolicy {
        timeout_secs: timeout.map(Seconds::whole),
        max_retries: attempts,
        backoff_base_secs: Seconds::whole(base),
        backoff_max_secs: Seconds::whole(longest),
    }
}

pub(crate) fn turn_id(text: &str) -> TurnId {
    TurnId::parse(text).unwrap()
}

pub(crate) fn message_id(text: &str) -> MessageId {
    MessageId::parse(text).unwrap()
}

/// A submit under construction: by default a user's text to `helper` from the frontend of `zoe`.
#[derive(Debug, Clone)]
pub(crate) struct Ask(Submission);

pub(crate) fn ask(text: &str) -> Ask {
    ask_message(Message::text(Role::User, text))
}

pub(crate) fn ask_message(message: Message) -> Ask {
    Ask(Submission {
        caller: Caller::Frontend,
        identity: Identity { id: OwnerId::parse("zoe").unwrap(), metadata: None },
        agent_id: AgentId::parse("helper").unwrap(),
        turn_id: None,
        queue: false,
        input: Input::Message { message, stream: None },
        queued_turns_max: 100,
    })
}

impl Ask {
    pub(crate) fn turn(mut self, id: &str) -> Self {
        self.0.turn_id = Some(turn_id(id));
        self
    }

    pub(crate) fn queued(mut self) -> Self {
        self.0.queue = true;
        self
    }

    pub(crate) fn queue_of(mut self, longest: usize) -> Self {
        self.0.queued_turns_max = longest;
        self
    }

    pub(crate) fn owner(mut self, id: &str) -> Self {
        self.0.identity.id = OwnerId::parse(id).unwrap();
        self
    }

    pub(crate) fn metadata(mut self, json: &str) -> Self {
        self.0.identity.metadata = Json::parse(json);
        self
    }

    pub(crate) fn agent(mut self, id: &str) -> Self {
        self.0.agent_id = AgentId::parse(id).unwrap();
        self
    }

    pub(crate) fn by_a_machine(mut self) -> Self {
        self.0.caller = Caller::Machine;
        self
    }

    pub(crate) fn message(mut self, id: &str) -> Self {
        self.message_mut().id = Some(message_id(id));
        self
    }

    pub(crate) fn role(mut self, role: Role) -> Self {
        self.message_mut().role = role;
        self
    }

    pub(crate) fn streaming(mut self, wish: bool) -> Self {
        let Input::Message { stream, .. } = &mut self.0.input;
        *stream = Some(wish);
        self
    }

    fn message_mut(&mut self) -> &mut Message {
        let Input::Message { message, .. } = &mut self.0.input;
        message
    }
}

impl From<Ask> for Command {
    fn from(Ask(submission): Ask) -> Self {
        Self::Submit(Box::new(submission))
    }
}

pub(crate) fn settle(id: CallId, attempt: u32, outcome: ModelOutcome) -> Command {
    Command::SettleModelCall { id, attempt, outcome }
}

pub(crate) fn responds(response: LlmResponse) -> ModelOutcome {
    ModelOutcome { result: Ok(response), streamed: true }
}

pub(crate) fn answer(text: &str) -> ModelOutcome {
    responds(LlmResponse {
        model: "demo-1".to_owned(),
        content: Some(text.to_owned()),
        ..LlmResponse::default()
    })
}

/// A reply that asks for tools under the ids of a provider.
pub(crate) fn tool_calls(calls: &[(&str, &str)]) -> ModelOutcome {
    let calls = calls.iter().map(|(name, arguments)| ToolCall {
        id: CallId::parse("theirs").unwrap(),
        kind: FunctionTag::Function,
        function: FunctionCall { name: (*name).to_owned(), arguments: (*arguments).to_owned() },
    });
    responds(LlmResponse {
        model: "demo-1".to_owned(),
        tool_calls: calls.collect(),
        ..LlmResponse::default()
    })
}

pub(crate) fn failed(failure: CallFailure, streamed: bool) -> ModelOutcome {
    ModelOutcome { result: Err(failure), streamed }
}

pub(crate) fn overloaded() -> CallFailure {
    CallFailure {
        error: ErrorInfo::new("the provider is busy", Some(ErrorCode::RateLimited)),
        retryable: true,
        retry_after: None,
    }
}

pub(crate) fn overloaded_for(wait: Duration) -> CallFailure {
    CallFailure { retry_after: Some(wait), ..overloaded() }
}

pub(crate) fn refused() -> CallFailure {
    CallFailure {
        error: ErrorInfo::new("the model declined", Some(ErrorCode::Refused)),
        retryable: false,
        retry_after: None,
    }
}

pub(crate) fn cost(dollars: &str) -> Cost {
    Cost(dollars.parse().unwrap())
}

pub(crate) fn usage(input: u64, output: u64) -> Usage {
    Usage {
        input_tokens: input,
        output_tokens: output,
        cached_input_tokens: None,
        reasoning_tokens: None,
        total_tokens: input + output,
    }
}

// Reading the log.

pub(crate) fn kinds(events: &[Event]) -> Vec<&'static str> {
    events.iter().map(|event| event.payload.kind()).collect()
}

pub(crate) fn call_requested(event: &Event) -> Option<&LlmCallRequested> {
    if let Payload::LlmCallRequested(request) = &event.payload {
        return Some(request);
    }
    None
}

pub(crate) fn call_dispatched(event: &Event) -> Option<&CallDispatched> {
    if let Payload::LlmCallDispatched(dispatched) = &event.payload {
        return Some(dispatched);
    }
    None
}

pub(crate) fn call_errored(event: &Event) -> Option<&CallErrored> {
    if let Payload::LlmCallErrored(errored) = &event.payload {
        return Some(errored);
    }
    None
}

pub(crate) fn message_new(event: &Event) -> Option<&MessageNew> {
    if let Payload::MessageNew(recorded) = &event.payload {
        return Some(recorded);
    }
    None
}

pub(crate) fn turn_completed(event: &Event) -> Option<&TurnCompleted> {
    if let Payload::TurnCompleted(completed) = &event.payload {
        return Some(completed);
    }
    None
}

/// The only event of `events` that `pick` takes.
#[track_caller]
pub(crate) fn only<'e, T>(events: &'e [Event], pick: impl Fn(&'e Event) -> Option<&'e T>) -> &'e T {
    let mut found = events.iter().filter_map(pick);
    let (first, second) = (found.next(), found.next());
    assert!(second.is_none(), "more than one: {:?}", kinds(events));
    first.unwrap_or_else(|| panic!("none in {:?}", kinds(events)))
}
