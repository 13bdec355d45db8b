//! An input on its way to its session, from whichever API.

use http::StatusCode;
use serde::Serialize;

use super::api::Api;
use super::asker::Asker;
use super::error::ApiError;
use super::rate::Class;
use super::reply::{self, Reply};
use crate::clock;
use crate::ids::{Seq, SessionId, SessionKey, TurnId};
use crate::protocol::content::Intake;
use crate::protocol::input::{Identity, Submit, SubmitBody, TurnRequest};
use crate::runtime::EngineError;
use crate::session::{Caller, Command, Rejection, Reply as Outcome, Submission};

/// Session ids that no path could name: they stand there for something else.
const RESERVED: [&str; 2] = ["input", "submit"];

/// The 202 of both submits.
#[derive(Serialize)]
struct Submitted {
    session_id: SessionId,
    turn_id: TurnId,
    queued: bool,
    seq: Seq,
}

/// Hands an input to its session; a 202 says that it is durable.
pub(super) async fn take(
    api: &Api,
    asker: Asker,
    identity: Identity,
    submit: Submit,
) -> Result<Reply, ApiError> {
    let Submit { session_id, conditions, body, uploads } = submit;
    if session_id.as_ref().is_some_and(|id| RESERVED.contains(&id.as_str())) {
        return Err(ApiError::bad_request("`session_id` is a word of the API's own paths"));
    }
    let Asker { tenant, caller, .. } = asker;
    api.rates.take(Class::Input, (&tenant, identity.id.as_str()), clock::wall())?;
    let session_id = session_id
        .map_or_else(|| api.engine.mint_session_id(), Ok)
        .map_err(|_| ApiError::Internal)?;
    let key = SessionKey { tenant, session: session_id.clone() };
    let field = match &caller {
        Caller::Frontend(_) => "input",
        Caller::Machine | Caller::System => "payload",
    };
    let command = match body {
        SubmitBody::Turn(request) => {
            let TurnRequest { agent_id, turn_id, queue, input } = *request;
            Command::Submit(Box::new(Submission {
                caller,
                identity,
                agent_id,
                turn_id,
                queue,
                conditions,
                input,
                blobs: Intake::blobs(&uploads),
            }))
        }
        SubmitBody::Resume { turn_id, resume } => {
            Command::Resume { caller, conditions, turn_id, resume }
        }
        SubmitBody::Settle(settlement) => {
            Command::SettleToolCall { caller, conditions, settlement }
        }
    };
    let taken = api.engine.command(key, command, uploads).await;
    match taken.map_err(|error| in_body(error, field))? {
        Outcome::Accepted { turn_id, queued, seq } => {
            let submitted = Submitted { session_id, turn_id, queued, seq };
            Ok(reply::json(StatusCode::ACCEPTED, &submitted))
        }
        Outcome::Interrupted { .. } | Outcome::Cancelled { .. } | Outcome::Done => {
            Err(ApiError::Internal)
        }
    }
}

/// A refusal of the input names the field as its body spells it.
fn in_body(error: EngineError, field: &str) -> ApiError {
    let EngineError::Rejected(Rejection::Invalid { path, problem }) = error else {
        return error.into();
    };
    ApiError::bad_request(format!("`{field}.{path}` {problem}"))
}
