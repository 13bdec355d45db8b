//! What either API may do with one session beside its input and its stream.

use bytes::Bytes;
use http::StatusCode;
use http::request::Parts;
use http_body::Body;
use serde::Serialize;
use serde_json::json;

use super::api::{Api, query, query_number};
use super::asker::{Asker, owner_id};
use super::error::ApiError;
use super::rate::Class;
use super::reply::{self, Reply};
use super::view;
use crate::ids::{InterruptId, MessageId, Seq};
use crate::protocol::event::ENVELOPE_BYTES_MAX;
use crate::protocol::input::{CancelRequest, InterruptRequest, MESSAGES_MAX, SessionPatch};
use crate::protocol::json::encoded_len;
use crate::protocol::view::ViewRequest;
use crate::session::{Command, Reply as Outcome};

/// `GET /api/client/sessions/{session_id}`.
pub(super) async fn show(
    api: &Api,
    asker: &Asker,
    id: &str,
    head: &Parts,
) -> Result<Reply, ApiError> {
    let request = view_request(head)?;
    let key = asker.session(api, Class::Read, id)?;
    let view = api.engine.view(key, asker.caller.clone(), request).await?;
    Ok(view::reply(view))
}

fn view_request(head: &Parts) -> Result<ViewRequest, ApiError> {
    let before = query(head, "before").map(|text| MessageId::parse(&text)).transpose();
    let before = before.map_err(|problem| ApiError::bad_request(format!("`before` {problem}")))?;
    let without_tree = match query(head, "tree").as_deref() {
        None | Some("true") => false,
        Some("false") => true,
        Some(_) => return Err(ApiError::bad_request("`tree` must be `true` or `false`")),
    };
    let limit = query_number(head, "limit", 1..=MESSAGES_MAX)?;
    Ok(ViewRequest { limit, before, without_tree })
}

/// `POST .../sessions/{session_id}/interrupt`.
pub(super) async fn interrupt<B>(
    api: &Api,
    asker: &Asker,
    id: &str,
    head: &Parts,
    body: B,
) -> Result<Reply, ApiError>
where
    B: Body<Data = Bytes> + Unpin,
{
    #[derive(Serialize)]
    struct Interrupted {
        ok: bool,
        interrupt_id: InterruptId,
        seq: Seq,
    }
    let request = api.read(head, body, InterruptRequest::read).await?;
    let payload = request.payload.as_ref().map_or(0, encoded_len);
    check_event(api, encoded_len(&request.reason) + payload)?;
    let key = asker.session(api, Class::Input, id)?;
    let command = Command::Interrupt { caller: asker.caller.clone(), request };
    match api.engine.command(key, command, Vec::new()).await? {
        Outcome::Interrupted { interrupt_id, seq } => {
            Ok(reply::json(StatusCode::OK, &Interrupted { ok: true, interrupt_id, seq }))
        }
        Outcome::Accepted { .. } | Outcome::Cancelled { .. } | Outcome::Done => {
            Err(ApiError::Internal)
        }
    }
}

/// `POST .../sessions/{session_id}/cancel`; without a body, the running turn is cancelled.
pub(super) async fn cancel<B>(
    api: &Api,
    asker: &Asker,
    id: &str,
    head: &Parts,
    body: B,
) -> Result<Reply, ApiError>
where
    B: Body<Data = Bytes> + Unpin,
{
    #[derive(Serialize)]
    struct Answer {
        ok: bool,
        cancelled: bool,
        seq: Seq,
    }
    let request = if body.is_end_stream() {
        CancelRequest::default()
    } else {
        api.read(head, body, CancelRequest::read).await?
    };
    check_event(api, request.reason.as_ref().map_or(0, encoded_len))?;
    let key = asker.session(api, Class::Input, id)?;
    let command = Command::Cancel { caller: asker.caller.clone(), request };
    match api.engine.command(key, command, Vec::new()).await? {
        Outcome::Cancelled { cancelled, seq } => {
            Ok(reply::json(StatusCode::OK, &Answer { ok: true, cancelled, seq }))
        }
        Outcome::Accepted { .. } | Outcome::Interrupted { .. } | Outcome::Done => {
            Err(ApiError::Internal)
        }
    }
}

/// `PATCH .../sessions/{session_id}`: names or labels it, and shows its row in the lists.
pub(super) async fn update<B>(
    api: &Api,
    asker: &Asker,
    id: &str,
    head: &Parts,
    body: B,
) -> Result<Reply, ApiError>
where
    B: Body<Data = Bytes> + Unpin,
{
    let patch = api.read(head, body, SessionPatch::read).await?;
    let key = asker.session(api, Class::Input, id)?;
    let command = Command::Update { caller: asker.caller.clone(), patch };
    api.engine.command(key.clone(), command, Vec::new()).await?;
    let summary = api.engine.summary(key, asker.caller.clone()).await?;
    Ok(reply::json(StatusCode::OK, &summary))
}

/// `DELETE .../sessions/{session_id}`.
pub(super) async fn erase(api: &Api, asker: &Asker, id: &str) -> Result<Reply, ApiError> {
    let key = asker.session(api, Class::Input, id)?;
    api.engine.erase(key, asker.caller.clone()).await?;
    Ok(reply::json(StatusCode::OK, &json!({ "ok": true })))
}

/// `DELETE /api/machine/owners/{id}`: every session of an end user.
pub(super) async fn erase_owner(api: &Api, asker: &Asker, id: &str) -> Result<Reply, ApiError> {
    let owner = owner_id(id)?;
    asker.count(api, Class::Input)?;
    let sessions = api.engine.erase_owner(&asker.tenant, &owner).await?;
    Ok(reply::json(StatusCode::OK, &json!({ "ok": true, "sessions": sessions })))
}

/// Refuses what an event cannot hold beside its envelope: here, because what these commands cut is cut
/// before they are decided.
fn check_event(api: &Api, bytes: usize) -> Result<(), ApiError> {
    let bytes_max = api.limits.event_bytes_max;
    if bytes.saturating_add(ENVELOPE_BYTES_MAX) > bytes_max {
        return Err(ApiError::TooLarge { what: "the event of this input", bytes_max });
    }
    Ok(())
}
