//! A session's events for one reader: the log first, then live, no gap and no duplicate (S51, S53).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::task::JoinHandle;
use turnd_storage::{Page, Store};

use super::feed::{Attached, End, Watcher};
use crate::ids::{Seq, TurnId};
use crate::protocol::event::Envelope;
use crate::sse;

/// Bytes read from the log at a time.
const PAGE_BYTES_MAX: usize = 256 * 1024;

/// Frames in order, as they can be sent.
pub struct Tail {
    store: Store,
    key: Arc<[u8]>,
    watcher: Watcher,
    turn: Option<TurnId>,
    /// The last event that the reader has, or asked to start after.
    delivered: Seq,
    /// The last event that came from the log.
    read: Seq,
    phase: Phase,
}

enum Phase {
    /// Between two pages: the ring may have the rest.
    Between,
    Reading(JoinHandle<Result<Page, turnd_storage::Error>>),
    Live,
    Ended(End),
}

impl Tail {
    pub(super) fn new(
        store: Store,
        key: Arc<[u8]>,
        watcher: Watcher,
        after: Seq,
        turn: Option<TurnId>,
    ) -> Self {
        Self {
            store,
            key,
            watcher,
            turn,
            delivered: after,
            read: Seq::default(),
            phase: Phase::Between,
        }
    }

    /// A tail that has nothing to say.
    pub(super) fn ended(mut self, end: End) -> Self {
        self.phase = Phase::Ended(end);
        self
    }

    /// The next frames, or why there are no more.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Bytes, End>> {
        loop {
            let mut out = Vec::new();
            match &mut self.phase {
                Phase::Ended(end) => return Poll::Ready(Err(*end)),
                Phase::Between => {
                    let (read, delivered, turn) = (self.read, self.delivered, self.turn.as_ref());
                    let attached = self.watcher.attach(context, read, delivered, turn, &mut out);
                    self.phase = match ready!(attached) {
                        Attached::Behind => Phase::Reading(self.read_page()),
                        Attached::Live => Phase::Live,
                        Attached::TurnEnded => Phase::Ended(End::TurnCompleted),
                    };
                }
                Phase::Reading(page) => {
                    let page = ready!(Pin::new(page).poll(context));
                    self.phase = self.take_page(page.ok().and_then(Result::ok), &mut out);
                }
                Phase::Live => {
                    let end = ready!(self.watcher.poll(context, self.turn.as_ref(), &mut out));
                    self.phase = end.map_or(Phase::Live, Phase::Ended);
                }
            }
            if !out.is_empty() {
                return Poll::Ready(Ok(Bytes::from(out)));
            }
        }
    }

    fn read_page(&self) -> JoinHandle<Result<Page, turnd_storage::Error>> {
        let (store, key, after) = (self.store.clone(), Arc::clone(&self.key), self.delivered.0);
        tokio::task::spawn_blocking(move || store.read(&key, after, PAGE_BYTES_MAX))
    }

    /// Writes the events of a page, of the watched turn alone if one is named.
    fn take_page(&mut self, page: Option<Page>, out: &mut Vec<u8>) -> Phase {
        // The page may be of a new session under the same id. This is known before it has an event.
        if self.watcher.is_erased() {
            return Phase::Ended(End::Erased);
        }
        // The ring knows of durable events beyond `delivered`, so the log holds at least one.
        let Some(page) = page.filter(|page| !page.events.is_empty()) else {
            return Phase::Ended(End::Failed);
        };
        for (seq, json) in &page.events {
            let Ok(envelope) = Envelope::decode(json) else { return Phase::Ended(End::Failed) };
            (self.delivered, self.read) = (Seq(*seq), Seq(*seq));
            let turn = self.turn.as_ref().map(TurnId::as_str);
            if turn.is_some() && turn != envelope.turn_id.as_deref() {
                continue;
            }
            sse::stored_event(Seq(*seq), envelope.kind(), json, out);
            if turn.is_some() && envelope.kind() == "turn.completed" {
                return Phase::Ended(End::TurnCompleted);
            }
        }
        Phase::Between
    }
}
