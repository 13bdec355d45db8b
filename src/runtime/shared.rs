//! What the engine and all actors share, and the words they use with each other.

use std::sync::atomic::{AtomicBool, AtomicUsize};

use tokio::sync::{Notify, Semaphore};
use turnd_storage::Store;

use super::registry::Registry;
use crate::clock::Clock;
use crate::control::agents::Catalogue;
use crate::effects::Executors;
use crate::ids::{OwnerId, Seq, TurnId};
use crate::session::Rejection;

/// Logs read at once when sessions come back to memory: enough to keep a disk busy.
const LOADS_MAX: usize = 16;

/// What all actors share.
pub(super) struct Shared {
    pub(super) store: Store,
    pub(super) clock: Clock,
    pub(super) catalogue: Catalogue,
    pub(super) executors: Executors,
    pub(super) loads: Semaphore,
    pub(super) registry: Registry,
    /// Executor tasks under way, and the bell for when there are none.
    pub(super) open_effects: AtomicUsize,
    pub(super) effect_ended: Notify,
    pub(super) stopping: AtomicBool,
}

impl Shared {
    pub(super) fn new(
        store: Store,
        clock: Clock,
        catalogue: Catalogue,
        executors: Executors,
    ) -> Self {
        Self {
            store,
            clock,
            catalogue,
            executors,
            loads: Semaphore::new(LOADS_MAX),
            registry: Registry::default(),
            open_effects: AtomicUsize::new(0),
            effect_ended: Notify::new(),
            stopping: AtomicBool::new(false),
        }
    }
}

/// Who reads: a machine caller sees all of its tenant, a client its own sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reader {
    Machine,
    Owner(OwnerId),
}

/// Where a stream starts and what it is limited to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchRequest {
    pub after: Seq,
    pub turn_id: Option<TurnId>,
}

/// Why the engine did not do as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    #[error(transparent)]
    Rejected(#[from] Rejection),
    #[error("unknown session")]
    UnknownSession,
    #[error("unknown turn")]
    UnknownTurn,
    #[error("not the owner of this session")]
    NotOwner,
    /// Not known to have happened or not; the same request may be repeated (reliability, clause 9).
    #[error("the server cannot take this now")]
    Unavailable,
    /// The log of this session fails its checks.
    #[error("this session is damaged")]
    Damaged,
}
