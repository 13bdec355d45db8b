use base64::Engine as _;

use super::*;
use crate::protocol::json::{DEPTH_MAX, decode};

/// "hello", in base64 and as a blob.
const DATA: &str = "aGVsbG8=";
const BLOB: &str = "blob://2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

fn hash() -> BlobHash {
    BlobHash::of(b"hello")
}

/// The content of a body and what came with it. In `body`, DATA and BLOB stand for their values.
fn read(body: &str) -> Result<(Content, Vec<Upload>), DecodeError> {
    let body = body.replace("DATA", DATA).replace("BLOB", BLOB);
    let mut intake = Intake::new(20);
    let content = decode(body.as_bytes(), DEPTH_MAX, |node| intake.content(node))?;
    Ok((content, intake.uploads))
}

/// As it is recorded: the bytes that came with it are known, and those of BLOB.
fn recorded(body: &str) -> Content {
    let (mut content, uploads) = read(body).unwrap_or_else(|error| panic!("{body}: {error}"));
    let mut known = Intake::blobs(&uploads);
    known.entry(hash()).or_insert_with(|| BlobInfo { mime: "image/webp".to_owned(), size: 5 });
    content.describe_blobs(|hash| known.get(hash).cloned()).unwrap();
    content
}

fn json(content: &Content) -> String {
    serde_json::to_string(content).unwrap().replace(BLOB, "BLOB")
}

