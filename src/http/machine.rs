//! The machine API: what the customer's backend may do for its users (interface 4.2).

use bytes::Bytes;
use http::request::Parts;
use http::{Method, StatusCode};
use http_body::Body;
use serde::Serialize;

use super::api::Api;
use super::asker::Asker;
use super::connection::Peer;
use super::error::ApiError;
use super::rate::Class;
use super::reply::{self, Reply};
use super::route::MachineRoute;
use super::{blob, session, stream, submit};
use crate::auth::api_key::ApiKeyHolder;
use crate::auth::client_token::TTL_SECS_DEFAULT;
use crate::clock;
use crate::protocol::input::{Submit, TokenRequest};

/// Answers a request of `holder`. The method is one that the route takes.
pub(super) async fn answer<B>(
    api: &Api,
    holder: &ApiKeyHolder,
    route: MachineRoute<'_>,
    head: &Parts,
    body: B,
    peer: Peer,
) -> Result<Reply, ApiError>
where
    B: Body<Data = Bytes> + Unpin,
{
    let asker = Asker::machine(holder);
    match (route, &head.method) {
        (MachineRoute::Tokens, _) => tokens(api, &asker, head, body).await,
        (MachineRoute::Submit, _) => submit(api, asker, head, body).await,
        (MachineRoute::Session(id), &Method::DELETE) => session::erase(api, &asker, id).await,
        (MachineRoute::Session(id), _) => session::update(api, &asker, id, head, body).await,
        (MachineRoute::Stream(id), _) => {
            let request = stream::request(head)?;
            let key = asker.session(api, Class::Read, id)?;
            stream::open(api, key, asker.caller, request, None, peer).await
        }
        (MachineRoute::Interrupt(id), _) => session::interrupt(api, &asker, id, head, body).await,
        (MachineRoute::Cancel(id), _) => session::cancel(api, &asker, id, head, body).await,
        (MachineRoute::Blob(path), _) => blob::blob(api, &asker, path, head, peer).await,
        (MachineRoute::Owner(id), _) => session::erase_owner(api, &asker, id).await,
    }
}

/// `POST /api/machine/client-tokens`.
async fn tokens<B>(api: &Api, asker: &Asker, head: &Parts, body: B) -> Result<Reply, ApiError>
where
    B: Body<Data = Bytes> + Unpin,
{
    #[derive(Serialize)]
    struct Minted {
        token: String,
        expires_at: i64,
    }
    let request = api.read(head, body, TokenRequest::read).await?;
    asker.count(api, Class::Mint)?;
    let ttl_secs = request.ttl_secs.unwrap_or(TTL_SECS_DEFAULT);
    let client_tokens = &api.authenticator.client_tokens;
    let minted = client_tokens.mint(&asker.tenant, &request.identity, ttl_secs, clock::wall());
    let (token, expires_at) = minted?;
    Ok(reply::json(StatusCode::OK, &Minted { token, expires_at }))
}

/// `POST /api/machine/sessions/submit`.
async fn submit<B>(api: &Api, asker: Asker, head: &Parts, body: B) -> Result<Reply, ApiError>
where
    B: Body<Data = Bytes> + Unpin,
{
    let text_bytes_max = api.limits.message_bytes_max;
    let read = api.read_and_hold(head, body, |root| Submit::read_machine(root, text_bytes_max));
    let ((input, identity), _room) = read.await?;
    submit::take(api, asker, identity, input).await
}
