//! An input on its way to its session, from whichever API.

use http::StatusCode;
use serde::Serialize;

use super::api::Api;
use super::error::ApiError;
use super::rate::Class;
use super::reply::{self, Reply};
use crate::clock;
use crate::ids::{SessionId, SessionKey, TenantId, TurnId};
use crate::protocol::event::ENVELOPE_BYTES_MAX;
use crate::protocol::input::{Identity, Submit};
use crate::protocol::json::encoded_len;
use crate::runtime::{Accepted, EngineError};
use crate::session::{Caller, Rejection, Submission};

/// The 202 of both submits.
#[derive(Serialize)]
struct Submitted {
    session_id: SessionId,
    turn_id: TurnId,
    queued: bool,
}

/// Hands an input to its session; a 202 says that it is durable.
pub(super) async fn take(
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