/// A part as it comes and as it is recorded.
const PARTS: [(&str, &str); 21] = [
    (r#"{"type":"text","text":"a"}"#, r#"{"type":"text","text":"a"}"#),
    (
        r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,DATA","detail":"low"}}"#,
        r#"{"type":"image_url","image_url":{"url":"BLOB"},"mime":"image/png","size":5}"#,
    ),
    (
        r#"{"type":"image_url","image_url":{"url":"BLOB"},"mime":"image/png","size":7}"#,
        r#"{"type":"image_url","image_url":{"url":"BLOB"},"mime":"image/webp","size":5}"#,
    ),
    (
        r#"{"type":"image_url","image_url":{"url":"https://a.example/b.png"}}"#,
        r#"{"type":"link","uri":"https://a.example/b.png","mimeType":"image/*"}"#,
    ),
    (
        r#"{"type":"video_url","video_url":{"url":"data:video/mp4;base64,DATA"}}"#,
        r#"{"type":"video_url","video_url":{"url":"BLOB"},"mime":"video/mp4","size":5}"#,
    ),
    (
        r#"{"type":"video_url","video_url":{"url":"https://a.example/b"}}"#,
        r#"{"type":"link","uri":"https://a.example/b","mimeType":"video/*"}"#,
    ),
    (
        r#"{"type":"file","file":{"filename":"a.pdf","file_data":"data:text/csv;base64,DATA"}}"#,
        r#"{"type":"file","file":{"filename":"a.pdf","file_data":"BLOB"},"mime":"text/csv","size":5}"#,
    ),
    (
        r#"{"type":"file","file":{"filename":"a.PDF","file_data":"DATA"}}"#,
        r#"{"type":"file","file":{"filename":"a.PDF","file_data":"BLOB"},"mime":"application/pdf","size":5}"#,
    ),
    (
        r#"{"type":"file","file":{"filename":"pdf","file_data":"DATA"}}"#,
        r#"{"type":"file","file":{"filename":"pdf","file_data":"BLOB"},"mime":"application/octet-stream","size":5}"#,
    ),
    (
        r#"{"type":"file","file":{"filename":"a.pdf","file_data":"http://a.example/a.pdf"}}"#,
        r#"{"type":"link","uri":"http://a.example/a.pdf","name":"a.pdf"}"#,
    ),
    (
        r#"{"type":"input_audio","input_audio":{"data":"DATA","format":"mp3"}}"#,
        r#"{"type":"input_audio","input_audio":{"data":"BLOB","format":"mp3"},"mime":"audio/mpeg","size":5}"#,
    ),
    (
        r#"{"type":"input_audio","input_audio":{"data":"data:audio/ogg;base64,DATA","format":"wav"}}"#,
        r#"{"type":"input_audio","input_audio":{"data":"BLOB","format":"wav"},"mime":"audio/ogg","size":5}"#,
    ),
    (
        r#"{"type":"input_audio","input_audio":{"data":"https://a.example/b","format":"wav"}}"#,
        r#"{"type":"link","uri":"https://a.example/b","mimeType":"audio/wav"}"#,
    ),
    (
        r#"{"type":"blob","uri":"BLOB","mime":"text/html","size":1}"#,
        r#"{"type":"blob","uri":"BLOB","mime":"image/webp","size":5}"#,
    ),
    (
        r#"{"type":"blob","uri":"data:text/css;base64,DATA"}"#,
        r#"{"type":"blob","uri":"BLOB","mime":"text/css","size":5}"#,
    ),
    (r#"{"type":"link","uri":"x:y"}"#, r#"{"type":"link","uri":"x:y"}"#),
    (
        r#"{"type":"link","uri":"x:y","name":"n","mimeType":"m"}"#,
        r#"{"type":"link","uri":"x:y","name":"n","mimeType":"m"}"#,
    ),
    (
        r#"{"type":"link","uri":"data:text/css;base64,DATA","mimeType":"image/png"}"#,
        r#"{"type":"link","uri":"BLOB","mimeType":"text/css","size":5}"#,
    ),
    (
        r#"{"type":"attachment","id":"a","mime":"text/css","size":9,"uri":"x:y"}"#,
        r#"{"type":"attachment","id":"a","mime":"text/css","size":9,"uri":"x:y"}"#,
    ),
    (
        r#"{"type":"attachment","id":"a","mime":"text/css","size":9,"uri":"BLOB"}"#,
        r#"{"type":"attachment","id":"a","mime":"image/webp","size":5,"uri":"BLOB"}"#,
    ),
    (
        r#"{"type":"attachment","id":"a","mime":"text/css","size":9,"uri":"data:;base64,DATA"}"#,
        r#"{"type":"attachment","id":"a","mime":"text/plain","size":5,"uri":"BLOB"}"#,
    ),
];

#[test]
fn a_request_brings_a_bounded_number_of_different_blobs() {
    let part = |bytes: usize| {
        let data = base64::engine::general_purpose::STANDARD.encode(bytes.to_be_bytes());
        format!(r#"{{"type":"blob","uri":"data:;base64,{data}"}}"#)
    };
    let message = |blobs: std::ops::Range<usize>| {
        let parts: Vec<String> = blobs.map(part).collect();
        format!(r#"{{"role":"user","content":[{}]}}"#, parts.join(","))
    };
    let read = |messages: &[String]| {
        let body = format!("[{}]", messages.join(","));
        decode(body.as_bytes(), DEPTH_MAX, |root| {
            let mut intake = Intake::new(1024);
            for message in root.items(10)? {
                crate::protocol::message::Message::read(&message, &mut intake)?;
            }
            Ok(intake.uploads.len())
        })
    };
    assert_eq!(read(&[message(0..256), message(0..256)]), Ok(256));
    let refused = read(&[message(0..256), message(0..2), message(256..257)]).unwrap_err();
    let problem = "`body[2].content[0].uri` is one of more than 256 different blobs";
    assert_eq!(refused.to_string(), problem);
}

#[test]
fn a_part_is_recorded_without_bytes_and_with_what_is_known_of_them() {
    for (part, expected) in PARTS {
        assert_eq!(json(&recorded(&format!("[{part}]"))), format!("[{expected}]"), "{part}");
    }
}

#[test]
fn what_is_recorded_is_read_back_from_the_log() {
    for (part, _) in PARTS {
        let content = recorded(&format!("[{part}]"));
        let stored = serde_json::to_string(&content).unwrap();
        assert_eq!(serde_json::from_str::<Content>(&stored).unwrap(), content, "{stored}");
    }
    assert_eq!(serde_json::from_str::<Content>(r#""a\nb""#).unwrap(), recorded(r#""a\nb""#));
}

#[test]
fn a_client_that_sends_back_what_is_recorded_says_the_same() {
    for (part, _) in PARTS {
        let content = recorded(&format!("[{part}]"));
        let echo = read(&serde_json::to_string(&content).unwrap()).unwrap().0;
        assert!(content.same_as(&echo) && echo.same_as(&content), "{part}");
        let again = read(&format!("[{part}]")).unwrap().0;
        assert!(content.same_as(&again) && again.same_as(&content), "{part}");
    }
}

#[test]
fn a_single_text_says_the_same_as_its_part_and_nothing_else_does() {
    let same = |a: &str, b: &str| read(a).unwrap().0.same_as(&read(b).unwrap().0);
    let part = r#"[{"type":"text","text":"a"}]"#;
    assert!(same("\"a\"", part) && same(part, "\"a\""));
    let two = r#"[{"type":"text","text":"a"},{"type":"text","text":"a"}]"#;
    let image = r#"[{"type":"image_url","image_url":{"url":"BLOB"}}]"#;
    let other_image = r#"[{"type":"image_url","image_url":{"url":"data:;base64,YQ=="}}]"#;
    let blob = r#"[{"type":"blob","uri":"BLOB"}]"#;
    let named = r#"[{"type":"link","uri":"BLOB","name":"a"}]"#;
    let link = r#"[{"type":"link","uri":"BLOB"}]"#;
    let all = ["\"b\"", "\"a\"", "[]", two, image, other_image, blob, named, link];
    for (at, a) in all.iter().enumerate() {
        for (other, b) in all.iter().enumerate() {
            assert_eq!(same(a, b), at == other, "{a} {b}");
        }
    }
}

#[test]
fn bytes_come_once_however_often_they_stand_in_a_request() {
    let image = r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,DATA"}}"#;
    let file = r#"{"type":"file","file":{"filename":"a","file_data":"DATA"}}"#;
    let (content, uploads) = read(&format!("[{image},{file},{image}]")).unwrap();
    assert_eq!(uploads.len(), 1);
    assert_eq!((uploads[0].hash, uploads[0].mime.as_str()), (hash(), "image/png"));
    assert_eq!(content.blobs().map(|(blob, _)| blob).collect::<Vec<_>>(), [hash(); 3]);
}

#[test]
fn a_blob_that_nobody_knows_is_named() {
    for (part, _) in PARTS.iter().filter(|(part, _)| part.contains("BLOB")) {
        let mut content = read(&format!("[{part}]")).unwrap().0;
        assert_eq!(content.describe_blobs(|_| None), Err(hash()), "{part}");
    }
    let mut content = read(r#"[{"type":"link","uri":"x:y"}]"#).unwrap().0;
    assert_eq!(content.describe_blobs(|_| None), Ok(()));
}

#[test]
fn only_white_space_says_nothing() {
    for (body, says) in [
        ("\"\"", false),
        ("\" \\n\"", false),
        ("\"a\"", true),
        ("[]", false),
        (r#"[{"type":"text","text":" "}]"#, false),
        (r#"[{"type":"text","text":" "},{"type":"text","text":"a"}]"#, true),
        (r#"[{"type":"link","uri":"x:y"}]"#, true),
    ] {
        assert_eq!(read(body).unwrap().0.says_something(), says, "{body}");
    }
}

#[test]
fn a_part_of_another_shape_names_the_field() {
    let data = "data:image/png;base64,DATA";
    for (part, path, problem) in [
        (r#"{"type":"image"}"#.to_owned(), ".type", "`image` is not a content type"),
        (r#"{"type":"image_url"}"#.to_owned(), ".image_url", "is missing"),
        (
            format!(r#"{{"type":"image_url","image_url":"{data}"}}"#),
            ".image_url",
            "must be an object",
        ),
        (r#"{"type":"image_url","image_url":{}}"#.to_owned(), ".image_url.url", "is missing"),
        (
            r#"{"type":"video_url","video_url":{"url":1}}"#.to_owned(),
            ".video_url.url",
            "must be a string",
        ),
        (
            r#"{"type":"file","file":{"file_data":"DATA"}}"#.to_owned(),
            ".file.filename",
            "is missing",
        ),
        (r#"{"type":"file","file":{"filename":"a"}}"#.to_owned(), ".file.file_data", "is missing"),
        (
            r#"{"type":"input_audio","input_audio":{"data":"DATA"}}"#.to_owned(),
            ".input_audio.format",
            "is missing",
        ),
        (
            r#"{"type":"input_audio","input_audio":{"format":"wav"}}"#.to_owned(),
            ".input_audio.data",
            "is missing",
        ),
        (r#"{"type":"blob"}"#.to_owned(), ".uri", "is missing"),
        (r#"{"type":"link","uri":"a","mimeType":1}"#.to_owned(), ".mimeType", "must be a string"),
        (
            r#"{"type":"attachment","mime":"a/b","size":1,"uri":"a"}"#.to_owned(),
            ".id",
            "is missing",
        ),
        (r#"{"type":"attachment","id":"a","size":1,"uri":"a"}"#.to_owned(), ".mime", "is missing"),
        (
            r#"{"type":"attachment","id":"a","mime":"a/b","uri":"a"}"#.to_owned(),
            ".size",
            "is missing",
        ),
        (
            r#"{"type":"attachment","id":"a","mime":"a/b","size":"1","uri":"a"}"#.to_owned(),
            ".size",
            "must be a number",
        ),
    ] {
        let error = read(&format!(r#"["x",{part}]"#).replace(r#""x""#, PARTS[0].0)).unwrap_err();
        assert_eq!(error.to_string(), format!("`body[1]{path}` {problem}"));
        assert!(matches!(error, DecodeError::Shape { .. }), "{part}");
    }
}

#[test]
fn a_value_out_of_range_names_the_field() {
    let address = "must be an address of 1 to 8192 bytes without control characters";
    let long = format!(r#"{{"type":"link","uri":"a","name":"{}"}}"#, "x".repeat(1025));
    for (part, path, problem) in [
        (r#"{"type":"image_url","image_url":{"url":""}}"#, ".image_url.url", address),
        (
            r#"{"type":"image_url","image_url":{"url":"data:image/png,DATA"}}"#,
            ".image_url.url",
            "must be a data URI of the form data:<mime>;base64,<data>",
        ),
        (
            r#"{"type":"file","file":{"filename":"a","file_data":"a.pdf"}}"#,
            ".file.file_data",
            "is not base64",
        ),
        (
            r#"{"type":"input_audio","input_audio":{"data":"?","format":"wav"}}"#,
            ".input_audio.data",
            "is not base64",
        ),
        (
            r#"{"type":"input_audio","input_audio":{"data":"DATA","format":"a b"}}"#,
            ".input_audio.format",
            "is not the name of a format",
        ),
        (
            r#"{"type":"blob","uri":"https://a.example"}"#,
            ".uri",
            "must be a blob:// reference or a data URI",
        ),
        (
            r#"{"type":"blob","uri":"blob://x"}"#,
            ".uri",
            "must be `blob://` and 64 hexadecimal digits",
        ),
        (
            r#"{"type":"attachment","id":"a","mime":"pdf","size":1,"uri":"a"}"#,
            ".mime",
            "is not a media type",
        ),
        (
            r#"{"type":"attachment","id":"a","mime":"a/b","size":-1,"uri":"a"}"#,
            ".size",
            "must be a whole number of 0 or more",
        ),
        (long.as_str(), ".name", "is longer than 1024 bytes"),
        (r#"{"type":"text","text":"123456789012345678901"}"#, ".text", "is longer than 20 bytes"),
    ] {
        let error = read(&format!("[{part}]")).unwrap_err();
        assert_eq!(error.to_string(), format!("`body[0]{path}` {problem}"));
        assert!(matches!(error, DecodeError::Range { .. }), "{part}");
    }
}

#[test]
fn the_type_of_plain_base64_comes_from_the_name_of_its_file() {
    for (name, mime) in [
        ("a.pdf", "application/pdf"),
        ("a.tar.JSON", "application/json"),
        ("a.txt", "text/plain"),
        ("a.md", "text/plain"),
        ("a.jpeg", "image/jpeg"),
        ("a.exe", "application/octet-stream"),
        ("a.", "application/octet-stream"),
        ("", "application/octet-stream"),
    ] {
        assert_eq!(mime_of_name(name), mime);
    }
}
