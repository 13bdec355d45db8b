//! API keys: `tk_<key id>_<32 random bytes, base62>` (S7), known to the server by their SHA-256 alone.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::control::api_keys::{ApiKeyDocuments, ApiKeyRecord, StoreError};
use crate::ids::{TenantId, local_tenant};
use crate::time::Timestamp;

/// The key id of `TURND_API_KEY`, which has no record.
pub const ENVIRONMENT_KEY_ID: &str = "environment";
/// Shortest `TURND_API_KEY`, in characters (S70).
pub const CHOSEN_KEY_CHARS_MIN: usize = 24;
/// Longest key that is looked at, in bytes.
const KEY_BYTES_MAX: usize = 512;

const PREFIX: &str = "tk_";
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Digits that 32 bytes need in base 62.
const SECRET_DIGITS: usize = 43;
/// Digits that the 8 bytes of a key id need.
const ID_DIGITS: usize = 11;

/// A key as it is shown once: whoever holds the text is the tenant.
pub struct NewApiKey {
    pub key_id: String,
    pub text: SecretString,
}

impl fmt::Debug for NewApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewApiKey").field("key_id", &self.key_id).finish_non_exhaustive()
    }
}

impl NewApiKey {
    /// A fresh key from the system's random source.
    pub fn generate() -> Result<Self, getrandom::Error> {
        let (mut id, mut secret) = ([0; 8], [0; 32]);
        getrandom::fill(&mut id)?;
        getrandom::fill(&mut secret)?;
        let key_id = base62(&mut id, ID_DIGITS);
        let text = format!("{PREFIX}{key_id}_{}", base62(&mut secret, SECRET_DIGITS)).into();
        Ok(Self { key_id, text })
    }
}

/// Why a key is not made.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    #[error("no random bytes")]
    Random(#[source] getrandom::Error),
    #[error("cannot keep the key")]
    Store(#[source] StoreError),
}

/// `TURND_API_KEY` is not a key (S70).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be {CHOSEN_KEY_CHARS_MIN} or more printable ASCII characters without spaces")]
pub struct ChosenKeyError;

/// Who an API key speaks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKeyHolder {
    pub tenant: TenantId,
    pub key_id: String,
}

/// Every valid key, in memory: a request never waits for the store.
pub struct ApiKeys {
    chosen: Option<Digest32>,
    by_id: RwLock<HashMap<String, Known>>,
}

impl fmt::Debug for ApiKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKeys")
    }
}

type Digest32 = [u8; 32];

struct Known {
    /// As the store has it.
    record: ApiKeyRecord,
    /// Milliseconds of the last use; 0 for never.
    used_at: AtomicI64,
}

impl ApiKeys {
    /// The kept keys, and `TURND_API_KEY` in addition.
    pub fn new(
        records: Vec<ApiKeyRecord>,
        chosen: Option<&SecretString>,
    ) -> Result<Self, ChosenKeyError> {
        let chosen = match chosen.map(ExposeSecret::expose_secret) {
            Some(text) if is_chosen_key(text) => Some(digest(text)),
            Some(_) => return Err(ChosenKeyError),
            None => None,
        };
        let by_id = records.into_iter().map(|record| (record.key_id.clone(), record.into()));
        Ok(Self { chosen, by_id: RwLock::new(by_id.collect()) })
    }

    /// Whom `key` stands for; notes the minute of its use.
    pub fn verify(&self, key: &str, now: Timestamp) -> Option<ApiKeyHolder> {
        if key.len() > KEY_BYTES_MAX {
            return None;
        }
        let presented = digest(key);
        if self.chosen.as_ref().is_some_and(|chosen| same(chosen, &presented)) {
            return Some(ApiKeyHolder {
                tenant: local_tenant(),
                key_id: ENVIRONMENT_KEY_ID.to_owned(),
            });
        }
        let known = self.read();
        let known = known.get(key_id(key)?)?;
        if !same(&known.record.sha256, &presented) {
            return None;
        }
        known.used_at.store(now.millis(), Ordering::Relaxed);
        Some(ApiKeyHolder {
            tenant: known.record.tenant.clone(),
            key_id: known.record.key_id.clone(),
        })
    }

