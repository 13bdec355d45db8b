//! The words that tests speak in.

use std::time::Duration;

use super::sayings::user;
use crate::ids::{
    AgentId, CallId, InterruptId, LlmId, MessageId, OwnerId, Seq, SessionId, SessionKey, TurnId,
};
use crate::protocol::agent::{AgentConfig, RetryPolicy, Seconds};
use crate::protocol::content::Blobs;
use crate::protocol::error::{ErrorCode, ErrorInfo};
use crate::protocol::event::ResumeStatus;
use crate::protocol::input::{
    ActionInput, CancelRequest, Conditions, Identity, Input, InterruptRequest, MessageInput,
    MessagesInput, Resume, SessionPatch, Settlement, ToolFailure,
};
use crate::protocol::json::Json;
use crate::protocol::llm::{Cost, LlmResponse, Usage};
use crate::protocol::message::{FunctionCall, FunctionTag, Message, Role, ToolCall};
use crate::protocol::tool::ClientContext;
use crate::protocol::tool_result::ToolResult;
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
        tools: Vec::new(),
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

pub(crate) fn call_id(text: &str) -> CallId {
    CallId::parse(text).unwrap()
}

pub(crate) fn interrupt_id(text: &str) -> InterruptId {
    InterruptId::parse(text).unwrap()
}

// Callers.

pub(crate) fn frontend_of(owner: &str) -> Caller {
    Caller::Frontend(OwnerId::parse(owner).unwrap())
}

/// The end user that the conversations of tests belong to.
pub(crate) fn zoe() -> Caller {
    frontend_of("zoe")
}

// Inputs.

/// A submit under construction: by default from the front end of `zoe` to `helper`.
#[derive(Debug, Clone)]
pub(crate) struct Ask(pub(crate) Submission);

/// `client.message` with a text of the user.
pub(crate) fn ask(text: &str) -> Ask {
    ask_message(Message::text(Role::User, text))
}

/// `client.message`.
pub(crate) fn ask_message(message: Message) -> Ask {
    ask_input(Input::Message(MessageInput { message, stream: None }))
}

/// `client.messages`: the whole conversation as a client has it.
pub(crate) fn view(messages: &[Message]) -> Ask {
    ask_input(Input::Messages(list(messages)))
}

/// `client.append`.
pub(crate) fn append(messages: &[Message]) -> Ask {
    ask_input(Input::Append(list(messages)))
}

/// `client.action`.
pub(crate) fn action(name: &str, args: Option<&str>) -> Ask {
    let args = args.and_then(Json::parse);
    ask_input(Input::Action(ActionInput { name: name.to_owned(), args }))
}

fn list(messages: &[Message]) -> MessagesInput {
    MessagesInput { messages: messages.to_vec(), stream: None, client: None }
}

