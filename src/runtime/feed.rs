//! The live end of one session: a ring of encoded frames that all its watchers share.
//!
//! The actor publishes what is durable, executors add deltas between (S50). A watcher is a cursor; one
//! that falls out of the ring is cut off and resumes from the log (S52). Nobody who publishes ever
//! waits for somebody who reads.

mod partial;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use self::partial::Partial;
use crate::effects::Delta;
use crate::ids::{CallId, MessageId, Seq, SessionId, TurnId};
use crate::session::Shown;

/// Bytes that a ring keeps for its watchers; one that is further behind is cut off (S52).
pub const RING_BYTES_MAX: usize = 4 * 1024 * 1024;
/// What is kept while nobody watches: the turn that a caller has just submitted and will watch next
/// need not be read from the log.
const UNWATCHED_BYTES_MAX: usize = 16 * 1024;
/// Most bytes of events that the ring hands to a watcher that goes live; more comes from the log, a
/// page at a time.
const ATTACH_BYTES_MAX: usize = 256 * 1024;
/// Most bytes handed to one watcher at a time.
const BATCH_BYTES_MAX: usize = 64 * 1024;

/// Why a stream is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The turn that it was limited to is complete.
    TurnCompleted,
    /// The reader fell too far behind; it resumes by `Last-Event-ID` (S52).
    Lagged,
    /// The server stops.
    Stopped,
    /// The session is gone for good.
    Erased,
    /// The session cannot be served now.
    Failed,
}

/// One encoded frame.
#[derive(Debug, Clone)]
pub struct Frame {
    pub bytes: Bytes,
    /// The event's position; none for a delta.
    pub seq: Option<Seq>,
    /// The turn that was running.
    pub turn_id: Option<TurnId>,
    /// The last frame of its turn.
    pub ends_turn: bool,
}

impl Frame {
    fn is_of(&self, turn: Option<&TurnId>) -> bool {
        turn.is_none() || turn == self.turn_id.as_ref()
    }
}

#[derive(Debug)]
pub struct Feed {
    session_id: SessionId,
    ring: Mutex<Ring>,
}

#[derive(Debug, Default)]
struct Ring {
    frames: VecDeque<Frame>,
    bytes: usize,
    /// Position of the front frame, counted from the start of the feed.
    start: u64,
    /// The last durable event.
    last_seq: Seq,
    /// Model calls that are being answered.
    partials: BTreeMap<CallId, Partial>,
    watchers: BTreeMap<u64, Slot>,
    next_watcher: u64,
    closed: Option<End>,
}

/// A watcher as its feed sees it.
#[derive(Debug, Default)]
struct Slot {
    attached: bool,
    waker: Option<Waker>,
}

impl Ring {
    fn end(&self) -> u64 {
        self.start + self.frames.len() as u64
    }

    fn push(&mut self, frame: Frame) {
        if let Some(seq) = frame.seq {
            self.last_seq = seq;
        }
        self.bytes += frame.bytes.len();
        self.frames.push_back(frame);
    }

    /// Drops the oldest frames beyond the bound, but while somebody watches none at or after `keep`:
    /// who was at the end before a large step has not fallen behind.
    fn trim(&mut self, keep: u64) {
        let watched = self.watchers.values().any(|slot| slot.attached);
        let bytes_max = if watched { RING_BYTES_MAX } else { UNWATCHED_BYTES_MAX };
        while self.bytes > bytes_max && (self.start < keep || !watched) {
            let Some(oldest) = self.frames.pop_front() else { return };
            self.bytes -= oldest.bytes.len();
            self.start += 1;
        }
    }

    fn wake_later(&mut self, watcher: u64, context: &Context<'_>) {
        if let Some(slot) = self.watchers.get_mut(&watcher) {
            slot.waker = Some(context.waker().clone());
        }
    }

    fn wakers(&mut self) -> Vec<Waker> {
        self.watchers.values_mut().filter_map(|slot| slot.waker.take()).collect()
    }
}

