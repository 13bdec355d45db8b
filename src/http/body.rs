//! Request bodies: JSON, bounded in bytes and in time, and checked before a byte is read (S54).

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use super::error::ApiError;

/// How long a whole body may take (L2).
const READ_MAX: Duration = Duration::from_secs(30);
/// Room made before the first byte, however much the caller announces.
const BYTES_AT_FIRST: usize = 16 * 1024;

/// The body of a request. It tells its connection when it was read to the end: a connection with
/// an unread body is closed, never reused (I15).
pub struct RequestBody {
    incoming: Incoming,
    unread: Arc<AtomicBool>,
}

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestBody")
    }
}

impl RequestBody {
    /// The body, and whether it is still unread.
    pub(super) fn new(incoming: Incoming) -> (Self, Arc<AtomicBool>) {
        let unread = Arc::new(AtomicBool::new(!incoming.is_end_stream()));
        (Self { incoming, unread: Arc::clone(&unread) }, unread)
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.incoming).poll_frame(cx);
        if matches!(polled, Poll::Ready(None)) || self.incoming.is_end_stream() {
            self.unread.store(false, Ordering::Relaxed);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

/// Reads a JSON body of at most `bytes_max`. What the head alone shows to be wrong is refused
/// before a byte is read, so a caller who waits for `100 Continue` never sends it.
pub async fn read_json<B>(headers: &HeaderMap, body: B, bytes_max: usize) -> Result<Bytes, ApiError>
where
    B: Body<Data = Bytes> + Unpin,
{
    check_length(headers, bytes_max)?;
    check_type(headers)?;
    collect(body, bytes_max, READ_MAX).await
}

fn check_length(headers: &HeaderMap, bytes_max: usize) -> Result<(), ApiError> {
    match announced_len(headers) {
        Some(length) if length > bytes_max => {
            Err(ApiError::TooLarge { what: "the body", bytes_max })
        }
        Some(_) | None => Ok(()),
    }
}

/// What `Content-Length` says. A length that no number holds is the largest there is; its digits
/// were checked by the parser.
pub fn announced_len(headers: &HeaderMap) -> Option<usize> {
    let length = headers.get(CONTENT_LENGTH)?.to_str().ok()?;
    Some(length.parse().unwrap_or(usize::MAX))
}

fn check_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let json = match (types.next(), types.next()) {
        (Some(one), None) => one.to_str().is_ok_and(is_json),
        (None, _) | (Some(_), Some(_)) => false,
    };
    let plain = |encoding: &HeaderValue| encoding.as_bytes().eq_ignore_ascii_case(b"identity");
    if json && headers.get_all(CONTENT_ENCODING).iter().all(plain) {
        Ok(())
    } else {
        Err(ApiError::UnsupportedMediaType)
    }
}

/// `application/json`, with no parameter but a charset that says UTF-8.
fn is_json(content_type: &str) -> bool {
    let mut parts = content_type.split(';').map(str::trim);
    let json = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"));
    json && parts.all(|parameter| {
        let Some((name, value)) = parameter.split_once('=') else {
            return parameter.is_empty();
        };
        let value = value.trim_matches('"');
        name.eq_ignore_ascii_case("charset")
            && (value.eq_ignore_ascii_case("utf-8") || value.eq_ignore_ascii_case("utf8"))
    })
}

async fn collect<B>(body: B, bytes_max: usize, within: Duration) -> Result<Bytes, ApiError>
where
    B: Body<Data = Bytes> + Unpin,
{
    match tokio::time::timeout(within, collect_all(body, bytes_max)).await {
        Ok(read) => read,
        Err(_) => Err(ApiError::Timeout),
    }
}

async fn collect_all<B>(mut body: B, bytes_max: usize) -> Result<Bytes, ApiError>
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut first: Option<Bytes> = None;
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            return Err(ApiError::bad_request("the body broke off or is not framed as announced"));
        };
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let length = first.as_ref().map_or(0, Bytes::len) + rest.len() + data.len();
        if length > bytes_max {
            return Err(ApiError::TooLarge { what: "the body", bytes_max });
        }
        // Most bodies come in one piece, which is handed on as it is.
        match &first {
            None if rest.is_empty() => first = Some(data),
            None => rest.extend_from_slice(&data),
            Some(start) => {
                rest.reserve(length.max(BYTES_AT_FIRST));
                rest.extend_from_slice(start);
                rest.extend_from_slice(&data);
                first = None;
            }
        }
    }
    Ok(first.unwrap_or_else(|| rest.freeze()))
}

#[cfg(test)]
mod tests;
