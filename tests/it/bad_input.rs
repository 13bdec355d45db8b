//! Requests that are refused: the status, what the refusal says, and that nothing comes of them
//! (S54, S55, reliability 2.1).

use serde_json::{Value, json};

use crate::kit::{Caller, Connection, Place, Response, Server, message, request};

const INPUT: &str = "/api/client/sessions/input";
const SUBMIT: &str = "/api/machine/sessions/submit";
const ID: &str = "must be 1 to 128 characters of A-Z a-z 0-9 . _ : - ~ @ + =";

/// A server with one owner; at the end of a test nothing but good requests has left a trace.
struct Bench {
    server: Server,
    ann: Caller,
    machine: Caller,
}

impl Bench {
    fn new() -> Self {
        Self::with_manifest("")
    }

    fn with_manifest(manifest: &str) -> Self {
        let server = Place::with_manifest(manifest).serve_once();
        let (ann, machine) = (server.client("ann"), server.machine());
        Self { server, ann, machine }
    }

    /// The session of every bad request was never made, and a good request is served.
    fn is_unharmed(&self) {
        let unknown = self.ann.get("/api/client/sessions/bad");
        assert_eq!(unknown.refusal(404), "unknown session");
        self.ann.say("good", "t1", "hi");
        self.ann.watch_turn("good", "t1");
    }
}

/// The body of a good input for session `bad`, with one value set by its path.
fn input_with(path: &[&str], value: Value) -> Value {
    with(message("bad", "t1", "hi"), path, value)
}

fn submission() -> Value {
    json!({
        "agent_id": "demo",
        "identity": { "id": "ann" },
        "session_id": "bad",
        "payload": { "type": "client.message", "message": { "role": "user", "content": "hi" } },
    })
}

fn with(mut body: Value, path: &[&str], value: Value) -> Value {
    let mut place = &mut body;
    for name in path {
        place = &mut place[*name];
    }
    *place = value;
    body
}

fn without(mut body: Value, path: &[&str]) -> Value {
    let (last, parents) = path.split_last().unwrap();
    let mut place = &mut body;
    for name in parents {
        place = &mut place[*name];
    }
    place.as_object_mut().unwrap().remove(*last).expect("it was there");
    body
}

#[test]
fn text_that_is_not_json_is_a_bad_request() {
    let bench = Bench::new();
    let good = message("bad", "t1", "hi").to_string();
    let in_text = |bytes: &[u8]| {
        let (before, after) = good.split_once("hi").unwrap();
        [before.as_bytes(), bytes, after.as_bytes()].concat()
    };
    let with_member = |text: &str| format!("{}{text}}}", &good[..good.len() - 1]).into_bytes();
    let bodies: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", b"".to_vec()),
        ("blanks", b" \n\t ".to_vec()),
        ("cut", good.as_bytes()[..good.len() - 1].to_vec()),
        ("trailing text", [good.as_bytes(), b"x"].concat()),
        ("two values", [good.as_bytes(), good.as_bytes()].concat()),
        ("byte order mark", ["\u{feff}".as_bytes(), good.as_bytes()].concat()),
        ("single quotes", good.replace('"', "'").into_bytes()),
        ("comment", [b"/* */", good.as_bytes()].concat()),
        ("trailing comma", with_member(",")),
        ("NaN", with_member(",\"x\":NaN")),
        ("Infinity", with_member(",\"x\":-Infinity")),
        ("1e400", with_member(",\"x\":1e400")),
        ("leading zero", with_member(",\"x\":01")),
        ("plus sign", with_member(",\"x\":+1")),
        ("bare point", with_member(",\"x\":1.")),
        ("hex", with_member(",\"x\":0x1")),
        ("capital TRUE", with_member(",\"x\":TRUE")),
        ("raw NUL", in_text(b"\0")),
        ("raw line feed", in_text(b"\n")),
        ("raw control character", in_text(b"\x1f")),
        ("bad escape", in_text(b"\\x41")),
        ("lone high surrogate", in_text(b"\\ud800")),
        ("lone low surrogate", in_text(b"\\udc00")),
        ("surrogates in the wrong order", in_text(b"\\udc00\\ud800")),
        ("cut surrogate", in_text(b"\\ud83d\\u")),
        ("bad UTF-8", in_text(b"\xff")),
        ("overlong UTF-8", in_text(b"\xc0\xaf")),
        ("encoded surrogate", in_text(b"\xed\xa0\x80")),
        ("beyond Unicode", in_text(b"\xf4\x90\x80\x80")),
        ("cut UTF-8", in_text(b"\xe2\x82")),
        ("UTF-16", good.encode_utf16().flat_map(u16::to_le_bytes).collect()),
        ("garbage", (0..=255).collect()),
    ];
    for (what, body) in bodies {
        let refusal = bench.ann.post_text(INPUT, &body).refusal(400);
        assert!(refusal.starts_with("malformed JSON: "), "{what}: {refusal}");
        let refusal = bench.machine.post_text(SUBMIT, &body).refusal(400);
        assert!(refusal.starts_with("malformed JSON: "), "{what}: {refusal}");
    }
    bench.is_unharmed();
}

