//! Events: the log's record, the stream's payload (interface 2.6, S13, S16).

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::agent::{AgentConfig, RetryPolicy};
use super::blob::BlobHash;
use super::error::ErrorInfo;
use super::input::{Identity, Input};
use super::json::Json;
use super::llm::{Cost, LlmResponse, Usage};
use super::message::Message;
use super::tagged::tagged;
use super::tool::ClientContext;
use super::tool_result::ToolResult;
use crate::ids::{AgentId, CallId, InterruptId, LlmId, MessageId, Seq, SessionId, TurnId};
use crate::time::Timestamp;

/// What an event holds beside its one large part (a message, an answer), in bytes: ids, times, names.
pub const ENVELOPE_BYTES_MAX: usize = 4096;

/// A recorded fact. The session it belongs to is known from where it is kept, and is written out by
/// [`Event::encode`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Event {
    pub seq: Seq,
    pub occurred_at: Timestamp,
    /// The turn that was running when it happened.
    pub turn_id: Option<TurnId>,
    pub payload: Payload,
}

impl Event {
    /// The stored form, which is what every stream sends (S13).
    pub fn encode(&self, session_id: &SessionId) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(512);
        self.encode_into(session_id, &mut bytes);
        bytes
    }

    /// As [`Event::encode`], at the end of `out`.
    pub fn encode_into(&self, session_id: &SessionId, out: &mut Vec<u8>) {
        #[derive(Serialize)]
        struct Stored<'a> {
            session_id: &'a SessionId,
            seq: Seq,
            occurred_at: Timestamp,
            #[serde(skip_serializing_if = "Option::is_none")]
            turn_id: Option<&'a TurnId>,
            payload: &'a Payload,
        }
        let stored = Stored {
            session_id,
            seq: self.seq,
            occurred_at: self.occurred_at,
            turn_id: self.turn_id.as_ref(),
            payload: &self.payload,
        };
        // Every field is a string, a number or validated JSON, and a Vec takes any write.
        let encoded = serde_json::to_writer(out, &stored);
        debug_assert!(encoded.is_ok(), "an event always encodes: {encoded:?}");
    }

    /// Reads what [`Event::encode`] wrote.
    pub fn decode(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }
}

/// What a stream needs to know of a stored event without reading all of it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Envelope<'a> {
    #[serde(borrow)]
    pub turn_id: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "payload")]
    kind: Kind<'a>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Kind<'a> {
    #[serde(borrow, rename = "type")]
    name: Cow<'a, str>,
}

impl<'a> Envelope<'a> {
    /// Reads the outside of what [`Event::encode`] wrote.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    /// The event type.
    pub fn kind(&self) -> &str {
        &self.kind.name
    }
}

tagged! {
    /// What happened, tagged by `type`.
    Payload, "an event payload", {
        "session.created" SessionCreated SessionCreated,
        "session.updated" SessionUpdated SessionUpdated,
        "session.cancelled" SessionCancelled SessionCancelled,
        "message.new" MessageNew MessageNew,
        "head.moved" HeadMoved HeadMoved,
        "turn.queued" TurnQueued TurnQueued,
        "turn.started" TurnStarted TurnStarted,
        "turn.completed" TurnCompleted TurnCompleted,
        "session.interrupted" SessionInterrupted SessionInterrupted,
        "session.interrupt_resumed" InterruptResumed InterruptResumed,
        "llm.call.requested" LlmCallRequested LlmCallRequested,
        "llm.call.dispatched" LlmCallDispatched CallDispatched,
        "llm.call.completed" LlmCallCompleted LlmCallCompleted,
        "llm.call.errored" LlmCallErrored CallErrored,
        "tool.call.requested" ToolCallRequested ToolCallRequested,
        "tool.call.dispatched" ToolCallDispatched CallDispatched,
        "tool.call.completed" ToolCallCompleted ToolCallCompleted,
        "tool.call.errored" ToolCallErrored CallErrored,
        "call.voided" CallVoided CallVoided,
        "worker.state.updated" WorkerStateUpdated WorkerStateUpdated,
        "agent.updated" AgentUpdated AgentUpdated,
    }
}

