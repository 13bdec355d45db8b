use serde_json::{Value, json};

use super::*;
use crate::effects::llm::kit::{
    PNG, asking, audio, blobs, call, file, id, image, image_at, result, tool, user, with_parts,
};
use crate::protocol::blob::{BlobHash, Uri};
use crate::protocol::content::{BlobUrl, ContentPart};
use crate::protocol::message::{Message, Role};

fn read(call: &ModelCall) -> Value {
    serde_json::from_slice(&request(call, &blobs())).unwrap()
}

#[test]
fn the_request_is_the_conversation() {
    let mut named = user("hi");
    named.name = Some("ann".to_owned());
    let mut asked = asking("", &[("weather", r#"{"b": 1, "a": 2}"#)]);
    asked.content = None;
    let note = Message::text(Role::System, "be brief");
    let mut call = call(vec![named, asked, result(0, "sunny"), note]);
    call.system = Some("be kind".to_owned());
    let sent = read(&call);
    let id = id(0).to_string();
    let expected = json!({
        "model": "some-model",
        "stream": true,
        "stream_options": { "include_usage": true },
        "messages": [
            { "role": "system", "content": "be kind" },
            { "role": "user", "content": "hi", "name": "ann" },
            { "role": "assistant", "content": null, "tool_calls": [{
                "id": id, "type": "function",
                "function": { "name": "weather", "arguments": "{\"b\": 1, \"a\": 2}" },
            }] },
            { "role": "tool", "content": "sunny", "tool_call_id": id },
            { "role": "system", "content": "be brief" },
        ],
    });
    assert_eq!(sent, expected);

    call.stream = false;
    call.system = None;
    let sent = read(&call);
    assert_eq!(sent["stream"], json!(false));
    assert_eq!(sent.get("stream_options"), None);
    assert_eq!(sent["messages"][0]["role"], json!("user"));
}

#[test]
fn tools_are_offered_with_their_schemas() {
    let mut call = call(vec![user("hi"), asking("", &[("gone", "{}")])]);
    assert_eq!(read(&call).get("tools"), None);
    call.tools = vec![
        tool("weather", Some("Looks it up."), Some(r#"{"type":"object","properties":{"b":{}}}"#)),
        tool("clock", None, None),
    ];
    let sent = read(&call);
    let expected = json!([
        { "type": "function", "function": {
            "name": "weather", "description": "Looks it up.",
            "parameters": { "type": "object", "properties": { "b": {} } },
        } },
        { "type": "function", "function": {
            "name": "clock", "parameters": { "type": "object", "properties": {} },
        } },
    ]);
    assert_eq!(sent["tools"], expected);
    assert_eq!(sent.get("tool_choice"), None);
}

#[test]
fn the_schema_of_a_tool_keeps_its_text() {
    let mut call = call(vec![user("hi")]);
    let schema = r#"{"type":"object", "properties":{"b":{"const":1.50},"a":{}}}"#;
    call.tools = vec![tool("weather", None, Some(schema))];
    let sent = String::from_utf8(request(&call, &blobs())).unwrap();
    assert!(sent.contains(schema), "{sent}");
}

/// The content of a user message that says `parts`.
fn content(parts: Vec<ContentPart>) -> Value {
    let mut sent = read(&call(vec![with_parts(user(""), parts)]));
    sent["messages"][0]["content"].take()
}

fn text(text: &str) -> ContentPart {
    ContentPart::Text { text: text.to_owned() }
}

#[test]
fn parts_that_are_all_text_are_one_string() {
    assert_eq!(content(vec![]), json!(""));
    assert_eq!(content(vec![text("a"), text("b")]), json!("a\n\nb"));
    let named = vec![text("a"), image("image/tiff", b"tiff")];
    assert_eq!(content(named), json!("a\n\n[image/tiff, 4 bytes, not sent]"));
    let files = vec![text("a"), file("a.md", "text/markdown", b"# hi")];
    assert_eq!(content(files), json!("a\n\na.md:\n\n# hi"));
}

/// One part of each kind, and of each type that is treated on its own.
fn every_media() -> Vec<ContentPart> {
    let hash = BlobHash::of(PNG);
    let mime = || "video/mp4".to_owned();
    let link = |uri: Uri, mime: &str| ContentPart::Link {
        uri,
        name: Some("n".to_owned()),
        mime_type: Some(mime.to_owned()),
        size: None,
    };
    let blob = |mime: &str| ContentPart::Blob {
        uri: BlobHash::of(b"pdf"),
        mime: mime.to_owned(),
        size: 3,
    };
    vec![
        text("look"),
        text(" "),
        image("image/png", PNG),
        image_at("https://a.example/b.png"),
        audio("audio/mpeg", b"mp3"),
        audio("audio/x-wav", b"wav"),
        file("a.pdf", "application/pdf", b"pdf"),
        file(" ", "application/pdf", b"pdf"),
        file("a.zip", "application/zip", b"zip"),
        file("a.md", "text/markdown", b"# hi"),
        file("a.json", "application/json", b"{}"),
        file("blank.txt", "text/plain", b" "),
        file("odd.txt", "text/plain", b"\xff\xfe"),
        file("a.png", "image/png", PNG),
        file("a.heic", "image/heic", b"tiff"),
        image("image/png", b"tiff"),
        blob("application/pdf"),
        blob("application/zip"),
        audio("audio/ogg", b"ogg"),
        image("image/png", b"gone"),
        ContentPart::VideoUrl { video_url: BlobUrl { url: hash }, mime: mime(), size: 3 },
        link(Uri::Other("https://a.example/b.mp4".to_owned()), "video/*"),
        link(Uri::Other("s3://b.png".to_owned()), "image/png"),
        ContentPart::Attachment { id: "a".to_owned(), mime: mime(), size: 3, uri: Uri::Blob(hash) },
        ContentPart::Attachment {
            id: "a".to_owned(),
            mime: mime(),
            size: 9,
            uri: Uri::Other("x:y".to_owned()),
        },
    ]
}

#[test]
fn media_are_parts_and_the_rest_is_named() {
    let sent = content(every_media());
    let said = |text: &str| json!({ "type": "text", "text": text });
    let image = |url: &str| json!({ "type": "image_url", "image_url": { "url": url } });
    let audio = |data: &str, format: &str| json!({ "type": "input_audio", "input_audio": { "data": data, "format": format } });
    let file = |filename: &str, file_data: &str| json!({ "type": "file", "file": { "filename": filename, "file_data": file_data } });
    let expected = json!([
        said("look"),
        image("data:image/png;base64,iVBORw=="),
        image("https://a.example/b.png"),
        audio("bXAz", "mp3"),
        audio("d2F2", "wav"),
        file("a.pdf", "data:application/pdf;base64,cGRm"),
        file("file", "data:application/pdf;base64,cGRm"),
        said("[a.zip, application/zip, 3 bytes, not sent]"),
        said("a.md:\n\n# hi"),
        said("a.json:\n\n{}"),
        said("[blank.txt, text/plain, 1 bytes, not sent]"),
        said("[odd.txt, text/plain, 2 bytes, not sent]"),
        image("data:image/png;base64,iVBORw=="),
        said("[a.heic, image/heic, 4 bytes, not sent]"),
        said("[image/png, 4 bytes, not sent]"),
        file("file", "data:application/pdf;base64,cGRm"),
        said("[application/zip, 3 bytes, not sent]"),
        said("[audio/ogg, 3 bytes, not sent]"),
        said("[image/png, 4 bytes, not sent]"),
        said("[video/mp4, 3 bytes, not sent]"),
        said("[link: https://a.example/b.mp4, n, video/*]"),
        said("[link: s3://b.png, n, image/png]"),
        said("[a, video/mp4, 3 bytes, not sent]"),
        said("[a, video/mp4, 9 bytes at x:y, not sent]"),
    ]);
    assert_eq!(sent, expected);
}

#[test]
fn tools_and_replies_are_sent_as_text() {
    let png = || image("image/png", PNG);
    let asked = asking("", &[("look", "{}")]);
    let answer = with_parts(result(0, ""), vec![text("seen"), png(), image_at("https://a.b/c")]);
    let reply = with_parts(Message::text(Role::Assistant, ""), vec![text("here"), png()]);
    let sent = read(&call(vec![asked, answer, reply]));
    let tool = "seen\n\n[image/png, 4 bytes, not sent]\n\n[link: https://a.b/c, image/*]";
    assert_eq!(sent["messages"][1]["content"], json!(tool));
    assert_eq!(sent["messages"][2]["content"], json!("here"));
}
