use super::*;
use crate::protocol::blob::Upload;
use crate::protocol::json::{DEPTH_MAX, decode};

const DATA: &str = "aGVsbG8=";
const BLOB: &str = "blob://2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

fn read(body: &str) -> Result<(ToolResult, Vec<Upload>), DecodeError> {
    let body = body.replace("DATA", DATA).replace("BLOB", BLOB);
    let mut intake = Intake::new(20);
    let result = decode(body.as_bytes(), DEPTH_MAX, |node| intake.tool_result(node))?;
    Ok((result, intake.uploads))
}

fn taken(body: &str) -> ToolResult {
    read(body).unwrap_or_else(|error| panic!("{body}: {error}")).0
}

/// Results in MCP's shape and as they are recorded; none for as they came.
const RESULTS: [(&str, Option<&str>); 11] = [
    (r#"{"content":[{"type":"text","text":"a"}]}"#, None),
    (r#"{"content":[]}"#, None),
    (r#"{"content":[],"structuredContent":{"b": 1, "a":1.50}}"#, None),
    (r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":""}],"isError":true}"#, None),
    (r#"{"structuredContent":[1]}"#, Some(r#"{"content":[],"structuredContent":[1]}"#)),
    (
        r#"{"isError":false,"content":[{"annotations":{},"text":"a","type":"text"}],"_meta":{}}"#,
        Some(r#"{"content":[{"type":"text","text":"a"}]}"#),
    ),
    (
        r#"{"content":[{"type":"image","data":"DATA","mimeType":"Image/PNG"}]}"#,
        Some(r#"{"content":[{"type":"image","data":"BLOB","mimeType":"image/png","size":5}]}"#),
    ),
    (
        r#"{"content":[{"type":"audio","data":"data:audio/x;base64,DATA","mimeType":"audio/wav"}]}"#,
        Some(r#"{"content":[{"type":"audio","data":"BLOB","mimeType":"audio/wav","size":5}]}"#),
    ),
    (r#"{"content":[{"type":"resource","resource":{"uri":"x:y","text":"a"}}]}"#, None),
    (
        r#"{"content":[{"type":"resource","resource":{"uri":"x:y","mimeType":"text/css","blob":"DATA"}}]}"#,
        Some(
            r#"{"content":[{"type":"resource","resource":{"uri":"x:y","mimeType":"text/css","blob":"BLOB","size":5}}]}"#,
        ),
    ),
    (
        r#"{"content":[{"type":"resource_link","uri":"x:y","name":"n","mimeType":"text/css"}]}"#,
        None,
    ),
];

#[test]
fn a_result_in_mcps_shape_is_taken_as_it_is() {
    for (body, recorded) in RESULTS {
        let json = serde_json::to_string(&taken(body)).unwrap().replace(BLOB, "BLOB");
        assert_eq!(json, recorded.unwrap_or(body));
    }
}

#[test]
fn a_result_is_read_back_from_the_log() {
    for (body, _) in RESULTS {
        let result = taken(body);
        let stored = serde_json::to_string(&result).unwrap();
        assert_eq!(serde_json::from_str::<ToolResult>(&stored).unwrap(), result, "{stored}");
        for block in &result.content {
            let stored = serde_json::to_string(block).unwrap();
            assert_eq!(&serde_json::from_str::<ToolContent>(&stored).unwrap(), block, "{stored}");
        }
    }
}

#[test]
fn any_other_value_is_one_text() {
    for (body, text) in [
        ("\"sunny\"", "sunny"),
        ("\"\"", ""),
        (r#""{\"content\":[]}""#, r#"{"content":[]}"#),
        ("7", "7"),
        ("1.50e3", "1.50e3"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        ("true", "true"),
        ("null", "null"),
        ("{}", "{}"),
        ("[ 1,\n 2 ]", "[1,2]"),
        (r#"{ "b" : "a \" b\\" , "a" : [ ] }"#, r#"{"b":"a \" b\\","a":[]}"#),
        (r#"{"content": "sunny"}"#, r#"{"content":"sunny"}"#),
        (r#"{"content": {"type": "text"}}"#, r#"{"content":{"type":"text"}}"#),
        (r#"{"content": ["sunny"]}"#, r#"{"content":["sunny"]}"#),
        (r#"{"content": [{"text": "a"}]}"#, r#"{"content":[{"text":"a"}]}"#),
        (r#"{"content": [{"type": "text"}]}"#, r#"{"content":[{"type":"text"}]}"#),
        (r#"{"content": [{"type": "page"}]}"#, r#"{"content":[{"type":"page"}]}"#),
        (r#"{"isError": true}"#, r#"{"isError":true}"#),
        (
            r#"{"content": [{"type": "text", "text": "a"}, {"type": "page"}]}"#,
            r#"{"content":[{"type":"text","text":"a"},{"type":"page"}]}"#,
        ),
    ] {
        assert_eq!(taken(body), ToolResult::text(text), "{body}");
    }
}

#[test]
fn bytes_in_a_result_come_with_the_request() {
    let (_, uploads) = read(
        r#"{"content":[{"type":"image","data":"DATA","mimeType":"image/png"},
            {"type":"resource","resource":{"uri":"x:y","blob":"DATA"}},
            {"type":"resource","resource":{"uri":"x:z","mimeType":"a","blob":"YQ=="}}]}"#,
    )
    .unwrap();
    let found: Vec<(&str, &[u8])> =
        uploads.iter().map(|upload| (upload.mime.as_str(), &upload.bytes[..])).collect();
    let expected = [("image/png", &b"hello"[..]), ("application/octet-stream", &b"a"[..])];
    assert_eq!(found, expected);
}

#[test]
fn a_known_block_of_another_shape_names_the_field() {
    let blocks = |block: &str| format!(r#"{{"content":[{block}]}}"#);
    for (block, path, problem) in [
        (r#"{"type":"image","mimeType":"image/png"}"#, "data", "is missing"),
        (r#"{"type":"image","data":"DATA"}"#, "mimeType", "is missing"),
        (r#"{"type":"audio","data":1,"mimeType":"audio/wav"}"#, "data", "must be a string"),
        (r#"{"type":"resource"}"#, "resource", "is missing"),
        (r#"{"type":"resource","resource":{"text":"a"}}"#, "resource.uri", "is missing"),
        (r#"{"type":"resource_link"}"#, "uri", "is missing"),
    ] {
        let error = read(&blocks(block)).unwrap_err();
        assert_eq!(error.to_string(), format!("`content[0].{path}` {problem}"));
        assert!(matches!(error, DecodeError::Shape { .. }), "{block}");
    }
    for (block, path, problem) in [
        (r#"{"type":"image","data":"aGVsbG8","mimeType":"image/png"}"#, "data", "is not base64"),
        (r#"{"type":"image","data":"BLOB","mimeType":"image/png"}"#, "data", "must be base64"),
        (r#"{"type":"image","data":"http://a","mimeType":"a/b"}"#, "data", "must be base64"),
        (r#"{"type":"image","data":"DATA","mimeType":"png"}"#, "mimeType", "is not a media type"),
        (
            r#"{"type":"resource","resource":{"uri":"x","blob":"?"}}"#,
            "resource.blob",
            "is not base64",
        ),
        (r#"{"type":"resource_link","uri":"BLOB"}"#, "uri", "must not be a blob:// reference"),
    ] {
        let error = read(&blocks(block)).unwrap_err();
        assert_eq!(error.to_string(), format!("`content[0].{path}` {problem}"));
        assert!(matches!(error, DecodeError::Range { .. }), "{block}");
    }
    let error = read(r#"{"structuredContent":1,"isError":"no"}"#).unwrap_err();
    assert_eq!(error.to_string(), "`isError` must be true or false");
    let many = vec![r#"{"type":"text","text":"a"}"#; 257].join(",");
    let error = read(&format!(r#"{{"content":[{many}]}}"#)).unwrap_err();
    assert_eq!(error.to_string(), "`content` holds more than 256 items");
}

#[test]
fn the_model_reads_a_result_as_text_or_parts() {
    for (body, text) in [
        ("\"sunny\"", "sunny"),
        (r#"{"content":[]}"#, ""),
        (r#"{"structuredContent":{"a": 1}}"#, r#"{"a": 1}"#),
        (r#"{"content":[{"type":"text","text":"a"}],"structuredContent":1}"#, "a"),
    ] {
        assert_eq!(taken(body).to_content(), Content::Text(text.to_owned()));
    }
    let result = taken(
        r#"{"content":[{"type":"text","text":"a"},
            {"type":"image","data":"DATA","mimeType":"image/png"},
            {"type":"audio","data":"DATA","mimeType":"audio/mpeg"},
            {"type":"resource","resource":{"uri":"x:y","mimeType":"text/css","blob":"DATA"}},
            {"type":"resource","resource":{"uri":"x:y","text":"b"}},
            {"type":"resource","resource":{"uri":"x:y","mimeType":"text/css"}},
            {"type":"resource_link","uri":"x:z","name":"n"}]}"#,
    );
    let json = serde_json::to_string(&result.to_content()).unwrap().replace(BLOB, "BLOB");
    let expected = [
        r#"{"type":"text","text":"a"}"#,
        r#"{"type":"image_url","image_url":{"url":"BLOB"},"mime":"image/png","size":5}"#,
        r#"{"type":"input_audio","input_audio":{"data":"BLOB","format":"mp3"},"mime":"audio/mpeg","size":5}"#,
        r#"{"type":"file","file":{"filename":"x:y","file_data":"BLOB"},"mime":"text/css","size":5}"#,
        r#"{"type":"text","text":"b"}"#,
        r#"{"type":"link","uri":"x:y","mimeType":"text/css"}"#,
        r#"{"type":"link","uri":"x:z","name":"n"}"#,
    ];
    assert_eq!(json, format!("[{}]", expected.join(",")));
}

#[test]
fn the_model_reads_that_a_tool_failed() {
    for (body, text) in [
        (
            r#"{"content":[{"type":"text","text":"no such city"}],"isError":true}"#,
            "error: no such city",
        ),
        (r#"{"content":[],"isError":true}"#, "error: "),
        (r#"{"structuredContent":{"a": 1},"isError":true}"#, r#"error: {"a": 1}"#),
    ] {
        assert_eq!(taken(body).to_content(), Content::Text(text.to_owned()));
    }
    let image = r#"{"type":"image","data":"DATA","mimeType":"image/png"}"#;
    let shown = r#"{"type":"image_url","image_url":{"url":"BLOB"},"mime":"image/png","size":5}"#;
    let said = |text: &str| format!(r#"{{"type":"text","text":"{text}"}}"#);
    for (blocks, parts) in [
        (vec![said("a"), image.to_owned()], vec![said("error: a"), shown.to_owned()]),
        (vec![image.to_owned(), said("a")], vec![said("error:"), shown.to_owned(), said("a")]),
    ] {
        let result = taken(&format!(r#"{{"content":[{}],"isError":true}}"#, blocks.join(",")));
        let json = serde_json::to_string(&result.to_content()).unwrap().replace(BLOB, "BLOB");
        assert_eq!(json, format!("[{}]", parts.join(",")));
    }
    let full = vec![image; 256].join(",");
    let result = taken(&format!(r#"{{"content":[{full}],"isError":true}}"#));
    let Content::Parts(parts) = result.to_content() else { panic!("text") };
    assert_eq!(parts.len(), 256, "a message may not hold more");
}

#[test]
fn a_tool_message_is_the_result_that_the_model_reads_again() {
    let hash = BlobHash::of(b"hello");
    let (mime, size) = (|| "image/png".to_owned(), 5);
    let link = |uri, name: &str| ContentPart::Link {
        uri,
        name: Some(name.to_owned()),
        mime_type: Some(mime()),
        size: None,
    };
    let file = |filename: &str| ContentPart::File {
        file: BlobFile { filename: filename.to_owned(), file_data: hash },
        mime: mime(),
        size,
    };
    let image = ContentPart::ImageUrl { image_url: BlobUrl { url: hash }, mime: mime(), size };
    let attachment = |uri| ContentPart::Attachment { id: "a".to_owned(), mime: mime(), size, uri };
    let elsewhere = || Uri::Other("x:y".to_owned());
    for (part, again) in [
        (image.clone(), image),
        (link(Uri::Blob(hash), "n"), link(Uri::Blob(hash), "n")),
        (link(elsewhere(), "n"), link(elsewhere(), "n")),
        (file("a.png"), file("a.png")),
        (ContentPart::Blob { uri: hash, mime: mime(), size }, file(BLOB)),
        (
            ContentPart::VideoUrl { video_url: BlobUrl { url: hash }, mime: mime(), size },
            file(BLOB),
        ),
        (attachment(Uri::Blob(hash)), file("a")),
        (attachment(elsewhere()), link(elsewhere(), "a")),
    ] {
        let result = ToolResult::of_message(Some(&Content::Parts(vec![part.clone()])));
        assert_eq!(result.to_content(), Content::Parts(vec![again]), "{part:?}");
        assert_eq!(
            result.content[0].blob().map(|(hash, _)| hash),
            part.blob().map(|(hash, _)| hash)
        );
    }
    assert_eq!(ToolResult::of_message(None), ToolResult::text(""));
    let text = Content::Text("a".to_owned());
    assert_eq!(ToolResult::of_message(Some(&text)), ToolResult::text("a"));
}
