use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;

use super::kit::{Server, Site, Wire, within};
use super::*;

const GET: &str = "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n";

fn post(path: &str, headers: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n{headers}\r\n{body}"
    )
}

/// Sends `request` on a connection of its own: the status, and whether the server closed.
async fn ask(server: &Server, request: impl AsRef<[u8]>) -> (u16, bool) {
    let mut wire = server.connect().await;
    wire.send(request).await;
    let status = wire.answer().await.status;
    // A second request shows whether the connection lives: by its answer or by its end.
    let alive = wire.try_send(GET).await.is_ok() && wire.is_answered().await;
    (status, !alive)
}

#[tokio::test]
async fn requests_that_two_parsers_may_read_differently_are_refused_and_end_the_connection() {
    let server = Server::start(Limits::default());
    let chunked = "2\r\n{}\r\n0\r\n\r\n";
    for (case, request) in [
        ("no host", "GET /hello HTTP/1.1\r\n\r\n".to_owned()),
        ("two hosts", "GET /hello HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n".to_owned()),
        ("two hosts in 1.0", "GET /hello HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n".to_owned()),
        (
            "length, then chunked",
            post("/echo", "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", chunked),
        ),
        (
            "chunked, then length",
            post("/echo", "Transfer-Encoding: chunked\r\nContent-length: 2\r\n", chunked),
        ),
        (
            "both after an empty line",
            format!(
                "\r\n{}",
                post("/echo", "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", chunked)
            ),
        ),
        (
            "both in bare lines",
            post("/echo", "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", "")
                .replace('\r', "")
                + chunked,
        ),
        ("gzip, chunked", post("/echo", "Transfer-Encoding: gzip, chunked\r\n", chunked)),
        ("chunked, chunked", post("/echo", "Transfer-Encoding: chunked, chunked\r\n", chunked)),
        (
            "chunked twice",
            post("/echo", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", chunked),
        ),
        ("identity", post("/echo", "Transfer-Encoding: identity\r\n", "")),
        ("chunked in 1.0", {
            post("/echo", "Transfer-Encoding: chunked\r\n", chunked).replace("1.1", "1.0")
        }),
        ("two lengths", post("/echo", "Content-Length: 2\r\nContent-Length: 3\r\n", "{}")),
        ("signed length", post("/echo", "Content-Length: +2\r\n", "{}")),
        ("space before colon", "GET /hello HTTP/1.1\r\nHost : a\r\n\r\n".to_owned()),
        ("folded header", "GET /hello HTTP/1.1\r\nHost: a\r\n b\r\n\r\n".to_owned()),
        ("NUL", "GET /hello HTTP/1.1\r\nHost: a\0\r\n\r\n".to_owned()),
    ] {
        assert_eq!(ask(&server, request).await, (400, true), "{case}");
    }
}

#[tokio::test]
async fn what_is_no_request_to_this_server_is_refused_and_ends_the_connection() {
    let server = Server::start(Limits::default());
    let headers = |count| "A: b\r\n".repeat(count);
    for (status, request) in [
        (405, "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n".to_owned()),
        (405, "TRACE /hello HTTP/1.1\r\nHost: a\r\n\r\n".to_owned()),
        (400, "GET http://a/hello HTTP/1.1\r\nHost: a\r\n\r\n".to_owned()),
        (
            400,
            "GET /hello HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
                .to_owned(),
        ),
        (414, format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(8 * 1024))),
        (431, format!("GET /hello HTTP/1.1\r\nHost: a\r\n{}\r\n", headers(64))),
        (431, format!("GET /hello HTTP/1.1\r\nHost: a\r\nA: {}\r\n\r\n", "a".repeat(32 * 1024))),
    ] {
        assert_eq!(ask(&server, &request).await, (status, true), "{request:.60}");
    }
    let mut wire = server.connect().await;
    wire.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    let (rest, _) = wire.rest().await;
    assert_eq!(rest, "");
}

