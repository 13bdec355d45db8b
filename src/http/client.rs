//! The client API: what a browser may do with its own sessions (interface 4.1).

use bytes::Bytes;
use http::Method;
use http::request::Parts;
use http_body::Body;

use super::api::Api;
use super::asker::Asker;
use super::connection::Peer;
use super::error::ApiError;
use super::rate::Class;
use super::reply::Reply;
use super::route::ClientRoute;
use super::{blob, list, session, stream, submit};
use crate::auth::ClientPrincipal;
use crate::protocol::input::Submit;

/// Answers a request of `client`. The method is one that the route takes.
pub(super) async fn answer<B>(
    api: &Api,
    client: ClientPrincipal,
    route: ClientRoute<'_>,
    head: &Parts,
    body: B,
    peer: Peer,
) -> Result<Reply, ApiError>
where
    B: Body<Data = Bytes> + Unpin,
{
    let asker = Asker::client(&client);
    match (route, &head.method) {
        (ClientRoute::Input, _) => input(api, asker, client, head, body).await,
        (ClientRoute::Sessions, _) => list::sessions(api, &asker, &client.identity.id, head).await,
        (ClientRoute::Session(id), &Method::PATCH) => {
            session::update(api, &asker, id, head, body).await
        }
        (ClientRoute::Session(id), &Method::DELETE) => session::erase(api, &asker, id).await,
        (ClientRoute::Session(id), _) => session::show(api, &asker, id, head).await,
        (ClientRoute::Stream(id), _) => {
            let request = stream::request(head)?;
            let key = asker.session(api, Class::Read, id)?;
            stream::open(api, key, asker.caller, request, Some(client.expires_at), peer).await
        }
        (ClientRoute::Interrupt(id), _) => session::interrupt(api, &asker, id, head, body).await,
        (ClientRoute::Cancel(id), _) => session::cancel(api, &asker, id, head, body).await,
        (ClientRoute::Blob(path), _) => blob::blob(api, &asker, path, head, peer).await,
        (ClientRoute::BlobUrl(path), _) => blob::url(api, &asker, path).await,
    }
}

/// `POST /api/client/sessions/input`.
async fn input<B>(
    api: &Api,
    asker: Asker,
    client: ClientPrincipal,
    head: &Parts,
    body: B,
) -> Result<Reply, ApiError>
where
    B: Body<Data = Bytes> + Unpin,
{
    let text_bytes_max = api.limits.message_bytes_max;
    let read = api.read_and_hold(head, body, |root| Submit::read_client(root, text_bytes_max));
    let (input, _room) = read.await?;
    submit::take(api, asker, client.identity, input).await
}
