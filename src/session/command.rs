//! What may be asked of a session.

use std::time::Duration;

use crate::ids::{AgentId, CallId, TurnId};
use crate::protocol::error::ErrorInfo;
use crate::protocol::input::{Identity, Input};
use crate::protocol::llm::LlmResponse;

/// Who asks, taken from the credential and never from a body (S5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    Machine,
    Frontend,
}

/// A request to a session. Whatever the decision needs from outside comes with it.
#[derive(Debug, Clone)]
pub enum Command {
    /// A caller's input; creates the session where it does not exist (S3).
    Submit(Box<Submission>),
    /// An executor's answer to one attempt of a model call.
    SettleModelCall { id: CallId, attempt: u32, outcome: ModelOutcome },
    /// A deadline or a retry may be due. `streamed` names the calls whose running attempt has shown
    /// output.
    Wake { streamed: Vec<CallId> },
    /// The process started anew: what was in flight is interrupted (S39).
    Recover,
}

#[derive(Debug, Clone)]
pub struct Submission {
    pub caller: Caller,
    pub identity: Identity,
    pub agent_id: AgentId,
    pub turn_id: Option<TurnId>,
    pub queue: bool,
    pub input: Input,
    /// Most turns that may wait (S19).
    pub queued_turns_max: usize,
}

#[derive(Debug, Clone)]
pub struct ModelOutcome {
    pub result: Result<LlmResponse, CallFailure>,
    /// Some of the output has been shown as deltas.
    pub streamed: bool,
}

/// Why an attempt of a call did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallFailure {
    pub error: ErrorInfo,
    pub retryable: bool,
    /// The least wait that the other side asked for.
    pub retry_after: Option<Duration>,
}
