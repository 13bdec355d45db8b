//! Client tokens: short-lived JWTs that fix tenant and owner (S6, RFC 8725).
//!
//! The engine is the only party that mints and verifies them, so everything about them is fixed:
//! one algorithm, one header, one audience. The header of a token is compared, never followed.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};

use crate::ids::{OwnerId, TenantId};
use crate::protocol::input::{Identity, TOKEN_TTL_SECS_MAX};
use crate::protocol::json::Json;
use crate::time::Timestamp;

/// Life of a token whose request names none, in seconds.
pub const TTL_SECS_DEFAULT: u64 = 600;
/// Longest token, in bytes: it travels in a header of every request.
pub const TOKEN_BYTES_MAX: usize = 4096;
/// Shortest signing key, in bytes: HS256 is as strong as its key (RFC 8725 3.5).
pub const KEY_BYTES_MIN: usize = 32;
/// How long a token is taken after its `exp`, for clocks that differ.
const LEEWAY: Duration = Duration::from_secs(5);

const ISSUER: &str = "turnd";
const AUDIENCE: &str = "turnd-client";
const TYPE: &str = "turnd-client+jwt";

/// The end user that a client token speaks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientPrincipal {
    pub tenant: TenantId,
    pub identity: Identity,
    /// A stream may outlive this by a minute (S9); a request by the leeway only.
    pub expires_at: Timestamp,
}

/// Why signing keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("the client token key is shorter than {KEY_BYTES_MIN} bytes")]
    Short,
    #[error("the JWT library cannot sign and verify")]
    Provider(#[source] jsonwebtoken::errors::Error),
    #[error("the JWT library does not verify what it signed")]
    SelfTest,
}

/// Why a token is not minted.
#[derive(Debug, thiserror::Error)]
pub enum MintError {
    #[error("the life of a token must be 1 to {TOKEN_TTL_SECS_MAX} seconds")]
    Ttl,
    #[error("the identity does not fit into a token of {TOKEN_BYTES_MAX} bytes")]
    TooLong,
    #[error("no random bytes")]
    Random(#[source] getrandom::Error),
    #[error("cannot sign")]
    Sign(#[source] jsonwebtoken::errors::Error),
}

/// Mints and verifies client tokens.
pub struct ClientTokens {
    signing: EncodingKey,
    /// The current key, then the previous one while a rotation lasts.
    verifying: Vec<DecodingKey>,
    header: Header,
    validation: Validation,
}

impl fmt::Debug for ClientTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientTokens")
    }
}

#[derive(Serialize, Deserialize)]
struct Claims {
    iss: String,
    aud: String,
    sub: OwnerId,
    tenant: TenantId,
    iat: i64,
    exp: i64,
    jti: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    metadata: Option<Json>,
}

impl ClientTokens {
    /// Proves the keys by one round trip, as a JWT library without its crypto part fails only then.
    pub fn new(current: &[u8], previous: Option<&[u8]>) -> Result<Self, KeyError> {
        let keys = std::iter::once(current).chain(previous);
        if keys.clone().any(|key| key.len() < KEY_BYTES_MIN) {
            return Err(KeyError::Short);
        }
        let mut validation = Validation::new(Algorithm::HS256);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        validation.set_issuer(&[ISSUER]);
        validation.set_audience(&[AUDIENCE]);
        // The library would read the wall clock and allows a minute: `verify` compares by itself.
        validation.validate_exp = false;
        let mut header = Header::new(Algorithm::HS256);
        header.typ = Some(TYPE.to_owned());
        let tokens = Self {
            signing: EncodingKey::from_secret(current),
            verifying: keys.map(DecodingKey::from_secret).collect(),
            header,
            validation,
        };
        tokens.self_test()?;
        Ok(tokens)
    }

    /// A token for `identity` and the second at which it ends.
    pub fn mint(
        &self,
        tenant: &TenantId,
        identity: &Identity,
        ttl_secs: u64,
        now: Timestamp,
    ) -> Result<(String, i64), MintError> {
        let ttl_secs = match ttl_secs {
            secs @ 1..=TOKEN_TTL_SECS_MAX => secs.cast_signed(),
            _ => return Err(MintError::Ttl),
        };
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(MintError::Random)?;
        let claims = Claims {
            iss: ISSUER.to_owned(),
            aud: AUDIENCE.to_owned(),
            sub: identity.id.clone(),
            tenant: tenant.clone(),
            iat: now.secs(),
            exp: now.secs() + ttl_secs,
            jti: format!("{:032x}", u128::from_be_bytes(id)),
            metadata: identity.metadata.clone(),
        };
        let token = self.sign(&claims).map_err(MintError::Sign)?;
        if token.len() > TOKEN_BYTES_MAX {
            return Err(MintError::TooLong);
        }
        Ok((token, claims.exp))
    }

    /// Whom `token` stands for at `now`. No cause is told: callers answer all of them alike (A1).
    pub fn verify(&self, token: &str, now: Timestamp) -> Option<ClientPrincipal> {
        if token.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let data = self
            .verifying
            .iter()
            .find_map(|key| jsonwebtoken::decode::<Claims>(token, key, &self.validation).ok())?;
        // Any other member (`kid`, `jku`, `jwk`, `crit`, ..) makes the header unequal.
        if data.header != self.header {
            return None;
        }
        data.claims.principal(now)
    }

    fn sign(&self, claims: &Claims) -> Result<String, jsonwebtoken::errors::Error> {
        jsonwebtoken::encode(&self.header, claims, &self.signing)
    }

    fn self_test(&self) -> Result<(), KeyError> {
        let now = Timestamp::from_secs(1);
        let claims = Claims {
            iss: ISSUER.to_owned(),
            aud: AUDIENCE.to_owned(),
            sub: OwnerId::parse("self-test").map_err(|_| KeyError::SelfTest)?,
            tenant: crate::ids::local_tenant(),
            iat: now.secs(),
            exp: now.secs() + 1,
            jti: "self-test".to_owned(),
            metadata: None,
        };
        let token = self.sign(&claims).map_err(KeyError::Provider)?;
        self.verify(&token, now).map(drop).ok_or(KeyError::SelfTest)
    }
}

impl Claims {
    /// The rules that the library does not check.
    fn principal(self, now: Timestamp) -> Option<ClientPrincipal> {
        // The library would take lists that hold the right word among others.
        let ours = self.iss == ISSUER && self.aud == AUDIENCE && !self.jti.is_empty();
        // An operator who shares the key may mint tokens elsewhere; they live no longer than ours.
        let life_secs = self.exp.checked_sub(self.iat)?;
        let expires_at = Timestamp::from_secs(self.exp);
        let lives = (1..=TOKEN_TTL_SECS_MAX.cast_signed()).contains(&life_secs)
            && now < expires_at.plus(LEEWAY);
        if !ours || !lives {
            return None;
        }
        // Ids are parsed again: deserializing them checks no more than that they are strings.
        let identity =
            Identity { id: OwnerId::parse(self.sub.as_str()).ok()?, metadata: self.metadata };
        if let Some(metadata) = &identity.metadata {
            serde_json::from_str::<BTreeMap<String, String>>(metadata.text()).ok()?;
        }
        Some(ClientPrincipal {
            tenant: TenantId::parse(self.tenant.as_str()).ok()?,
            identity,
            expires_at,
        })
    }
}

#[cfg(test)]
mod tests;
