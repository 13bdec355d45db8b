//! The end of a session, be its log whole or damaged.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::super::feed::End;
use super::super::lists;
use super::super::shared::{EngineError, Shared};
use super::mail::{Erase, Mail};
use super::{Actor, hand_over, is_written, refuse_all};
use crate::ids::SessionKey;
use crate::session::Caller;

/// Wait before the log of a damaged session is read again.
const DAMAGED_PAUSE: Duration = Duration::from_mins(1);

impl Actor {
    /// Erases the session if its caller may; whether it did. Nothing goes on for it then, and the
    /// next mail finds a session that never received input.
    pub(super) async fn erase(
        &mut self,
        Erase { caller, reply }: Erase,
    ) -> Result<bool, EngineError> {
        if let Err(rejection) = self.session.check_reader(&caller) {
            drop(reply.send(Err(rejection.into())));
            return Ok(false);
        }
        self.dispatcher.stop_all().await;
        if let Err(error) = erase_stored(&self.shared, &self.key).await {
            drop(reply.send(Err(error.clone())));
            return Err(error);
        }
        // Watchers are let go before a new session under the same id can have an event: none of
        // them may see it.
        self.feed.close(End::Erased);
        self.shared.registry.remove(&self.key);
        drop(reply.send(Ok(())));
        Ok(true)
    }
}

/// Answers for a session whose log cannot be read until that is worth another try: it takes
/// nothing but a wish to erase it.
pub(super) async fn serve_damaged(
    shared: &Arc<Shared>,
    key: &SessionKey,
    mut mail: mpsc::Receiver<Mail>,
) {
    tracing::error!(session = %key.session, "the session is damaged");
    let mut pause = pin!(tokio::time::sleep(DAMAGED_PAUSE));
    loop {
        let next = tokio::select! {
            () = &mut pause => None,
            mail = mail.recv() => mail,
        };
        match next {
            Some(Mail::Erase(Erase { caller, reply })) => {
                let erased = erase_damaged(shared, key, &caller).await;
                let is_erased = erased.is_ok();
                if is_erased {
                    shared.registry.remove(key);
                }
                drop(reply.send(erased));
                if is_erased {
                    return hand_over(shared, key, mail).await;
                }
            }
            Some(other @ (Mail::Command { .. } | Mail::Read(_))) => {
                other.refuse(EngineError::Damaged);
            }
            None => {
                shared.registry.remove(key);
                return refuse_all(mail, |mail| mail.refuse(EngineError::Damaged)).await;
            }
        }
    }
}

/// Erases a session of which nothing but its head may be known.
async fn erase_damaged(
    shared: &Shared,
    key: &SessionKey,
    caller: &Caller,
) -> Result<(), EngineError> {
    match caller {
        Caller::System | Caller::Machine => {}
        Caller::Frontend(owner) => {
            let (store, key, owner) = (shared.store.clone(), key.clone(), owner.clone());
            let is_owner = move || lists::is_owner(&store, &key, &owner);
            if !tokio::task::spawn_blocking(is_owner).await.unwrap_or(false) {
                return Err(EngineError::Damaged);
            }
        }
    }
    erase_stored(shared, key).await
}

async fn erase_stored(shared: &Shared, key: &SessionKey) -> Result<(), EngineError> {
    let bytes = key.to_bytes();
    loop {
        if is_written(key, shared.store.erase(Arc::clone(&bytes)).await)? {
            return Ok(());
        }
    }
}
