use super::*;
use crate::protocol::json::{DEPTH_MAX, decode};

const HELLO: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

/// Reads `text`, as a string of a body.
fn read(text: &str) -> Result<Source, DecodeError> {
    let body = serde_json::to_vec(text).unwrap();
    decode(&body, DEPTH_MAX, Source::read)
}

fn read_bytes(text: &str) -> Result<Source, DecodeError> {
    let body = serde_json::to_vec(text).unwrap();
    decode(&body, DEPTH_MAX, |node| Source::read_bytes(node, "audio/wav"))
}

#[track_caller]
fn upload(source: Result<Source, DecodeError>) -> Upload {
    match source {
        Ok(Source::Upload(upload)) => upload,
        Ok(Source::Uri(uri)) => panic!("an address: {uri}"),
        Err(error) => panic!("{error}"),
    }
}

#[track_caller]
fn uri(source: Result<Source, DecodeError>) -> Uri {
    match source {
        Ok(Source::Uri(uri)) => uri,
        Ok(Source::Upload(upload)) => panic!("bytes: {upload:?}"),
        Err(error) => panic!("{error}"),
    }
}

#[track_caller]
fn refused(source: Result<Source, DecodeError>, problem: &str) {
    let path = "body".to_owned();
    let expected = DecodeError::Range { path, problem: problem.to_owned() };
    assert_eq!(source.err(), Some(expected));
}

#[test]
fn a_hash_is_written_in_lower_case_and_read_back() {
    let hash = BlobHash::of(b"hello");
    assert_eq!(hash.hex(), HELLO);
    assert_eq!(hash.to_string(), format!("blob://{HELLO}"));
    assert_eq!(format!("blob://{HELLO}").parse(), Ok(hash));
    assert_eq!(BlobHash::from_hex(HELLO), Some(hash));
    let json = serde_json::to_string(&hash).unwrap();
    assert_eq!(json, format!("\"blob://{HELLO}\""));
    assert_eq!(serde_json::from_str::<BlobHash>(&json).unwrap(), hash);
    for byte in 0..=u8::MAX {
        let hash = BlobHash([byte; 32]);
        assert_eq!(BlobHash::from_hex(&hash.hex()), Some(hash));
    }
}

#[test]
fn anything_but_a_scheme_and_64_digits_is_no_blob() {
    let upper = HELLO.to_ascii_uppercase();
    for text in [
        String::new(),
        "blob://".to_owned(),
        HELLO.to_owned(),
        format!("BLOB://{HELLO}"),
        format!("blob:{HELLO}"),
        format!("blob://{upper}"),
        format!("blob://{HELLO}0"),
        format!("blob://{HELLO} "),
        format!("blob://{}", "g".repeat(64)),
        format!("blob://{}", "\u{e9}".repeat(32)),
        format!("blob://../{}", "0".repeat(61)),
    ] {
        assert_eq!(text.parse::<BlobHash>(), Err(BlobUriError), "{text}");
        assert!(serde_json::from_value::<BlobHash>(text.clone().into()).is_err(), "{text}");
    }
}

#[test]
fn an_address_is_a_blob_or_kept_as_it_is() {
    assert_eq!(uri(read(&format!("blob://{HELLO}"))), Uri::Blob(BlobHash::of(b"hello")));
    for text in ["https://a.example/x.png?q=1#f", "s3://bucket/key", "relative/path", "a b"] {
        assert_eq!(uri(read(text)), Uri::Other(text.to_owned()));
    }
    for uri in [Uri::Blob(BlobHash::of(b"")), Uri::Other("https://a.example".to_owned())] {
        let json = serde_json::to_string(&uri).unwrap();
        assert_eq!(serde_json::from_str::<Uri>(&json).unwrap(), uri);
    }
}

#[test]
fn an_address_out_of_range_is_refused() {
    let form = "must be an address of 1 to 8192 bytes without control characters";
    let longest = format!("https://{}", "a".repeat(8192 - 8));
    assert_eq!(uri(read(&longest)), Uri::Other(longest.clone()));
    for text in ["", "https://a\n.example", "a\0b", &format!("{longest}a")] {
        refused(read(text), form);
    }
    for text in ["blob://", "blob://2cf24dba", &format!("blob://{HELLO}/x")] {
        refused(read(text), "must be `blob://` and 64 hexadecimal digits");
    }
}

