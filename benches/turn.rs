//! Whole turns over loopback, and pages of a long conversation, against a bare hyper server that
//! answers hello, in one run.
//!
//! A turn is a submit and a stream of that turn read to its end, on the built-in model, with every
//! event durable. Read the ratios: both sides have the same client and the same cores.

use std::convert::Infallible;
use std::hint::black_box;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use http_body_util::Full;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use turnd::config::{Config, Flags};
use turnd::server::Server;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const API_KEY: &str = "bench-key-0123456789-0123456789";
/// Clients at once.
const CLIENTS: [u64; 3] = [1, 16, 64];

/// A keep-alive connection that knows just enough HTTP/1.1 to be quicker than what it measures.
struct Client {
    socket: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    async fn connect(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).await.expect("the server listens");
        socket.set_nodelay(true).expect("a socket takes options");
        Self { socket, buffer: Vec::with_capacity(16 * 1024) }
    }

    /// Sends a request and reads its whole answer, of known length or chunked.
    async fn exchange(&mut self, request: &str) -> &[u8] {
        self.socket.write_all(request.as_bytes()).await.expect("the server reads");
        self.buffer.clear();
        loop {
            let read = self.socket.read_buf(&mut self.buffer).await.expect("the server answers");
            assert!(read > 0, "closed: {}", String::from_utf8_lossy(&self.buffer));
            if is_whole(&self.buffer) {
                return &self.buffer;
            }
        }
    }
}

fn is_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let mut fields = head.lines().filter_map(|line| line.split_once(": "));
    match fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length")) {
        Some((_, length)) => length.parse().is_ok_and(|length: usize| body.len() >= length),
        None => answer.ends_with(b"\r\n0\r\n\r\n"),
    }
}

/// The real server on a data folder of its own.
async fn start_turnd(data: &std::path::Path) -> SocketAddr {
    let manifest = "[limits]\ninputs_per_second = 0\nreads_per_second = 0\n";
    let environment = |name: &str| (name == "TURND_API_KEY").then(|| API_KEY.into());
    let flags = Flags {
        config: None,
        listen: Some(([127, 0, 0, 1], 0).into()),
        data: Some(data.to_owned()),
    };
    let path = std::path::Path::new("turnd.toml");
    let config = Config::resolve(&flags, &environment, Some((path, manifest))).expect("valid");
    let server = Server::start(&config).await.expect("a fresh folder opens");
    let address = server.address();
    tokio::spawn(server.run(std::future::pending()));
    address
}

async fn start_hello() -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        loop {
            let Ok((socket, _)) = listener.accept().await else { return };
            drop(socket.set_nodelay(true));
            tokio::spawn(async move {
                let hello = service_fn(|_: Request<hyper::body::Incoming>| async {
                    Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"hello"))))
                });
                let connection = hyper::server::conn::http1::Builder::new();
                drop(connection.serve_connection(TokioIo::new(socket), hello).await);
            });
        }
    });
    address
}

