//! Bytes in messages: recorded as references, read back as they were (S15).

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::kit::{Caller, Place, Provider, Response, Server, input};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n not really \0\xff";

fn data_uri(mime: &str, bytes: &[u8]) -> String {
    format!("data:{mime};base64,{}", BASE64_STANDARD.encode(bytes))
}

/// Says something with bytes in it; returns the path of the blob below the session.
fn send(caller: &Caller, session: &str, turn: &str, mime: &str, bytes: &[u8]) -> String {
    let content = json!([
        { "type": "text", "text": "look" },
        { "type": "image_url", "image_url": { "url": data_uri(mime, bytes) } },
    ]);
    let message = json!({ "role": "user", "content": content });
    let fields = json!({ "type": "client.message", "message": message });
    caller.input(&input(session, turn, fields)).expect(202);
    caller.watch_turn(session, turn);
    let messages = caller.session(session)["messages"].clone();
    let part = messages.as_array().unwrap().iter().rev().nth(1).unwrap()["content"][1].clone();
    assert_eq!((&part["mime"], &part["size"]), (&mime.into(), &bytes.len().into()));
    let uri = part["image_url"]["url"].as_str().unwrap();
    format!("/blobs/{}", uri.strip_prefix("blob://").unwrap())
}

fn shows(answer: &Response, bytes: &[u8]) {
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.body, bytes);
}

fn served() -> (Place, Server) {
    let place = Place::new();
    let server = place.serve();
    (place, server)
}

#[test]
fn bytes_are_recorded_by_name_and_read_back_as_they_were() {
    let (place, server) = served();
    let ann = server.client("ann");
    let blob = send(&ann, "s1", "t1", "image/png", PNG);
    let frames = ann.stream("s1", "").until_completed("t1");
    let encoded = BASE64_STANDARD.encode(PNG);
    assert!(!frames.iter().any(|frame| frame.bytes.contains(&encoded)), "no event holds bytes");
    // Killed, not stopped: what was answered is on disk.
    server.kill();
    let server = place.serve();
    let ann = server.client("ann");
    let answer = ann.get(&ann.path("s1", &blob));
    shows(&answer, PNG);
    let hex = blob.rsplit_once('/').unwrap().1;
    for (name, value) in [
        ("content-type", "image/png"),
        ("content-length", &PNG.len().to_string()),
        ("cache-control", "private, max-age=31536000, immutable"),
        ("content-security-policy", "sandbox; default-src 'none'"),
        ("x-content-type-options", "nosniff"),
        ("accept-ranges", "bytes"),
        ("etag", &format!("\"{hex}\"")),
    ] {
        assert_eq!(answer.header(name), Some(value), "{name}");
    }
    assert_eq!(answer.header("content-disposition"), None);
    let machine = server.machine();
    shows(&machine.get(&machine.path("s1", &blob)), PNG);
}

#[test]
fn bytes_that_come_with_a_turn_that_waits_are_kept_as_well() {
    let provider = Provider::start();
    let place = Place::with_manifest(&provider.manifest());
    let server = place.serve();
    let ann = server.client("ann");
    ann.say("s1", "t1", "hello");
    let call = provider.call();
    let content =
        json!([{ "type": "image_url", "image_url": { "url": data_uri("image/png", PNG) } }]);
    let message = json!({ "id": "m2", "role": "user", "content": content });
    let fields = json!({ "type": "client.message", "message": message, "queue": true });
    assert_eq!(ann.input(&input("s1", "t2", fields)).expect(202)["queued"], true);
    server.kill();
    drop(call);
    let server = place.serve();
    let ann = server.client("ann");
    provider.call().answer("one");
    let call = provider.call();
    // The model is shown the bytes themselves.
    assert!(call.request.to_string().contains(&BASE64_STANDARD.encode(PNG)), "{}", call.request);
    call.answer("two");
    ann.watch_turn("s1", "t2");
    let part = ann.session("s1")["messages"][2]["content"][0].clone();
    let uri = part["image_url"]["url"].as_str().unwrap();
    shows(&ann.get(&ann.path("s1", &uri.replace("blob://", "/blobs/"))), PNG);
}

