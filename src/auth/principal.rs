//! From the bytes of `Authorization` to a principal. Every refusal looks the same (A1).

use super::api_key::{ApiKeyHolder, ApiKeys};
use super::blob_url::BlobUrls;
use super::client_token::{ClientPrincipal, ClientTokens};
use crate::time::Timestamp;

/// Missing, malformed, unknown, expired, or of the wrong kind for the API: 401, and no word on
/// which of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("missing or invalid credential")]
pub struct Refused;

/// Knows every credential that is valid.
#[derive(Debug)]
pub struct Authenticator {
    pub api_keys: ApiKeys,
    pub client_tokens: ClientTokens,
    pub blob_urls: BlobUrls,
}

impl Authenticator {
    /// A caller of the client API or the AG-UI channel: a client token and nothing else (S8).
    pub fn client(
        &self,
        credential: Option<&str>,
        now: Timestamp,
    ) -> Result<ClientPrincipal, Refused> {
        credential.and_then(|token| self.client_tokens.verify(token, now)).ok_or(Refused)
    }

    /// A caller of the machine, admin or cloud API: an API key and nothing else (S8).
    pub fn machine(
        &self,
        credential: Option<&str>,
        now: Timestamp,
    ) -> Result<ApiKeyHolder, Refused> {
        credential.and_then(|key| self.api_keys.verify(key, now)).ok_or(Refused)
    }
}

/// The token of `Authorization: Bearer <token>`, given every value of that header: exactly one,
/// one space, and visible ASCII up to the end.
pub fn bearer<'h>(values: impl IntoIterator<Item = &'h [u8]>) -> Option<&'h str> {
    const SCHEME: &[u8] = b"Bearer ";
    let mut values = values.into_iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return None;
    };
    let (scheme, token) = value.split_at_checked(SCHEME.len())?;
    if !scheme.eq_ignore_ascii_case(SCHEME) || token.is_empty() {
        return None;
    }
    let token = std::str::from_utf8(token).ok()?;
    token.bytes().all(|byte| byte.is_ascii_graphic()).then_some(token)
}

#[cfg(test)]
mod tests;