    /// Makes a key and keeps it before it is valid; its text is never seen again.
    pub async fn create(
        &self,
        documents: &ApiKeyDocuments,
        label: &str,
        now: Timestamp,
    ) -> Result<NewApiKey, CreateError> {
        let key = NewApiKey::generate().map_err(CreateError::Random)?;
        let record = ApiKeyRecord {
            key_id: key.key_id.clone(),
            label: label.to_owned(),
            tenant: local_tenant(),
            created_at: now,
            last_used_at: None,
            sha256: digest(key.text.expose_secret()),
        };
        documents.put(&record).await.map_err(CreateError::Store)?;
        let mut by_id = self.by_id.write().unwrap_or_else(PoisonError::into_inner);
        by_id.insert(record.key_id.clone(), record.into());
        Ok(key)
    }

    /// Keeps the minutes of use that the store does not have. Run it about once a minute: all uses
    /// of a key between two runs cost one write (S7).
    pub async fn save_used(&self, documents: &ApiKeyDocuments) -> Result<(), StoreError> {
        for record in self.records(|known| known.current() != known.record) {
            documents.put(&record).await?;
            let mut by_id = self.by_id.write().unwrap_or_else(PoisonError::into_inner);
            if let Some(known) = by_id.get_mut(&record.key_id) {
                known.record = record;
            }
        }
        Ok(())
    }

    /// Every kept key with the minute of its last use, oldest first.
    pub fn list(&self) -> Vec<ApiKeyRecord> {
        self.records(|_| true)
    }

    fn records(&self, wanted: impl Fn(&Known) -> bool) -> Vec<ApiKeyRecord> {
        let known = self.read();
        #[expect(clippy::disallowed_methods, reason = "sorted below")]
        let wanted = known.values().filter(|known| wanted(known));
        let mut records: Vec<_> = wanted.map(Known::current).collect();
        records.sort_by(|a, b| (a.created_at, &a.key_id).cmp(&(b.created_at, &b.key_id)));
        records
    }

    fn read(&self) -> RwLockReadGuard<'_, HashMap<String, Known>> {
        self.by_id.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// The record as it should be stored.
    fn current(&self) -> ApiKeyRecord {
        const MINUTE_MILLIS: i64 = 60_000;
        let used_at = self.used_at.load(Ordering::Relaxed);
        let minute = Timestamp::from_millis(used_at - used_at % MINUTE_MILLIS);
        ApiKeyRecord { last_used_at: (used_at > 0).then_some(minute), ..self.record.clone() }
    }
}

impl From<ApiKeyRecord> for Known {
    fn from(record: ApiKeyRecord) -> Self {
        let used_at = record.last_used_at.map_or(0, Timestamp::millis);
        Self { record, used_at: AtomicI64::new(used_at) }
    }
}

/// The id inside a key that turnd made.
fn key_id(key: &str) -> Option<&str> {
    let (id, secret) = key.strip_prefix(PREFIX)?.split_once('_')?;
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let whole = id.len() == ID_DIGITS && secret.len() == SECRET_DIGITS;
    (whole && digits(id) && digits(secret)).then_some(id)
}

fn is_chosen_key(text: &str) -> bool {
    (CHOSEN_KEY_CHARS_MIN..=KEY_BYTES_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn digest(key: &str) -> Digest32 {
    Sha256::digest(key.as_bytes()).into()
}

fn same(kept: &Digest32, presented: &Digest32) -> bool {
    kept.ct_eq(presented).into()
}

/// `bytes` as one big-endian number in base 62, padded to `digits`. Leaves `bytes` zeroed.
fn base62(bytes: &mut [u8], digits: usize) -> String {
    let mut text = vec![b'0'; digits];
    for digit in text.iter_mut().rev() {
        let mut remainder = 0;
        for byte in bytes.iter_mut() {
            let value = remainder * 256 + u16::from(*byte);
            *byte = u8::try_from(value / 62).unwrap_or(u8::MAX);
            remainder = value % 62;
        }
        *digit = BASE62.get(usize::from(remainder)).copied().unwrap_or(b'0');
    }
    text.into_iter().map(char::from).collect()
}

#[cfg(test)]
mod tests;