fn ask_input(input: Input) -> Ask {
    Ask(Submission {
        caller: zoe(),
        identity: Identity { id: OwnerId::parse("zoe").unwrap(), metadata: None },
        agent_id: AgentId::parse("helper").unwrap(),
        turn_id: None,
        queue: false,
        conditions: Conditions::default(),
        input,
        blobs: Blobs::new(),
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

    pub(crate) fn if_head(mut self, id: &str) -> Self {
        self.0.conditions.if_head = Some(message_id(id));
        self
    }

    pub(crate) fn if_seq(mut self, seq: u64) -> Self {
        self.0.conditions.if_seq = Some(Seq(seq));
        self
    }

    /// From the front end of another owner, or for one where a machine asks.
    pub(crate) fn owner(mut self, id: &str) -> Self {
        self.0.identity.id = OwnerId::parse(id).unwrap();
        if let Caller::Frontend(owner) = &mut self.0.caller {
            *owner = self.0.identity.id.clone();
        }
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

    /// The id of the message of a `client.message`.
    pub(crate) fn message(mut self, id: &str) -> Self {
        self.message_mut().id = Some(message_id(id));
        self
    }

    pub(crate) fn role(mut self, role: Role) -> Self {
        self.message_mut().role = role;
        self
    }

    fn message_mut(&mut self) -> &mut Message {
        self.0.input.messages_mut().first_mut().expect("an input with a message")
    }

    pub(crate) fn streaming(mut self, wish: bool) -> Self {
        match &mut self.0.input {
            Input::Message(MessageInput { stream, .. })
            | Input::Messages(MessagesInput { stream, .. })
            | Input::Append(MessagesInput { stream, .. }) => *stream = Some(wish),
            Input::Action(_) => panic!("an action does not stream"),
        }
        self
    }

    /// The front end offers these tools.
    pub(crate) fn client(self, tools: &[&str]) -> Self {
        let tools = tools.iter().map(|name| super::sayings::client_tool(name)).collect();
        self.context(ClientContext { tools, ..ClientContext::default() })
    }

    pub(crate) fn context(mut self, context: ClientContext) -> Self {
        match &mut self.0.input {
            Input::Messages(input) | Input::Append(input) => input.client = Some(context),
            Input::Message(_) | Input::Action(_) => panic!("only a list has a client context"),
        }
        self
    }

    /// What is known of the bytes that came with it.
    pub(crate) fn uploads(mut self, blobs: Blobs) -> Self {
        self.0.blobs = blobs;
        self
    }
}

impl From<Ask> for Command {
    fn from(Ask(submission): Ask) -> Self {
        Self::Submit(Box::new(submission))
    }
}

/// A user's text that offers tools of the front end.
pub(crate) fn ask_with_tools(text: &str, tools: &[&str]) -> Ask {
    append(&[Message { id: None, ..user("m", text) }]).client(tools)
}

// Other commands.

pub(crate) fn settle(id: CallId, attempt: u32, outcome: ModelOutcome) -> Command {
    Command::SettleModelCall { id, attempt, outcome }
}

pub(crate) fn resume_by(caller: Caller, id: &str, turn: Option<&str>) -> Command {
    Command::Resume {
        caller,
        conditions: Conditions::default(),
        turn_id: turn.map(turn_id),
        resume: Resume { interrupt_id: interrupt_id(id), payload: None, status: None },
    }
}

pub(crate) fn resume(id: &str) -> Command {
    resume_by(zoe(), id, None)
}

/// A resume with what it may carry.
pub(crate) fn resume_with(
    id: &str,
    payload: Option<&str>,
    status: Option<ResumeStatus>,
) -> Command {
    let payload = payload.and_then(Json::parse);
    Command::Resume {
        caller: zoe(),
        conditions: Conditions::default(),
        turn_id: None,
        resume: Resume { interrupt_id: interrupt_id(id), payload, status },
    }
}

pub(crate) fn interrupt_by(caller: Caller, id: Option<&str>) -> Command {
    let request = InterruptRequest {
        interrupt_id: id.map(interrupt_id),
        reason: "wait".to_owned(),
        payload: None,
    };
    Command::Interrupt { caller, request }
}

pub(crate) fn interrupt(id: &str) -> Command {
    interrupt_by(zoe(), Some(id))
}

pub(crate) fn cancel_by(caller: Caller, turn: Option<&str>, session: bool) -> Command {
    let request = CancelRequest { turn_id: turn.map(turn_id), reason: None, session };
    Command::Cancel { caller, request }
}

/// Cancels the turn that started last.
pub(crate) fn cancel() -> Command {
    cancel_by(zoe(), None, false)
}

pub(crate) fn cancel_turn(turn: &str) -> Command {
    cancel_by(zoe(), Some(turn), false)
}

pub(crate) fn cancel_session() -> Command {
    cancel_by(zoe(), None, true)
}

pub(crate) fn update_by(caller: Caller, title: Option<&str>, metadata: Option<&str>) -> Command {
    let metadata = metadata.and_then(Json::parse);
    Command::Update { caller, patch: SessionPatch { title: title.map(str::to_owned), metadata } }
}

pub(crate) fn update(title: Option<&str>, metadata: Option<&str>) -> Command {
    update_by(zoe(), title, metadata)
}

pub(crate) fn settle_tool_by(
    caller: Caller,
    id: &CallId,
    attempt: Option<u32>,
    outcome: Result<ToolResult, ToolFailure>,
) -> Command {
    let settlement = Settlement { id: id.clone(), attempt, outcome };
    Command::SettleToolCall { caller, conditions: Conditions::default(), settlement }
}

/// `tool.result` with one text.
pub(crate) fn tool_result(id: &CallId, text: &str) -> Command {
    settle_tool_by(zoe(), id, None, Ok(ToolResult::text(text)))
}

/// `tool.error`.
pub(crate) fn tool_error(id: &CallId, error: &str, retryable: bool) -> Command {
    settle_tool_by(zoe(), id, None, Err(ToolFailure { error: error.to_owned(), retryable }))
}

/// A resume, a settle or a submit that holds only at this place.
pub(crate) fn on_condition(mut command: Command, if_seq: u64) -> Command {
    let wanted = Conditions { if_head: None, if_seq: Some(Seq(if_seq)) };
    match &mut command {
        Command::Submit(submission) => submission.conditions = wanted,
        Command::Resume { conditions, .. } | Command::SettleToolCall { conditions, .. } => {
            *conditions = wanted;
        }
        Command::Interrupt { .. }
        | Command::Cancel { .. }
        | Command::Update { .. }
        | Command::SettleModelCall { .. }
        | Command::Wake
        | Command::Recover => panic!("{command:?} has no conditions"),
    }
    command
}

// What models answer.

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
        id: call_id("theirs"),
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
