//! Work that a session owes to the outside once its events are durable.

use std::sync::Arc;
use std::time::Duration;

use crate::ids::{CallId, LlmId, MessageId};
use crate::protocol::message::Message;
use crate::protocol::tool::AgentTool;

/// Data, with the attempt it belongs to: a stale answer is refused.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// Perform one attempt of a model call.
    CallModel { id: CallId, attempt: u32 },
    /// Tell the executor of an attempt to stop; its answer no longer counts.
    StopCall { id: CallId, attempt: u32 },
}

/// All that an executor needs for one attempt of a model call, except the model block's address and
/// the bytes behind the blobs of its messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelCall {
    pub id: CallId,
    pub attempt: u32,
    /// The id of the message that the answer becomes (S24, S50).
    pub reply_id: MessageId,
    pub llm: LlmId,
    pub model: String,
    pub system: Option<String>,
    pub stream: bool,
    /// How long the attempt may take; none is forever. The session's timer ends it, an executor only
    /// takes its patience from it.
    pub timeout: Option<Duration>,
    /// The conversation from its root to the head that the call prompts from.
    pub messages: Vec<Arc<Message>>,
    /// What the model is offered.
    pub tools: Vec<Arc<AgentTool>>,
}
