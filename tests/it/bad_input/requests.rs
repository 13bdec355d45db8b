//! Requests around their bodies: paths, methods, types, lengths, framing.

use serde_json::json;

use super::{Bench, INPUT, SUBMIT, input_with};
use crate::kit::{Caller, Connection, Response, message, request};

#[test]
fn an_id_in_a_path_is_decoded_once_and_checked() {
    let bench = Bench::new();
    bench.ann.say("a:b", "t1", "hi");
    bench.ann.watch_turn("a:b", "t1");
    for path in ["a:b", "a%3Ab", "%61%3a%62"] {
        assert_eq!(bench.ann.session(path)["session_id"], "a:b", "{path}");
        assert_eq!(bench.ann.watch_turn(path, "t1")[0].event, "turn.started");
    }
    let bad = "the session id in the path is not one";
    let long = "x".repeat(129);
    for id in [
        "%00",
        "a%00b",
        "a%2Fb",
        "%2e%2e%2fx",
        "a%0d%0ab",
        "%ff",
        "%c3%a4",
        "%",
        "%zz",
        "a%20b",
        "%2561",
        "a,b",
        "a;b",
        "a!b",
        &long,
    ] {
        let view = bench.ann.get(&format!("/api/client/sessions/{id}"));
        assert_eq!(view.refusal(400), bad, "{id}");
        assert_eq!(bench.ann.no_stream(id, "", &[]).refusal(400), bad, "{id}");
        assert_eq!(bench.machine.no_stream(id, "", &[]).refusal(400), bad, "{id}");
    }
    // A path is not tidied up: it names no route.
    for path in
        ["/api/client/sessions/", "/api/client/sessions//events/stream", "/api/client/./sessions/a"]
    {
        let status = bench.ann.get(path).status;
        assert!(matches!(status, 400 | 404), "{path}: {status}");
    }
    bench.is_unharmed();
}

