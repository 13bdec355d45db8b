use serde_json::{Value, json};

use super::*;
use crate::effects::llm::kit::{
    PNG, asking, audio, blobs, call, file, id, image, image_at, result, tool, user, with_parts,
};
use crate::protocol::content::ContentPart;
use crate::protocol::message::{Message, Role};

fn read(call: &ModelCall) -> Value {
    serde_json::from_slice(&request(call, &blobs())).unwrap()
}

fn sent(system: Option<&str>, messages: Vec<Message>) -> Value {
    let call = ModelCall { system: system.map(str::to_owned), ..call(messages) };
    read(&call)
}

#[test]
fn the_request_is_the_conversation() {
    let asked = asking("let me see", &[("weather", r#"{"b":1,"a":2}"#), ("clock", "oops")]);
    let messages = vec![
        user("hi"),
        Message::text(Role::System, "be brief"),
        user("there"),
        asked,
        result(1, ""),
        result(0, "sunny"),
        user("and?"),
    ];
    let expected = json!({
        "model": "some-model",
        "max_tokens": 8192,
        "stream": true,
        "system": "be kind\n\nbe brief",
        "tools": [
            { "name": "clock", "input_schema": { "type": "object", "properties": {} } },
            { "name": "weather", "input_schema": { "type": "object", "properties": {} } },
        ],
        "tool_choice": { "type": "none" },
        "messages": [
            { "role": "user", "content": [
                { "type": "text", "text": "hi" },
                { "type": "text", "text": "there" },
            ] },
            { "role": "assistant", "content": [
                { "type": "text", "text": "let me see" },
                { "type": "tool_use", "id": id(0), "name": "weather",
                  "input": { "b": 1, "a": 2 } },
                { "type": "tool_use", "id": id(1), "name": "clock",
                  "input": { "malformed_arguments": "oops" } },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": id(0), "content": "sunny" },
                { "type": "tool_result", "tool_use_id": id(1) },
                { "type": "text", "text": "and?" },
            ] },
        ],
    });
    assert_eq!(sent(Some("be kind"), messages), expected);
}

#[test]
fn blank_texts_are_left_out_and_the_user_begins() {
    let reply = Message::text(Role::Assistant, "Welcome!");
    let blank = Message::text(Role::Assistant, " \n");
    let sent = sent(Some(" "), vec![blank, reply, user(""), user("hi")]);
    assert_eq!(sent.get("system"), None);
    let expected = json!([
        { "role": "user", "content": [{ "type": "text", "text": "(The conversation begins.)" }] },
        { "role": "assistant", "content": [{ "type": "text", "text": "Welcome!" }] },
        { "role": "user", "content": [{ "type": "text", "text": "hi" }] },
    ]);
    assert_eq!(sent["messages"], expected);
}

#[test]
fn the_user_has_the_last_word() {
    let begins = json!({ "role": "user", "content": [
        { "type": "text", "text": "(The conversation begins.)" },
    ] });
    let goes_on = json!({ "role": "user", "content": [
        { "type": "text", "text": "(The conversation goes on.)" },
    ] });
    let system = || Message::text(Role::System, "greet the user");
    for messages in [vec![], vec![system()], vec![user(" "), system()]] {
        assert_eq!(sent(None, messages)["messages"], json!([begins]));
    }
    let reply = || Message::text(Role::Assistant, "Hello.");
    let said = json!({ "role": "assistant", "content": [{ "type": "text", "text": "Hello." }] });
    for last in [system(), user("")] {
        let messages = vec![reply(), last];
        assert_eq!(sent(None, messages)["messages"], json!([begins, said, goes_on]));
    }
    let called = sent(None, vec![user("hi"), asking("", &[("clock", "{}")]), system()]);
    assert_eq!(called["messages"].as_array().unwrap().len(), 3);
}

#[test]
fn tools_are_offered_with_their_schemas() {
    let mut call = call(vec![user("hi")]);
    call.tools = vec![
        tool("weather", Some("Looks it up."), Some(r#"{"type":"object","properties":{"b":{}}}"#)),
        tool("clock", None, None),
    ];
    let sent = read(&call);
    let expected = json!([
        { "name": "weather", "description": "Looks it up.",
          "input_schema": { "type": "object", "properties": { "b": {} } } },
        { "name": "clock", "input_schema": { "type": "object", "properties": {} } },
    ]);
    assert_eq!(sent["tools"], expected);
    assert_eq!(sent.get("tool_choice"), None);
}

#[test]
fn calls_of_tools_that_are_no_longer_offered_are_declared_and_ruled_out() {
    let asked = asking("", &[("clock", "{}"), ("a b", "{}"), ("clock", "{}")]);
    let mut call = call(vec![user("hi"), asked, result(0, "noon"), user("and?")]);
    let sent = read(&call);
    let schema = json!({ "type": "object", "properties": {} });
    let expected = json!([
        { "name": "a_b", "input_schema": schema },
        { "name": "clock", "input_schema": schema },
    ]);
    assert_eq!(sent["tools"], expected);
    assert_eq!(sent["tool_choice"], json!({ "type": "none" }));

    call.tools = vec![tool("bell", None, None)];
    let sent = read(&call);
    assert_eq!(sent["tools"], json!([{ "name": "bell", "input_schema": schema }]));
    assert_eq!(sent.get("tool_choice"), None);
}

#[test]
fn without_calls_and_tools_none_are_declared() {
    let sent = read(&call(vec![user("hi"), Message::text(Role::Assistant, "a"), user("b")]));
    assert_eq!((sent.get("tools"), sent.get("tool_choice")), (None, None));
}

/// The blocks of the one message that says `parts`.
fn blocks(parts: Vec<ContentPart>) -> Value {
    let mut sent = read(&call(vec![with_parts(user(""), parts)]));
    sent["messages"][0]["content"].take()
}

fn text(text: &str) -> ContentPart {
    ContentPart::Text { text: text.to_owned() }
}

#[test]
fn images_and_documents_are_blocks_and_the_rest_is_named() {
    let sent = blocks(vec![
        text("look"),
        text(" "),
        image("image/png", PNG),
        image_at("https://a.example/b.png"),
        file("a.pdf", "application/pdf", b"pdf"),
        file("a.md", "text/markdown", b"# hi"),
        file("a.json", "application/json", b"{}"),
        file("a.png", "image/png", PNG),
        file("a.zip", "application/zip", b"zip"),
        file("blank.txt", "text/plain", b" "),
        file("odd.txt", "text/plain", b"\xff\xfe"),
        image("image/tiff", b"tiff"),
        image("image/png", b"tiff"),
        image("image/png", b"gone"),
        audio("audio/wav", b"wav"),
    ]);
    let document = |media_type: &str, data: &str, title: &str| {
        let kind = if media_type == "text/plain" { "text" } else { "base64" };
        let source = json!({ "type": kind, "media_type": media_type, "data": data });
        json!({ "type": "document", "source": source, "title": title })
    };
    let png = json!({ "type": "image",
        "source": { "type": "base64", "media_type": "image/png", "data": "iVBORw==" } });
    let said = |text: &str| json!({ "type": "text", "text": text });
    let expected = json!([
        said("look"),
        png,
        { "type": "image", "source": { "type": "url", "url": "https://a.example/b.png" } },
        document("application/pdf", "cGRm", "a.pdf"),
        document("text/plain", "# hi", "a.md"),
        document("text/plain", "{}", "a.json"),
        png,
        said("[a.zip, application/zip, 3 bytes, not sent]"),
        said("[blank.txt, text/plain, 1 bytes, not sent]"),
        said("[odd.txt, text/plain, 2 bytes, not sent]"),
        said("[image/tiff, 4 bytes, not sent]"),
        said("[image/png, 4 bytes, not sent]"),
        said("[image/png, 4 bytes, not sent]"),
        said("[audio/wav, 3 bytes, not sent]"),
    ]);
    assert_eq!(sent, expected);
}

#[test]
fn an_image_that_the_api_finds_too_large_is_named() {
    let part = image("image/png", PNG);
    let hash = part.blob().unwrap().0;
    let call = call(vec![with_parts(user(""), vec![part])]);
    for (size, kind) in [(IMAGE_BYTES_MAX, "image"), (IMAGE_BYTES_MAX + 1, "text")] {
        let mut bytes = PNG.to_vec();
        bytes.resize(size, 0);
        let large = BlobBytes::from([(hash, bytes.into())]);
        let sent: Value = serde_json::from_slice(&request(&call, &large)).unwrap();
        assert_eq!(sent["messages"][0]["content"][0]["type"], json!(kind));
    }
}

#[test]
fn a_tool_result_may_hold_images() {
    let asked = || asking("", &[("look", "{}")]);
    let given = |parts: Vec<ContentPart>| {
        let answer = with_parts(result(0, ""), parts);
        let mut sent = read(&call(vec![user("hi"), asked(), answer]));
        sent["messages"][2]["content"][0]["content"].take()
    };
    let png = json!({ "type": "image",
        "source": { "type": "base64", "media_type": "image/png", "data": "iVBORw==" } });
    let pdf = || file("a.pdf", "application/pdf", b"pdf");
    let words = "[a.pdf, application/pdf, 3 bytes, not sent]";
    assert_eq!(
        given(vec![text("seen"), image("image/png", PNG), pdf()]),
        json!([{ "type": "text", "text": "seen" }, png, { "type": "text", "text": words }])
    );
    assert_eq!(given(vec![text("seen"), pdf()]), json!(format!("seen\n\n{words}")));
}

#[test]
fn a_reply_is_sent_as_its_text() {
    let reply = Message::text(Role::Assistant, "");
    let reply = with_parts(reply, vec![text("here"), image("image/png", PNG)]);
    let sent = read(&call(vec![user("draw"), reply, user("thanks")]));
    let expected = json!({ "role": "assistant", "content": [{ "type": "text", "text": "here" }] });
    assert_eq!(sent["messages"][1], expected);
}
