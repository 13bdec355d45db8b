//! The client API: what a browser may do with its own sessions (interface 4.1).

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
use super::stream;
use crate::auth::ClientPrincipal;
use crate::clock;
use crate::ids::{SessionId, SessionKey, TenantId, TurnId};
use crate::protocol::event::ENVELOPE_BYTES_MAX;
use crate::protocol::input::{Identity, Submit};
use crate::protocol::json::encoded_len;
use crate::runtime::{Accepted, EngineError, Reader};
use crate::session::{Caller, Rejection, Submission};

/// The 202 of both submits.
#[derive(Serialize)]
struct Submitted {
    session_id: SessionId,
    turn_id: TurnId,
    queued: bool,
}

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
    let submit = api.read(head, body, |root| Submit::read_client(root, text_bytes_max)).await?;
    let (tenant, identity) = (client.tenant.clone(), client.identity.clone());
    self::submit(api, Caller::Frontend, tenant, identity, submit).await
}

/// Hands an input to its session; both APIs come here.
pub(super) async fn submit(
    api: &Api,
    caller: Caller,
    tenant: TenantId,
    identity: Identity,
    submit: Submit,
) -> Result<Reply, ApiError> {
    let bytes_max = api.limits.event_bytes_max;
    if encoded_len(&submit.input) + ENVELOPE_BYTES_MAX > bytes_max {
        return Err(ApiError::TooLarge { what: "the event of this input", bytes_max });
    }
    api.rates.take(Class::Input, (&tenant, &identity.id), clock::wall())?;
    let session_id = submit
        .session_id
        .map_or_else(|| api.engine.mint_session_id(), Ok)
        .map_err(|_| ApiError::Internal)?;
    let key = SessionKey { tenant, session: session_id.clone() };
    let submission = Submission {
        caller,
        identity,
        agent_id: submit.agent_id,
        turn_id: submit.turn_id,
        queue: submit.queue,
        input: submit.input,
        queued_turns_max: api.limits.queued_turns_max,
    };
    let taken = api.engine.submit(key, submission).await;
    let Accepted { turn_id, queued } = taken.map_err(|error| in_body(error, caller))?;
    Ok(reply::json(StatusCode::ACCEPTED, &Submitted { session_id, turn_id, queued }))
}

/// A refusal of the input names the field as its body spells it.
fn in_body(error: EngineError, caller: Caller) -> ApiError {
    let EngineError::Rejected(Rejection::Invalid { path, problem }) = error else {
        return error.into();
    };
    let input = match caller {
        Caller::Frontend => "input",
        Caller::Machine => "payload",
    };
    ApiError::bad_request(format!("`{input}.{path}` {problem}"))
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
