//! Listening, accepting, and the caps on connections (L3, L4).

use std::collections::HashMap;
use std::fs::File;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use http::Request;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinError, JoinSet};

use super::body::RequestBody;
use super::connection::{self, Patience, Peer, address_group, stopping};
use super::error::ApiError;
use super::reply::{Reply, ReplyBody};
use crate::control::limits::Limits;
use crate::protocol::error::chain;

const BACKLOG: i32 = 1024;
/// Without a bound the kernel keeps megabytes for each reader that has stopped reading.
const SEND_BUFFER_BYTES: usize = 128 * 1024;
const KEEP_ALIVE: Duration = Duration::from_mins(1);
/// Wait after a failed accept: descriptors come back when connections end.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
const ACCEPT_LOG_PAUSE: Duration = Duration::from_secs(1);
/// Refused connections that are seen off at the same time, and for how long. More are just closed.
const REFUSALS_MAX: usize = 64;
const REFUSAL_MAX: Duration = Duration::from_secs(1);
const REFUSAL_RETRY_SECS: u64 = 1;

/// A socket that listens on `address`. Needs a runtime.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // A restart must not wait for the connections of the last run to be forgotten.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// Serves every connection to `listeners`, until `shutdown` is set; then stops listening, waits up
/// to `grace` for what is being served, and cuts off the rest.
pub async fn serve<S, F>(
    listeners: Vec<TcpListener>,
    limits: Arc<Limits>,
    service: S,
    mut shutdown: watch::Receiver<bool>,
    grace: Duration,
) where
    S: Fn(Request<RequestBody>, Peer) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Reply> + Send + 'static,
{
    let mut door = Door::new(&limits);
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = stopping(&mut shutdown) => break,
            Some(ended) = connections.join_next() => {
                report(ended);
                continue;
            }
            accepted = accept(&listeners) => accepted,
        };
        let (socket, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                door.rest(&listeners, &error).await;
                continue;
            }
        };
        let Some(slot) = Slots::take(&door.slots, address.ip()) else {
            door.refuse(socket);
            continue;
        };
        let (limits, service) = (Arc::clone(&limits), service.clone());
        let shutdown = shutdown.clone();
        connections.spawn(async move {
            let _slot = slot;
            let patience = Patience::new(&limits);
            if let Err(error) = configure(&socket) {
                tracing::debug!(%address, %error, "cannot set socket options");
            }
            let ended =
                connection::serve(socket, address, &limits, patience, service, shutdown).await;
            if let Err(error) = ended {
                tracing::debug!(%address, error = chain(&error), "connection broken off");
            }
        });
    }
    drop(listeners);
    let all_ended = async {
        while let Some(ended) = connections.join_next().await {
            report(ended);
        }
    };
    if tokio::time::timeout(grace, all_ended).await.is_err() {
        tracing::warn!(connections = connections.len(), "cutting off what did not end in time");
        connections.shutdown().await;
    }
}

async fn accept(listeners: &[TcpListener]) -> io::Result<(TcpStream, SocketAddr)> {
    poll_fn(|cx| {
        for listener in listeners {
            if let Poll::Ready(accepted) = listener.poll_accept(cx) {
                return Poll::Ready(accepted);
            }
        }
        Poll::Pending
    })
    .await
}

fn configure(socket: &TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let socket = SockRef::from(socket);
    socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEP_ALIVE))
}

fn report(ended: Result<(), JoinError>) {
    if ended.is_err_and(|error| error.is_panic()) {
        tracing::error!("a request panicked; its connection was closed");
    }
}

/// Who comes in, and what happens to those who do not.
struct Door {
    slots: Arc<Slots>,
    refusal: Arc<[u8]>,
    refusals: Arc<Semaphore>,
    /// Given up for a moment when descriptors run out, so that one waiting peer can be answered.
    spare: Option<File>,
    logged_at: Option<tokio::time::Instant>,
}

