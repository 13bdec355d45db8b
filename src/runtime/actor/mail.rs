//! What reaches an actor, and how it is turned away.

use tokio::sync::oneshot;

use super::super::blobs::Kept;
use super::super::shared::{EngineError, WatchRequest};
use super::super::tail::Tail;
use super::batch::ReplyTo;
use crate::protocol::blob::BlobHash;
use crate::protocol::content::BlobInfo;
use crate::protocol::view::{SessionSummary, SessionView, ViewRequest};
use crate::session::{Caller, Command};

pub(in super::super) enum Mail {
    /// With the bytes that came with it.
    Command {
        command: Command,
        kept: Kept,
        reply: ReplyTo,
    },
    Read(Read),
    Erase(Erase),
}

/// A question that changes nothing; answered from durable state.
pub(in super::super) struct Read {
    pub(in super::super) caller: Caller,
    pub(in super::super) question: Question,
}

/// Each with the way back for its answer.
pub(in super::super) enum Question {
    View { request: ViewRequest, reply: Answer<SessionView> },
    Summary { reply: Answer<SessionSummary> },
    Blob { hash: BlobHash, reply: Answer<Option<BlobInfo>> },
    Watch { request: WatchRequest, reply: Answer<Tail> },
}

/// The end of the session and of all that is known of it.
pub(in super::super) struct Erase {
    pub(in super::super) caller: Caller,
    pub(in super::super) reply: Answer<()>,
}

pub(in super::super) type Answer<T> = oneshot::Sender<Result<T, EngineError>>;

impl Question {
    pub(super) fn refuse(self, error: EngineError) {
        // A caller that has gone away needs no answer.
        match self {
            Self::View { reply, .. } => drop(reply.send(Err(error))),
            Self::Summary { reply } => drop(reply.send(Err(error))),
            Self::Blob { reply, .. } => drop(reply.send(Err(error))),
            Self::Watch { reply, .. } => drop(reply.send(Err(error))),
        }
    }
}

impl Mail {
    pub(super) fn refuse(self, error: EngineError) {
        match self {
            Self::Command { reply, .. } => drop(reply.send(Err(error))),
            Self::Read(read) => read.question.refuse(error),
            Self::Erase(erase) => drop(erase.reply.send(Err(error))),
        }
    }
}
