use super::*;

#[test]
fn a_path_has_one_route_or_none() {
    let client = |route| Some(Route::Client(route));
    let machine = |route| Some(Route::Machine(route));
    let blob = BlobPath { session: "s1", hex: "ab" };
    for (path, route) in [
        ("/healthz", Some(Route::Health)),
        ("/readyz", Some(Route::Ready)),
        ("/api/client/sessions", client(ClientRoute::Sessions)),
        ("/api/client/sessions/input", client(ClientRoute::Input)),
        ("/api/client/sessions/s1", client(ClientRoute::Session("s1"))),
        ("/api/client/sessions/s1/events/stream", client(ClientRoute::Stream("s1"))),
        ("/api/client/sessions/input/events/stream", client(ClientRoute::Stream("input"))),
        ("/api/client/sessions/s1/interrupt", client(ClientRoute::Interrupt("s1"))),
        ("/api/client/sessions/s1/cancel", client(ClientRoute::Cancel("s1"))),
        ("/api/client/sessions/s1/blobs/ab", client(ClientRoute::Blob(blob))),
        ("/api/client/sessions/s1/blobs/ab/url", client(ClientRoute::BlobUrl(blob))),
        ("/api/machine/client-tokens", machine(MachineRoute::Tokens)),
        ("/api/machine/sessions/submit", machine(MachineRoute::Submit)),
        ("/api/machine/sessions/s1", machine(MachineRoute::Session("s1"))),
        ("/api/machine/sessions/s1/events/stream", machine(MachineRoute::Stream("s1"))),
        ("/api/machine/sessions/s1/interrupt", machine(MachineRoute::Interrupt("s1"))),
        ("/api/machine/sessions/s1/cancel", machine(MachineRoute::Cancel("s1"))),
        ("/api/machine/sessions/s1/blobs/ab", machine(MachineRoute::Blob(blob))),
        ("/api/machine/owners/a%20b", machine(MachineRoute::Owner("a%20b"))),
        ("/api/machine/sessions", None),
        ("/api/machine/sessions/s1/blobs/ab/url", None),
        ("/api/client/owners/ann", None),
        ("/api/client/sessions/s1/blobs", None),
        ("/api/client/sessions/s1/events", None),
        ("/api/client/sessions/s1/events/stream/x", None),
        ("/api/client/sessions/s1/blobs/ab/url/x", None),
        ("/api/client/sessions/s1/", None),
        ("/", None),
        ("", None),
        ("healthz", None),
        ("/healthz/", None),
    ] {
        assert_eq!(Route::of(path), route, "{path}");
    }
}

#[test]
fn a_route_takes_the_methods_that_it_lists_and_no_other() {
    for (path, allow) in [
        ("/healthz", "GET, HEAD"),
        ("/api/client/sessions", "GET, OPTIONS"),
        ("/api/client/sessions/input", "POST, OPTIONS"),
        ("/api/client/sessions/s1", "GET, PATCH, DELETE, OPTIONS"),
        ("/api/client/sessions/s1/cancel", "POST, OPTIONS"),
        ("/api/machine/sessions/s1", "PATCH, DELETE"),
        ("/api/machine/owners/ann", "DELETE"),
    ] {
        let route = Route::of(path).unwrap();
        assert_eq!(route.allow(), allow, "{path}");
        for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "get", "ET"] {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            let listed = allow.split(", ").any(|allowed| allowed == method.as_str());
            assert_eq!(route.takes(&method), listed, "{method} {path}");
        }
    }
}
