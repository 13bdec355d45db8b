//! Requests that hyper takes and we do not: what two parsers in a row may read differently (I15),
//! and what is no request to a server of ours (I16).

use http::header::{HOST, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderValue, Method, Request, Version};

use super::progress::SentHead;
use crate::http::error::ApiError;

/// Longest request target, in bytes.
const TARGET_BYTES_MAX: usize = 8 * 1024;
/// The methods that any path has.
const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// Whether the request may be served. A refused one ends its connection.
pub fn check<B>(request: &Request<B>, sent: &SentHead) -> Result<(), ApiError> {
    if matches!(*request.method(), Method::CONNECT | Method::TRACE) {
        return Err(ApiError::MethodNotAllowed(METHODS));
    }
    let uri = request.uri();
    if uri.scheme().is_some() || uri.authority().is_some() {
        return Err(ApiError::bad_request("the request target must be a path; this is no proxy"));
    }
    if uri.path_and_query().is_some_and(|target| target.as_str().len() > TARGET_BYTES_MAX) {
        return Err(ApiError::UriTooLong { bytes_max: TARGET_BYTES_MAX });
    }
    let headers = request.headers();
    let hosts = headers.get_all(HOST).iter().count();
    if hosts > 1 || (hosts == 0 && request.version() >= Version::HTTP_11) {
        return Err(ApiError::bad_request("a request must have exactly one `Host`"));
    }
    // Clients that would rather speak HTTP/2 ask so with their first request and go on without.
    let other = |protocol: &HeaderValue| !protocol.as_bytes().eq_ignore_ascii_case(b"h2c");
    if headers.get_all(UPGRADE).iter().any(other) {
        return Err(ApiError::bad_request("this connection cannot be upgraded"));
    }
    check_framing(headers.get_all(TRANSFER_ENCODING).iter(), sent)
}

fn check_framing<'h>(
    encodings: impl Iterator<Item = &'h HeaderValue>,
    sent: &SentHead,
) -> Result<(), ApiError> {
    let mut encodings = encodings.map(HeaderValue::as_bytes);
    match (encodings.next(), encodings.next()) {
        (None, _) => return Ok(()),
        (Some(one), None) if one.eq_ignore_ascii_case(b"chunked") => {}
        (Some(_), _) => {
            return Err(ApiError::bad_request("`Transfer-Encoding` must be `chunked` or absent"));
        }
    }
    // hyper drops the length of a chunked request, so only the head as it was sent shows it.
    match &sent.text {
        Some(text) if !has_content_length(text) => Ok(()),
        Some(_) => Err(ApiError::bad_request(
            "a request must not have both `Content-Length` and `Transfer-Encoding`",
        )),
        None => Err(ApiError::bad_request("a chunked request must not be pipelined")),
    }
}

fn has_content_length(head: &[u8]) -> bool {
    const NAME: &[u8] = b"content-length:";
    let mut lines = head.split(|byte| *byte == b'\n').skip_while(|line| line.len() <= 1);
    let fields = lines.by_ref().take_while(|line| !matches!(line, [] | [b'\r']));
    fields.into_iter().any(|line| {
        line.split_at_checked(NAME.len()).is_some_and(|(name, _)| name.eq_ignore_ascii_case(NAME))
    })
}
