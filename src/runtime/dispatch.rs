//! Effects under way for one session. The task that performs an effect also brings its answer, so
//! no delta of an attempt comes after its end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::task::{AbortHandle, Id, JoinError, JoinSet};

use super::blobs::{self, CallBlobs};
use super::feed::Feed;
use super::shared::Shared;
use crate::control::agents::LlmKind;
use crate::ids::{CallId, TenantId, TurnId};
use crate::protocol::error::{ErrorCode, ErrorInfo};
use crate::protocol::llm::LlmResponse;
use crate::session::{CallFailure, ModelCall, ModelOutcome};

/// An attempt's answer.
pub(super) struct Settled {
    pub(super) id: CallId,
    pub(super) attempt: u32,
    pub(super) outcome: ModelOutcome,
    /// Held until the answer is durable; none for a task that died.
    pub(super) open: Option<Open>,
}

#[derive(Default)]
pub(super) struct Dispatcher {
    tasks: JoinSet<Settled>,
    running: BTreeMap<CallId, Running>,
}

struct Running {
    attempt: u32,
    task: Id,
    handle: AbortHandle,
}

/// Counts an effect for as long as its task lives, however that ends.
pub(super) struct Open(Arc<Shared>);

impl Open {
    fn new(shared: &Arc<Shared>) -> Self {
        shared.open_effects.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(shared))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open_effects.fetch_sub(1, Ordering::AcqRel);
        self.0.effect_ended.notify_waiters();
    }
}

impl Dispatcher {
    pub(super) fn is_idle(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Starts one attempt of a model call; its deltas go to `feed`.
    pub(super) fn call_model(
        &mut self,
        shared: &Arc<Shared>,
        feed: &Arc<Feed>,
        tenant: TenantId,
        turn: Option<TurnId>,
        call: ModelCall,
    ) {
        let (id, attempt) = (call.id.clone(), call.attempt);
        feed.open_call(id.clone(), attempt, call.reply_id.clone(), turn);
        let open = Open::new(shared);
        let (shared, feed) = (Arc::clone(shared), Arc::clone(feed));
        let handle = self.tasks.spawn(async move {
            let result = answer(&shared, &feed, &tenant, &call).await;
            let streamed = feed.has_streamed(&call.id);
            let outcome = ModelOutcome { result, streamed };
            Settled { id: call.id, attempt: call.attempt, outcome, open: Some(open) }
        });
        let running = Running { attempt, task: handle.id(), handle };
        self.running.insert(id, running);
    }

    /// Drops the task of an attempt; nobody waits for its answer.
    pub(super) fn stop(&mut self, id: &CallId, attempt: u32) {
        if self.running.get(id).is_some_and(|running| running.attempt == attempt)
            && let Some(running) = self.running.remove(id)
        {
            running.handle.abort();
        }
    }

    /// Drops every task and waits until they are gone.
    pub(super) async fn stop_all(&mut self) {
        self.running.clear();
        self.tasks.shutdown().await;
    }

    /// The next answer; never, while nothing is under way. Safe to drop between polls.
    pub(super) async fn next(&mut self) -> Settled {
        loop {
            match self.tasks.join_next().await {
                Some(Ok(settled)) => {
                    self.forget(&settled.id, settled.attempt);
                    return settled;
                }
                Some(Err(error)) => {
                    if let Some(settled) = self.failed(&error) {
                        return settled;
                    }
                }
                None => std::future::pending().await,
            }
        }
    }

    fn forget(&mut self, id: &CallId, attempt: u32) {
        if self.running.get(id).is_some_and(|running| running.attempt == attempt) {
            self.running.remove(id);
        }
    }

    /// A task that was stopped owes no answer; one that panicked has failed its call.
    fn failed(&mut self, error: &JoinError) -> Option<Settled> {
        let id = self.running.iter().find(|(_, running)| running.task == error.id());
        let id = id.map(|(id, _)| id.clone())?;
        let running = self.running.remove(&id)?;
        tracing::error!(call = %id, %error, "an executor failed");
        let result = Err(failure("the call failed inside the server", false));
        let outcome = ModelOutcome { result, streamed: true };
        Some(Settled { id, attempt: running.attempt, outcome, open: None })
    }
}

/// Performs one attempt with what the manifest says of its model.
async fn answer(
    shared: &Shared,
    feed: &Feed,
    tenant: &TenantId,
    call: &ModelCall,
) -> Result<LlmResponse, CallFailure> {
    let Some(llm) = shared.catalogue.llms.get(&call.llm) else {
        let message = format!("the model block `{}` is not declared", call.llm);
        return Err(failure(message, false));
    };
    // Held until the call ends, and so is their room.
    let blobs = match llm.kind {
        // It reads no bytes.
        LlmKind::Demo => CallBlobs::default(),
        LlmKind::OpenAi | LlmKind::Anthropic => blobs::of_call(shared, tenant, call).await,
    };
    let mut deltas = |delta: crate::effects::Delta<'_>| feed.delta(&call.id, call.attempt, &delta);
    shared.executors.call_model(llm, call, &blobs.bytes, &mut deltas).await
}

fn failure(message: impl Into<String>, retryable: bool) -> CallFailure {
    CallFailure {
        error: ErrorInfo::new(message, Some(ErrorCode::ProviderError)),
        retryable,
        retry_after: None,
    }
}

#[cfg(test)]
mod tests;
