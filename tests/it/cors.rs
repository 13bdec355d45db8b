//! Which pages may call the client API (S10).

use crate::kit::{Caller, Place, Response, message};

const ALLOW_ORIGIN: &str = "access-control-allow-origin";
const ORIGIN: (&str, &str) = ("Origin", "https://shop.example");
const CLIENT: [(&str, &str); 6] = [
    ("/api/client/sessions/input", "POST"),
    ("/api/client/sessions", "GET"),
    ("/api/client/sessions/s1", "GET"),
    ("/api/client/sessions/s1", "PATCH"),
    ("/api/client/sessions/s1", "DELETE"),
    ("/api/client/sessions/s1/events/stream", "GET"),
];
const MACHINE: [(&str, &str); 6] = [
    ("/api/machine/client-tokens", "POST"),
    ("/api/machine/sessions/s1", "DELETE"),
    ("/api/machine/sessions/submit", "POST"),
    ("/api/machine/sessions/s1/events/stream", "GET"),
    ("/healthz", "GET"),
    ("/none", "GET"),
];

fn preflight(caller: &Caller, path: &str, method: &str, origin: &str) -> Response {
    let headers = [
        ("Origin", origin),
        ("Access-Control-Request-Method", method),
        ("Access-Control-Request-Headers", "authorization,content-type,last-event-id"),
    ];
    caller.send("OPTIONS", path, &headers, &[])
}

fn has_no_permission(response: &Response) {
    let cors = |(name, _): &&(String, String)| name.starts_with("access-control-");
    assert_eq!(response.headers.iter().find(cors), None);
}

#[test]
fn every_page_may_call_the_client_api_unless_the_manifest_says_otherwise() {
    let server = Place::new().serve_once();
    let stranger = server.stranger();
    for (path, method) in CLIENT {
        let answer = preflight(&stranger, path, method, ORIGIN.1);
        assert_eq!((answer.status, answer.body.as_slice()), (204, &b""[..]), "{path}");
        assert_eq!(answer.header(ALLOW_ORIGIN), Some("*"));
        let methods = answer.header("access-control-allow-methods").unwrap();
        assert!(methods.split(", ").any(|allowed| allowed == method), "{path}: {methods}");
        let headers = answer.header("access-control-allow-headers").unwrap();
        for needed in ["authorization", "content-type", "last-event-id"] {
            assert!(headers.split(", ").any(|allowed| allowed == needed), "{headers}");
        }
        assert_eq!(answer.header("access-control-allow-credentials"), None);
    }
}

#[test]
fn pages_can_read_answers_refusals_and_streams() {
    let server = Place::new().serve_once();
    let ann = server.client("ann");
    let json = ("Content-Type", "application/json");
    let body = message("s1", "t1", "hi").to_string();
    let path = "/api/client/sessions/input";
    let taken = ann.send("POST", path, &[ORIGIN, json], body.as_bytes());
    let answers = [
        (202, taken),
        (200, ann.send("GET", "/api/client/sessions/s1", &[ORIGIN], &[])),
        (404, ann.send("GET", "/api/client/sessions/s2", &[ORIGIN], &[])),
        (401, server.stranger().send("GET", "/api/client/sessions/s1", &[ORIGIN], &[])),
        (405, ann.send("PUT", "/api/client/sessions/s1", &[ORIGIN], &[])),
        (400, ann.send("POST", path, &[ORIGIN, json], b"{")),
        (415, ann.send("POST", path, &[ORIGIN], b"{}")),
        (200, ann.stream_with("s1", "", &[ORIGIN]).head().clone()),
    ];
    for (status, answer) in answers {
        assert_eq!(answer.status, status, "{}", answer.text());
        assert_eq!(answer.header(ALLOW_ORIGIN), Some("*"), "{status}");
        assert_eq!(answer.header("access-control-allow-credentials"), None);
    }
}

#[test]
fn no_page_may_call_anything_else() {
    let server = Place::new().serve_once();
    let machine = server.machine();
    for (path, method) in MACHINE {
        let answer = preflight(&machine, path, method, ORIGIN.1);
        assert_eq!(answer.status, if path == "/none" { 404 } else { 405 }, "{path}");
        has_no_permission(&answer);
        has_no_permission(&machine.send(method, path, &[ORIGIN], &[]));
    }
}

#[test]
fn a_list_of_origins_lets_these_in_and_nobody_else() {
    let manifest = "[serve]\ncors_origins = [\"https://shop.example\", \"http://localhost:3000\"]";
    let server = Place::with_manifest(manifest).serve_once();
    let ann = server.client("ann");
    for (path, method) in CLIENT {
        for origin in ["https://shop.example", "http://localhost:3000"] {
            let answer = preflight(&ann, path, method, origin);
            assert_eq!((answer.status, answer.header(ALLOW_ORIGIN)), (204, Some(origin)));
            assert_eq!(answer.header("vary"), Some("Origin"));
            let answer = ann.send(method, path, &[("Origin", origin)], &[]);
            assert_eq!(answer.header(ALLOW_ORIGIN), Some(origin), "{path}");
            assert_eq!(answer.header("vary"), Some("Origin"));
        }
        for origin in ["https://evil.example", "https://shop.example.evil.example", "null", "*"] {
            let answer = preflight(&ann, path, method, origin);
            assert_eq!(answer.status, 204);
            has_no_permission(&answer);
            assert_eq!(answer.header("vary"), Some("Origin"));
            has_no_permission(&ann.send(method, path, &[("Origin", origin)], &[]));
        }
    }
}

#[test]
fn an_empty_list_of_origins_lets_nobody_in() {
    let server = Place::with_manifest("[serve]\ncors_origins = []").serve_once();
    has_no_permission(&preflight(&server.stranger(), CLIENT[0].0, "POST", ORIGIN.1));
}