#[test]
fn a_data_uri_becomes_bytes_of_its_type() {
    for (text, mime) in [
        ("data:image/png;base64,aGVsbG8=", "image/png"),
        ("DATA:Image/PNG;BASE64,aGVsbG8=", "image/png"),
        ("data:image/svg+xml;base64,aGVsbG8=", "image/svg+xml"),
        ("data:text/plain;charset=utf-8;base64,aGVsbG8=", "text/plain"),
        ("data:audio/ogg;codecs=opus;rate=8;base64,aGVsbG8=", "audio/ogg"),
        ("data:;base64,aGVsbG8=", "text/plain"),
        ("data:;charset=utf-8;base64,aGVsbG8=", "text/plain"),
    ] {
        for source in [read(text), read_bytes(text)] {
            let upload = upload(source);
            assert_eq!((upload.mime.as_str(), &upload.bytes[..]), (mime, &b"hello"[..]), "{text}");
            assert_eq!((upload.hash.hex().as_str(), upload.size()), (HELLO, 5));
        }
    }
    assert_eq!(upload(read("data:image/png;base64,")).size(), 0);
}

#[test]
fn a_data_uri_of_another_form_is_refused() {
    for text in [
        "data:",
        "data:image/png",
        "data:image/png;base64",
        "data:image/png,aGVsbG8=",
        "data:,hello",
        "data:base64,aGVsbG8=",
        "data:image/png;base64;charset=utf-8,aGVsbG8=",
        "data:image/png; base64,aGVsbG8=",
        "data:png;base64,aGVsbG8=",
        "data:/png;base64,aGVsbG8=",
        "data:image/;base64,aGVsbG8=",
        "data:image/p ng;base64,aGVsbG8=",
        "data:image/png/x;base64,aGVsbG8=",
        &format!("data:image/{};base64,aGVsbG8=", "x".repeat(122)),
    ] {
        refused(read(text), "must be a data URI of the form data:<mime>;base64,<data>");
    }
}

#[test]
fn base64_is_strict() {
    for data in ["aGVsbG8", "aGVsbG8==", "aGVs bG8=", "aGVs\nbG8=", "aGVsbG9=", "a-_=", "%61", "="]
    {
        refused(read(&format!("data:image/png;base64,{data}")), "is not base64");
        refused(read_bytes(data), "is not base64");
    }
}

#[test]
fn plain_base64_is_taken_only_where_bytes_are_expected() {
    let bytes = upload(read_bytes("aGVsbG8="));
    assert_eq!((bytes.mime.as_str(), bytes.hash.hex().as_str()), ("audio/wav", HELLO));
    assert_eq!(uri(read("aGVsbG8=")), Uri::Other("aGVsbG8=".to_owned()));
    assert_eq!(uri(read_bytes("http://a")), Uri::Other("http://a".to_owned()));
    assert_eq!(uri(read_bytes("https://a")), Uri::Other("https://a".to_owned()));
    assert_eq!(uri(read_bytes(&format!("blob://{HELLO}"))), Uri::Blob(BlobHash::of(b"hello")));
    refused(read_bytes("ftp://a"), "is not base64");
}

#[test]
fn one_part_holds_at_most_4_mib() {
    let encoded = |len: usize| STANDARD.encode(vec![7; len]);
    let most = encoded(BLOB_BYTES_MAX);
    assert_eq!(upload(read_bytes(&most)).size(), BLOB_BYTES_MAX as u64);
    assert_eq!(upload(read(&format!("data:a/b;base64,{most}"))).bytes.len(), BLOB_BYTES_MAX);
    for more in [1, 2, 3, 1000] {
        let data = encoded(BLOB_BYTES_MAX + more);
        refused(read_bytes(&data), "holds more than 4194304 bytes");
        refused(read(&format!("data:a/b;base64,{data}")), "holds more than 4194304 bytes");
    }
}

#[test]
fn a_source_that_is_no_string_is_of_another_shape() {
    for body in ["7", "{}", "[]", "true"] {
        let error = decode(body.as_bytes(), DEPTH_MAX, Source::read).err().unwrap();
        assert_eq!(error.to_string(), "`body` must be a string");
        assert!(matches!(error, DecodeError::Shape { .. }));
    }
}

#[test]
fn no_bytes_are_printed() {
    let upload = upload(read("data:image/png;base64,aGVsbG8="));
    assert_eq!(format!("{upload:?}"), format!("blob://{HELLO} (image/png, 5 bytes)"));
}
