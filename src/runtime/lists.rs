//! Lists of sessions: one for each owner, the one with the latest event first.

use bytes::Bytes;
use turnd_storage::{Head, Place, Store};

use super::shared::EngineError;
use crate::ids::{OwnerId, SessionId, SessionKey, TenantId};
use crate::protocol::view::SessionSummary;
use crate::session::Session;

/// Where a page of a list ended: the next one goes on below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListCursor {
    /// When the last event of the session was recorded, in milliseconds since 1970.
    pub rank: u64,
    pub session: SessionId,
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListPage {
    pub items: Vec<SessionSummary>,
    /// None on the last page.
    pub next: Option<ListCursor>,
}

/// What the storage keeps at hand of a session.
pub(super) fn head(session: &Session) -> Head {
    let Some(summary) = session.summary() else { return Head::default() };
    let place = Place {
        list: list_name(&session.key().tenant, &summary.owner_id),
        rank: summary.last_event_at.millis_unsigned(),
    };
    // A summary is made of strings and validated JSON.
    let text = serde_json::to_vec(&summary).unwrap_or_default();
    Head { summary: Bytes::from(text), owes: session.owes(), places: vec![place] }
}

/// No id holds a NUL, so the pair is unambiguous.
fn list_name(tenant: &TenantId, owner: &OwnerId) -> Bytes {
    [tenant.as_str(), "\0", owner.as_str()].concat().into()
}

/// Whether what is at hand of a session names `owner`; not, where nothing can be read. Blocks.
pub(super) fn is_owner(store: &Store, key: &SessionKey, owner: &OwnerId) -> bool {
    let Ok(Some(head)) = store.head(&key.to_bytes()) else { return false };
    let summary: Result<SessionSummary, _> = serde_json::from_slice(&head.summary);
    summary.is_ok_and(|summary| summary.owner_id == *owner)
}

/// At most `limit` sessions of an owner after `cursor`. Blocks.
pub(super) fn page(
    store: &Store,
    tenant: &TenantId,
    owner: &OwnerId,
    cursor: Option<ListCursor>,
    limit: usize,
) -> Result<ListPage, EngineError> {
    let after = cursor.map(|ListCursor { rank, session }| {
        (rank, SessionKey { tenant: tenant.clone(), session }.to_bytes())
    });
    let after = after.as_ref().map(|(rank, key)| (*rank, &**key));
    // One more than asked for tells whether there is a next page.
    let mut listed = store.list(&list_name(tenant, owner), after, limit + 1).map_err(|error| {
        tracing::error!(%error, "a list cannot be read");
        EngineError::Unavailable
    })?;
    let has_more = listed.len() > limit;
    listed.truncate(limit);
    let next = listed.last().filter(|_| has_more).and_then(|last| {
        let session = SessionKey::from_bytes(&last.key)?.session;
        Some(ListCursor { rank: last.rank, session })
    });
    let items = listed.iter().filter_map(|row| {
        let summary = serde_json::from_slice(&row.summary);
        summary.inspect_err(|error| tracing::error!(%error, "a summary cannot be read")).ok()
    });
    Ok(ListPage { items: items.collect(), next })
}