#[test]
fn json_is_taken_64_levels_deep_and_no_deeper() {
    let bench = Bench::new();
    let nested = |levels: usize, open: &str, close: &str| {
        let good = message("deep", "t1", "hi").to_string();
        let value = format!("{}0{}", open.repeat(levels), close.repeat(levels));
        // The body itself is one level.
        format!("{},\"x\":{value}}}", &good[..good.len() - 1])
    };
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        for levels in [64, 65, 100, 127, 128, 1000, 100_000] {
            let refusal = bench.ann.post_text(INPUT, nested(levels, open, close)).refusal(400);
            assert!(refusal.starts_with("malformed JSON: "), "{levels}: {refusal}");
        }
        assert_eq!(bench.ann.get("/api/client/sessions/deep").status, 404);
    }
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        assert_eq!(bench.ann.post_text(INPUT, nested(63, open, close)).status, 202);
    }
    bench.is_unharmed();
}

#[test]
fn a_body_of_the_wrong_shape_is_told_which_field_is_wrong() {
    let bench = Bench::new();
    let content = "must be a string or an array of content parts";
    let cases: Vec<(Value, &str, String)> = vec![
        (json!([]), "body", "must be an object".into()),
        (json!("text"), "body", "must be an object".into()),
        (json!(null), "body", "must be an object".into()),
        (json!({}), "input", "is missing".into()),
        (json!({ "input": null }), "input", "is missing".into()),
        (json!({ "input": [] }), "input", "must be an object".into()),
        (input_with(&["session_id"], json!(7)), "session_id", "must be a string".into()),
        (input_with(&["session_id"], json!([])), "session_id", "must be a string".into()),
        (
            without(message("bad", "t1", "hi"), &["input", "type"]),
            "input.type",
            "is missing".into(),
        ),
        (input_with(&["input", "type"], json!(1)), "input.type", "must be a string".into()),
        (
            input_with(&["input", "type"], json!("client.shout")),
            "input.type",
            "`client.shout` is not an input that is taken here".into(),
        ),
        (
            without(message("bad", "t1", "hi"), &["input", "agent_id"]),
            "input.agent_id",
            "is missing".into(),
        ),
        (
            input_with(&["input", "agent_id"], json!({})),
            "input.agent_id",
            "must be a string".into(),
        ),
        (input_with(&["input", "turn_id"], json!(1)), "input.turn_id", "must be a string".into()),
        (
            input_with(&["input", "queue"], json!("yes")),
            "input.queue",
            "must be true or false".into(),
        ),
        (input_with(&["input", "queue"], json!(1)), "input.queue", "must be true or false".into()),
        (
            input_with(&["input", "stream"], json!(0)),
            "input.stream",
            "must be true or false".into(),
        ),
        (
            without(message("bad", "t1", "hi"), &["input", "message"]),
            "input.message",
            "is missing".into(),
        ),
        (
            input_with(&["input", "message"], json!("hi")),
            "input.message",
            "must be an object".into(),
        ),
        (
            without(message("bad", "t1", "hi"), &["input", "message", "role"]),
            "input.message.role",
            "is missing".into(),
        ),
        (
            input_with(&["input", "message", "role"], json!("robot")),
            "input.message.role",
            "`robot` is not a role".into(),
        ),
        (
            input_with(&["input", "message", "id"], json!(1)),
            "input.message.id",
            "must be a string".into(),
        ),
        (
            input_with(&["input", "message", "content"], json!(7)),
            "input.message.content",
            content.into(),
        ),
        (
            input_with(&["input", "message", "content"], json!({})),
            "input.message.content",
            content.into(),
        ),
        (
            input_with(&["input", "message", "content"], json!(["hi"])),
            "input.message.content[0]",
            "must be an object".into(),
        ),
        (
            input_with(
                &["input", "message", "content"],
                json!([{ "type": "text", "text": "a" }, { "type": "text" }]),
            ),
            "input.message.content[1].text",
            "is missing".into(),
        ),
        (
            input_with(&["input", "message", "content"], json!([{ "type": "smell", "text": "a" }])),
            "input.message.content[0].type",
            "`smell` is not a content type that is taken here".into(),
        ),
        (
            input_with(&["input", "message", "name"], json!([])),
            "input.message.name",
            "must be a string".into(),
        ),
    ];
    for (body, path, problem) in cases {
        let refusal = bench.ann.input(&body).refusal(422);
        assert_eq!(refusal, format!("`{path}` {problem}"), "{body}");
    }
    let cases: Vec<(Value, &str, &str)> = vec![
        (without(submission(), &["agent_id"]), "agent_id", "is missing"),
        (without(submission(), &["identity"]), "identity", "is missing"),
        (without(submission(), &["identity", "id"]), "identity.id", "is missing"),
        (without(submission(), &["payload"]), "payload", "is missing"),
        (without(submission(), &["payload", "type"]), "payload.type", "is missing"),
        (without(submission(), &["payload", "message"]), "payload.message", "is missing"),
        (with(submission(), &["queue"], json!("no")), "queue", "must be true or false"),
        (with(submission(), &["identity"], json!("ann")), "identity", "must be an object"),
        (
            with(
                submission(),
                &["identity", "metadata"],
                json!({ "n": 18_446_744_073_709_551_615_u64 }),
            ),
            "identity.metadata.n",
            "must be a string",
        ),
        (
            with(submission(), &["payload", "message", "content"], json!(true)),
            "payload.message.content",
            content,
        ),
    ];
    for (body, path, problem) in cases {
        let refusal = bench.machine.submit(&body).refusal(422);
        assert_eq!(refusal, format!("`{path}` {problem}"), "{body}");
    }
    bench.is_unharmed();
}