#[tokio::test]
async fn a_405_from_the_connection_lists_methods() {
    let server = Server::start(Limits::default());
    let mut wire = server.connect().await;
    wire.send("TRACE / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(wire.answer().await.header("allow").unwrap().starts_with("GET, "));
}

#[tokio::test]
async fn a_connection_is_used_again_after_every_body_that_was_read() {
    let server = Server::start(Limits::default());
    let mut wire = server.connect().await;
    for _ in 0..3 {
        wire.send(GET).await;
        assert_eq!(wire.answer().await.status, 200);
        wire.send(post("/echo", "Content-Length: 2\r\n", "{}")).await;
        let answer = wire.answer().await;
        assert_eq!((answer.status, answer.body.as_str()), (200, "2"));
        assert_eq!(answer.header("connection"), None);
    }
}

#[tokio::test]
async fn requests_sent_ahead_are_answered_in_order() {
    let server = Server::start(Limits::default());
    let mut wire = server.connect().await;
    wire.send(GET.to_owned() + &post("/echo", "Content-Length: 3\r\n", "[1]") + GET).await;
    let bodies = [wire.answer().await.body, wire.answer().await.body, wire.answer().await.body];
    assert_eq!(bodies, ["\"hello\"", "3", "\"hello\""]);
}

#[tokio::test]
async fn a_chunked_body_is_taken_and_ends_its_connection() {
    let server = Server::start(Limits::default());
    let mut wire = server.connect().await;
    wire.send(GET).await;
    wire.answer().await;
    wire.send(post("/echo", "Transfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n")).await;
    let answer = wire.answer().await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "2"));
    assert_eq!(answer.header("connection"), Some("close"));
    wire.assert_closed().await;
}

#[tokio::test]
async fn a_chunked_request_behind_another_is_refused_because_its_head_cannot_be_seen() {
    let both = post(
        "/echo",
        "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
        "2\r\n{}\r\n0\r\n\r\n",
    );
    let server = Server::start(Limits::default());
    for first in [GET.to_owned(), post("/echo", "Content-Length: 2\r\n", "{}")] {
        let mut wire = server.connect().await;
        wire.send(first + &both).await;
        assert_eq!(wire.answer().await.status, 200);
        assert_eq!(wire.answer().await.status, 400);
        wire.assert_closed().await;
    }
    // The start of the head comes with the request before, the rest looks like a good head.
    let mut wire = server.connect().await;
    wire.send(GET.to_owned() + "POST /echo HTTP/1.1\r\nContent-Length: 9\r\nA: ").await;
    assert_eq!(wire.answer().await.status, 200);
    wire.send(post("/echo", "Transfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n")).await;
    assert_eq!(wire.answer().await.status, 400);
    wire.assert_closed().await;
}

#[tokio::test]
async fn a_chunked_request_that_starts_while_another_is_served_is_refused() {
    let server = Server::start(Limits::default());
    let mut wire = server.connect().await;
    wire.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n").await;
    within(server.site.entered.notified()).await;
    wire.send("POST /echo HTTP/1.1\r\nContent-Length: 9\r\nA: ").await;
    // Time to read that. Where it is not enough, the whole head is seen and refused for its length.
    tokio::time::sleep(Duration::from_millis(50)).await;
    server.site.release.notify_one();
    assert_eq!(wire.answer().await.status, 200);
    wire.send(post("/echo", "Transfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n")).await;
    assert_eq!(wire.answer().await.status, 400);
    wire.assert_closed().await;
}

#[tokio::test]
async fn a_connection_with_an_unread_body_is_closed() {
    let server = Server::start(Limits::default());
    let mut wire = server.connect().await;
    wire.send(post("/ignore", "Content-Length: 2\r\n", "{}")).await;
    let answer = wire.answer().await;
    assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
    wire.assert_closed().await;
}

#[tokio::test]
async fn a_body_announced_too_large_is_refused_before_it_is_sent() {
    let server = Server::start(Limits::default());
    for expect in ["", "Expect: 100-continue\r\n"] {
        for length in ["1001", "1000000000000"] {
            let mut wire = server.connect().await;
            wire.send(post("/echo", &format!("{expect}Content-Length: {length}\r\n"), "")).await;
            let answer = wire.answer().await;
            assert_eq!((answer.status, answer.header("connection")), (413, Some("close")));
            wire.assert_closed().await;
        }
    }
}

#[tokio::test]
async fn a_good_body_is_asked_for_where_the_caller_waits() {
    let server = Server::start(Limits::default());
    let mut wire = server.connect().await;
    wire.send(post("/echo", "Expect: 100-continue\r\nContent-Length: 2\r\n", "")).await;
    assert_eq!(wire.answer().await.status, 100);
    wire.send("{}").await;
    assert_eq!(wire.answer().await.status, 200);
}

