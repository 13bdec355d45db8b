//! A start brings back the sessions that owe something, and no others.

use std::sync::Arc;

use super::registry::Registry;
use super::shared::Shared;
use crate::ids::SessionKey;

/// Starts the actor of every session with a running or waiting turn; returns how many. Each reads
/// its own log and goes on from there.
pub(super) async fn recover(shared: &Arc<Shared>) -> Result<usize, turnd_storage::Error> {
    let store = shared.store.clone();
    let owing = tokio::task::spawn_blocking(move || store.owing()).await;
    let keys = match owing {
        Ok(keys) => keys?,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    };
    let mut count = 0;
    for bytes in keys {
        let Some(key) = SessionKey::from_bytes(&bytes) else {
            tracing::error!("a stored session key cannot be read");
            continue;
        };
        drop(Registry::mailbox(shared, &key));
        count += 1;
    }
    Ok(count)
}
