//! The bytes of a session's messages as responses, and addresses that may be read without a header
//! (S15).

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ACCEPT_RANGES, AUTHORIZATION, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_RANGE,
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::api::{Api, query};
use super::asker::{Asker, session_id};
use super::connection::Peer;
use super::error::ApiError;
use super::range::{self, Wanted};
use super::rate::Class;
use super::reply::{self, Reply, ReplyBody};
use super::route::BlobPath;
use crate::auth::BlobGrant;
use crate::clock;
use crate::ids::{SessionKey, TenantId};
use crate::protocol::blob::{BLOB_BYTES_MAX, BlobHash, MIME_UNKNOWN, read_mime};
use crate::protocol::content::BlobInfo;
use crate::session::Caller;

/// The bytes under an address never change.
const CACHE: HeaderValue = HeaderValue::from_static("private, max-age=31536000, immutable");
/// Bytes handed to the connection at a time.
const PIECE_BYTES_MAX: usize = 64 * 1024;
/// How long a reader may take for a body, beside [`PIECE_TAKEN_MAX`] for each piece of it.
const TAKEN_MAX: Duration = Duration::from_mins(1);
const PIECE_TAKEN_MAX: Duration = Duration::from_secs(1);
/// Whatever a blob is, it runs nothing and loads nothing.
const SANDBOX: HeaderValue = HeaderValue::from_static("sandbox; default-src 'none'");

/// `GET .../sessions/{session_id}/blobs/{hex}`.
pub(super) async fn blob(
    api: &Api,
    asker: &Asker,
    path: BlobPath<'_>,
    head: &Parts,
    peer: Peer,
) -> Result<Reply, ApiError> {
    let hash = blob_hash(path.hex)?;
    let key = asker.session(api, Class::Read, path.session)?;
    read(api, key, asker.caller.clone(), hash, &head.headers, peer).await
}

#[derive(Serialize)]
struct SignedUrl {
    url: String,
    /// In Unix seconds.
    expires_at: i64,
}

/// `GET /api/client/sessions/{session_id}/blobs/{hex}/url`: the path of the blob, for ten minutes
/// and for whoever has it.
pub(super) async fn url(api: &Api, asker: &Asker, path: BlobPath<'_>) -> Result<Reply, ApiError> {
    let hash = blob_hash(path.hex)?;
    let key = asker.session(api, Class::Read, path.session)?;
    let info = api.engine.blob_info(key.clone(), asker.caller.clone(), hash).await?;
    info.ok_or_else(unknown)?;
    let grant = BlobGrant::new(key, hash, clock::wall());
    let signed = api.authenticator.blob_urls.sign(&grant);
    let signature = signed.map_err(|_| ApiError::Internal)?;
    // No id holds a character that would have to be escaped but `+`, which stands for itself here.
    let BlobGrant { session: SessionKey { tenant, session }, expires_at, .. } = &grant;
    let url = format!(
        "/api/client/sessions/{session}/blobs/{}\
         ?tenant={tenant}&expires={expires_at}&signature={signature}",
        hash.hex()
    );
    Ok(reply::json(StatusCode::OK, &SignedUrl { url, expires_at: *expires_at }))
}

/// What a signed query lets its holder read; none where it is no good.
pub(super) fn granted(api: &Api, path: BlobPath<'_>, head: &Parts) -> Option<BlobGrant> {
    let tenant = TenantId::parse(&query(head, "tenant")?).ok()?;
    let grant = BlobGrant {
        session: SessionKey { tenant, session: session_id(path.session).ok()? },
        hash: BlobHash::from_hex(path.hex)?,
        // As it was signed: `+7` is another text for 7.
        expires_at: query(head, "expires").filter(|text| is_decimal(text))?.parse().ok()?,
    };
    let signature = query(head, "signature")?;
    let verified = api.authenticator.blob_urls.verify(&grant, &signature, clock::wall());
    verified.then_some(grant)
}

/// Whether a request brings a signed query and no other credential.
pub(super) fn is_signed(head: &Parts) -> bool {
    !head.headers.contains_key(AUTHORIZATION) && query(head, "signature").is_some()
}

/// Answers a request that brought a grant.
pub(super) async fn blob_granted(
    api: &Api,
    grant: BlobGrant,
    head: &Parts,
    peer: Peer,
) -> Result<Reply, ApiError> {
    let BlobGrant { session: key, hash, .. } = grant;
    api.rates.take(Class::Read, (&key.tenant, &key.session), clock::wall())?;
    // Its owner had the grant made.
    read(api, key, Caller::Machine, hash, &head.headers, peer).await
}