#[test]
fn a_body_beyond_the_limit_is_refused_before_it_is_read() {
    let bench = Bench::with_manifest("[limits]\nbody_bytes_max = 4096\n");
    let too_large = "the body is larger than 4096 bytes";
    let headers = [("Content-Type", "application/json")];
    // Declared, and not a byte of it sent.
    for length in ["4097", "1000000000000", "18446744073709551616", "99999999999999999999999"] {
        let declared = [headers[0], ("Content-Length", length)];
        let head = bench.ann.request("PUT", INPUT, &declared, &[]);
        let head = String::from_utf8(head).unwrap().replacen("PUT", "POST", 1);
        let mut connection = Connection::open(bench.server.address);
        connection.send(head.as_bytes());
        let answer = connection.response();
        // A length that no number holds may be refused by the parser alone.
        if length.len() < 20 {
            assert_eq!(answer.refusal(413), too_large, "{length}");
            assert_eq!(answer.header("connection"), Some("close"));
        } else {
            assert!(matches!(answer.status, 400 | 413), "{length}: {}", answer.status);
        }
        assert!(connection.is_closed());
    }
    // Sent as a whole.
    let body = message("bad", "t1", &"x".repeat(5000)).to_string();
    assert_eq!(bench.ann.post_text(INPUT, &body).refusal(413), too_large);
    // In chunks, with no word on how much will come.
    let chunked = [headers[0], ("Transfer-Encoding", "chunked")];
    let head = bench.ann.request("PUT", INPUT, &chunked, &[]);
    let head = String::from_utf8(head).unwrap().replacen("PUT", "POST", 1);
    let mut connection = Connection::open(bench.server.address);
    connection.send(head.as_bytes());
    for _ in 0..5 {
        connection.send(format!("400\r\n{}\r\n", "x".repeat(1024)).as_bytes());
    }
    let answer = connection.response();
    assert_eq!(answer.refusal(413), too_large);
    assert!(connection.is_closed());
    // Just inside, in chunks and whole.
    let body = message("fits", "t1", "hi").to_string();
    let body = format!("{body}{}", " ".repeat(4096 - body.len()));
    let mut connection = Connection::open(bench.server.address);
    connection.send(head.as_bytes());
    for chunk in body.as_bytes().chunks(1000) {
        connection.send(&[format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat());
    }
    connection.send(b"0\r\n\r\n");
    connection.response().expect(202);
    assert_eq!(bench.ann.post_text(INPUT, &body).status, 202);
    bench.is_unharmed();
}

#[test]
fn a_body_that_is_not_declared_as_json_is_not_read() {
    let bench = Bench::new();
    let body = message("bad", "t1", "hi").to_string();
    let problem = "the body must be `Content-Type: application/json` in UTF-8, without an encoding";
    for headers in [
        &[][..],
        &[("Content-Type", "text/plain")],
        &[("Content-Type", "application/x-www-form-urlencoded")],
        &[("Content-Type", "multipart/form-data; boundary=x")],
        &[("Content-Type", "application/jsonx")],
        &[("Content-Type", "application/json; charset=utf-16")],
        &[("Content-Type", "")],
        &[("Content-Type", "application/json"), ("Content-Type", "text/plain")],
        &[("Content-Type", "application/json"), ("Content-Encoding", "gzip")],
        &[("Content-Type", "application/json"), ("Content-Encoding", "br")],
    ] {
        let answer = bench.ann.send("POST", INPUT, headers, body.as_bytes());
        assert_eq!(answer.refusal(415), problem, "{headers:?}");
        let answer = bench.machine.send("POST", SUBMIT, headers, b"not even JSON");
        assert_eq!(answer.refusal(415), problem, "{headers:?}");
    }
    for (number, content_type) in
        ["application/json; charset=utf-8", "Application/JSON ;charset=\"UTF-8\""]
            .iter()
            .enumerate()
    {
        let body = message(&format!("fine{number}"), "t1", "hi").to_string();
        let headers = [("Content-Type", *content_type), ("Content-Encoding", "identity")];
        assert_eq!(bench.ann.send("POST", INPUT, &headers, body.as_bytes()).status, 202);
    }
    bench.is_unharmed();
}

#[test]
fn a_known_path_names_its_methods_and_an_unknown_one_is_not_found() {
    let bench = Bench::new();
    let routes = [
        ("/healthz", "GET, HEAD"),
        ("/readyz", "GET, HEAD"),
        (INPUT, "POST, OPTIONS"),
        ("/api/client/sessions", "GET, OPTIONS"),
        ("/api/client/sessions/bad", "GET, PATCH, DELETE, OPTIONS"),
        ("/api/client/sessions/bad/events/stream", "GET, OPTIONS"),
        ("/api/client/sessions/bad/interrupt", "POST, OPTIONS"),
        ("/api/client/sessions/bad/cancel", "POST, OPTIONS"),
        ("/api/client/sessions/bad/blobs/bad", "GET, OPTIONS"),
        ("/api/client/sessions/bad/blobs/bad/url", "GET, OPTIONS"),
        ("/api/machine/client-tokens", "POST"),
        (SUBMIT, "POST"),
        ("/api/machine/sessions/bad", "PATCH, DELETE"),
        ("/api/machine/sessions/bad/events/stream", "GET"),
        ("/api/machine/sessions/bad/interrupt", "POST"),
        ("/api/machine/sessions/bad/cancel", "POST"),
        ("/api/machine/sessions/bad/blobs/bad", "GET"),
        ("/api/machine/owners/ann", "DELETE"),
    ];
    for (path, allow) in routes {
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"] {
            if allow.split(", ").any(|allowed| allowed == method) {
                continue;
            }
            // The method is looked at before the credential.
            for caller in [&bench.ann, &bench.machine, &bench.server.stranger()] {
                let answer = caller.send(method, path, &[], &[]);
                let refusal = answer.refusal(405);
                assert_eq!(refusal, format!("method not allowed; this path takes {allow}"));
                assert_eq!(answer.header("allow"), Some(allow), "{method} {path}");
            }
        }
    }
    for path in [
        "/",
        "/api",
        "/api/client",
        "/healthz/",
        "/HEALTHZ",
        "//healthz",
        "/api/machine/sessions",
        "/api/machine/owners",
        "/api/client/sessions/bad/events",
        "/favicon.ico",
        "/api/v1/orgs/x/y/z/w",
    ] {
        for method in ["GET", "POST", "DELETE"] {
            assert_eq!(
                bench.ann.send(method, path, &[], &[]).refusal(404),
                "unknown path",
                "{path}"
            );
        }
    }
    bench.is_unharmed();
}

#[test]
fn the_first_thing_that_is_wrong_is_the_one_that_is_told() {
    let bench = Bench::with_manifest("[limits]\nbody_bytes_max = 4096\n");
    let (ann, stranger) = (&bench.ann, bench.server.stranger());
    let json = [("Content-Type", "application/json")];
    let large = vec![b'x'; 5000];
    let send =
        |caller: &Caller, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]| {
            caller.send(method, path, headers, body).status
        };
    // Path, method, credential, length, type, JSON, shape, range, then the session's own.
    assert_eq!(send(&stranger, "PUT", "/none", &[], &large), 404);
    assert_eq!(send(&stranger, "PUT", INPUT, &[], &large), 405);
    assert_eq!(send(&stranger, "POST", INPUT, &[], &large), 401);
    assert_eq!(send(ann, "POST", INPUT, &[], &large), 413);
    assert_eq!(send(ann, "POST", INPUT, &[], b"x"), 415);
    assert_eq!(send(ann, "POST", INPUT, &json, b"x"), 400);
    let mut body = input_with("input.message", json!(1));
    assert_eq!(ann.input(&body).status, 422);
    body["input"]["message"] = json!({ "role": "user", "content": "hi" });
    body["input"]["agent_id"] = "no such agent".into();
    assert_eq!(ann.input(&body).status, 400);
    body["input"]["agent_id"] = "nobody".into();
    assert_eq!(ann.input(&body).status, 404);
    bench.is_unharmed();
}

