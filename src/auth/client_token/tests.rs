use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use serde_json::{Value, json};

use super::*;

const KEY: &[u8] = &[7; 32];
const OTHER_KEY: &[u8] = &[8; 32];
const MINTED_AT: Timestamp = Timestamp::from_millis(1_000_000_000);

fn tokens() -> ClientTokens {
    ClientTokens::new(KEY, None).unwrap()
}

fn tenant() -> TenantId {
    TenantId::parse("default").unwrap()
}

fn identity(metadata: Option<&str>) -> Identity {
    let metadata = metadata.map(|text| Json::parse(text).unwrap());
    Identity { id: OwnerId::parse("Zo\u{eb} <zoe@example.com>").unwrap(), metadata }
}

fn header() -> Value {
    json!({ "typ": "turnd-client+jwt", "alg": "HS256" })
}

fn claims() -> Value {
    json!({
        "iss": "turnd", "aud": "turnd-client", "sub": "zoe", "tenant": "default",
        "iat": 1_000_000, "exp": 1_000_600, "jti": "1", "metadata": { "plan": "pro" },
    })
}

/// `value` with the member `name` set, or removed where `to` is `None`.
fn with(mut value: Value, name: &str, to: Option<Value>) -> Value {
    let members = value.as_object_mut().unwrap();
    members.remove(name);
    members.extend(to.map(|to| (name.to_owned(), to)));
    value
}

/// Signs what it is given with HMAC-SHA256, whatever the header says.
fn signed(header: &str, claims: &str, key: &[u8]) -> String {
    let message = format!("{}.{}", BASE64.encode(header), BASE64.encode(claims));
    let key = EncodingKey::from_secret(key);
    let signature = jsonwebtoken::crypto::sign(message.as_bytes(), &key, Algorithm::HS256).unwrap();
    format!("{message}.{signature}")
}

fn verified(header: &Value, claims: &Value) -> Option<ClientPrincipal> {
    tokens().verify(&signed(&header.to_string(), &claims.to_string(), KEY), MINTED_AT)
}

