//! What the tests of the edge share: a server on a loopback socket, and a client that sends bytes
//! as they are. Nothing measures time; [`HANG`] only ends a test that would never end.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body::{Body, Frame};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use super::Peer;
use crate::control::limits::Limits;
use crate::http::body::{RequestBody, read_json};
use crate::http::error::ApiError;
use crate::http::listener;
use crate::http::reply::{self, Reply, ReplyBody};

pub const HANG: Duration = Duration::from_mins(1);
/// The body limit of [`Site`].
pub const BODY_BYTES_MAX: usize = 1000;

/// A small site: `/hello`, `/echo` (the length of a JSON body), `/ignore` (does not read it),
/// `/wait` (until released), `/endless` and `/cut` (streams).
#[derive(Debug, Default)]
pub struct Site {
    pub entered: Notify,
    pub release: Notify,
}

impl Site {
    pub async fn answer(self: Arc<Self>, request: Request<RequestBody>, peer: Peer) -> Reply {
        let (head, body) = request.into_parts();
        match head.uri.path() {
            "/echo" => match read_json(&head.headers, body, BODY_BYTES_MAX).await {
                Ok(body) => reply::json(StatusCode::OK, &body.len()),
                Err(error) => error.into(),
            },
            "/hello" | "/ignore" => reply::json(StatusCode::OK, "hello"),
            "/wait" => {
                self.entered.notify_one();
                self.release.notified().await;
                reply::json(StatusCode::OK, "waited")
            }
            "/endless" => reply::event_stream(ReplyBody::stream(Endless)),
            "/cut" => reply::event_stream(ReplyBody::stream(Cut { peer, sent: false })),
            path => ApiError::not_found(format!("no {path}")).into(),
        }
    }
}

struct Endless;

impl Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b'x'; 16 * 1024])))))
    }
}

struct Cut {
    peer: Peer,
    sent: bool,
}

impl Body for Cut {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if !std::mem::replace(&mut self.sent, true) {
            return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"some")))));
        }
        self.peer.cut();
        Poll::Ready(None)
    }
}

pub struct Server {
    pub address: SocketAddr,
    pub site: Arc<Site>,
    pub shutdown: watch::Sender<bool>,
    pub task: JoinHandle<()>,
}

impl Server {
    pub fn start(limits: Limits) -> Self {
        Self::start_with_grace(limits, HANG)
    }

    pub fn start_with_grace(limits: Limits, grace: Duration) -> Self {
        let listener = listener::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let address = listener.local_addr().unwrap();
        let site = Arc::new(Site::default());
        let (shutdown, stop) = watch::channel(false);
        let answering = Arc::clone(&site);
        let service = move |request, peer| Arc::clone(&answering).answer(request, peer);
        let serving = listener::serve(
            Vec::<TcpListener>::from([listener]),
            limits.into(),
            service,
            stop,
            grace,
        );
        Self { address, site, shutdown, task: tokio::spawn(serving) }
    }

    pub async fn connect(&self) -> Wire {
        Wire::connect(self.address).await
    }

    /// Waits for `serve` to return.
    pub async fn stopped(self) {
        within(self.task).await.unwrap();
    }
}

pub async fn within<F: Future>(work: F) -> F::Output {
    tokio::time::timeout(HANG, work).await.expect("this hangs")
}

/// A client connection.
pub struct Wire {
    stream: TcpStream,
    read: Vec<u8>,
}

/// A response as it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        fields.find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

impl Wire {
    pub async fn connect(address: SocketAddr) -> Self {
        let stream = within(TcpStream::connect(address)).await.unwrap();
        Self { stream, read: Vec::new() }
    }

    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes).await.unwrap();
    }

    /// As [`Wire::send`], where the server may have closed already.
    pub async fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        within(self.stream.write_all(bytes.as_ref())).await
    }

    /// The next response, which must have a `Content-Length`.
    pub async fn answer(&mut self) -> Answer {
        assert!(self.is_answered().await, "closed after {:?}", self.text());
        let (answer, length) = parse(&self.read).unwrap();
        self.read.drain(..length);
        answer
    }

    /// Whether another response comes, rather than the end of the connection.
    pub async fn is_answered(&mut self) -> bool {
        while parse(&self.read).is_none() {
            if !self.fill().await.is_ok_and(|read| read > 0) {
                return false;
            }
        }
        true
    }

    /// Everything up to the end of the connection, and how it ended.
    pub async fn rest(mut self) -> (String, io::Result<()>) {
        loop {
            match self.fill().await {
                Ok(0) => return (self.text(), Ok(())),
                Ok(_) => {}
                Err(error) => return (self.text(), Err(error)),
            }
        }
    }

    /// Nothing more comes, and the server closes in an orderly way.
    pub async fn assert_closed(self) {
        let (rest, ended) = self.rest().await;
        assert_eq!((rest.as_str(), ended.is_ok()), ("", true));
    }

    async fn fill(&mut self) -> io::Result<usize> {
        within(self.stream.read_buf(&mut self.read)).await
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.read).into_owned()
    }
}

fn parse(bytes: &[u8]) -> Option<(Answer, usize)> {
    let text = std::str::from_utf8(bytes).unwrap();
    let (head, rest) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut answer = Answer { status, head: head.to_owned(), body: String::new() };
    let length = answer.header("content-length").map_or(0, |length| length.parse().unwrap());
    answer.body = rest.get(..length)?.to_owned();
    Some((answer, head.len() + 4 + length))
}
