//! `GET /api/client/sessions`: a caller's own sessions, a page at a time.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use http::StatusCode;
use http::request::Parts;
use serde::Serialize;

use super::api::{Api, query, query_number};
use super::asker::Asker;
use super::error::ApiError;
use super::rate::Class;
use super::reply::{self, Reply};
use crate::ids::{OwnerId, SessionId};
use crate::protocol::view::SessionSummary;
use crate::runtime::{ListCursor, ListPage};

/// Rows of a page (S56).
const LIMIT_DEFAULT: usize = 50;
const LIMIT_MAX: usize = 500;

#[derive(Serialize)]
struct Page {
    items: Vec<SessionSummary>,
    next_cursor: Option<String>,
}

/// The sessions of `owner`, the one with the latest event first.
pub(super) async fn sessions(
    api: &Api,
    asker: &Asker,
    owner: &OwnerId,
    head: &Parts,
) -> Result<Reply, ApiError> {
    let limit = query_number(head, "limit", 1..=LIMIT_MAX)?.unwrap_or(LIMIT_DEFAULT);
    let cursor = query(head, "cursor").map(|text| read_cursor(&text)).transpose()?;
    asker.count(api, Class::Read)?;
    let ListPage { items, next } = api.engine.list(&asker.tenant, owner, cursor, limit).await?;
    let next_cursor = next.as_ref().map(write_cursor);
    Ok(reply::json(StatusCode::OK, &Page { items, next_cursor }))
}

/// The rank in eight bytes, then the id.
fn write_cursor(cursor: &ListCursor) -> String {
    let ListCursor { rank, session } = cursor;
    BASE64.encode([&rank.to_be_bytes(), session.as_str().as_bytes()].concat())
}

fn read_cursor(text: &str) -> Result<ListCursor, ApiError> {
    let read = || {
        let bytes = BASE64.decode(text).ok()?;
        let (rank, session) = bytes.split_first_chunk()?;
        Some(ListCursor {
            rank: u64::from_be_bytes(*rank),
            session: SessionId::parse(std::str::from_utf8(session).ok()?).ok()?,
        })
    };
    read().ok_or_else(|| ApiError::bad_request("`cursor` is not the `next_cursor` of a page"))
}
