//! One request from its head to its answer: path, method, credential, then the route's own work.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{Method, Request, StatusCode};
use http_body::Body;
use percent_encoding::percent_decode_str;
use serde_json::json;

use super::body;
use super::connection::Peer;
use super::cors::Cors;
use super::error::ApiError;
use super::rate::Rates;
use super::reply::{self, Reply};
use super::route::{CLIENT_PREFIX, ClientRoute, MachineRoute, Route};
use super::{client, machine};
use crate::auth::{self, Authenticator};
use crate::clock;
use crate::control::limits::Limits;
use crate::ids::SessionId;
use crate::protocol::json::{self, DecodeError, Node};
use crate::runtime::Engine;

/// What the routes work with.
pub struct Api {
    pub engine: Engine,
    pub authenticator: Arc<Authenticator>,
    pub cors: Cors,
    pub rates: Rates,
    pub limits: Arc<Limits>,
    /// Event streams that are open.
    pub streams: Arc<AtomicUsize>,
}

impl Api {
    /// Answers one request.
    pub async fn answer<B>(&self, request: Request<B>, peer: Peer) -> Reply
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        let answer = match Route::of(path) {
            None => Err(ApiError::not_found("unknown path")),
            Some(route) if route.is_client() && head.method == Method::OPTIONS => {
                return self.cors.preflight(&head.headers, route.allow());
            }
            Some(route) if route.takes(&head.method) => {
                self.perform(route, &head, body, peer).await
            }
            Some(route) => Err(ApiError::MethodNotAllowed(route.allow())),
        };
        let mut reply = answer.unwrap_or_else(Reply::from);
        if path.starts_with(CLIENT_PREFIX) {
            self.cors.apply(&head.headers, reply.headers_mut());
        }
        reply
    }

    async fn perform<B>(
        &self,
        route: Route<'_>,
        head: &Parts,
        body: B,
        peer: Peer,
    ) -> Result<Reply, ApiError>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        match route {
            Route::Health => Ok(reply::json(StatusCode::OK, &json!({ "ok": true }))),
            Route::Ready if self.engine.is_stopping() => Err(ApiError::UNAVAILABLE),
            Route::Ready => Ok(reply::json(StatusCode::OK, &json!({ "ok": true }))),
            Route::Client(route) => {
                let client = self.authenticator.client(credential(head), clock::wall());
                let client = client.map_err(|auth::Refused| self.refused(&peer))?;
                match route {
                    ClientRoute::Input => client::input(self, &client, head, body).await,
                    ClientRoute::Session(id) => client::session(self, &client, id).await,
                    ClientRoute::Stream(id) => client::stream(self, &client, id, head, peer).await,
                }
            }
            Route::Machine(route) => {
                let holder = self.authenticator.machine(credential(head), clock::wall());
                let holder = holder.map_err(|auth::Refused| self.refused(&peer))?;
                match route {
                    MachineRoute::Tokens => machine::tokens(self, &holder, head, body).await,
                    MachineRoute::Submit => machine::submit(self, &holder, head, body).await,
                    MachineRoute::Stream(id) => {
                        machine::stream(self, &holder, id, head, peer).await
                    }
                }
            }
        }
    }

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
        let text = body::read_json(&head.headers, body, self.limits.body_bytes_max).await?;
        Ok(json::decode(&text, self.limits.json_depth_max, walk)?)
    }

    /// A guesser is slowed down; everybody else learns that the credential is no good (A4).
    fn refused(&self, peer: &Peer) -> ApiError {
        match self.rates.failed_credential(peer.address.ip(), clock::wall()) {
            Ok(()) => ApiError::Unauthorized,
            Err(too_many) => too_many.into(),
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

fn credential(head: &Parts) -> Option<&str> {
    auth::bearer(head.headers.get_all(AUTHORIZATION).iter().map(http::HeaderValue::as_bytes))
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
