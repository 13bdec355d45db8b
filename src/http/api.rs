//! What the routes of every API work with, and how they read a request.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::request::Parts;
use http_body::Body;
use percent_encoding::percent_decode_str;
use tokio::runtime::RuntimeFlavor;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::body;
use super::cors::Cors;
use super::error::ApiError;
use super::rate::Rates;
use crate::auth::Authenticator;
use crate::control::limits::Limits;
use crate::protocol::json::{self, DecodeError, Node};
use crate::runtime::Engine;

/// Bodies in memory at once, all together; more is 503 (L8). At least one of the largest fits.
pub const BODIES_KIB_MAX: usize = 512 * 1024;
/// The same for blobs that are being sent.
pub const BLOBS_KIB_MAX: usize = 256 * 1024;

/// From how many bytes on a body takes long enough to decode that others would notice.
const LARGE_BYTES: usize = 256 * 1024;

/// What the routes work with.
pub struct Api {
    pub engine: Engine,
    pub authenticator: Arc<Authenticator>,
    pub cors: Cors,
    pub rates: Rates,
    pub limits: Arc<Limits>,
    /// Room for bodies that are being read, in KiB; see [`BODIES_KIB_MAX`].
    pub bodies: Semaphore,
    /// Room for blobs that are being sent, in KiB; see [`BLOBS_KIB_MAX`].
    pub blobs: Arc<Semaphore>,
    /// Event streams that are open.
    pub streams: Arc<AtomicUsize>,
}

impl Api {
    /// Reads the JSON body of a request and decodes it.
    pub(super) async fn read<B, T>(
        &self,
        head: &Parts,
        body: B,
        walk: impl FnOnce(&Node<'_>) -> Result<T, DecodeError>,
    ) -> Result<T, ApiError>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        self.read_and_hold(head, body, walk).await.map(|(value, _)| value)
    }

    /// As [`Api::read`], with the room that the body took: for what is as large as its body, and is
    /// kept for as long as the request takes.
    pub(super) async fn read_and_hold<B, T>(
        &self,
        head: &Parts,
        body: B,
        walk: impl FnOnce(&Node<'_>) -> Result<T, DecodeError>,
    ) -> Result<(T, SemaphorePermit<'_>), ApiError>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let bytes_max = self.limits.body_bytes_max;
        let announced = body::announced_len(&head.headers).unwrap_or(bytes_max).min(bytes_max);
        let kib = u32::try_from(announced.div_ceil(1024)).unwrap_or(u32::MAX);
        let room = self.bodies.try_acquire_many(kib).map_err(|_| ApiError::UNAVAILABLE)?;
        let text = body::read_json(&head.headers, body, bytes_max).await?;
        Ok((self.decode(&text, walk)?, room))
    }

    /// A large body is decoded while others take over the work of this thread.
    fn decode<T>(
        &self,
        text: &[u8],
        walk: impl FnOnce(&Node<'_>) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        let decode = || json::decode(text, self.limits.json_depth_max, walk);
        let flavor = tokio::runtime::Handle::current().runtime_flavor();
        if text.len() > LARGE_BYTES && flavor == RuntimeFlavor::MultiThread {
            tokio::task::block_in_place(decode)
        } else {
            decode()
        }
    }

    /// A place among the open streams, given back when the stream ends.
    pub(super) fn take_stream(&self) -> Result<StreamPlace, ApiError> {
        let place = StreamPlace(Arc::clone(&self.streams));
        if self.streams.fetch_add(1, Ordering::AcqRel) < self.limits.streams_max {
            Ok(place)
        } else {
            Err(ApiError::UNAVAILABLE)
        }
    }
}

/// Counts an open stream.
pub(super) struct StreamPlace(Arc<AtomicUsize>);

impl Drop for StreamPlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The value of `name` in the query; the first one counts.
pub(super) fn query<'q>(head: &'q Parts, name: &str) -> Option<std::borrow::Cow<'q, str>> {
    let pairs = head.uri.query().unwrap_or_default().split('&');
    let value = pairs.filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name)?.1;
    Some(percent_decode_str(value).decode_utf8_lossy())
}

/// A whole number in the query, within `range`; a larger one counts as the largest.
pub(super) fn query_number(
    head: &Parts,
    name: &str,
    range: RangeInclusive<usize>,
) -> Result<Option<usize>, ApiError> {
    let Some(text) = query(head, name) else { return Ok(None) };
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let (least, most) = range.into_inner();
    let number = text.parse().ok().filter(|number| digits && *number >= least);
    let refuse = || ApiError::bad_request(format!("`{name}` must be a number from {least} on"));
    number.map(|number| Some(most.min(number))).ok_or_else(refuse)
}
