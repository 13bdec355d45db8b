//! What the engine and all actors share, and the words they use with each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use tokio::sync::{Notify, Semaphore};
use turnd_storage::Store;

use super::registry::Registry;
use crate::clock::Clock;
use crate::control::agents::Catalogue;
use crate::effects::Executors;
use crate::ids::{AgentId, Seq, TurnId};
use crate::protocol::agent::AgentConfig;
use crate::session::{Bounds, Rejection};

/// Logs read at once when sessions come back to memory: enough to keep a disk busy.
const LOADS_MAX: usize = 16;
/// Bytes of blobs that all model calls hold at once, in KiB; a call that finds no room waits. What
/// is sent of them stands once more in the requests, in base64.
pub(super) const CALL_BLOBS_KIB_MAX: usize = 256 * 1024;

/// What all actors share.
pub(super) struct Shared {
    pub(super) store: Store,
    pub(super) clock: Clock,
    pub(super) catalogue: Catalogue,
    pub(super) executors: Executors,
    pub(super) bounds: Bounds,
    pub(super) loads: Semaphore,
    /// Room for the blobs of model calls, in KiB; see [`CALL_BLOBS_KIB_MAX`].
    pub(super) call_blobs: Arc<Semaphore>,
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
        bounds: Bounds,
    ) -> Self {
        Self {
            store,
            clock,
            catalogue,
            executors,
            bounds,
            loads: Semaphore::new(LOADS_MAX),
            call_blobs: Arc::new(Semaphore::new(CALL_BLOBS_KIB_MAX)),
            registry: Registry::default(),
            open_effects: AtomicUsize::new(0),
            effect_ended: Notify::new(),
            stopping: AtomicBool::new(false),
        }
    }

    /// The configuration of an agent, as the manifest declares it.
    pub(super) fn agent(&self, id: &AgentId) -> Option<Arc<AgentConfig>> {
        self.catalogue.agents.get(id).map(|agent| Arc::clone(&agent.config))
    }
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
    /// Not known to have happened or not; the same request may be repeated (reliability, clause 9).
    #[error("the server cannot take this now")]
    Unavailable,
    /// The log of this session, or a blob of it, fails its checks.
    #[error("this session is damaged")]
    Damaged,
}
