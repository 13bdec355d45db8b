//! Bytes beside the logs: kept before the event that names them, checked when they are read (S15).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::sync::OwnedSemaphorePermit;
use turnd_storage::{BlobId, BlobPin, Store};

use super::shared::{EngineError, Shared};
use crate::effects::BlobBytes;
use crate::ids::TenantId;
use crate::protocol::blob::{BLOB_BYTES_MAX, BlobHash, Upload};
use crate::protocol::content::{BlobInfo, Content, ContentPart};
use crate::protocol::message::{Message, Role};
use crate::session::ModelCall;

/// Bytes of blobs that one model call carries; the newest count.
const CALL_BYTES_MAX: usize = 20 * 1024 * 1024;

/// Under which name the storage knows some bytes: equal bytes are kept once for each tenant.
fn blob_id(tenant: &TenantId, hash: &BlobHash) -> BlobId {
    let digest = Sha256::new().chain_update(tenant.as_str()).chain_update([0]);
    digest.chain_update(hash.as_bytes()).finalize().into()
}

/// What came with a command. It is durable, and stays while this is held or an event names it.
#[derive(Debug, Default)]
pub(super) struct Kept {
    ids: BTreeMap<BlobHash, BlobId>,
    pins: Vec<BlobPin>,
}

impl Kept {
    /// The id of a blob that came with the command.
    pub(super) fn id(&self, hash: &BlobHash) -> Option<BlobId> {
        self.ids.get(hash).copied()
    }

    pub(super) fn into_pins(self) -> Vec<BlobPin> {
        self.pins
    }
}

/// Makes bytes durable.
pub(super) async fn keep(
    store: &Store,
    tenant: &TenantId,
    uploads: Vec<Upload>,
) -> Result<Kept, EngineError> {
    if uploads.is_empty() {
        return Ok(Kept::default());
    }
    let (store, tenant) = (store.clone(), tenant.clone());
    let put = move || {
        let mut kept = Kept::default();
        for upload in uploads {
            let id = blob_id(&tenant, &upload.hash);
            kept.pins.push(store.put_blob(id, &upload.bytes)?);
            kept.ids.insert(upload.hash, id);
        }
        Ok::<Kept, turnd_storage::Error>(kept)
    };
    match tokio::task::spawn_blocking(put).await {
        Ok(Ok(kept)) => Ok(kept),
        Ok(Err(error)) => {
            tracing::error!(%error, "a blob cannot be kept");
            Err(EngineError::Unavailable)
        }
        Err(panic) => {
            tracing::error!(%panic, "keeping a blob panicked");
            Err(EngineError::Unavailable)
        }
    }
}

/// The bytes of a blob that an event names.
pub(super) async fn load(
    shared: &Arc<Shared>,
    tenant: &TenantId,
    hash: BlobHash,
) -> Result<Bytes, EngineError> {
    let _permit = shared.loads.acquire().await.map_err(|_| EngineError::Unavailable)?;
    let (store, tenant) = (shared.store.clone(), tenant.clone());
    let loaded = tokio::task::spawn_blocking(move || load_checked(&store, &tenant, &hash)).await;
    loaded.ok().flatten().ok_or(EngineError::Damaged)
}

/// Bytes for a model call, with the room that they take among those of all calls.
#[derive(Debug, Default)]
pub(super) struct CallBlobs {
    pub(super) bytes: BlobBytes,
    _room: Option<OwnedSemaphorePermit>,
}

/// The bytes behind the messages of a call, the newest first for as long as they fit. What cannot be
/// read is left out: the model is told of it in words. Waits for room.
pub(super) async fn of_call(shared: &Shared, tenant: &TenantId, call: &ModelCall) -> CallBlobs {
    let blobs = sendable(&call.messages);
    if blobs.is_empty() {
        return CallBlobs::default();
    }
    let bytes = blobs.iter().fold(0, |sum: usize, (_, size)| sum.saturating_add(*size));
    let bytes_max = bytes.min(CALL_BYTES_MAX);
    let kib = u32::try_from(bytes_max.div_ceil(1024)).unwrap_or(u32::MAX);
    let room = Arc::clone(&shared.call_blobs).acquire_many_owned(kib).await.ok();
    let (store, tenant) = (shared.store.clone(), tenant.clone());
    // The room goes along: this goes on when the call is dropped meanwhile.
    let load =
        move || CallBlobs { bytes: load_all(&store, &tenant, blobs, bytes_max), _room: room };
    tokio::task::spawn_blocking(load).await.unwrap_or_default()
}

fn load_all(
    store: &Store,
    tenant: &TenantId,
    blobs: Vec<(BlobHash, usize)>,
    bytes_max: usize,
) -> BlobBytes {
    let mut loaded = BlobBytes::new();
    let mut room = bytes_max;
    for (hash, _) in blobs {
        let Some(bytes) = load_checked(store, tenant, &hash) else { continue };
        let Some(left) = room.checked_sub(bytes.len()) else { break };
        room = left;
        loaded.insert(hash, bytes);
    }
    loaded
}

/// The blobs that a model may be sent, the newest first, each with its size at most: only users and
/// tools say more than text.
fn sendable(messages: &[Arc<Message>]) -> Vec<(BlobHash, usize)> {
    let mut known = BTreeSet::new();
    let parts = messages.iter().rev().flat_map(|message| match (message.role, &message.content) {
        (Role::User | Role::Tool, Some(Content::Parts(parts))) => parts.as_slice(),
        (Role::User | Role::Tool, Some(Content::Text(_)) | None)
        | (Role::System | Role::Assistant, _) => &[],
    });
    let blobs = parts.filter(|part| may_be_sent(part)).filter_map(ContentPart::blob);
    let blobs = blobs.filter(|(hash, _)| known.insert(*hash));
    blobs.map(|(hash, info)| (hash, size_max(&info))).collect()
}

/// Whether any provider takes the bytes of such a part.
fn may_be_sent(part: &ContentPart) -> bool {
    match part {
        ContentPart::ImageUrl { .. }
        | ContentPart::File { .. }
        | ContentPart::InputAudio { .. }
        | ContentPart::Blob { .. } => true,
        ContentPart::Text { .. }
        | ContentPart::VideoUrl { .. }
        | ContentPart::Link { .. }
        | ContentPart::Attachment { .. } => false,
    }
}

/// The recorded size of a blob, or the largest where none is.
fn size_max(info: &BlobInfo) -> usize {
    match usize::try_from(info.size) {
        Ok(0) | Err(_) => BLOB_BYTES_MAX,
        Ok(size) => size,
    }
}

/// None for bytes that are gone or are not what they were.
fn load_checked(store: &Store, tenant: &TenantId, hash: &BlobHash) -> Option<Bytes> {
    match store.blob(&blob_id(tenant, hash)) {
        Ok(Some(bytes)) if BlobHash::of(&bytes) == *hash => return Some(bytes),
        Ok(Some(_)) => tracing::error!(%hash, "a blob is damaged"),
        Ok(None) => tracing::error!(%hash, "a blob is missing"),
        Err(error) => tracing::error!(%hash, %error, "a blob cannot be read"),
    }
    None
}

#[cfg(test)]
mod tests;