#[test]
fn a_minted_token_says_who_the_caller_is() {
    for metadata in [None, Some(r#"{"plan":"pro","":"caf\u00e9"}"#)] {
        let identity = identity(metadata);
        let (token, expires_at) = tokens().mint(&tenant(), &identity, 600, MINTED_AT).unwrap();
        assert_eq!(expires_at, 1_000_600);
        let principal = tokens().verify(&token, MINTED_AT).unwrap();
        let expires_at = Timestamp::from_secs(1_000_600);
        assert_eq!(principal, ClientPrincipal { tenant: tenant(), identity, expires_at });
    }
}

#[test]
fn the_token_of_this_table_is_good_but_for_what_each_test_changes() {
    let principal = verified(&header(), &claims()).unwrap();
    assert_eq!(principal.identity.id.as_str(), "zoe");
    assert!(verified(&header(), &with(claims(), "metadata", None)).is_some());
    assert!(verified(&header(), &with(claims(), "metadata", Some(Value::Null))).is_some());
}

#[test]
fn a_token_ends_five_seconds_after_its_time() {
    let token = tokens().mint(&tenant(), &identity(None), 600, MINTED_AT).unwrap().0;
    let good_at = |secs| tokens().verify(&token, Timestamp::from_secs(secs)).is_some();
    assert!(good_at(1_000_600));
    assert!(good_at(1_000_604));
    assert!(!good_at(1_000_605));
    assert!(!good_at(1_000_606));
}

#[test]
fn every_claim_is_required_and_of_its_type() {
    for name in ["iss", "aud", "sub", "tenant", "iat", "exp", "jti"] {
        for value in [None, Some(Value::Null), Some(json!([])), Some(json!({})), Some(json!(true))]
        {
            let changed = with(claims(), name, value.clone());
            assert_eq!(verified(&header(), &changed), None, "{name}: {value:?}");
        }
    }
    for (name, value) in [
        ("iss", json!("turned")),
        ("iss", json!(["turnd"])),
        ("aud", json!("turnd-admin")),
        ("aud", json!(["turnd-client"])),
        ("sub", json!("")),
        ("sub", json!(7)),
        ("sub", json!("a\nb")),
        ("tenant", json!("")),
        ("tenant", json!(7)),
        ("tenant", json!("two words")),
        ("iat", json!("1000000")),
        ("iat", json!(1_000_000.5)),
        ("exp", json!("1000600")),
        ("exp", json!(1_000_600.5)),
        ("exp", json!(-1)),
        ("exp", json!(u64::MAX)),
        ("jti", json!("")),
        ("jti", json!(1)),
        ("metadata", json!("pro")),
        ("metadata", json!(["pro"])),
        ("metadata", json!({ "plan": 1 })),
        ("metadata", json!({ "plan": null })),
    ] {
        let changed = with(claims(), name, Some(value.clone()));
        assert_eq!(verified(&header(), &changed), None, "{name}: {value}");
    }
    let twice = claims().to_string().replacen('{', r#"{"sub":"adam","#, 1);
    assert_eq!(tokens().verify(&signed(&header().to_string(), &twice, KEY), MINTED_AT), None);
}

#[test]
fn a_token_lives_no_longer_than_a_day_whoever_minted_it() {
    let lives = |exp: i64| verified(&header(), &with(claims(), "exp", Some(json!(exp)))).is_some();
    assert!(lives(1_000_000 + 86_400));
    assert!(!lives(1_000_000 + 86_401));
    assert!(!lives(i64::MAX));
    assert!(!lives(1_000_000));
}

#[test]
fn the_header_is_ours_to_the_letter() {
    for (name, value) in [
        ("alg", json!("none")),
        ("alg", json!("None")),
        ("alg", json!("HS384")),
        ("alg", json!("HS512")),
        ("alg", json!("RS256")),
        ("alg", json!("ES256")),
        ("alg", json!("EdDSA")),
        ("alg", json!("hs256")),
        ("alg", json!(["HS256"])),
        ("typ", json!("JWT")),
        ("typ", json!("TURND-CLIENT+JWT")),
        ("typ", json!(null)),
        ("kid", json!("../../etc/passwd")),
        ("kid", json!("1")),
        ("jku", json!("https://evil.example/keys")),
        ("x5u", json!("https://evil.example/cert")),
        ("jwk", json!({ "kty": "oct", "k": BASE64.encode(OTHER_KEY) })),
        ("crit", json!(["exp"])),
        ("crit", json!([])),
        ("b64", json!(false)),
        ("cty", json!("JWT")),
        ("zip", json!("DEF")),
        ("anything", json!(1)),
    ] {
        let changed = with(header(), name, Some(value.clone()));
        assert_eq!(verified(&changed, &claims()), None, "{name}: {value}");
    }
    for name in ["alg", "typ"] {
        assert_eq!(verified(&with(header(), name, None), &claims()), None, "no {name}");
    }
}

#[test]
fn another_algorithm_with_the_right_key_is_refused() {
    for algorithm in [Algorithm::HS384, Algorithm::HS512] {
        let mut header = Header::new(algorithm);
        header.typ = Some(TYPE.to_owned());
        let key = EncodingKey::from_secret(KEY);
        let token = jsonwebtoken::encode(&header, &claims(), &key).unwrap();
        assert_eq!(tokens().verify(&token, MINTED_AT), None);
    }
}

#[test]
fn a_token_has_three_whole_parts() {
    let token = signed(&header().to_string(), &claims().to_string(), KEY);
    assert!(tokens().verify(&token, MINTED_AT).is_some());
    let parts: Vec<_> = token.split('.').collect();
    let [head, body, signature] = parts[..] else {
        panic!("three parts");
    };
    let unsigned = BASE64.encode(r#"{"typ":"turnd-client+jwt","alg":"none"}"#);
    for changed in [
        String::new(),
        ".".to_owned(),
        "..".to_owned(),
        format!("{head}.{body}"),
        format!("{head}.{body}."),
        format!("{unsigned}.{body}."),
        format!("{unsigned}.{body}.{signature}"),
        format!("{token}.{signature}"),
        format!(".{token}"),
        format!("{token}="),
        format!(" {token}"),
        format!("{head}.{}.{signature}", BASE64.encode("{}")),
        token.split_at(token.len() - 1).0.to_owned(),
    ] {
        assert_eq!(tokens().verify(&changed, MINTED_AT), None, "{changed}");
    }
}

#[test]
fn a_token_over_4_kib_is_not_minted_and_not_read() {
    let long = |length| format!(r#"{{"a":"{}"}}"#, "b".repeat(length));
    let minted = tokens().mint(&tenant(), &identity(Some(&long(4096))), 600, MINTED_AT);
    assert!(matches!(minted, Err(MintError::TooLong)));
    let long = with(claims(), "metadata", Some(json!({ "a": "b".repeat(4096) })));
    assert_eq!(verified(&header(), &long), None);
}

#[test]
fn a_life_is_one_second_to_one_day() {
    for (ttl_secs, good) in [(0, false), (1, true), (86_400, true), (86_401, false)] {
        let minted = tokens().mint(&tenant(), &identity(None), ttl_secs, MINTED_AT);
        assert_eq!(minted.is_ok(), good, "{ttl_secs}");
    }
}

#[test]
fn a_token_of_the_previous_key_is_good_while_that_key_is_named() {
    let old = ClientTokens::new(OTHER_KEY, None).unwrap();
    let token = old.mint(&tenant(), &identity(None), 600, MINTED_AT).unwrap().0;
    assert_eq!(tokens().verify(&token, MINTED_AT), None);
    let rotating = ClientTokens::new(KEY, Some(OTHER_KEY)).unwrap();
    assert!(rotating.verify(&token, MINTED_AT).is_some());
    let fresh = rotating.mint(&tenant(), &identity(None), 600, MINTED_AT).unwrap().0;
    assert!(tokens().verify(&fresh, MINTED_AT).is_some(), "new tokens use the new key");
}

#[test]
fn a_short_key_is_refused() {
    assert!(matches!(ClientTokens::new(&[1; 31], None), Err(KeyError::Short)));
    assert!(matches!(ClientTokens::new(KEY, Some(b"secret")), Err(KeyError::Short)));
}

#[test]
fn two_tokens_of_one_second_differ() {
    let mint = || tokens().mint(&tenant(), &identity(None), 600, MINTED_AT).unwrap().0;
    assert_ne!(mint(), mint());
}

#[test]
fn debug_shows_no_key() {
    assert_eq!(format!("{:?}", tokens()), "ClientTokens");
}