impl Payload {
    /// Every blob that the event names (S15).
    pub fn blobs(&self) -> Vec<BlobHash> {
        match self {
            Self::MessageNew(new) => new.message.blobs().map(|(hash, _)| hash).collect(),
            Self::TurnQueued(queued) => {
                let messages = queued.input.messages().iter();
                messages.flat_map(Message::blobs).map(|(hash, _)| hash).collect()
            }
            Self::ToolCallCompleted(call) => call.result.blobs().map(|(hash, _)| hash).collect(),
            Self::SessionCreated(_)
            | Self::SessionUpdated(_)
            | Self::SessionCancelled(_)
            | Self::HeadMoved(_)
            | Self::TurnStarted(_)
            | Self::TurnCompleted(_)
            | Self::SessionInterrupted(_)
            | Self::InterruptResumed(_)
            | Self::LlmCallRequested(_)
            | Self::LlmCallDispatched(_)
            | Self::LlmCallCompleted(_)
            | Self::LlmCallErrored(_)
            | Self::ToolCallRequested(_)
            | Self::ToolCallDispatched(_)
            | Self::ToolCallErrored(_)
            | Self::CallVoided(_)
            | Self::WorkerStateUpdated(_)
            | Self::AgentUpdated(_) => Vec::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionCreated {
    pub agent_id: AgentId,
    pub identity: Identity,
    /// Parent sessions, root first.
    pub ancestry: Vec<SessionId>,
}

/// Only what changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionUpdated {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A map of strings; replaces the one before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
}

/// The session is done for good (S20, S21).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionCancelled {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageNew {
    pub message: Arc<Message>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<MessageId>,
}

/// The conversation goes on from an earlier message, without a new one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadMoved {
    pub head_id: MessageId,
}

/// A turn that waits for the running one, with all that starting it needs (S16).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnQueued {
    pub turn_id: TurnId,
    pub input: Input,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnStarted {
    pub turn_id: TurnId,
    /// What is asked and stands in no message; absent after `turn.queued`, which has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Input>,
    /// What the front end said of itself; absent after `turn.queued`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientContext>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnCompleted {
    pub turn_id: TurnId,
    /// What the turn came to: for an engine-decided agent the text of its last reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Json>,
    pub cost: Cost,
    pub usage: Usage,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorInfo>,
    /// It was ended before it was done (S20).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
    /// Why it was cancelled, in the words of who did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Who performs a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Handler {
    Server,
    Worker,
    Client,
}

/// Who raised an interrupt (S5), by growing privilege.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    Frontend,
    Machine,
    System,
}

/// A pause of every branch that holds `anchor`, or of all of them (S42).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionInterrupted {
    pub interrupt_id: InterruptId,
    pub origin: Origin,
    pub reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchor: Option<MessageId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterruptResumed {
    pub interrupt_id: InterruptId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Json>,
    /// Only where the interrupt was given up, not answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ResumeStatus>,
    /// The turn id that the answer came with, which names the turn it continued too (S58).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<TurnId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResumeStatus {
    Cancelled,
}

/// Names the head that it prompts from; never embeds the conversation (S14).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LlmCallRequested {
    pub id: CallId,
    pub llm: LlmId,
    pub model: String,
    pub handler: Handler,
    pub stream: bool,
    pub head_id: MessageId,
    /// Names of the tools that the model is offered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    pub retry: RetryPolicy,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallDispatched {
    pub id: CallId,
    pub attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LlmCallCompleted {
    pub id: CallId,
    pub attempt: u32,
    pub response: LlmResponse,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallErrored {
    pub id: CallId,
    pub attempt: u32,
    pub error: ErrorInfo,
    pub retryable: bool,
    pub will_retry: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
    /// The attempt had shown text, so a later one speaks under another message id (S50).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub streamed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCallRequested {
    pub id: CallId,
    pub name: String,
    /// The model's raw text.
    pub arguments: String,
    pub handler: Handler,
    pub retry: RetryPolicy,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCallCompleted {
    pub id: CallId,
    pub attempt: u32,
    pub name: String,
    pub result: ToolResult,
    /// The turn id that the result came with, which names the turn it continued too (S58).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<TurnId>,
}

/// A call that is given up before it settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallVoided {
    pub id: CallId,
    pub kind: CallKind,
    pub reason: VoidReason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallKind {
    LlmCall,
    ToolCall,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VoidReason {
    /// Somebody cancelled the turn, or a view left it behind while it was paused.
    Cancelled,
    /// An interrupt pauses its branch.
    Interrupted,
}

/// The agent's state from `anchor` on, down every branch below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerStateUpdated {
    pub state: Json,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchor: Option<MessageId>,
}

/// The agent's configuration from `anchor` on, down every branch below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentUpdated {
    pub config: Arc<AgentConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchor: Option<MessageId>,
}

#[cfg(test)]
mod tests;