async fn read(
    api: &Api,
    key: SessionKey,
    caller: Caller,
    hash: BlobHash,
    request: &HeaderMap,
    peer: Peer,
) -> Result<Reply, ApiError> {
    let tenant = key.tenant.clone();
    let info = api.engine.blob_info(key, caller, hash).await?.ok_or_else(unknown)?;
    let etag = format!("\"{}\"", hash.hex());
    if range::is_known(request, &etag) {
        let mut reply = reply::empty(StatusCode::NOT_MODIFIED);
        describe(reply.headers_mut(), &etag);
        return Ok(reply);
    }
    let kib = u32::try_from(room(&info).div_ceil(1024)).unwrap_or(u32::MAX);
    let place = Arc::clone(&api.blobs).try_acquire_many_owned(kib);
    let place = place.map_err(|_| ApiError::UNAVAILABLE)?;
    let bytes = api.engine.blob_bytes(&tenant, hash).await?;
    let length = bytes.len();
    let (part, content_range) = match range::wanted(request, &etag, length) {
        Wanted::Whole => (bytes, None),
        Wanted::Part(part) => {
            let content_range = format!("bytes {}-{}/{length}", part.start, part.end - 1);
            (bytes.slice(part), Some(content_range))
        }
        Wanted::Nothing => return Err(ApiError::RangeNotSatisfiable { length }),
    };
    let patience = patience(part.len());
    let held = held(part, place, patience, peer);
    let mut reply = Response::new(ReplyBody::stream(Pieces(held)));
    let headers = reply.headers_mut();
    describe(headers, &etag);
    let mime = read_mime(&info.mime).unwrap_or_else(|| MIME_UNKNOWN.to_owned());
    if !is_shown(&mime) {
        headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    }
    headers.insert(CONTENT_TYPE, header_value(&mime));
    if let Some(content_range) = content_range {
        headers.insert(CONTENT_RANGE, header_value(&content_range));
        *reply.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    Ok(reply)
}

/// The bytes of a blob at most, before it is loaded.
fn room(info: &BlobInfo) -> usize {
    match usize::try_from(info.size) {
        // No size is recorded.
        Ok(0) | Err(_) => BLOB_BYTES_MAX,
        Ok(size) => size,
    }
}

/// How long a reader may take for a body.
fn patience(bytes: usize) -> Duration {
    let pieces = u32::try_from(bytes.div_ceil(PIECE_BYTES_MAX)).unwrap_or(u32::MAX);
    TAKEN_MAX.saturating_add(PIECE_TAKEN_MAX.saturating_mul(pieces))
}

/// The headers that do not depend on what is asked for.
fn describe(headers: &mut HeaderMap, etag: &str) {
    headers.insert(CACHE_CONTROL, CACHE);
    headers.insert(CONTENT_SECURITY_POLICY, SANDBOX);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(ETAG, header_value(etag));
}

/// Digits, hexadecimal digits and media types are always values.
fn header_value(text: &str) -> HeaderValue {
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// Whether a browser may show it where it is, and need not save it.
fn is_shown(mime: &str) -> bool {
    let media = ["image/", "audio/", "video/"].iter().any(|kind| mime.starts_with(kind));
    media || mime == "text/plain"
}

fn blob_hash(segment: &str) -> Result<BlobHash, ApiError> {
    let refuse = || ApiError::bad_request("the blob in the path is not 64 hexadecimal digits");
    BlobHash::from_hex(segment).ok_or_else(refuse)
}

fn unknown() -> ApiError {
    ApiError::not_found("unknown blob")
}

/// Bytes with their place among those of all responses, which is given back when the connection has
/// let go of the last of them. A reader who has not taken them in time is cut off: one who takes a
/// little now and then would keep the place for hours.
fn held(bytes: Bytes, place: OwnedSemaphorePermit, patience: Duration, peer: Peer) -> Bytes {
    let (held, gone) = oneshot::channel();
    tokio::spawn(async move {
        if tokio::time::timeout(patience, gone).await.is_err() {
            peer.cut();
        }
    });
    Bytes::from_owner(Held { bytes, _place: place, _alive: held })
}

struct Held {
    bytes: Bytes,
    _place: OwnedSemaphorePermit,
    _alive: oneshot::Sender<Infallible>,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A body that the connection takes in pieces, so that it buffers no more than it can send.
struct Pieces(Bytes);

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Self(bytes) = self.get_mut();
        let length = bytes.len().min(PIECE_BYTES_MAX);
        let piece = bytes.split_to(length);
        Poll::Ready((!piece.is_empty()).then(|| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.len() as u64)
    }
}

fn is_decimal(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}
#[cfg(test)]
mod tests;
