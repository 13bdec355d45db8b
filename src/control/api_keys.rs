//! Credentials that the server keeps: records of API keys, and the key that signs client tokens.
//!
//! A record holds the SHA-256 of its key, never the key (S7). The signing key is the one secret
//! that is stored as it is: the data folder is readable by the server alone.

use std::fmt::{self, Write as _};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use secrecy::{ExposeSecret, SecretSlice, SecretString};
use serde::{Deserialize, Serialize};
use turnd_storage::Store;

use crate::ids::TenantId;
use crate::time::Timestamp;

const KEY_PREFIX: &str = "api-keys/";
const SIGNING_KEY: &str = "client-token-key";
/// HS256 wants a key as long as its digest.
const SIGNING_KEY_BYTES: usize = 32;

/// Why a credential cannot be kept or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("cannot use the store")]
    Storage(#[source] turnd_storage::Error),
    #[error("the document `{name}` is not what this version writes")]
    Format { name: String },
    #[error("no random bytes")]
    Random(#[source] getrandom::Error),
}

/// What is known of an API key.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKeyRecord {
    pub key_id: String,
    pub label: String,
    pub tenant: TenantId,
    pub created_at: Timestamp,
    /// To the minute.
    pub last_used_at: Option<Timestamp>,
    pub sha256: [u8; 32],
}

impl fmt::Debug for ApiKeyRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiKeyRecord")
            .field("key_id", &self.key_id)
            .field("label", &self.label)
            .finish_non_exhaustive()
    }
}

/// The stored form; the key id is the document's name.
#[derive(Serialize, Deserialize)]
struct Document {
    label: String,
    tenant: TenantId,
    created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_used_at: Option<Timestamp>,
    sha256: String,
}

/// Where the records live.
#[derive(Clone)]
pub struct ApiKeyDocuments {
    store: Store,
}

impl fmt::Debug for ApiKeyDocuments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKeyDocuments")
    }
}

impl ApiKeyDocuments {
    pub fn new(store: Store) -> Self {
        Self { store }
    }

    /// Every record. Blocks on the disk: for the start only.
    pub fn load(&self) -> Result<Vec<ApiKeyRecord>, StoreError> {
        let documents = self.store.documents(KEY_PREFIX).map_err(StoreError::Storage)?;
        documents.into_iter().map(|(name, bytes)| read_record(name, &bytes)).collect()
    }

    /// Writes a record over what was there; done once it is on disk.
    pub async fn put(&self, record: &ApiKeyRecord) -> Result<(), StoreError> {
        let name = format!("{KEY_PREFIX}{}", record.key_id);
        let document = Document {
            label: record.label.clone(),
            tenant: record.tenant.clone(),
            created_at: record.created_at,
            last_used_at: record.last_used_at,
            sha256: hex(&record.sha256),
        };
        let Ok(bytes) = serde_json::to_vec(&document) else {
            return Err(StoreError::Format { name });
        };
        self.store.put_document(&name, bytes.into()).await.map_err(StoreError::Storage)
    }
}

/// The key that signs client tokens: the operator's own where one is given, else the kept one, made
/// at the first start (S6).
pub async fn client_token_key(
    store: &Store,
    given: Option<&SecretString>,
) -> Result<SecretSlice<u8>, StoreError> {
    if let Some(given) = given {
        return Ok(given.expose_secret().as_bytes().to_vec().into());
    }
    if let Some(kept) = store.document(SIGNING_KEY).map_err(StoreError::Storage)? {
        let key = BASE64_STANDARD.decode(&kept).ok();
        let key = key.filter(|key| key.len() == SIGNING_KEY_BYTES);
        let damaged = || StoreError::Format { name: SIGNING_KEY.to_owned() };
        return key.map(SecretSlice::from).ok_or_else(damaged);
    }
    let mut key = vec![0; SIGNING_KEY_BYTES];
    getrandom::fill(&mut key).map_err(StoreError::Random)?;
    let document = Bytes::from(BASE64_STANDARD.encode(&key));
    store.put_document(SIGNING_KEY, document).await.map_err(StoreError::Storage)?;
    Ok(key.into())
}

fn read_record(name: String, bytes: &[u8]) -> Result<ApiKeyRecord, StoreError> {
    let read = || {
        let document: Document = serde_json::from_slice(bytes).ok()?;
        Some(ApiKeyRecord {
            key_id: name.strip_prefix(KEY_PREFIX)?.to_owned(),
            label: document.label,
            tenant: TenantId::parse(document.tenant.as_str()).ok()?,
            created_at: document.created_at,
            last_used_at: document.last_used_at,
            sha256: from_hex(&document.sha256)?,
        })
    };
    read().ok_or(StoreError::Format { name })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 2 * bytes.len() || !text.is_ascii() {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests;
