//! What the edges ask of sessions.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::oneshot;
use turnd_storage::Store;

use super::actor::{Mail, Read};
use super::registry::Registry;
use super::shared::{EngineError, Reader, Shared, WatchRequest};
use super::tail::Tail;
use crate::clock::Clock;
use crate::control::agents::Catalogue;
use crate::effects::Executors;
use crate::ids::{SessionId, SessionKey, TurnId, mint_session_id};
use crate::protocol::view::SessionView;
use crate::session::{Command, Reply, Submission};

/// How long a caller waits for a session, however slow the disk: then the outcome is unknown.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// Handle of the running engine; cheap to clone.
#[derive(Clone)]
pub struct Engine(Arc<Shared>);

/// A submit that is durable (interface 4.1: the 202).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    pub turn_id: TurnId,
    pub queued: bool,
}

impl Engine {
    pub fn new(store: Store, clock: Clock, catalogue: Catalogue, executors: Executors) -> Self {
        Self(Arc::new(Shared::new(store, clock, catalogue, executors)))
    }

    /// Whether input is no longer taken.
    pub fn is_stopping(&self) -> bool {
        self.0.stopping.load(Ordering::Acquire)
    }

    /// An id for a session that its caller did not name.
    pub fn mint_session_id(&self) -> Result<SessionId, getrandom::Error> {
        let mut random = [0; 10];
        getrandom::fill(&mut random)?;
        Ok(mint_session_id(self.0.clock.now(), random))
    }

    /// Takes an input; on `Ok` it is durable.
    pub async fn submit(
        &self,
        key: SessionKey,
        submission: Submission,
    ) -> Result<Accepted, EngineError> {
        if self.is_stopping() {
            return Err(EngineError::Unavailable);
        }
        let command = Command::Submit(Box::new(submission));
        match self.ask(key, |reply| Mail::Command { command, reply }).await? {
            Reply::Accepted { turn_id, queued } => Ok(Accepted { turn_id, queued }),
            Reply::Done => Err(EngineError::Unavailable),
        }
    }

    /// The session as `reader` may see it.
    pub async fn view(&self, key: SessionKey, reader: Reader) -> Result<SessionView, EngineError> {
        self.ask(key, |reply| Mail::Read(Read::View { reader, reply })).await
    }

    /// The session's events for `reader`.
    pub async fn watch(
        &self,
        key: SessionKey,
        reader: Reader,
        request: WatchRequest,
    ) -> Result<Tail, EngineError> {
        self.ask(key, |reply| Mail::Read(Read::Watch { reader, request, reply })).await
    }

    /// Brings every session that owes something back to memory, so that it goes on by itself (S39).
    pub async fn recover(&self) -> Result<usize, turnd_storage::Error> {
        super::recovery::recover(&self.0).await
    }

    /// Takes no more input, lets open calls end for at most `grace`, then ends every stream.
    pub async fn stop(&self, grace: Duration) {
        self.0.stopping.store(true, Ordering::Release);
        let idle = async {
            loop {
                let ended = self.0.effect_ended.notified();
                if self.0.open_effects.load(Ordering::Acquire) == 0 {
                    return;
                }
                ended.await;
            }
        };
        if tokio::time::timeout(grace, idle).await.is_err() {
            tracing::warn!("calls are still open; they go on after the next start");
        }
        self.0.registry.close_feeds();
    }

    async fn ask<T>(
        &self,
        key: SessionKey,
        mail: impl FnOnce(oneshot::Sender<Result<T, EngineError>>) -> Mail,
    ) -> Result<T, EngineError> {
        let (reply, answer) = oneshot::channel();
        let asked = async {
            let mailbox = Registry::mailbox(&self.0, &key);
            mailbox.send(mail(reply)).await.map_err(|_| EngineError::Unavailable)?;
            drop(mailbox);
            answer.await.map_err(|_| EngineError::Unavailable)?
        };
        tokio::time::timeout(ANSWER_MAX, asked).await.unwrap_or(Err(EngineError::Unavailable))
    }
}
