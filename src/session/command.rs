//! What may be asked of a session.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::ids::{AgentId, CallId, OwnerId, TurnId};
use crate::protocol::agent::AgentConfig;
use crate::protocol::content::Blobs;
use crate::protocol::error::ErrorInfo;
use crate::protocol::event::Origin;
use crate::protocol::input::{
    CancelRequest, Conditions, Identity, Input, InterruptRequest, Resume, SessionPatch, Settlement,
};
use crate::protocol::llm::LlmResponse;

/// Who asks, taken from the credential and never from a body (S5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// The engine itself.
    System,
    /// The customer's backend: all sessions of its tenant.
    Machine,
    /// An end user: its own sessions.
    Frontend(OwnerId),
}

impl Caller {
    pub fn origin(&self) -> Origin {
        match self {
            Self::System => Origin::System,
            Self::Machine => Origin::Machine,
            Self::Frontend(_) => Origin::Frontend,
        }
    }
}

/// A request to a session.
#[derive(Debug, Clone)]
pub enum Command {
    /// A caller's input; creates the session where it does not exist (S3).
    Submit(Box<Submission>),
    /// A caller answers an interrupt (S43).
    Resume { caller: Caller, conditions: Conditions, turn_id: Option<TurnId>, resume: Resume },
    /// A caller answers a tool call (S38).
    SettleToolCall { caller: Caller, conditions: Conditions, settlement: Settlement },
    /// A caller pauses the head (S42).
    Interrupt { caller: Caller, request: InterruptRequest },
    /// A caller ends a turn, or the session (S20).
    Cancel { caller: Caller, request: CancelRequest },
    /// A caller names or labels the session.
    Update { caller: Caller, patch: SessionPatch },
    /// An executor's answer to one attempt of a model call.
    SettleModelCall { id: CallId, attempt: u32, outcome: ModelOutcome },
    /// A deadline or a retry may be due.
    Wake,
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
    pub conditions: Conditions,
    pub input: Input,
    /// What is known of the bytes that came with it.
    pub blobs: Blobs,
}

/// What a decision needs to know of the world outside the session.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The configuration of the session's agent; none when it is not declared.
    pub agent: Option<&'a AgentConfig>,
    pub bounds: Bounds,
    /// What the calls that [`super::Session::cut_by`] names have shown; their executors show no more.
    pub shown: &'a Shown,
}

/// What a session takes at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Turns that wait (S19).
    pub queued_turns_max: usize,
    /// One event, in bytes (S56).
    pub event_bytes_max: usize,
}

/// Text that the running attempt of a call has shown. A call that has shown nothing is not here.
pub type Shown = BTreeMap<CallId, String>;

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
