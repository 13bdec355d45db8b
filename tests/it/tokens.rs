//! Client tokens and API keys: which credential opens which API (S6 to S9, A1, A2).

use serde_json::{Value, json};

use crate::kit::{API_KEY, Caller, Place, Response, Server, message};

const TOKENS: &str = "/api/machine/client-tokens";

fn mint(server: &Server, body: &Value) -> Response {
    server.machine().post(TOKENS, body)
}

pub fn token(server: &Server, body: &Value) -> String {
    mint(server, body).expect(200)["token"].as_str().unwrap().to_owned()
}

pub fn with_bearer(server: &Server, api: &'static str, bearer: &str) -> Caller {
    Caller { address: server.address, bearer: Some(bearer.to_owned()), api }
}

/// Every cause looks the same (A1).
pub fn is_refused(response: &Response) {
    assert_eq!(response.refusal(401), "missing or invalid credential");
    assert_eq!(response.header("www-authenticate"), Some("Bearer"));
}

/// The claims of a token, unchecked.
fn claims(token: &str) -> Value {
    use base64::Engine as _;
    let part = token.split('.').nth(1).unwrap();
    let bytes = base64::prelude::BASE64_URL_SAFE_NO_PAD.decode(part).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

#[test]
fn a_token_says_who_it_is_for_and_until_when() {
    let server = Place::new().serve_once();
    let metadata = json!({ "name": "Ann", "plan": "free" });
    let body = json!({ "identity": { "id": "ann", "metadata": metadata }, "ttl_seconds": 60 });
    let minted = mint(&server, &body).expect(200);
    let claims = claims(minted["token"].as_str().unwrap());
    assert_eq!(claims["exp"], minted["expires_at"]);
    assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), 60);
    assert_eq!((&claims["iss"], &claims["aud"]), (&"turnd".into(), &"turnd-client".into()));
    assert_eq!((&claims["sub"], &claims["tenant"]), (&"ann".into(), &"default".into()));
    assert_eq!(claims["metadata"], metadata);

    let ann = with_bearer(&server, "client", minted["token"].as_str().unwrap());
    ann.say("s1", "t1", "hi");
    let frames = ann.watch_turn("s1", "t1");
    assert_eq!(frames[0].event, "turn.started");
    let first = &ann.stream("s1", "").until(|frame| frame.id == Some(1))[0];
    assert_eq!(first.payload()["identity"], json!({ "id": "ann", "metadata": metadata }));
}

#[test]
fn a_token_lives_ten_minutes_unless_it_is_told_otherwise() {
    let server = Place::new().serve_once();
    let body = |ttl: Value| json!({ "identity": { "id": "ann" }, "ttl_seconds": ttl });
    for (ttl, life) in [(json!(null), 600), (json!(1), 1), (json!(86_400), 86_400)] {
        let claims = claims(&token(&server, &body(ttl)));
        assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), life);
    }
    for ttl in [json!(0), json!(86_401), json!(u64::MAX)] {
        assert_eq!(mint(&server, &body(ttl)).refusal(400), "`ttl_seconds` must be 1 to 86400");
    }
    for ttl in [json!(-1), json!(1.5), json!(1e300)] {
        let refusal = mint(&server, &body(ttl)).refusal(400);
        assert_eq!(refusal, "`ttl_seconds` must be a whole number of 0 or more");
    }
    for ttl in [json!("60"), json!([60]), json!(true)] {
        assert_eq!(mint(&server, &body(ttl)).refusal(422), "`ttl_seconds` must be a number");
    }
}

#[test]
fn an_identity_is_an_owner_and_a_map_of_strings() {
    let server = Place::new().serve_once();
    let owner = "must be 1 to 256 bytes of printable text";
    let large: Value = (0..257).map(|n| (format!("k{n}"), json!("v"))).collect();
    for (body, status, refusal) in [
        (json!({}), 422, "`identity` is missing".to_owned()),
        (json!({ "identity": null }), 422, "`identity` is missing".to_owned()),
        (json!({ "identity": "ann" }), 422, "`identity` must be an object".to_owned()),
        (json!({ "identity": {} }), 422, "`identity.id` is missing".to_owned()),
        (json!({ "identity": { "id": 7 } }), 422, "`identity.id` must be a string".to_owned()),
        (json!({ "identity": { "id": "" } }), 400, format!("`identity.id` {owner}")),
        (json!({ "identity": { "id": "a\nb" } }), 400, format!("`identity.id` {owner}")),
        (json!({ "identity": { "id": "a\0b" } }), 400, format!("`identity.id` {owner}")),
        (json!({ "identity": { "id": "x".repeat(257) } }), 400, format!("`identity.id` {owner}")),
        (
            json!({ "identity": { "id": "ann", "metadata": [] } }),
            422,
            "`identity.metadata` must be an object".to_owned(),
        ),
        (
            json!({ "identity": { "id": "ann", "metadata": { "age": 7 } } }),
            422,
            "`identity.metadata.age` must be a string".to_owned(),
        ),
        (
            json!({ "identity": { "id": "ann", "metadata": large } }),
            400,
            "`identity.metadata` holds more than 256 entries".to_owned(),
        ),
        (
            json!({ "identity": { "id": "ann", "metadata": { "k": "v".repeat(3000) } } }),
            400,
            "the identity does not fit into a token of 4096 bytes".to_owned(),
        ),
    ] {
        assert_eq!(mint(&server, &body).refusal(status), refusal, "{body}");
    }
    // An owner may be any printable text; unknown members do not matter.
    let ann = json!({ "identity": { "id": "\u{e4}nn \u{1f680}/%00", "age": 7 }, "more": {} });
    let ann = with_bearer(&server, "client", &token(&server, &ann));
    ann.say("s1", "t1", "hi");
    ann.watch_turn("s1", "t1");
}

