//! What the routes of every API work with, and how they read a request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::request::Parts;
use http_body::Body;
use percent_encoding::percent_decode_str;
use tokio::sync::Semaphore;

use super::body;
use super::cors::Cors;
use super::error::ApiError;
use super::rate::Rates;
use crate::auth::Authenticator;
use crate::control::limits::Limits;
use crate::ids::SessionId;
use crate::protocol::json::{self, DecodeError, Node};
use crate::runtime::Engine;

/// Bodies in memory at once, all together; more is 503 (L8). At least one of the largest fits.
pub const BODIES_KIB_MAX: usize = 512 * 1024;

/// What the routes work with.
pub struct Api {
    pub engine: Engine,
    pub authenticator: Arc<Authenticator>,
    pub cors: Cors,
    pub rates: Rates,
    pub limits: Arc<Limits>,
    /// Room for bodies that are being read, in KiB; see [`BODIES_KIB_MAX`].
    pub bodies: Semaphore,
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
        let bytes_max = self.limits.body_bytes_max;
        let announced = body::announced_len(&head.headers).unwrap_or(bytes_max).min(bytes_max);
        let kib = u32::try_from(announced.div_ceil(1024)).unwrap_or(u32::MAX);
        let _room = self.bodies.try_acquire_many(kib).map_err(|_| ApiError::UNAVAILABLE)?;
        let text = body::read_json(&head.headers, body, bytes_max).await?;
        Ok(json::decode(&text, self.limits.json_depth_max, walk)?)
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

/// A session id in a path.
pub(super) fn session_id(segment: &str) -> Result<SessionId, ApiError> {
    let decoded = percent_decode_str(segment).decode_utf8();
    let id = decoded.ok().and_then(|text| SessionId::parse(&text).ok());
    id.ok_or_else(|| ApiError::bad_request("the session id in the path is not one"))
}

/// The value of `name` in the query; the first one counts.
pub(super) fn query<'q>(head: &'q Parts, name: &str) -> Option<std::borrow::Cow<'q, str>> {
    let pairs = head.uri.query().unwrap_or_default().split('&');
    let value = pairs.filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name)?.1;
    Some(percent_decode_str(value).decode_utf8_lossy())
}