impl Feed {
    /// The feed of a session whose log ends at `last_seq`.
    pub fn new(session_id: SessionId, last_seq: Seq) -> Self {
        Self { session_id, ring: Mutex::new(Ring { last_seq, ..Ring::default() }) }
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        // Nothing under this lock panics half-way through a change.
        self.ring.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Shows frames of durable events. `settled` names the calls whose attempt ended with them.
    pub fn publish(&self, frames: impl IntoIterator<Item = Frame>, settled: &[CallId]) {
        let mut ring = self.ring();
        for call in settled {
            ring.partials.remove(call);
        }
        let end = ring.end();
        for frame in frames {
            ring.push(frame);
        }
        ring.trim(end);
        let wakers = ring.wakers();
        drop(ring);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Opens the gate for the deltas of one attempt.
    pub fn open_call(
        &self,
        id: CallId,
        attempt: u32,
        reply_id: MessageId,
        turn_id: Option<TurnId>,
    ) {
        self.ring().partials.insert(id, Partial::new(attempt, reply_id, turn_id));
    }

    /// Shows a piece of a running attempt; nothing once the attempt has ended.
    pub fn delta(&self, id: &CallId, attempt: u32, delta: &Delta<'_>) {
        let mut ring = self.ring();
        let watched = ring.watchers.values().any(|slot| slot.attached);
        let Some(partial) = ring.partials.get_mut(id).filter(|call| call.attempt == attempt) else {
            return;
        };
        partial.add(delta);
        if !watched {
            return;
        }
        let frame = partial.frame(&self.session_id, delta);
        let end = ring.end();
        ring.push(frame);
        ring.trim(end);
        let wakers = ring.wakers();
        drop(ring);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Whether the running attempt of a call has shown anything.
    pub fn has_streamed(&self, id: &CallId) -> bool {
        self.ring().partials.get(id).is_some_and(Partial::has_output)
    }

    /// Closes the gates of `calls`; returns the text of those whose running attempt had shown
    /// something.
    pub fn close_calls(&self, calls: &[CallId]) -> Shown {
        if calls.is_empty() {
            return Shown::new();
        }
        let mut ring = self.ring();
        let mut close = |id: &CallId| {
            let partial = ring.partials.remove(id).filter(Partial::has_output)?;
            Some((id.clone(), partial.into_text()))
        };
        calls.iter().filter_map(&mut close).collect()
    }

    /// Ends every watcher, once it has read what is there. The first reason stays.
    pub fn close(&self, end: End) {
        let mut ring = self.ring();
        ring.closed.get_or_insert(end);
        let wakers = ring.wakers();
        drop(ring);
        wakers.into_iter().for_each(Waker::wake);
    }

    pub fn is_watched(&self) -> bool {
        !self.ring().watchers.is_empty()
    }

    /// A watcher that has yet to read the log; see [`Watcher::attach`].
    pub fn watch(self: &Arc<Self>) -> Watcher {
        let mut ring = self.ring();
        let id = ring.next_watcher;
        ring.next_watcher += 1;
        ring.watchers.insert(id, Slot::default());
        drop(ring);
        Watcher { feed: Arc::clone(self), id, position: 0, delivered: Seq::default() }
    }
}

/// A cursor of one reader. It keeps its session in memory for as long as it lives.
#[derive(Debug)]
pub struct Watcher {
    feed: Arc<Feed>,
    id: u64,
    position: u64,
    /// The last event that was read from the log: it may be shown there before it is published here.
    delivered: Seq,
}

/// What a watcher that would go live finds.
#[derive(Debug, PartialEq, Eq)]
pub enum Attached {
    /// The log holds events that the ring does not: read on, then try again.
    Behind,
    /// Live from here on.
    Live,
    /// The events that were missing end the watched turn.
    TurnEnded,
}

impl Watcher {
    /// Goes live after `delivered`: writes to `out` the events since, then one snapshot for each
    /// running call (S50). `read` is the last event that came from the log; while it is not published
    /// here, a call that it ended still looks as if it ran, so this waits.
    pub fn attach(
        &mut self,
        context: &Context<'_>,
        read: Seq,
        delivered: Seq,
        turn: Option<&TurnId>,
        out: &mut Vec<u8>,
    ) -> Poll<Attached> {
        let mut ring = self.feed.ring();
        if ring.last_seq < read && ring.closed.is_none() {
            ring.wake_later(self.id, context);
            return Poll::Pending;
        }
        let missing = ring.last_seq.0.saturating_sub(delivered.0);
        let missed =
            ring.frames.iter().filter(|frame| frame.seq.is_some_and(|seq| seq > delivered));
        let bytes: usize = missed.clone().map(|frame| frame.bytes.len()).sum();
        if missed.clone().count() as u64 != missing || bytes > ATTACH_BYTES_MAX {
            return Poll::Ready(Attached::Behind);
        }
        for frame in missed.filter(|frame| frame.is_of(turn)) {
            out.extend_from_slice(&frame.bytes);
            if frame.ends_turn && turn.is_some() {
                return Poll::Ready(Attached::TurnEnded);
            }
        }
        for partial in ring.partials.values().filter(|partial| partial.has_output()) {
            if turn.is_none() || turn == partial.turn_id() {
                out.extend_from_slice(&partial.snapshot(&self.feed.session_id));
            }
        }
        self.position = ring.end();
        self.delivered = delivered;
        if let Some(slot) = ring.watchers.get_mut(&self.id) {
            slot.attached = true;
        }
        Poll::Ready(Attached::Live)
    }

    /// Whether the session is gone: what its log says now is not this session's.
    pub fn is_erased(&self) -> bool {
        self.feed.ring().closed == Some(End::Erased)
    }

    /// Writes to `out` what has come since, of `turn` alone if named; waits when there is nothing.
    /// An end may come with the last frames.
    pub fn poll(
        &mut self,
        context: &Context<'_>,
        turn: Option<&TurnId>,
        out: &mut Vec<u8>,
    ) -> Poll<Option<End>> {
        let mut ring = self.feed.ring();
        if self.position < ring.start {
            return Poll::Ready(Some(End::Lagged));
        }
        let unread = usize::try_from(self.position - ring.start).unwrap_or(usize::MAX);
        for frame in ring.frames.iter().skip(unread) {
            if out.len() >= BATCH_BYTES_MAX {
                break;
            }
            self.position += 1;
            if !frame.is_of(turn) {
                continue;
            }
            let read_before = frame.seq.is_some_and(|seq| seq <= self.delivered);
            if !read_before {
                out.extend_from_slice(&frame.bytes);
            }
            if frame.ends_turn && turn.is_some() {
                return Poll::Ready(Some(End::TurnCompleted));
            }
        }
        if !out.is_empty() {
            return Poll::Ready(None);
        }
        if let Some(end) = ring.closed {
            return Poll::Ready(Some(end));
        }
        ring.wake_later(self.id, context);
        Poll::Pending
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.feed.ring().watchers.remove(&self.id);
    }
}

#[cfg(test)]
mod tests;