impl Door {
    fn new(limits: &Limits) -> Self {
        Self {
            slots: Arc::new(Slots::new(limits)),
            refusal: refusal_text(),
            refusals: Arc::new(Semaphore::new(REFUSALS_MAX)),
            spare: spare(),
            logged_at: None,
        }
    }

    /// 503 and close.
    fn refuse(&self, mut socket: TcpStream) {
        let direct = SockRef::from(&socket);
        // A new socket has room for so short a text; a peer that is gone needs none.
        if direct.send(&self.refusal).is_err() || direct.shutdown(Shutdown::Write).is_err() {
            return;
        }
        let Ok(permit) = Arc::clone(&self.refusals).try_acquire_owned() else {
            return;
        };
        tokio::spawn(async move {
            let _permit = permit;
            let mut scratch = [0; 1024];
            let until_closed =
                async { while socket.read(&mut scratch).await.is_ok_and(|read| read > 0) {} };
            let _ = tokio::time::timeout(REFUSAL_MAX, until_closed).await;
        });
    }

    /// After an accept that failed. A connection that broke before it was accepted is no matter;
    /// anything else is a lack of descriptors or memory, which only time mends.
    async fn rest(&mut self, listeners: &[TcpListener], error: &io::Error) {
        use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
        if matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted) {
            return;
        }
        let now = tokio::time::Instant::now();
        if self.logged_at.is_none_or(|at| now - at >= ACCEPT_LOG_PAUSE) {
            tracing::error!(%error, "cannot accept connections");
            self.logged_at = Some(now);
        }
        if self.spare.take().is_some() {
            let waiting = tokio::time::timeout(Duration::ZERO, accept(listeners)).await;
            if let Ok(Ok((socket, _))) = waiting {
                let _ = SockRef::from(&socket).send(&self.refusal);
            }
        }
        self.spare = spare();
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }
}

fn spare() -> Option<File> {
    File::open("/dev/null").ok()
}

/// The 503 as bytes, for connections that never reach hyper.
fn refusal_text() -> Arc<[u8]> {
    let error = ApiError::Unavailable { retry_after_secs: REFUSAL_RETRY_SECS };
    let (head, body) = Reply::from(error).into_parts();
    let body = match body {
        ReplyBody::Full(body) => body,
        ReplyBody::Stream(_) => bytes::Bytes::new(),
    };
    let mut text = format!("HTTP/1.1 {}\r\n", head.status).into_bytes();
    for (name, value) in &head.headers {
        text.extend_from_slice(
            &[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat(),
        );
    }
    let rest = format!("connection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    text.extend_from_slice(rest.as_bytes());
    text.extend_from_slice(&body);
    text.into()
}

/// Counts connections, in all and by address.
#[derive(Debug)]
struct Slots {
    connections_max: usize,
    per_address_max: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    in_all: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// The right to be connected; gone with its connection.
struct Slot {
    slots: Arc<Slots>,
    /// `None` for loopback, which is exempt: a proxy on this machine brings everybody.
    counted: Option<IpAddr>,
}

impl Slots {
    fn new(limits: &Limits) -> Self {
        Self {
            connections_max: limits.connections_max,
            per_address_max: limits.connections_per_address_max,
            taken: Mutex::default(),
        }
    }

    fn take(this: &Arc<Self>, address: IpAddr) -> Option<Slot> {
        let address = address_group(address);
        let counted = (!address.is_loopback()).then_some(address);
        let mut taken = this.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.in_all >= this.connections_max {
            return None;
        }
        if let Some(address) = counted {
            let count = taken.by_address.get(&address).copied().unwrap_or(0);
            if count >= this.per_address_max {
                return None;
            }
            taken.by_address.insert(address, count + 1);
        }
        taken.in_all += 1;
        Some(Slot { slots: Arc::clone(this), counted })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.slots.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.in_all = taken.in_all.saturating_sub(1);
        let Some(address) = self.counted else {
            return;
        };
        if let Some(count) = taken.by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                taken.by_address.remove(&address);
            }
        }
    }
}

#[cfg(test)]
mod tests;