#[test]
fn each_api_takes_its_own_kind_of_credential_alone() {
    let server = Place::new().serve_once();
    let ann = server.client("ann");
    ann.say("s1", "t1", "hi");
    ann.watch_turn("s1", "t1");
    let client_token = ann.bearer.clone().unwrap();
    let bodies = json!({ "identity": { "id": "ann" } });

    for bearer in [Some(API_KEY), Some("tk_abc_def"), Some(""), Some("a.b.c"), None] {
        let caller = Caller { bearer: bearer.map(str::to_owned), ..ann.clone() };
        is_refused(&caller.input(&message("s1", "t2", "hi")));
        is_refused(&caller.get("/api/client/sessions/s1"));
        is_refused(&caller.no_stream("s1", "", &[]));
    }
    let wrong = format!("{API_KEY}x");
    for bearer in [Some(client_token.as_str()), Some(&wrong), Some("tk_abc_def"), Some(""), None] {
        let bearer = bearer.map(str::to_owned);
        let caller = Caller { bearer, api: "machine", ..ann.clone() };
        is_refused(&caller.post(TOKENS, &bodies));
        is_refused(&caller.submit(&json!({})));
        is_refused(&caller.no_stream("s1", "", &[]));
    }
    assert_eq!(ann.conversation("s1").len(), 2, "nothing was added");
}

#[test]
fn the_scheme_is_bearer_and_stands_once() {
    let server = Place::new().serve_once();
    let stranger = server.stranger();
    let token = server.client("ann").bearer.unwrap();
    let get =
        |headers: &[(&str, &str)]| stranger.send("GET", "/api/client/sessions/s1", headers, &[]);
    let bearer = format!("Bearer {token}");
    for scheme in ["Bearer", "bearer", "BEARER"] {
        let value = format!("{scheme} {token}");
        assert_eq!(get(&[("Authorization", &value)]).status, 404, "{scheme}");
    }
    for value in [format!("Basic {token}"), token.clone(), format!("Bearer {token} x")] {
        is_refused(&get(&[("Authorization", &value)]));
    }
    is_refused(&get(&[("Authorization", &bearer), ("Authorization", &bearer)]));
    // Not in the query either.
    let query = format!("/api/client/sessions/s1?token={token}&access_token={token}");
    is_refused(&stranger.get(&query));
}

#[test]
fn a_token_that_was_touched_is_none() {
    use base64::Engine as _;
    use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
    let server = Place::new().serve_once();
    let token = server.client("ann").bearer.unwrap();
    let [head, body, signature] = token.split('.').collect::<Vec<_>>().try_into().unwrap();
    let other_body = BASE64.encode(claims(&token).to_string().replace("ann", "bob"));
    let none = BASE64.encode(r#"{"typ":"turnd-client+jwt","alg":"none"}"#);
    let flipped = if signature.starts_with('A') { "B" } else { "A" };
    for forged in [
        format!("{head}.{other_body}.{signature}"),
        format!("{none}.{body}."),
        format!("{none}.{body}.{signature}"),
        format!("{head}.{body}.{flipped}{}", &signature[1..]),
        format!("{head}.{body}."),
        format!("{head}.{body}"),
        format!("{token}.{signature}"),
        format!("{token}{}", "A".repeat(8000)),
    ] {
        let forger = with_bearer(&server, "client", &forged);
        is_refused(&forger.get("/api/client/sessions/s1"));
    }
    let server = Place::new().serve_once();
    let ann = with_bearer(&server, "client", &token);
    // The kit's places share one signing key: the token is good at each of them.
    assert_eq!(ann.get("/api/client/sessions/s1").status, 404);
}

#[test]
fn a_token_of_another_key_is_none_until_that_key_is_the_previous_one() {
    let (old, new) = ("old-".repeat(10), "new-".repeat(10));
    let mut place = Place::new();
    place.set("TURND_CLIENT_TOKEN_KEY", &old);
    let server = place.serve();
    let token = server.client("ann").bearer.unwrap();
    server.kill();

    place.set("TURND_CLIENT_TOKEN_KEY", &new);
    let server = place.serve();
    is_refused(&with_bearer(&server, "client", &token).get("/api/client/sessions/s1"));
    server.kill();

    place.set("TURND_CLIENT_TOKEN_KEY_PREVIOUS", &old);
    let server = place.serve();
    assert_eq!(with_bearer(&server, "client", &token).get("/api/client/sessions/s1").status, 404);
    assert_eq!(server.client("ann").get("/api/client/sessions/s1").status, 404);
}

#[test]
fn tokens_and_keys_outlive_a_restart() {
    let place = Place::new();
    let server = place.serve();
    let token = server.client("ann").bearer.unwrap();
    server.kill();
    let server = place.serve();
    assert_eq!(with_bearer(&server, "client", &token).get("/api/client/sessions/s1").status, 404);
}
