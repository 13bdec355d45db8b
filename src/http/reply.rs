//! Responses: one body type, the standard headers, and JSON.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use serde::Serialize;

use super::error::ApiError;

/// What every route answers with.
pub type Reply = Response<ReplyBody>;

/// A body that is whole, or one that is made while it is sent. It cannot fail: a stream that must
/// end early ends with a frame of its own protocol.
pub enum ReplyBody {
    Full(Bytes),
    Stream(Pin<Box<dyn Body<Data = Bytes, Error = Infallible> + Send>>),
}

impl fmt::Debug for ReplyBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(bytes) => write!(f, "Full({} bytes)", bytes.len()),
            Self::Stream(_) => f.write_str("Stream"),
        }
    }
}

impl ReplyBody {
    pub fn stream(body: impl Body<Data = Bytes, Error = Infallible> + Send + 'static) -> Self {
        Self::Stream(Box::pin(body))
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Full(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Stream(body) => body.as_mut().poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Full(bytes) => bytes.is_empty(),
            Self::Stream(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Stream(body) => body.size_hint(),
        }
    }
}

/// `value` as JSON. A value that does not serialize is a fault of ours: 500.
pub fn json<T: Serialize + ?Sized>(status: StatusCode, value: &T) -> Reply {
    match serde_json::to_vec(value) {
        Ok(text) => json_text(status, text.into()),
        Err(_) => ApiError::Internal.into(),
    }
}

/// A body that is JSON already.
pub fn json_text(status: StatusCode, text: Bytes) -> Reply {
    with_type(status, "application/json", ReplyBody::Full(text))
}

/// A status with no body.
pub fn empty(status: StatusCode) -> Reply {
    let mut reply = Response::new(ReplyBody::Full(Bytes::new()));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply
}

/// An event stream (S51).
pub fn event_stream(body: ReplyBody) -> Reply {
    let mut reply = with_type(StatusCode::OK, "text/event-stream", body);
    let buffering = HeaderName::from_static("x-accel-buffering");
    reply.headers_mut().insert(buffering, HeaderValue::from_static("no"));
    reply
}

/// A body of another type.
pub fn with_type(status: StatusCode, content_type: &'static str, body: ReplyBody) -> Reply {
    let mut reply = Response::new(body);
    *reply.status_mut() = status;
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    reply
}
