//! Event streams as response bodies (S9, S51 to S53).

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http_body::{Body, Frame};
use tokio::time::{Instant, Sleep};

use super::api::{Api, StreamPlace, query};
use super::connection::Peer;
use super::error::ApiError;
use super::reply::{self, Reply, ReplyBody};
use crate::clock;
use crate::ids::{SessionKey, TurnId};
use crate::runtime::{End, Tail, WatchRequest};
use crate::session::Caller;
use crate::sse;
use crate::time::Timestamp;

/// A quiet stream says so this often, or a proxy takes it for dead (S51).
const PING_EVERY: Duration = Duration::from_secs(15);
/// How long a stream may outlive the token that opened it (S9).
const TOKEN_GRACE: Duration = Duration::from_mins(1);

/// What a reader asks for: where to resume, and the turn to be limited to.
pub(super) fn request(head: &Parts) -> Result<WatchRequest, ApiError> {
    let last_event_id = head.headers.get("last-event-id");
    let last_event_id = last_event_id.map(|value| value.to_str().unwrap_or_default());
    let after_seq = query(head, "after_seq");
    let after =
        sse::resume_after(last_event_id, after_seq.as_deref()).map_err(ApiError::bad_request)?;
    let turn_id = match query(head, "turn_id") {
        Some(text) => Some(
            TurnId::parse(&text)
                .map_err(|problem| ApiError::bad_request(format!("`turn_id` {problem}")))?,
        ),
        None => None,
    };
    Ok(WatchRequest { after, turn_id })
}

/// Opens a stream for a reader whose credential ends at `expires_at`.
pub(super) async fn open(
    api: &Api,
    key: SessionKey,
    caller: Caller,
    request: WatchRequest,
    expires_at: Option<Timestamp>,
    peer: Peer,
) -> Result<Reply, ApiError> {
    let place = api.take_stream()?;
    let tail = api.engine.watch(key, caller, request).await?;
    let expires = expires_at
        .map(|at| Box::pin(tokio::time::sleep(at.plus(TOKEN_GRACE).since(clock::wall()))));
    let body = EventStream {
        tail,
        ping: Box::pin(tokio::time::sleep(PING_EVERY)),
        expires,
        ended: false,
        peer,
        _place: place,
    };
    Ok(reply::event_stream(ReplyBody::stream(body)))
}

/// A session's frames with what the connection needs between them.
struct EventStream {
    tail: Tail,
    ping: Pin<Box<Sleep>>,
    expires: Option<Pin<Box<Sleep>>>,
    ended: bool,
    peer: Peer,
    _place: StreamPlace,
}

impl EventStream {
    /// The last bytes of the stream, if any.
    fn end(&mut self, comment: Option<&'static [u8]>) -> Poll<Option<Bytes>> {
        self.ended = true;
        Poll::Ready(comment.map(Bytes::from_static))
    }

    fn poll_bytes(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.ended {
            return Poll::Ready(None);
        }
        if self.expires.as_mut().is_some_and(|sleep| sleep.as_mut().poll(context).is_ready()) {
            return self.end(Some(sse::TOKEN_EXPIRED));
        }
        match self.tail.poll_next(context) {
            Poll::Ready(Ok(bytes)) => {
                self.ping.as_mut().reset(Instant::now() + PING_EVERY);
                return Poll::Ready(Some(bytes));
            }
            Poll::Ready(Err(End::Stopped)) => return self.end(Some(sse::SHUTDOWN)),
            Poll::Ready(Err(End::Erased)) => return self.end(Some(sse::ERASED)),
            Poll::Ready(Err(End::Lagged)) => {
                // A clean end would wait behind all that the reader has not taken (S52).
                self.peer.cut();
                return self.end(None);
            }
            Poll::Ready(Err(End::TurnCompleted | End::Failed)) => return self.end(None),
            Poll::Pending => {}
        }
        if self.ping.as_mut().poll(context).is_ready() {
            self.ping.as_mut().reset(Instant::now() + PING_EVERY);
            // Registers the timer anew.
            let armed = self.ping.as_mut().poll(context);
            debug_assert!(armed.is_pending(), "a ping is due in the future");
            return Poll::Ready(Some(Bytes::from_static(sse::PING)));
        }
        Poll::Pending
    }
}

impl Body for EventStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = self.get_mut().poll_bytes(context);
        bytes.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }
}