#[tokio::test]
async fn a_chunked_body_over_the_limit_is_refused_while_it_comes() {
    let server = Server::start(Limits::default());
    let mut wire = server.connect().await;
    let chunk = format!("1f4\r\n{}\r\n", " ".repeat(500));
    wire.send(post("/echo", "Transfer-Encoding: chunked\r\n", &chunk.repeat(3))).await;
    let answer = wire.answer().await;
    assert_eq!((answer.status, answer.header("connection")), (413, Some("close")));
    wire.assert_closed().await;
}

#[tokio::test]
async fn a_refusal_reaches_a_caller_who_sends_the_whole_body_first() {
    let server = Server::start(Limits::default());
    let mut wire = server.connect().await;
    let body = " ".repeat(9 * 1024 * 1024);
    wire.send(post("/echo", &format!("Content-Length: {}\r\n", body.len()), &body)).await;
    assert_eq!(wire.answer().await.status, 413);
    wire.assert_closed().await;
}

#[tokio::test]
async fn silence_and_slow_heads_end_a_connection_without_an_answer() {
    let limits = Limits { head_max: Duration::from_millis(50), ..Limits::default() };
    let server = Server::start(limits);
    server.connect().await.assert_closed().await;

    let mut wire = server.connect().await;
    wire.send("GET /hello HT").await;
    let (rest, _) = wire.rest().await;
    assert_eq!(rest, "");

    let mut wire = server.connect().await;
    wire.send("GET /hello HTTP/1.1\r\n").await;
    // A byte now and then buys no time.
    while wire.try_send("A: b\r\n").await.is_ok() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn an_idle_connection_is_closed_after_a_request() {
    let limits = Limits { keep_alive: Duration::from_millis(50), ..Limits::default() };
    let server = Server::start(limits);
    for request in [GET.to_owned(), post("/echo", "Content-Length: 2\r\n", "{}")] {
        let mut wire = server.connect().await;
        wire.send(request).await;
        assert_eq!(wire.answer().await.status, 200);
        wire.assert_closed().await;
    }
}

#[tokio::test]
async fn a_slow_second_head_ends_a_connection() {
    let limits = Limits { head_max: Duration::from_millis(50), ..Limits::default() };
    let server = Server::start(limits);
    let mut wire = server.connect().await;
    wire.send(GET).await;
    wire.answer().await;
    wire.send("GET /hello").await;
    assert_eq!(wire.rest().await.0, "");
}

#[tokio::test]
async fn nothing_is_timed_while_a_request_is_served() {
    let short = Duration::from_millis(20);
    let limits = Limits { head_max: short, keep_alive: short, ..Limits::default() };
    let server = Server::start(limits);
    let mut wire = server.connect().await;
    wire.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n").await;
    within(server.site.entered.notified()).await;
    tokio::time::sleep(10 * short).await;
    server.site.release.notify_one();
    assert_eq!(wire.answer().await.body, "\"waited\"");
    wire.assert_closed().await;
}

#[tokio::test]
async fn a_reader_that_takes_nothing_is_cut_off_with_a_reset() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut wire = Wire::connect(listener.local_addr().unwrap()).await;
    wire.send("GET /endless HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let (socket, address) = within(listener.accept()).await.unwrap();
    let (_shutdown, stop) = watch::channel(false);
    let limits = Limits::default();
    let patience = Patience { write: Duration::from_millis(50), ..Patience::new(&limits) };
    let site = Arc::new(Site::default());
    let service = |request, peer| Arc::clone(&site).answer(request, peer);
    let ended = within(serve(socket, address, &limits, patience, service, stop)).await;
    assert!(ended.is_err());
    let (rest, ended) = wire.rest().await;
    assert!(rest.starts_with("HTTP/1.1 200 OK"));
    assert_eq!(ended.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_response_body_can_cut_its_connection() {
    let server = Server::start(Limits::default());
    let mut wire = server.connect().await;
    wire.send("GET /cut HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let (_, ended) = wire.rest().await;
    assert_eq!(ended.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
}

#[test]
fn addresses_are_grouped_as_their_holders_have_them() {
    for (address, group) in [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("::1", "::1"),
    ] {
        assert_eq!(address_group(address.parse().unwrap()), group.parse::<IpAddr>().unwrap());
    }
}
