//! One request from its head to its answer: path, method, credential, then the route's own work.

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{Method, Request, StatusCode};
use http_body::Body;
use serde_json::json;

use super::api::Api;
use super::connection::Peer;
use super::error::ApiError;
use super::reply::{self, Reply};
use super::route::{CLIENT_PREFIX, ClientRoute, Route};
use super::{blob, client, machine};
use crate::auth;
use crate::clock;

/// Answers one request.
pub async fn answer<B>(api: &Api, request: Request<B>, peer: Peer) -> Reply
where
    B: Body<Data = Bytes> + Unpin,
{
    let (head, body) = request.into_parts();
    let path = head.uri.path();
    let answer = match Route::of(path) {
        None => Err(ApiError::not_found("unknown path")),
        Some(route) if route.is_client() && head.method == Method::OPTIONS => {
            return api.cors.preflight(&head.headers, route.allow());
        }
        Some(route) if route.takes(&head.method) => perform(api, route, &head, body, peer).await,
        Some(route) => Err(ApiError::MethodNotAllowed(route.allow())),
    };
    let mut reply = answer.unwrap_or_else(Reply::from);
    if path.starts_with(CLIENT_PREFIX) {
        api.cors.apply(&head.headers, reply.headers_mut());
    }
    reply
}

async fn perform<B>(
    api: &Api,
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
        Route::Ready if api.engine.is_stopping() => Err(ApiError::UNAVAILABLE),
        Route::Ready => Ok(reply::json(StatusCode::OK, &json!({ "ok": true }))),
        Route::Client(ClientRoute::Blob(path)) if blob::is_signed(head) => {
            let grant = blob::granted(api, path, head).ok_or_else(|| refused(api, &peer))?;
            blob::blob_granted(api, grant, head, peer).await
        }
        Route::Client(route) => {
            let client = api.authenticator.client(credential(head), clock::wall());
            let client = client.map_err(|auth::Refused| refused(api, &peer))?;
            client::answer(api, client, route, head, body, peer).await
        }
        Route::Machine(route) => {
            let holder = api.authenticator.machine(credential(head), clock::wall());
            let holder = holder.map_err(|auth::Refused| refused(api, &peer))?;
            machine::answer(api, &holder, route, head, body, peer).await
        }
    }
}

/// A guesser is slowed down; everybody else learns that the credential is no good (A4).
fn refused(api: &Api, peer: &Peer) -> ApiError {
    match api.rates.failed_credential(peer.address.ip(), clock::wall()) {
        Ok(()) => ApiError::Unauthorized,
        Err(too_many) => too_many.into(),
    }
}

fn credential(head: &Parts) -> Option<&str> {
    auth::bearer(head.headers.get_all(AUTHORIZATION).iter().map(http::HeaderValue::as_bytes))
}
