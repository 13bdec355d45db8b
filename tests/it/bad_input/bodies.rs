//! Bodies: text that is no JSON, JSON of no shape, values out of range.

use serde_json::{Value, json};

use super::{Bench, INPUT, SUBMIT, input_with, with};
use crate::kit::{Response, input, message};

const ID: &str = "must be 1 to 128 characters of A-Z a-z 0-9 . _ : - ~ @ + =";

fn submission() -> Value {
    json!({
        "agent_id": "demo",
        "identity": { "id": "ann" },
        "session_id": "bad",
        "payload": { "type": "client.message", "message": { "role": "user", "content": "hi" } },
    })
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

const MISSING: &str = "is missing";
const OBJECT: &str = "must be an object";
const STRING: &str = "must be a string";
const BOOL: &str = "must be true or false";
const CONTENT: &str = "must be a string or an array of content parts";

/// Null counts as absent.
const WRONG_INPUTS: [(&str, &str, &str); 24] = [
    ("session_id", "7", STRING),
    ("session_id", "[]", STRING),
    ("input", "null", MISSING),
    ("input", "[]", OBJECT),
    ("input.type", "null", MISSING),
    ("input.type", "1", STRING),
    ("input.type", "\"client.shout\"", "`client.shout` is not an input"),
    ("input.agent_id", "null", MISSING),
    ("input.agent_id", "{}", STRING),
    ("input.turn_id", "1", STRING),
    ("input.queue", "\"yes\"", BOOL),
    ("input.queue", "1", BOOL),
    ("input.stream", "0", BOOL),
    ("input.message", "null", MISSING),
    ("input.message", "\"hi\"", OBJECT),
    ("input.message.role", "null", MISSING),
    ("input.message.role", "\"robot\"", "`robot` is not a role"),
    ("input.message.role", "[\"user\"]", STRING),
    ("input.message.id", "1", STRING),
    ("input.message.content", "7", CONTENT),
    ("input.message.content", "{}", CONTENT),
    ("input.message.content", "true", CONTENT),
    ("input.message.name", "[]", STRING),
    ("input.message.tool_call_id", "9", STRING),
];

const WRONG_SUBMITS: [(&str, &str, &str); 13] = [
    ("agent_id", "null", MISSING),
    ("agent_id", "1.5", STRING),
    ("identity", "null", MISSING),
    ("identity", "\"ann\"", OBJECT),
    ("identity.id", "null", MISSING),
    ("identity.metadata", "\"x\"", OBJECT),
    ("identity.metadata", "[]", OBJECT),
    ("queue", "\"no\"", BOOL),
    ("turn_id", "false", STRING),
    ("payload", "null", MISSING),
    ("payload.type", "null", MISSING),
    ("payload.message", "null", MISSING),
    ("payload.message.content", "-1", CONTENT),
];

#[test]
fn a_body_of_the_wrong_shape_is_told_which_field_is_wrong() {
    let bench = Bench::new();
    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    for (path, text, problem) in WRONG_INPUTS {
        let refusal = bench.ann.input(&input_with(path, value(text))).refusal(422);
        assert_eq!(refusal, format!("`{path}` {problem}"), "{text}");
    }
    for (path, text, problem) in WRONG_SUBMITS {
        let body = with(submission(), path, value(text));
        assert_eq!(
            bench.machine.submit(&body).refusal(422),
            format!("`{path}` {problem}"),
            "{text}"
        );
    }
    for body in ["[]", "\"text\"", "null", "7", "true"] {
        let refusal = bench.ann.post_text(INPUT, body).refusal(422);
        assert_eq!(refusal, "`body` must be an object", "{body}");
    }
    assert_eq!(bench.ann.input(&json!({})).refusal(422), "`input` is missing");
    assert_eq!(bench.machine.submit(&json!({})).refusal(422), "`agent_id` is missing");
    bench.is_unharmed();
}

#[test]
fn a_part_of_the_wrong_shape_is_told_by_its_place() {
    let bench = Bench::new();
    let good = json!({ "type": "text", "text": "a" });
    for (parts, problem) in [
        (json!(["hi"]), "[0]` must be an object"),
        (json!([good, null]), "[1]` must be an object"),
        (json!([good, { "type": "text" }]), "[1].text` is missing"),
        (json!([good, good, { "text": "a" }]), "[2].type` is missing"),
        (json!([{ "type": "text", "text": 7 }]), "[0].text` must be a string"),
        (json!([{ "type": "smell", "text": "a" }]), "[0].type` `smell` is not a content type"),
    ] {
        let body = input_with("input.message.content", parts);
        let refusal = bench.ann.input(&body).refusal(422);
        assert_eq!(refusal, format!("`input.message.content{problem}"));
    }
    // Numbers that no type of ours holds.
    let huge = r#"{"identity":{"id":"ann","metadata":{"n":123456789012345678901234567890}}}"#;
    let refusal = bench.machine.post_text("/api/machine/client-tokens", huge).refusal(422);
    assert_eq!(refusal, "`identity.metadata.n` must be a string");
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
        for path in ["session_id", "input.turn_id", "input.agent_id", "input.message.id"] {
            let refusal = bench.ann.input(&input_with(path, id)).refusal(400);
            assert_eq!(refusal, format!("`{path}` {ID}"), "{id:?}");
        }
        for path in ["session_id", "turn_id", "agent_id"] {
            let refusal = bench.machine.submit(&with(submission(), path, id)).refusal(400);
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
fn a_message_says_something() {
    let bench = Bench::new();
    for nothing in [json!(null), json!(""), json!(" \n"), json!([])] {
        let body = input_with("input.message.content", nothing);
        let refusal = bench.ann.input(&body).refusal(400);
        assert_eq!(refusal, "`input.message.content` says nothing, and no model answers that");
    }
    bench.is_unharmed();
}

#[test]
fn a_message_of_a_tool_needs_a_call_that_is_open() {
    let bench = Bench::new();
    let body = input_with("input.message.role", json!("tool"));
    let refusal = bench.ann.input(&body).refusal(400);
    assert_eq!(refusal, "`input.message.role` is `tool`, but answers no open client-handled call");
    bench.is_unharmed();
}

#[test]
fn a_text_or_an_event_beyond_its_limit_is_refused() {
    let manifest = "[limits]\nmessage_bytes_max = 6144\nevent_bytes_max = 16384\n";
    let bench = Bench::with_manifest(manifest);
    let long = "x".repeat(6145);
    let refusal = bench.ann.input(&message("bad", "t1", &long)).refusal(400);
    assert_eq!(refusal, "`input.message.content` is longer than 6144 bytes");
    let parts = json!([{ "type": "text", "text": long }]);
    let body = input_with("input.message.content", parts);
    let refusal = bench.ann.input(&body).refusal(400);
    assert_eq!(refusal, "`input.message.content[0].text` is longer than 6144 bytes");
    // Three texts fit, each by itself; the event that would hold them does not.
    let part = json!({ "type": "text", "text": "x".repeat(6000) });
    let body = input_with("input.message.content", json!([part, part, part]));
    assert_eq!(
        bench.ann.input(&body).refusal(413),
        "the event of this input is larger than 16384 bytes"
    );
    let many: Vec<Value> = (0..257).map(|_| json!({ "type": "text", "text": "" })).collect();
    let body = input_with("input.message.content", many);
    let refusal = bench.ann.input(&body).refusal(400);
    assert_eq!(refusal, "`input.message.content` holds more than 256 items");
    bench.is_unharmed();
}

#[test]
fn whatever_becomes_an_event_has_the_size_of_one() {
    let manifest = "[limits]\nmessage_bytes_max = 6144\nevent_bytes_max = 16384\n";
    let bench = Bench::with_manifest(manifest);
    let large = json!(["x".repeat(6000), "x".repeat(6000), "x".repeat(6000)]);
    let said = json!({ "role": "user", "content": "x".repeat(6000) });
    let refuse = |answer: Response| {
        let refusal = answer.refusal(413);
        assert_eq!(refusal, "the event of this input is larger than 16384 bytes");
    };
    for fields in [
        json!({ "type": "client.action", "name": "x", "args": large }),
        json!({
            "type": "client.append", "messages": [{ "role": "user", "content": "hi" }],
            "client": { "state": large },
        }),
        json!({ "type": "client.append", "messages": [said, said, said], "queue": true }),
        json!({ "type": "interrupt.resume", "interrupt_id": "x", "payload": large }),
        json!({ "type": "tool.result", "id": "x", "result": large }),
    ] {
        refuse(bench.ann.input(&input("bad", "t1", fields)));
    }
    let path = bench.ann.path("bad", "/interrupt");
    refuse(bench.ann.post(&path, &json!({ "reason": "x", "payload": large })));
    let path = bench.ann.path("bad", "/cancel");
    refuse(bench.ann.post(&path, &json!({ "reason": "x".repeat(20_000) })));
    // The same messages are an event each where they need not wait.
    let fields = json!({ "type": "client.append", "messages": [said, said, said] });
    bench.ann.input(&input("large", "t1", fields)).expect(202);
    bench.ann.watch_turn("large", "t1");
    bench.is_unharmed();
}

#[test]
fn what_one_input_records_has_a_bound() {
    let bench = Bench::with_manifest("[limits]\nbody_bytes_max = 16777216\n");
    let said = json!({ "role": "user", "content": "x".repeat(1_000_000) });
    let fields = json!({ "type": "client.append", "messages": vec![said; 13] });
    let refusal = bench.ann.input(&input("bad", "t1", fields)).refusal(413);
    assert_eq!(refusal, "all that this input records is larger than 12582912 bytes");
    let said = json!({ "role": "user", "content": "x".repeat(1_000_000) });
    let fields = json!({ "type": "client.append", "messages": vec![said; 12] });
    bench.ann.input(&input("large", "t1", fields)).expect(202);
    bench.ann.watch_turn("large", "t1");
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