#[test]
fn a_result_of_a_tool_may_hold_bytes() {
    let (_place, server) = served();
    let ann = server.client("ann");
    let fields = json!({
        "type": "client.append",
        "messages": [{ "role": "user", "content": "/call camera {}" }],
        "client": { "tools": [{ "name": "camera" }] },
    });
    ann.input(&input("s1", "t1", fields)).expect(202);
    let frames = ann.stream("s1", "").until(|frame| frame.event == "tool.call.dispatched");
    let id = frames.last().unwrap().payload()["id"].clone();
    let block =
        json!({ "type": "image", "mimeType": "image/png", "data": BASE64_STANDARD.encode(PNG) });
    let result = json!({ "type": "tool.result", "id": id, "result": { "content": [block] } });
    ann.input(&json!({ "session_id": "s1", "input": result })).expect(202);
    let frames = ann.watch_turn("s1", "t1");
    let completed = frames.iter().find(|frame| frame.event == "tool.call.completed").unwrap();
    let block = completed.payload()["result"]["content"][0].clone();
    assert_eq!((&block["size"], &block["mimeType"]), (&PNG.len().into(), &"image/png".into()));
    let uri = block["data"].as_str().unwrap();
    shows(&ann.get(&ann.path("s1", &uri.replace("blob://", "/blobs/"))), PNG);
}

#[test]
fn a_browser_saves_what_it_must_not_show() {
    let (_place, server) = served();
    let ann = server.client("ann");
    for (number, (mime, is_saved)) in [
        ("text/html", true),
        ("application/pdf", true),
        ("text/javascript", true),
        ("text/plain", false),
        ("audio/mpeg", false),
        ("video/mp4", false),
        ("image/svg+xml", false),
    ]
    .into_iter()
    .enumerate()
    {
        let bytes = format!("<script>{number}</script>");
        let blob = send(&ann, "s1", &format!("t{number}"), mime, bytes.as_bytes());
        let answer = ann.get(&ann.path("s1", &blob));
        shows(&answer, bytes.as_bytes());
        assert_eq!(answer.header("content-type"), Some(mime));
        assert_eq!(answer.header("content-disposition"), is_saved.then_some("attachment"));
        let policy = answer.header("content-security-policy");
        assert_eq!(policy, Some("sandbox; default-src 'none'"));
    }
}

#[test]
fn a_part_of_a_blob_can_be_read() {
    let (_place, server) = served();
    let ann = server.client("ann");
    let bytes: Vec<u8> = (0..200_000_u32).flat_map(u32::to_be_bytes).collect();
    let blob = ann.path("s1", &send(&ann, "s1", "t1", "video/mp4", &bytes));
    let get = |headers: &[(&str, &str)]| ann.send("GET", &blob, headers, &[]);
    for (range, first, last) in [
        ("bytes=0-0", 0, 0),
        ("bytes=100-70000", 100, 70_000),
        ("bytes=799990-", 799_990, 799_999),
        ("bytes=-5", 799_995, 799_999),
        ("bytes=5-999999999", 5, 799_999),
    ] {
        let answer = get(&[("Range", range)]);
        assert_eq!(answer.status, 206, "{range}");
        assert_eq!(answer.body, bytes[first..=last], "{range}");
        let content_range = format!("bytes {first}-{last}/800000");
        assert_eq!(answer.header("content-range"), Some(content_range.as_str()));
        assert_eq!(answer.header("content-length"), Some((last - first + 1).to_string().as_str()));
        assert_eq!(answer.header("content-type"), Some("video/mp4"));
    }
    let beyond = get(&[("Range", "bytes=800000-")]);
    assert_eq!(beyond.header("content-range"), Some("bytes */800000"));
    assert_eq!(beyond.refusal(416), "no byte of the range is among the 800000");
    for range in ["bytes=0-1,5-6", "lines=1-2", "bytes=x"] {
        shows(&get(&[("Range", range)]), &bytes);
    }
    let etag = get(&[]).header("etag").unwrap().to_owned();
    for known in [etag.as_str(), "*", &format!("\"x\", W/{etag}")] {
        let answer = get(&[("If-None-Match", known), ("Range", "bytes=0-0")]);
        assert_eq!((answer.status, answer.body.len()), (304, 0), "{known}");
        assert_eq!(answer.header("etag"), Some(etag.as_str()));
    }
    shows(&get(&[("If-None-Match", "\"x\"")]), &bytes);
    assert_eq!(get(&[("If-Range", &etag), ("Range", "bytes=0-0")]).status, 206);
    assert_eq!(get(&[("If-Range", "\"x\""), ("Range", "bytes=0-0")]).status, 200);
}

