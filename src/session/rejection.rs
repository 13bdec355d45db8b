//! Why a command is refused. A refusal changes nothing.

use crate::ids::{AgentId, TurnId};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The session belongs to another owner.
    #[error("not the owner of this session")]
    NotOwner,
    /// The session runs with another agent (S18).
    #[error("agent mismatch: this session runs `{0}`")]
    AgentMismatch(AgentId),
    /// No agent of that name is declared.
    #[error("unknown agent `{0}`")]
    UnknownAgent(AgentId),
    /// One turn at a time (S17).
    #[error("turn_already_active")]
    TurnAlreadyActive { turn_id: TurnId },
    /// As many turns wait as may (S19).
    #[error("too many queued turns")]
    QueueFull,
    /// The input says something that this session cannot take.
    #[error("`{path}` {problem}")]
    Invalid { path: &'static str, problem: &'static str },
    /// The attempt is not the one that is out, or the call has ended (S38).
    #[error("effect is not pending")]
    NotPending,
}