#[test]
fn a_member_that_stands_twice_is_refused() {
    let bench = Bench::new();
    for (body, path) in [
        (r#"{"session_id":"bad","session_id":"good","input":{}}"#.to_owned(), "session_id"),
        (
            message("bad", "t1", "hi")
                .to_string()
                .replace("\"role\"", "\"role\":\"system\",\"role\""),
            "input.message.role",
        ),
        (
            message("bad", "t1", "hi")
                .to_string()
                .replace("\"type\"", "\"typ\\u0065\":\"client.message\",\"type\""),
            "input.type",
        ),
    ] {
        let refusal = bench.ann.post_text(INPUT, &body).refusal(422);
        assert_eq!(refusal, format!("`{path}` stands twice"), "{body}");
    }
    bench.is_unharmed();
}

#[test]
fn an_id_is_of_the_characters_of_ids() {
    let bench = Bench::new();
    let long = "x".repeat(129);
    let bad = [
        "", " ", "a b", "a/b", "../x", "a\0b", "a\nb", "\u{e4}", "a%00", "a\"b", "\u{202e}", &long,
    ];
    for id in bad {
        for path in [
            &["session_id"][..],
            &["input", "turn_id"],
            &["input", "agent_id"],
            &["input", "message", "id"],
        ] {
            let refusal = bench.ann.input(&input_with(path, id.into())).refusal(400);
            assert_eq!(refusal, format!("`{}` {ID}", path.join(".")), "{id:?}");
        }
        for path in ["session_id", "turn_id", "agent_id"] {
            let refusal =
                bench.machine.submit(&with(submission(), &[path], id.into())).refusal(400);
            assert_eq!(refusal, format!("`{path}` {ID}"), "{id:?}");
        }
    }
    let longest = "x".repeat(128);
    for (number, id) in ["a", "..", "A.z_0:9-~@+=", &longest].into_iter().enumerate() {
        bench.ann.say(id, id, "hi");
        assert_eq!(bench.ann.watch_turn(id, id)[0].event, "turn.started", "{number}");
        assert_eq!(bench.ann.session(id)["session_id"], id);
    }
    bench.is_unharmed();
}

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
fn a_message_of_a_tool_needs_a_call_that_is_open() {
    let bench = Bench::new();
    let body = input_with(&["input", "message", "role"], json!("tool"));
    let refusal = bench.ann.input(&body).refusal(400);
    assert_eq!(refusal, "`message.role` is `tool`, but no client-handled call is open");
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
fn a_text_or_an_event_beyond_its_limit_is_refused() {
    let manifest = "[limits]\nmessage_bytes_max = 2048\nevent_bytes_max = 4096\n";
    let bench = Bench::with_manifest(manifest);
    let long = "x".repeat(2049);
    let refusal = bench.ann.input(&message("bad", "t1", &long)).refusal(400);
    assert_eq!(refusal, "`input.message.content` is longer than 2048 bytes");
    let parts = json!([{ "type": "text", "text": long }]);
    let body = input_with(&["input", "message", "content"], parts);
    let refusal = bench.ann.input(&body).refusal(400);
    assert_eq!(refusal, "`input.message.content[0].text` is longer than 2048 bytes");
    // Three texts fit, each by itself; the event that would hold them does not.
    let part = json!({ "type": "text", "text": "x".repeat(2000) });
    let body = input_with(&["input", "message", "content"], json!([part, part, part]));
    assert_eq!(bench.ann.input(&body).refusal(413), "the body is larger than 4096 bytes");
    let many: Vec<Value> = (0..257).map(|_| json!({ "type": "text", "text": "" })).collect();
    let body = input_with(&["input", "message", "content"], many.into());
    let refusal = bench.ann.input(&body).refusal(400);
    assert_eq!(refusal, "`input.message.content` holds more than 256 items");
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
        ("/healthz", "GET"),
        ("/readyz", "GET"),
        (INPUT, "POST, OPTIONS"),
        ("/api/client/sessions/bad", "GET, OPTIONS"),
        ("/api/client/sessions/bad/events/stream", "GET, OPTIONS"),
        ("/api/machine/client-tokens", "POST"),
        (SUBMIT, "POST"),
        ("/api/machine/sessions/bad/events/stream", "GET"),
    ];
    for (path, allow) in routes {
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"] {
            if allow.split(", ").next() == Some(method) {
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
        "/api/client/sessions",
        "//healthz",
        "/api/machine/sessions/bad",
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
    let mut body = input_with(&["input", "message"], json!(1));
    assert_eq!(ann.input(&body).status, 422);
    body["input"]["message"] = json!({ "role": "user", "content": "hi" });
    body["input"]["agent_id"] = "no such agent".into();
    assert_eq!(ann.input(&body).status, 400);
    body["input"]["agent_id"] = "nobody".into();
    assert_eq!(ann.input(&body).status, 404);
    bench.is_unharmed();
}

#[test]
fn what_the_engine_does_not_look_at_does_not_matter() {
    let bench = Bench::new();
    let mut body = message("odd", "t1", "hi").to_string();
    body.truncate(body.len() - 1);
    body.push_str(
        r#","big":123456789012345678901234567890,"small":-0,"exact":1e-400,"more":{"input":null},
           "u":"\u0000\ud83d\ude80","":[[],{}],"big":2}"#,
    );
    assert_eq!(bench.ann.post_text(INPUT, &body).status, 202);
    bench.ann.watch_turn("odd", "t1");
    bench.is_unharmed();
}

#[test]
fn every_text_comes_back_as_it_was_sent() {
    let bench = Bench::new();
    let texts = [
        "\0",
        "a\u{0}b\u{1f}c",
        "line\r\nfeed\rreturn\n\n\ndata: x\nid: 9\n\n",
        "\u{2028}\u{2029}\u{feff}\u{202e}",
        "\u{1f680} e\u{301} \u{10ffff}",
        "\"\\/\u{8}\u{c}\t",
        "",
        "</script><!--",
    ];
    for (number, text) in texts.into_iter().enumerate() {
        let session = format!("s{number}");
        let mut stream_body = message(&session, "t1", text);
        stream_body["input"]["message"]["id"] = "m1".into();
        bench.ann.input(&stream_body).expect(202);
        let frames = bench.ann.watch_turn(&session, "t1");
        let said = frames.iter().find(|frame| frame.event == "message.new").unwrap();
        assert_eq!(said.payload()["message"]["content"], text);
        let reply = format!("You said: {text}");
        assert_eq!(frames.last().unwrap().payload()["data"], reply.as_str(), "{text:?}");
        let conversation = bench.ann.conversation(&session);
        assert_eq!(conversation[0].1, text);
        assert_eq!(conversation[1].1, reply);
    }
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
    let many: String = (0..80).map(|n| format!("X-{n}: y\n")).collect();
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
    }
}