#[test]
fn a_blob_is_read_in_a_session_that_names_it_by_who_may_read_that() {
    let (_place, server) = served();
    let (ann, bob, machine) = (server.client("ann"), server.client("bob"), server.machine());
    let image = send(&ann, "s1", "t1", "image/png", PNG);
    let other = send(&ann, "s2", "t1", "image/png", b"other");
    assert_eq!(ann.get(&ann.path("s2", &image)).refusal(404), "unknown blob");
    assert_eq!(ann.get(&ann.path("s1", &other)).refusal(404), "unknown blob");
    assert_eq!(ann.get(&ann.path("s9", &image)).refusal(404), "unknown session");
    for below in [&image, &format!("{image}/url")] {
        let refusal = bob.get(&bob.path("s1", below)).refusal(403);
        assert_eq!(refusal, "not the owner of this session");
        assert_eq!(server.stranger().get(&ann.path("s1", below)).status, 401);
        let wrong = Caller { api: "client", ..machine.clone() };
        assert_eq!(wrong.get(&wrong.path("s1", below)).status, 401);
    }
    let wrong = Caller { api: "machine", ..ann.clone() };
    assert_eq!(wrong.get(&wrong.path("s1", &image)).status, 401);
    for hex in ["x", "..", &"A".repeat(64), &"0".repeat(63)] {
        let path = ann.path("s1", &format!("/blobs/{hex}"));
        let problem = "the blob in the path is not 64 hexadecimal digits";
        assert_eq!(ann.get(&path).refusal(400), problem, "{hex}");
    }
    // The same bytes are the same image, and each session names it for itself.
    assert_eq!(send(&bob, "b1", "t1", "image/png", PNG), image);
    shows(&bob.get(&bob.path("b1", &image)), PNG);
    // What another session has cannot be had by naming it.
    let uri = image.replace("/blobs/", "blob://");
    let content = json!([{ "type": "blob", "uri": uri }]);
    let message = json!({ "role": "user", "content": content });
    let fields = json!({ "type": "client.message", "message": message });
    let refusal = bob.input(&input("b2", "t1", fields)).refusal(400);
    assert!(refusal.starts_with("`input.message.content"), "{refusal}");
}

#[test]
fn an_address_that_is_signed_is_good_without_a_credential() {
    let (place, server) = served();
    let ann = server.client("ann");
    let blob = send(&ann, "s1", "t1", "image/png", PNG);
    let signed = ann.get(&ann.path("s1", &format!("{blob}/url"))).expect(200);
    let url = signed["url"].as_str().unwrap();
    let stranger = server.stranger();
    let answer = stranger.send("GET", url, &[("Origin", "https://shop.example")], &[]);
    shows(&answer, PNG);
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    assert_eq!(stranger.send("GET", url, &[("Range", "bytes=1-3")], &[]).body, b"PNG");
    let (path, query) = url.split_once('?').unwrap();
    assert_eq!(path, ann.path("s1", &blob));
    let expires = signed["expires_at"].as_i64().unwrap();
    let later = expires + 1;
    let signature = query.rsplit_once("signature=").unwrap().1;
    for wrong in [
        path.to_owned(),
        format!("{path}?signature={signature}"),
        format!("{path}?tenant=default&expires={later}&signature={signature}"),
        format!("{path}?tenant=other&expires={expires}&signature={signature}"),
        format!("{path}?tenant=default&expires={expires}&signature={}", signature.to_lowercase()),
        format!("{path}?tenant=default&expires={expires}&signature="),
        format!("{path}?tenant=default&expires=1&signature={signature}"),
        url.replace("/s1/", "/s2/"),
        url.replace("/blobs/", "/blobs/0").replace("0?", "?"),
        url.replace("/client/", "/machine/"),
        url.replace('?', "/url?"),
    ] {
        let answer = stranger.get(&wrong);
        assert_eq!(answer.refusal(401), "missing or invalid credential", "{wrong}");
    }
    // A credential that comes along is the one that counts.
    let nobody = Caller { bearer: Some("x".to_owned()), ..stranger.clone() };
    assert_eq!(nobody.get(url).status, 401);
    // The key is kept; a session that is erased has nothing to show.
    server.kill();
    let server = place.serve();
    shows(&server.stranger().get(url), PNG);
    let ann = server.client("ann");
    ann.delete(&ann.path("s1", "")).expect(200);
    assert_eq!(server.stranger().get(url).refusal(404), "unknown session");
}

