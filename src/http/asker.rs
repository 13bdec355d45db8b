//! Who asks, from whichever credential.

use percent_encoding::percent_decode_str;

use super::api::Api;
use super::error::ApiError;
use super::rate::Class;
use crate::auth::ClientPrincipal;
use crate::auth::api_key::ApiKeyHolder;
use crate::clock;
use crate::ids::{OwnerId, SessionId, SessionKey, TenantId};
use crate::session::Caller;

/// A caller of either API as sessions know it, and the name that its rates are counted by.
#[derive(Debug, Clone)]
pub(super) struct Asker {
    pub(super) tenant: TenantId,
    pub(super) caller: Caller,
    name: String,
}

impl Asker {
    pub(super) fn client(client: &ClientPrincipal) -> Self {
        let owner = client.identity.id.clone();
        Self {
            tenant: client.tenant.clone(),
            name: owner.as_str().to_owned(),
            caller: Caller::Frontend(owner),
        }
    }

    pub(super) fn machine(holder: &ApiKeyHolder) -> Self {
        Self { tenant: holder.tenant.clone(), name: holder.key_id.clone(), caller: Caller::Machine }
    }

    /// The session that a path names, for a request that counts to `class`.
    pub(super) fn session(
        &self,
        api: &Api,
        class: Class,
        segment: &str,
    ) -> Result<SessionKey, ApiError> {
        let key = SessionKey { tenant: self.tenant.clone(), session: session_id(segment)? };
        self.count(api, class)?;
        Ok(key)
    }

    /// Counts a request.
    pub(super) fn count(&self, api: &Api, class: Class) -> Result<(), ApiError> {
        Ok(api.rates.take(class, (&self.tenant, self.name.as_str()), clock::wall())?)
    }
}

/// A session id in a path.
pub(super) fn session_id(segment: &str) -> Result<SessionId, ApiError> {
    let decoded = percent_decode_str(segment).decode_utf8();
    let id = decoded.ok().and_then(|text| SessionId::parse(&text).ok());
    id.ok_or_else(|| ApiError::bad_request("the session id in the path is not one"))
}

/// An owner id in a path.
pub(super) fn owner_id(segment: &str) -> Result<OwnerId, ApiError> {
    let decoded = percent_decode_str(segment).decode_utf8();
    let id = decoded.ok().and_then(|text| OwnerId::parse(&text).ok());
    id.ok_or_else(|| ApiError::bad_request("the owner id in the path is not one"))
}
