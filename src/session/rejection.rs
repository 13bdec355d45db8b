//! Why a command is refused. A refusal changes nothing.

use crate::ids::{AgentId, MessageId, Seq, TurnId};

/// Where two requests meet, `seq` is the position of the event that decided against this one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    #[error("unknown session")]
    UnknownSession,
    /// The session belongs to another owner.
    #[error("not the owner of this session")]
    NotOwner,
    /// The session runs with another agent (S18).
    #[error("agent mismatch: this session runs `{0}`")]
    AgentMismatch(AgentId),
    /// No agent of that name is declared.
    #[error("unknown agent `{0}`")]
    UnknownAgent(AgentId),
    #[error("unknown turn")]
    UnknownTurn,
    /// `if_head` or `if_seq` does not hold.
    #[error("the condition does not hold")]
    ConditionFailed { head_id: Option<MessageId>, seq: Seq },
    /// One turn at a time (S17).
    #[error("turn_already_active")]
    TurnAlreadyActive { turn_id: TurnId, seq: Seq },
    /// An open interrupt pauses the branch (S42).
    #[error("session interrupted")]
    Interrupted { seq: Seq },
    /// It was cancelled for good (S20).
    #[error("session done")]
    Done { seq: Seq },
    /// As many turns wait as may (S19).
    #[error("too many queued turns")]
    QueueFull,
    #[error("too many open interrupts: resume one first")]
    TooManyInterrupts,
    /// An event of the input, or all that it records, is beyond its bound (S56).
    #[error("{what} is larger than {bytes_max} bytes")]
    TooLarge { what: &'static str, bytes_max: usize },
    /// The input says something that this session cannot take.
    #[error("`{path}` {problem}")]
    Invalid { path: String, problem: &'static str },
    /// The caller may not answer this interrupt (S43).
    #[error("only a caller with the privilege of its origin may resume this interrupt")]
    ResumeForbidden,
    /// No call has that id (S38).
    #[error("unknown effect")]
    UnknownCall,
    /// The call is not the client's to settle (S38).
    #[error("this effect is not handled by the client")]
    NotClientHandled,
    /// The attempt is not the one that is out, or the call has ended (S38). Without a `seq` where
    /// the attempt was wrong.
    #[error("effect is not pending")]
    NotPending { seq: Option<Seq> },
}
