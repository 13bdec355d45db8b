//! One HTTP/1.1 connection: hyper between a guarded socket and the service.
//!
//! hyper frames and parses. Around it stand the rules it does not have: patience for silence and
//! for slow heads and readers (`guarded`), the order of phases that this needs (`progress`), and
//! the framing that it takes and we refuse (`hygiene`).

mod guarded;
mod hygiene;
mod progress;

use std::convert::Infallible;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::CONNECTION;
use http::{HeaderValue, Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::watch;

use self::guarded::Guarded;
use self::progress::Progress;
use super::body::RequestBody;
use super::reply::{Reply, ReplyBody};
use crate::control::limits::Limits;

/// No byte of a response taken for so long: the reader is gone (L5).
const WRITE_STALL_MAX: Duration = Duration::from_secs(30);
/// hyper's buffer for each direction; larger only where the head may be.
const BUFFER_BYTES: usize = 64 * 1024;
/// The smallest buffer that hyper takes.
const BUFFER_BYTES_MIN: usize = 8 * 1024;

/// How long a connection waits for its peer.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// For the first byte of a new connection, and from the first byte of a request to the end of
    /// its head.
    pub head: Duration,
    /// Between two requests.
    pub keep_alive: Duration,
    /// For a reader that takes nothing.
    pub write: Duration,
}

impl Patience {
    pub fn new(limits: &Limits) -> Self {
        Self { head: limits.head_max, keep_alive: limits.keep_alive, write: WRITE_STALL_MAX }
    }
}

/// Who is at the other end.
#[derive(Clone)]
pub struct Peer {
    pub address: SocketAddr,
    progress: Arc<Progress>,
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Peer({})", self.address)
    }
}

impl Peer {
    /// Ends the connection with a reset, so that the kernel drops what the reader has not taken.
    /// For the body of a response, which then ends.
    pub fn cut(&self) {
        self.progress.cut();
    }
}

/// The address that limits count by: a holder of one IPv6 address has its whole /64.
pub fn address_group(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if !v6.is_loopback() => {
            let [a, b, c, d, ..] = v6.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        whole @ (IpAddr::V4(_) | IpAddr::V6(_)) => whole,
    }
}

/// Serves requests on `socket` until it ends, its peer tries our patience, or `shutdown` is set
/// and the request that is being served then is answered.
pub async fn serve<S, F>(
    socket: TcpStream,
    address: SocketAddr,
    limits: &Limits,
    patience: Patience,
    service: S,
    mut shutdown: watch::Receiver<bool>,
) -> Result<(), hyper::Error>
where
    S: Fn(Request<RequestBody>, Peer) -> F,
    F: Future<Output = Reply>,
{
    let progress = Arc::new(Progress::new(limits.header_bytes_max));
    let peer = Peer {
        address: SocketAddr::new(address.ip().to_canonical(), address.port()),
        progress: Arc::clone(&progress),
    };
    let guarded = Guarded::new(socket, patience, progress);
    let service = service_fn(|request| answer(request, &peer, &service));
    let connection = builder(limits).serve_connection(TokioIo::new(guarded), service);
    let mut connection = pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => return ended,
        () = stopping(&mut shutdown) => connection.as_mut().graceful_shutdown(),
    }
    connection.await
}

/// Returns once the server is to stop.
pub async fn stopping(shutdown: &mut watch::Receiver<bool>) {
    // A sender that is gone can no longer ask for anything else.
    let _ = shutdown.wait_for(|stop| *stop).await;
}

fn builder(limits: &Limits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .max_headers(limits.header_count_max)
        .max_header_size(limits.header_bytes_max)
        .max_buf_size(BUFFER_BYTES.max(limits.header_bytes_max + BUFFER_BYTES_MIN));
    builder
}

fn answer<S, F>(
    request: Request<Incoming>,
    peer: &Peer,
    service: &S,
) -> impl Future<Output = Result<Response<Tracked>, Infallible>>
where
    S: Fn(Request<RequestBody>, Peer) -> F,
    F: Future<Output = Reply>,
{
    let progress = Arc::clone(&peer.progress);
    let head = progress.begin(&request);
    let refused = hygiene::check(&request, &head).err();
    let (parts, incoming) = request.into_parts();
    let (body, unread) = RequestBody::new(incoming);
    let served = match refused {
        Some(refusal) => Err(Reply::from(refusal)),
        None => Ok(service(Request::from_parts(parts, body), peer.clone())),
    };
    async move {
        let (mut reply, refused) = match served {
            Ok(serving) => (serving.await, false),
            Err(refusal) => (refusal, true),
        };
        if refused || head.last || unread.load(Ordering::Relaxed) {
            reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(reply.map(|body| Tracked { body, progress }))
    }
}

/// The body of a response; when hyper lets go of it, the connection waits for the next request.
struct Tracked {
    body: ReplyBody,
    progress: Arc<Progress>,
}

impl Drop for Tracked {
    fn drop(&mut self) {
        self.progress.end();
    }
}

impl Body for Tracked {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
pub mod kit;
#[cfg(test)]
mod tests;
