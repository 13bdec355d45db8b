//! What the edges ask of sessions.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use tokio::task::JoinSet;
use turnd_storage::Store;

use super::actor::{Answer, Erase, Mail, Question, Read};
use super::blobs;
use super::lists::{self, ListCursor, ListPage};
use super::registry::Registry;
use super::shared::{EngineError, Shared, WatchRequest};
use super::tail::Tail;
use crate::clock::Clock;
use crate::control::agents::Catalogue;
use crate::effects::Executors;
use crate::ids::{OwnerId, SessionId, SessionKey, TenantId, mint_session_id};
use crate::protocol::blob::{BlobHash, Upload};
use crate::protocol::content::BlobInfo;
use crate::protocol::view::{SessionSummary, SessionView, ViewRequest};
use crate::session::{Bounds, Caller, Command, Rejection, Reply};

/// How long a caller waits for a session, however slow the disk: then the outcome is unknown.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// Sessions of one owner that are erased at a time.
const ERASES_MAX: usize = 32;
/// How often, and after which waits, a page that somebody else erases is looked at again.
const IDLE_ROUNDS_MAX: u32 = 100;
const IDLE_ROUND: Duration = Duration::from_millis(20);

/// Handle of the running engine; cheap to clone.
#[derive(Clone)]
pub struct Engine(Arc<Shared>);

impl Engine {
    pub fn new(
        store: Store,
        clock: Clock,
        catalogue: Catalogue,
        executors: Executors,
        bounds: Bounds,
    ) -> Self {
        Self(Arc::new(Shared::new(store, clock, catalogue, executors, bounds)))
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

    /// Does as a caller asks; on `Ok` it is durable, and so are the bytes that came with it.
    pub async fn command(
        &self,
        key: SessionKey,
        command: Command,
        uploads: Vec<Upload>,
    ) -> Result<Reply, EngineError> {
        if self.is_stopping() {
            return Err(EngineError::Unavailable);
        }
        let kept = blobs::keep(&self.0.store, &key.tenant, uploads).await?;
        self.ask(key, |reply| Mail::Command { command, kept, reply }).await
    }

    /// The session as `caller` may see it.
    pub async fn view(
        &self,
        key: SessionKey,
        caller: Caller,
        request: ViewRequest,
    ) -> Result<SessionView, EngineError> {
        self.read(key, caller, |reply| Question::View { request, reply }).await
    }

    /// The session's row in a list.
    pub async fn summary(
        &self,
        key: SessionKey,
        caller: Caller,
    ) -> Result<SessionSummary, EngineError> {
        self.read(key, caller, |reply| Question::Summary { reply }).await
    }

    /// The session's events for `caller`.
    pub async fn watch(
        &self,
        key: SessionKey,
        caller: Caller,
        request: WatchRequest,
    ) -> Result<Tail, EngineError> {
        self.read(key, caller, |reply| Question::Watch { request, reply }).await
    }

    /// What is known of a blob that an event of the session names.
    pub async fn blob_info(
        &self,
        key: SessionKey,
        caller: Caller,
        hash: BlobHash,
    ) -> Result<Option<BlobInfo>, EngineError> {
        self.read(key, caller, |reply| Question::Blob { hash, reply }).await
    }

    /// The bytes of a blob, for whoever was told of it by [`Engine::blob_info`].
    pub async fn blob_bytes(
        &self,
        tenant: &TenantId,
        hash: BlobHash,
    ) -> Result<Bytes, EngineError> {
        blobs::load(&self.0, tenant, hash).await
    }

    /// At most `limit` sessions of an owner after `cursor`, the one with the latest event first.
    pub async fn list(
        &self,
        tenant: &TenantId,
        owner: &OwnerId,
        cursor: Option<ListCursor>,
        limit: usize,
    ) -> Result<ListPage, EngineError> {
        let (store, tenant, owner) = (self.0.store.clone(), tenant.clone(), owner.clone());
        let page = move || lists::page(&store, &tenant, &owner, cursor, limit);
        tokio::task::spawn_blocking(page).await.unwrap_or(Err(EngineError::Unavailable))
    }

    /// Erases a session; on `Ok` that is durable, and nothing goes on for it.
    pub async fn erase(&self, key: SessionKey, caller: Caller) -> Result<(), EngineError> {
        self.ask(key, |reply| Mail::Erase(Erase { caller, reply })).await
    }

    /// Erases every session of an owner and returns how many there were. Where it fails, some are
    /// gone already and the same request may be repeated.
    pub async fn erase_owner(
        &self,
        tenant: &TenantId,
        owner: &OwnerId,
    ) -> Result<usize, EngineError> {
        let (mut count, mut idle_rounds) = (0, 0);
        loop {
            let page = self.list(tenant, owner, None, ERASES_MAX).await?;
            if page.items.is_empty() {
                return Ok(count);
            }
            let erased = self.erase_page(tenant, owner, page).await?;
            count += erased;
            if erased == 0 {
                // Somebody else erases them, too, and is not done yet.
                idle_rounds += 1;
                if idle_rounds == IDLE_ROUNDS_MAX {
                    return Err(EngineError::Unavailable);
                }
                tokio::time::sleep(IDLE_ROUND).await;
            }
        }
    }

    async fn erase_page(
        &self,
        tenant: &TenantId,
        owner: &OwnerId,
        page: ListPage,
    ) -> Result<usize, EngineError> {
        let mut erasing = JoinSet::new();
        for SessionSummary { session_id, .. } in page.items {
            let key = SessionKey { tenant: tenant.clone(), session: session_id };
            // As the owner: the id may be somebody else's by now.
            let (engine, caller) = (self.clone(), Caller::Frontend(owner.clone()));
            erasing.spawn(async move { engine.erase(key, caller).await });
        }
        let (mut count, mut failed) = (0, None);
        // To the last of them: one that fails holds up no other.
        while let Some(erased) = erasing.join_next().await {
            match erased.unwrap_or(Err(EngineError::Unavailable)) {
                Ok(()) => count += 1,
                Err(EngineError::Rejected(Rejection::UnknownSession | Rejection::NotOwner)) => {}
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(count), Err)
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

    async fn read<T>(
        &self,
        key: SessionKey,
        caller: Caller,
        question: impl FnOnce(Answer<T>) -> Question,
    ) -> Result<T, EngineError> {
        self.ask(key, |reply| Mail::Read(Read { caller, question: question(reply) })).await
    }

    async fn ask<T>(
        &self,
        key: SessionKey,
        mail: impl FnOnce(Answer<T>) -> Mail,
    ) -> Result<T, EngineError> {
        let (reply, answer) = tokio::sync::oneshot::channel();
        let asked = async {
            self.post(&key, mail(reply)).await?;
            answer.await.map_err(|_| EngineError::Unavailable)?
        };
        tokio::time::timeout(ANSWER_MAX, asked).await.unwrap_or(Err(EngineError::Unavailable))
    }

    /// A mailbox that closes meanwhile may be that of a session which is erased: then there is another.
    async fn post(&self, key: &SessionKey, mail: Mail) -> Result<(), EngineError> {
        let Err(back) = Registry::mailbox(&self.0, key).send(mail).await else { return Ok(()) };
        let sent = Registry::mailbox(&self.0, key).send(back.0).await;
        sent.map_err(|_| EngineError::Unavailable)
    }
}

#[cfg(test)]
mod tests;
