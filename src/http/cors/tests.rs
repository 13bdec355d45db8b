use http::header::ACCESS_CONTROL_REQUEST_METHOD;

use super::*;

const METHODS: &str = "GET, OPTIONS";

fn from_page(origin: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(ORIGIN, origin.parse().unwrap());
    headers.insert(ACCESS_CONTROL_REQUEST_METHOD, HeaderValue::from_static("POST"));
    headers
}

/// Name and value of each header about origins, in order of names.
fn shown(headers: &HeaderMap) -> Vec<(&str, &str)> {
    let mut shown: Vec<_> = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
        .filter(|(name, _)| name.starts_with("access-control") || *name == "vary")
        .collect();
    shown.sort_unstable();
    shown
}

#[test]
fn any_page_is_let_in_by_default_and_none_with_cookies() {
    let cors = Cors::new(&["*"]).unwrap();
    let preflight = cors.preflight(&from_page("https://app.example.com"), METHODS);
    assert_eq!(preflight.status(), StatusCode::NO_CONTENT);
    assert_eq!(
        shown(preflight.headers()),
        [
            ("access-control-allow-headers", ALLOWED_HEADERS),
            ("access-control-allow-methods", "GET, OPTIONS"),
            ("access-control-allow-origin", "*"),
            ("access-control-max-age", "600"),
        ]
    );
    let mut reply = HeaderMap::new();
    cors.apply(&HeaderMap::new(), &mut reply);
    assert_eq!(
        shown(&reply),
        [("access-control-allow-origin", "*"), ("access-control-expose-headers", EXPOSED_HEADERS),]
    );
}

#[test]
fn a_list_of_origins_lets_in_these_pages_alone() {
    let cors = Cors::new(&["https://app.example.com", "http://localhost:3000"]).unwrap();
    for (origin, allowed) in [
        ("https://app.example.com", true),
        ("http://localhost:3000", true),
        ("http://app.example.com", false),
        ("https://app.example.com:444", false),
        ("https://app.example.com.evil.example", false),
        ("null", false),
    ] {
        let request = from_page(origin);
        let expected = if allowed {
            vec![
                ("access-control-allow-origin", origin),
                ("access-control-expose-headers", EXPOSED_HEADERS),
                ("vary", "Origin"),
            ]
        } else {
            vec![("vary", "Origin")]
        };
        let mut reply = HeaderMap::new();
        cors.apply(&request, &mut reply);
        assert_eq!(shown(&reply), expected);
        let preflight = cors.preflight(&request, METHODS);
        assert_eq!(preflight.headers().contains_key(ACCESS_CONTROL_ALLOW_METHODS), allowed);
        assert_eq!(preflight.headers().get(VARY).unwrap(), "Origin");
    }
}

#[test]
fn a_vary_of_the_route_stays() {
    let cors = Cors::new(&["https://app.example.com"]).unwrap();
    let mut reply = HeaderMap::new();
    reply.insert(VARY, HeaderValue::from_static("Accept"));
    cors.apply(&HeaderMap::new(), &mut reply);
    let vary: Vec<_> = reply.get_all(VARY).iter().collect();
    assert_eq!(vary, ["Accept", "Origin"]);
}

#[test]
fn an_origin_is_a_scheme_and_a_host() {
    for origin in ["https://app.example.com", "http://[::1]:3000", "capacitor://localhost"] {
        assert!(Cors::new(&[origin]).is_ok(), "{origin}");
    }
    for origin in [
        "",
        "app.example.com",
        "https://",
        "https://a/",
        "https://*.a",
        "https://a b",
        "https://a,b",
    ] {
        assert!(Cors::new(&[origin]).is_err(), "{origin}");
    }
    let Ok(Cors::These(origins)) = Cors::new(&["HTTPS://App.Example.com"]) else {
        panic!("a list was given");
    };
    assert_eq!(origins, ["https://app.example.com"], "browsers send lower case");
}
