//! Addresses of blobs that bring their own permission: an `<img>` sends no header (S15).

use std::fmt;
use std::time::Duration;

use jsonwebtoken::crypto;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey};

use super::client_token::KeyError;
use crate::ids::SessionKey;
use crate::protocol::blob::BlobHash;
use crate::time::Timestamp;

/// How long an address is good for.
const LIFE: Duration = Duration::from_mins(10);
/// Sets the derived key apart from the key of the tokens.
const LABEL: &[u8] = b"turnd blob url 1";

/// What an address lets its holder read, until when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobGrant {
    pub session: SessionKey,
    pub hash: BlobHash,
    /// In Unix seconds.
    pub expires_at: i64,
}

impl BlobGrant {
    /// A grant that begins at `now`.
    pub fn new(session: SessionKey, hash: BlobHash, now: Timestamp) -> Self {
        Self { session, hash, expires_at: now.plus(LIFE).secs() }
    }

    /// What is signed. No id holds a NUL, so no two grants share a text.
    fn text(&self) -> String {
        let Self { session, hash, expires_at } = self;
        format!("{}\0{}\0{}\0{expires_at}", session.tenant, session.session, hash.hex())
    }
}

/// Signs and verifies addresses with keys that derive from those of the client tokens.
pub struct BlobUrls {
    signing: EncodingKey,
    /// The current key, then the previous one while a rotation lasts.
    verifying: Vec<DecodingKey>,
}

impl fmt::Debug for BlobUrls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BlobUrls")
    }
}

impl BlobUrls {
    /// With the keys of the client tokens.
    pub fn new(current: &[u8], previous: Option<&[u8]>) -> Result<Self, KeyError> {
        let signing = derive(current)?;
        let keys = std::iter::once(Ok(signing.clone())).chain(previous.map(derive));
        let verifying = keys.map(|key| Ok(DecodingKey::from_secret(key?.as_bytes())));
        Ok(Self {
            verifying: verifying.collect::<Result<_, KeyError>>()?,
            signing: EncodingKey::from_secret(signing.as_bytes()),
        })
    }

    /// The signature of a grant: URL-safe base64.
    pub fn sign(&self, grant: &BlobGrant) -> Result<String, KeyError> {
        sign(grant.text().as_bytes(), &self.signing)
    }

    /// Whether `signature` stands for `grant` at `now`.
    pub fn verify(&self, grant: &BlobGrant, signature: &str, now: Timestamp) -> bool {
        let text = grant.text();
        let verifies = |key| {
            crypto::verify(signature, text.as_bytes(), key, Algorithm::HS256).unwrap_or(false)
        };
        now.secs() < grant.expires_at && self.verifying.iter().any(verifies)
    }
}

fn derive(key: &[u8]) -> Result<String, KeyError> {
    sign(LABEL, &EncodingKey::from_secret(key))
}

fn sign(text: &[u8], key: &EncodingKey) -> Result<String, KeyError> {
    crypto::sign(text, key, Algorithm::HS256).map_err(KeyError::Provider)
}

#[cfg(test)]
mod tests;
