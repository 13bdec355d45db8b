//! The client API: what a browser may do with its own sessions (interface 4.1).

use bytes::Bytes;
use http::StatusCode;
use http::request::Parts;
use http_body::Body;

use super::api::{Api, session_id};
use super::connection::Peer;
use super::error::ApiError;
use super::rate::Class;
use super::reply::{self, Reply};
use super::{stream, submit};
use crate::auth::ClientPrincipal;
use crate::clock;
use crate::ids::SessionKey;
use crate::protocol::input::Submit;
use crate::runtime::Reader;
use crate::session::Caller;

/// `POST /api/client/sessions/input`.
pub(super) async fn input<B>(
    api: &Api,
    client: &ClientPrincipal,
    head: &Parts,
    body: B,
) -> Result<Reply, ApiError>
where
    B: Body<Data = Bytes> + Unpin,
{
    let text_bytes_max = api.limits.message_bytes_max;
    let input = api.read(head, body, |root| Submit::read_client(root, text_bytes_max)).await?;
    let (tenant, identity) = (client.tenant.clone(), client.identity.clone());
    submit::take(api, Caller::Frontend, tenant, identity, input).await
}

/// `GET /api/client/sessions/{session_id}`.
pub(super) async fn session(
    api: &Api,
    client: &ClientPrincipal,
    id: &str,
) -> Result<Reply, ApiError> {
    let (key, reader) = reading(api, client, id)?;
    let view = api.engine.view(key, reader).await?;
    Ok(reply::json(StatusCode::OK, &view))
}

/// `GET /api/client/sessions/{session_id}/events/stream`.
pub(super) async fn stream(
    api: &Api,
    client: &ClientPrincipal,
    id: &str,
    head: &Parts,
    peer: Peer,
) -> Result<Reply, ApiError> {
    let request = stream::request(head)?;
    let (key, reader) = reading(api, client, id)?;
    stream::open(api, key, reader, request, Some(client.expires_at), peer).await
}

fn reading(
    api: &Api,
    client: &ClientPrincipal,
    id: &str,
) -> Result<(SessionKey, Reader), ApiError> {
    let key = SessionKey { tenant: client.tenant.clone(), session: session_id(id)? };
    let owner = client.identity.id.clone();
    api.rates.take(Class::Read, (&client.tenant, &owner), clock::wall())?;
    Ok((key, Reader::Owner(owner)))
}