#[test]
fn a_signed_address_names_the_tenant_of_its_session() {
    let key = "token-signing-key-0123456789abcdef";
    let mut place = Place::new();
    place.set("TURND_CLIENT_TOKEN_KEY", key);
    let server = place.serve();
    let token = token_of("other", server.client("ann").bearer.as_deref().unwrap(), key);
    let other = Caller { bearer: Some(token), ..server.client("ann") };
    let blob = send(&other, "s1", "t1", "image/png", PNG);
    let signed = other.get(&other.path("s1", &format!("{blob}/url"))).expect(200);
    let url = signed["url"].as_str().unwrap();
    shows(&server.stranger().get(url), PNG);
    let here = url.replace("tenant=other", "tenant=default");
    assert_eq!(server.stranger().get(&here).status, 401);
    assert_eq!(server.client("ann").get(&other.path("s1", &blob)).refusal(404), "unknown session");
}

/// A token for another tenant, signed as an operator who shares the key would.
fn token_of(tenant: &str, token: &str, key: &str) -> String {
    let [head, claims, _] = token.split('.').collect::<Vec<_>>().try_into().unwrap();
    let claims = BASE64_URL_SAFE_NO_PAD.decode(claims).unwrap();
    let mut claims: Value = serde_json::from_slice(&claims).unwrap();
    claims["tenant"] = tenant.into();
    let message = format!("{head}.{}", BASE64_URL_SAFE_NO_PAD.encode(claims.to_string()));
    let signature = hmac_sha256(key.as_bytes(), message.as_bytes());
    format!("{message}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
}

/// RFC 2104, for a key of at most one block.
fn hmac_sha256(key: &[u8], message: &[u8]) -> Vec<u8> {
    use sha2::{Digest as _, Sha256};
    let mut block = [0; 64];
    block[..key.len()].copy_from_slice(key);
    let pad = |with: u8| block.map(|byte| byte ^ with);
    let inner = Sha256::new().chain_update(pad(0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize().to_vec()
}

#[test]
fn an_input_brings_a_bounded_number_of_blobs_and_bytes() {
    let (_place, server) = served();
    let ann = server.client("ann");
    let part = |number: usize| {
        json!({
            "type": "blob", "uri": data_uri("text/plain", number.to_string().as_bytes()),
        })
    };
    let many = |from: usize, count: usize| {
        let parts: Vec<Value> = (from..from + count).map(part).collect();
        json!({ "role": "user", "content": parts })
    };
    let fields = json!({ "type": "client.append", "messages": [many(0, 200), many(200, 57)] });
    let refusal = ann.input(&input("s1", "t1", fields)).refusal(400);
    let problem = "`input.messages[1].content[56].uri` is one of more than 256 different blobs";
    assert_eq!(refusal, problem);
    let fields = json!({ "type": "client.append", "messages": [many(0, 200), many(100, 156)] });
    ann.input(&input("s1", "t1", fields)).expect(202);
    ann.watch_turn("s1", "t1");
    let large = data_uri("image/png", &vec![0; 4 * 1024 * 1024 + 1]);
    let content = json!([{ "type": "image_url", "image_url": { "url": large } }]);
    let message = json!({ "role": "user", "content": content });
    let fields = json!({ "type": "client.message", "message": message });
    let refusal = ann.input(&input("s1", "t2", fields)).refusal(400);
    assert!(refusal.contains("holds more than 4194304 bytes"), "{refusal}");
}
