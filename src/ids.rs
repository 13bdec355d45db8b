//! Identifiers: parsed once at the edge (S2), cheap to clone, never a file name.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::time::Timestamp;

/// Longest identifier that a caller may choose, in characters (S2).
pub const ID_CHARS_MAX: usize = 128;
/// Longest owner id, in bytes.
pub const OWNER_BYTES_MAX: usize = 256;

/// Why a text is not an identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    #[error("must be 1 to {ID_CHARS_MAX} characters of A-Z a-z 0-9 . _ : - ~ @ + =")]
    Id,
    #[error("must be 1 to {OWNER_BYTES_MAX} bytes of printable text")]
    Owner,
}

fn parse_id(text: &str) -> Result<Arc<str>, IdError> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-~@+=".contains(&byte);
    if text.is_empty() || text.len() > ID_CHARS_MAX || !text.bytes().all(allowed) {
        return Err(IdError::Id);
    }
    Ok(text.into())
}

fn parse_owner(text: &str) -> Result<Arc<str>, IdError> {
    if text.is_empty() || text.len() > OWNER_BYTES_MAX || text.chars().any(char::is_control) {
        return Err(IdError::Owner);
    }
    Ok(text.into())
}

macro_rules! identifiers {
    ($($(#[$doc:meta])* $name:ident: $parse:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks a caller's text against the rule for this kind of id (S2).
            pub fn parse(text: &str) -> Result<Self, IdError> {
                $parse(text).map(Self)
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    )*};
}

identifiers! {
    /// A conversation.
    SessionId: parse_id;
    /// One run of an agent; the idempotency key of a submit (S17).
    TurnId: parse_id;
    /// A node of the message tree.
    MessageId: parse_id;
    /// A model or tool call; for a model call also the id of its reply (S24).
    CallId: parse_id;
    /// A pause that somebody must answer.
    InterruptId: parse_id;
    /// An agent of the manifest.
    AgentId: parse_id;
    /// A model block of the manifest.
    LlmId: parse_id;
    /// Who shares API keys and agents.
    TenantId: parse_id;
    /// The end user that owns a session.
    OwnerId: parse_owner;
}

/// The tenant of a local server (S7).
pub fn local_tenant() -> TenantId {
    TenantId("default".into())
}

/// Sessions are keyed by tenant and id (S2).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionKey {
    pub tenant: TenantId,
    pub session: SessionId,
}

impl SessionKey {
    /// The bytes that storage knows the session by. No id holds a NUL, so the pair is unambiguous.
    pub fn to_bytes(&self) -> Arc<[u8]> {
        [self.tenant.as_str(), "\0", self.session.as_str()].concat().into_bytes().into()
    }

    /// The key that `to_bytes` wrote; `None` for any other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (tenant, session) = std::str::from_utf8(bytes).ok()?.split_once('\0')?;
        Some(Self {
            tenant: TenantId::parse(tenant).ok()?,
            session: SessionId::parse(session).ok()?,
        })
    }
}

/// A position in a session's log: dense, from 1 (S12). 0 is "before the first event".
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A session id for a caller who named none, from the time and ten random bytes.
pub fn mint_session_id(now: Timestamp, random: [u8; 10]) -> SessionId {
    SessionId(uuid_v7(now, &random).into())
}

/// The id that the event at `seq` gives to the `index`-th thing it names: a `UUIDv7` whose random part
/// derives from the session and the position, so that no two sessions share it and a retry of the
/// same step mints the same one (S2).
pub fn derive_message_id(key: &SessionKey, seq: Seq, index: u32, now: Timestamp) -> MessageId {
    MessageId(derive(b'm', key, seq, index, now))
}

/// As [`derive_message_id`], for a call.
pub fn derive_call_id(key: &SessionKey, seq: Seq, index: u32, now: Timestamp) -> CallId {
    CallId(derive(b'c', key, seq, index, now))
}

/// The id of the `index`-th tool call of a reply: known while the reply still streams, and made of
/// what every provider takes back (`[A-Za-z0-9_]`, under 40 characters).
pub fn tool_call_id(reply: &MessageId, index: usize) -> CallId {
    let digest = Sha256::new()
        .chain_update(reply.as_str())
        .chain_update([0])
        .chain_update(index.to_be_bytes())
        .finalize();
    let digits =
        digest.iter().take(12).fold(0_u128, |digits, byte| digits << 8 | u128::from(*byte));
    CallId(format!("call_{digits:024x}").into())
}

/// As [`derive_message_id`], for an interrupt that came without an id.
pub fn derive_interrupt_id(key: &SessionKey, seq: Seq, index: u32, now: Timestamp) -> InterruptId {
    InterruptId(derive(b'i', key, seq, index, now))
}

/// As [`derive_message_id`], for a turn that came without an id.
pub fn derive_turn_id(key: &SessionKey, seq: Seq, index: u32, now: Timestamp) -> TurnId {
    TurnId(derive(b't', key, seq, index, now))
}

impl CallId {
    /// The message id of the reply that an attempt produces: the call's own (S24), but `<call>~<n>`
    /// once an earlier attempt has shown text under that id (S50).
    pub fn reply_id(&self, attempt: u32, streamed_before: bool) -> MessageId {
        if streamed_before {
            MessageId(format!("{}~{attempt}", self.0).into())
        } else {
            MessageId(self.0.clone())
        }
    }
}

fn derive(kind: u8, key: &SessionKey, seq: Seq, index: u32, now: Timestamp) -> Arc<str> {
    let digest = Sha256::new()
        .chain_update([kind])
        .chain_update(key.to_bytes())
        .chain_update([0])
        .chain_update(seq.0.to_be_bytes())
        .chain_update(index.to_be_bytes())
        .finalize();
    let mut random = [0; 10];
    for (to, from) in random.iter_mut().zip(digest.iter()) {
        *to = *from;
    }
    uuid_v7(now, &random).into()
}

fn uuid_v7(now: Timestamp, random: &[u8; 10]) -> String {
    uuid::Builder::from_unix_timestamp_millis(now.millis_unsigned(), random)
        .into_uuid()
        .hyphenated()
        .to_string()
}

#[cfg(test)]
mod tests;