/// Raw requests with a good credential; the connection ends with the answer.
fn raw(bench: &Bench, head: &str, body: &[u8]) -> Response {
    let bearer = bench.ann.bearer.as_ref().unwrap();
    let head = head.replace("AUTH", &format!("Authorization: Bearer {bearer}"));
    let mut connection = Connection::open(bench.server.address);
    connection.send(&[head.replace('\n', "\r\n").as_bytes(), body].concat());
    let answer = connection.response();
    assert!(connection.is_closed(), "{head}");
    answer
}

#[test]
fn requests_that_two_parsers_may_read_differently_end_their_connection() {
    let bench = Bench::new();
    let body = message("bad", "t1", "hi").to_string();
    let length = body.len();
    let chunked = format!("{length:x}\r\n{body}\r\n0\r\n\r\n");
    let post = format!("POST {INPUT} HTTP/1.1\nHost: x\nAUTH\nContent-Type: application/json\n");
    for (head, body) in [
        (format!("{post}Content-Length: {length}\nTransfer-Encoding: chunked\n\n"), &chunked),
        (format!("{post}Transfer-Encoding: gzip, chunked\n\n"), &chunked),
        (format!("{post}Transfer-Encoding: chunked\nTransfer-Encoding: chunked\n\n"), &chunked),
        (format!("{post}Transfer-Encoding: identity\n\n"), &body),
        (format!("{post}Content-Length: {length}\nContent-Length: {}\n\n", length + 1), &body),
        (format!("{post}Content-Length: +{length}\n\n"), &body),
        (format!("{post}Host: y\nContent-Length: {length}\n\n"), &body),
        (format!("{}Content-Length: {length}\n\n", post.replace("Host: x\n", "")), &body),
        (format!("{post}Upgrade: websocket\nContent-Length: {length}\n\n"), &body),
        (format!("{post}Content-Length : {length}\n\n"), &body),
        (format!("{post}Content-Length: {length}\n folded: x\n\n"), &body),
        (
            format!(
                "{}Content-Length: {length}\n\n",
                post.replace(INPUT, &format!("http://x{INPUT}"))
            ),
            &body,
        ),
    ] {
        assert_eq!(raw(&bench, &head, body.as_bytes()).status, 400, "{head}");
    }
    for method in ["TRACE", "CONNECT"] {
        let head = format!("{method} {INPUT} HTTP/1.1\nHost: x\nAUTH\n\n");
        let status = raw(&bench, &head, b"").status;
        assert!(matches!(status, 400 | 405), "{method}: {status}");
    }
    let long = format!("GET /{} HTTP/1.1\nHost: x\nAUTH\n\n", "x".repeat(9000));
    assert_eq!(
        raw(&bench, &long, b"").refusal(414),
        "the request target is longer than 8192 bytes"
    );
    let many: String =
        (0..80).flat_map(|n| ["X-".to_owned(), n.to_string(), ": y\n".to_owned()]).collect();
    assert_eq!(raw(&bench, &format!("GET /healthz HTTP/1.1\nHost: x\n{many}\n"), b"").status, 431);
    let large = "y".repeat(40 * 1024);
    assert_eq!(
        raw(&bench, &format!("GET /healthz HTTP/1.1\nHost: x\nX: {large}\n\n"), b"").status,
        431
    );
    bench.is_unharmed();
}

#[test]
fn many_good_requests_go_over_one_connection() {
    let bench = Bench::new();
    let mut connection = Connection::open(bench.server.address);
    for number in 0..5 {
        let body = message(&format!("s{number}"), "t1", "hi").to_string();
        let headers = [("Content-Type", "application/json")];
        connection.send(&bench.ann.request("POST", INPUT, &headers, body.as_bytes()));
        connection.response().expect(202);
        connection.send(&request("GET", "/healthz", &[], &[]));
        assert_eq!(connection.response().expect(200), json!({ "ok": true }));
        // A refusal whose body was read does not end the connection either.
        connection.send(&bench.ann.request("POST", INPUT, &headers, b"{}"));
        assert_eq!(connection.response().status, 422);
    }
    bench.is_unharmed();
}

#[test]
fn a_server_that_listens_is_healthy_and_ready() {
    let bench = Bench::new();
    for path in ["/healthz", "/readyz"] {
        assert_eq!(bench.server.stranger().get(path).expect(200), json!({ "ok": true }));
        let mut probe = Connection::open(bench.server.address);
        probe.send(&request("HEAD", path, &[("Connection", "close")], &[]));
        assert_eq!(probe.try_head().unwrap().status, 200);
        assert!(probe.is_closed(), "a HEAD has no body");
    }
}
