//! The machine API: what the customer's backend may do for its users (interface 4.2).

use bytes::Bytes;
use http::StatusCode;
use http::request::Parts;
use http_body::Body;
use serde::Serialize;

use super::api::{Api, session_id};
use super::connection::Peer;
use super::error::ApiError;
use super::rate::Class;
use super::reply::{self, Reply};
use super::{stream, submit};
use crate::auth::api_key::ApiKeyHolder;
use crate::auth::client_token::TTL_SECS_DEFAULT;
use crate::clock;
use crate::ids::SessionKey;
use crate::protocol::input::{Submit, TokenRequest};
use crate::runtime::Reader;
use crate::session::Caller;

/// `POST /api/machine/client-tokens`.
pub(super) async fn tokens<B>(
    api: &Api,
    holder: &ApiKeyHolder,
    head: &Parts,
    body: B,
) -> Result<Reply, ApiError>
where
    B: Body<Data = Bytes> + Unpin,
{
    #[derive(Serialize)]
    struct Minted {
        token: String,
        expires_at: i64,
    }
    let request = api.read(head, body, TokenRequest::read).await?;
    let now = clock::wall();
    api.rates.take(Class::Mint, (&holder.tenant, &holder.key_id), now)?;
    let ttl_secs = request.ttl_secs.unwrap_or(TTL_SECS_DEFAULT);
    let minted =
        api.authenticator.client_tokens.mint(&holder.tenant, &request.identity, ttl_secs, now);
    let (token, expires_at) = minted?;
    Ok(reply::json(StatusCode::OK, &Minted { token, expires_at }))
}

/// `POST /api/machine/sessions/submit`.
pub(super) async fn submit<B>(
    api: &Api,
    holder: &ApiKeyHolder,
    head: &Parts,
    body: B,
) -> Result<Reply, ApiError>
where
    B: Body<Data = Bytes> + Unpin,
{
    let text_bytes_max = api.limits.message_bytes_max;
    let (input, identity) =
        api.read(head, body, |root| Submit::read_machine(root, text_bytes_max)).await?;
    submit::take(api, Caller::Machine, holder.tenant.clone(), identity, input).await
}

/// `GET /api/machine/sessions/{session_id}/events/stream`.
pub(super) async fn stream(
    api: &Api,
    holder: &ApiKeyHolder,
    id: &str,
    head: &Parts,
    peer: Peer,
) -> Result<Reply, ApiError> {
    let request = stream::request(head)?;
    let key = SessionKey { tenant: holder.tenant.clone(), session: session_id(id)? };
    api.rates.take(Class::Read, (&holder.tenant, &holder.key_id), clock::wall())?;
    stream::open(api, key, Reader::Machine, request, None, peer).await
}
