//! Where a connection stands, shared by its socket, its service and the response body.
//!
//! All three run in the one task of the connection, so the lock is never waited for.

use std::sync::{Mutex, MutexGuard, PoisonError};

use http::Request;
use http_body::Body;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Nothing of the next request is there.
    Waiting,
    /// Some of its head is.
    Head,
    /// From the call of the service to the end of the response body. This lasts for hours where
    /// the response is an event stream, and nothing is timed.
    Busy,
}

/// What the socket has to know to be patient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    pub phase: Phase,
    /// Different for each phase that the connection goes through.
    pub count: u64,
    /// No request has been served.
    pub fresh: bool,
}

/// The head of a request as it was sent, for what a parsed one does not show.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SentHead {
    /// `None` when it did not start where a read started: the peer sends requests ahead.
    pub text: Option<Vec<u8>>,
    /// Nothing may follow this request on its connection.
    pub last: bool,
}

#[derive(Debug)]
pub struct Progress {
    head_bytes_max: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    now: Now,
    cut: bool,
    /// The bytes read since the last response ended, up to `head_bytes_max`, and how many there
    /// were in all.
    head: Vec<u8>,
    received: u64,
    /// What is still to be read of the request that is being served.
    body_left: u64,
    /// The peer has sent bytes that belong to no request so far, so that the start of the next
    /// head is not known.
    ahead: bool,
}

impl Progress {
    pub fn new(head_bytes_max: usize) -> Self {
        let state = State {
            now: Now { phase: Phase::Waiting, count: 0, fresh: true },
            cut: false,
            head: Vec::new(),
            received: 0,
            body_left: 0,
            ahead: false,
        };
        Self { head_bytes_max, state: Mutex::new(state) }
    }

    pub fn now(&self) -> Now {
        self.lock().now
    }

    pub fn cut(&self) {
        self.lock().cut = true;
    }

    pub fn is_cut(&self) -> bool {
        self.lock().cut
    }

    /// Bytes came from the socket.
    pub fn received(&self, bytes: &[u8]) {
        let mut state = self.lock();
        match state.now.phase {
            _ if bytes.is_empty() => {}
            Phase::Waiting | Phase::Head => {
                if state.now.phase == Phase::Waiting {
                    state.go_to(Phase::Head);
                }
                state.received += bytes.len() as u64;
                let room = self.head_bytes_max.saturating_sub(state.head.len());
                let (kept, _) = bytes.split_at(bytes.len().min(room));
                state.head.extend_from_slice(kept);
            }
            Phase::Busy => {
                let left = state.body_left.checked_sub(bytes.len() as u64);
                state.ahead |= left.is_none();
                state.body_left = left.unwrap_or(0);
            }
        }
    }

    /// The service is called with `request`.
    pub fn begin(&self, request: &Request<impl Body>) -> SentHead {
        let mut state = self.lock();
        state.go_to(Phase::Busy);
        state.now.fresh = false;
        let text = std::mem::take(&mut state.head);
        let received = std::mem::take(&mut state.received);
        let head_bytes = head_length(&text).filter(|_| !state.ahead);
        let Some(head_bytes) = head_bytes else {
            state.ahead = true;
            state.body_left = 0;
            return SentHead { text: None, last: false };
        };
        // Where a chunked body ends is hyper's to know. Nothing is served after it, so that the
        // start of each head stays known.
        let body_bytes = request.body().size_hint().exact();
        let left = body_bytes.map_or(Some(u64::MAX), |body_bytes| {
            (head_bytes as u64 + body_bytes).checked_sub(received)
        });
        state.ahead = left.is_none();
        state.body_left = left.unwrap_or(0);
        let last = body_bytes.is_none();
        SentHead { text: Some(text), last }
    }

    /// The response body is gone.
    pub fn end(&self) {
        self.lock().go_to(Phase::Waiting);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn go_to(&mut self, phase: Phase) {
        self.now.phase = phase;
        self.now.count += 1;
    }
}

/// Bytes up to the end of the empty line that ends a head. Lines may end in a bare LF and empty
/// lines may stand before the head, as the parser has it (RFC 9112 2.2).
fn head_length(text: &[u8]) -> Option<usize> {
    let start = text.iter().position(|byte| !matches!(byte, b'\r' | b'\n'))?;
    let (_, head) = text.split_at(start);
    let mut length = start;
    for line in head.split_inclusive(|byte| *byte == b'\n') {
        length += line.len();
        if matches!(line, b"\n" | b"\r\n") {
            return Some(length);
        }
    }
    None
}