fn post(path: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {API_KEY}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// One turn in `session`; its stream is read to the end.
async fn turn(client: &mut Client, session: &str, number: u64) {
    let turn = format!("t{number}");
    let body = format!(
        r#"{{"agent_id":"demo","identity":{{"id":"ann"}},"session_id":"{session}","turn_id":"{turn}","payload":{{"type":"client.message","message":{{"role":"user","content":"What is the weather in Paris today?"}}}}}}"#
    );
    let answer = client.exchange(&post("/api/machine/sessions/submit", &body)).await;
    assert!(answer.starts_with(b"HTTP/1.1 202"), "{}", String::from_utf8_lossy(answer));
    let stream = format!(
        "GET /api/machine/sessions/{session}/events/stream?turn_id={turn} HTTP/1.1\r\nHost: bench\r\n\
         Authorization: Bearer {API_KEY}\r\n\r\n"
    );
    let answer = client.exchange(&stream).await;
    assert!(answer.windows(14).any(|at| at == b"turn.completed"), "the turn is complete");
}

/// Runs `iterations` in all on `clients` connections; how long that takes.
#[expect(clippy::disallowed_methods, reason = "a bench reads the clock")]
async fn spread(clients: u64, iterations: u64, address: SocketAddr, turns: bool) -> Duration {
    let mut tasks = Vec::new();
    let mut connections = Vec::new();
    for _ in 0..clients {
        connections.push(Client::connect(address).await);
    }
    let started = Instant::now();
    for (number, mut client) in connections.into_iter().enumerate() {
        let mine = iterations / clients + u64::from((number as u64) < iterations % clients);
        tasks.push(tokio::spawn(async move {
            let session = unique_session();
            for iteration in 0..mine {
                if turns {
                    turn(&mut client, &session, iteration).await;
                } else {
                    let hello = "GET / HTTP/1.1\r\nHost: bench\r\n\r\n";
                    black_box(client.exchange(hello).await);
                }
            }
        }));
    }
    for task in tasks {
        task.await.expect("no client fails");
    }
    started.elapsed()
}

fn unique_session() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("s{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

fn turns(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let data = tempfile::tempdir().expect("a folder");
    let turnd = runtime.block_on(start_turnd(&data.path().join("data")));
    let hello = runtime.block_on(start_hello());
    let mut group = criterion.benchmark_group("turn");
    group.throughput(Throughput::Elements(1)).sample_size(20);
    for clients in CLIENTS {
        for (name, address, turns) in [("hyper hello", hello, false), ("turnd turn", turnd, true)] {
            group.bench_function(format!("{name}, {clients} clients"), |bencher| {
                bencher
                    .to_async(&runtime)
                    .iter_custom(|iterations| spread(clients, iterations, address, turns));
            });
        }
    }
    group.finish();
}

/// The session `long`: 10,000 messages in ten appends, which end with the assistant, so that no model is
/// asked.
async fn fill(client: &mut Client) {
    for append in 0..10 {
        let message = |index: usize| {
            let role = if index.is_multiple_of(2) { "user" } else { "assistant" };
            let text = "It rains, as it does on most days of the year.";
            format!(r#"{{"id":"m{append}.{index}","role":"{role}","content":"{text}"}}"#)
        };
        let messages: Vec<String> = (0..1000).map(message).collect();
        let body = format!(
            r#"{{"agent_id":"demo","identity":{{"id":"ann"}},"session_id":"long","payload":{{"type":"client.append","messages":[{}]}}}}"#,
            messages.join(",")
        );
        let answer = client.exchange(&post("/api/machine/sessions/submit", &body)).await;
        assert!(answer.starts_with(b"HTTP/1.1 202"), "{}", String::from_utf8_lossy(answer));
    }
}

/// The token of `ann`.
async fn token(client: &mut Client) -> String {
    let mint =
        post("/api/machine/client-tokens", r#"{"identity":{"id":"ann"},"ttl_seconds":86400}"#);
    let answer = String::from_utf8_lossy(client.exchange(&mint).await).into_owned();
    let token = answer.split("\"token\":\"").nth(1).and_then(|rest| rest.split('"').next());
    token.expect("a token").to_owned()
}

fn pages(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let data = tempfile::tempdir().expect("a folder");
    let turnd = runtime.block_on(start_turnd(&data.path().join("data")));
    let hello = runtime.block_on(start_hello());
    let token = runtime.block_on(async {
        let mut client = Client::connect(turnd).await;
        fill(&mut client).await;
        token(&mut client).await
    });
    let get = |path: &str| {
        format!("GET {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\n\r\n")
    };
    let page = "/api/client/sessions/long?tree=false";
    let requests = [
        ("hyper hello", hello, "GET / HTTP/1.1\r\nHost: bench\r\n\r\n".to_owned()),
        ("the last 50", turnd, get(&format!("{page}&limit=50"))),
        ("50 in the middle", turnd, get(&format!("{page}&limit=50&before=m5.0"))),
        ("all, without the tree", turnd, get(page)),
        ("a list of one", turnd, get("/api/client/sessions")),
    ];
    let mut group = criterion.benchmark_group("of 10,000 messages");
    group.throughput(Throughput::Elements(1)).sample_size(20);
    for (name, address, request) in requests {
        let mut client = runtime.block_on(Client::connect(address));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let answer = runtime.block_on(client.exchange(&request));
                assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(answer));
            });
        });
    }
    group.finish();
}

criterion_group!(benches, turns, pages);
criterion_main!(benches);
