use super::*;
use crate::effects::llm::kit::image;
use crate::protocol::blob::BlobHash;

#[test]
fn the_first_bytes_of_an_image_tell_its_type() {
    for (said, bytes, found) in [
        ("image/png", &b"\x89PNG\r\n"[..], Some("image/png")),
        ("image/jpeg", b"\x89PNG\r\n", Some("image/png")),
        ("image/png", b"\xff\xd8\xff\xe0", Some("image/jpeg")),
        ("image/*", b"GIF89a", Some("image/gif")),
        ("image/heic", b"RIFF\0\0\0\0WEBPVP8 ", Some("image/webp")),
        ("image/png", b"who knows", None),
        ("image/webp", b"RIFF\0\0\0\0WAVE", None),
        ("image/heic", b"who knows", None),
        ("image/svg+xml", b"<svg/>", None),
        ("application/pdf", b"\x89PNG\r\n", None),
    ] {
        assert_eq!(image_type(said, bytes), found, "{said} {bytes:?}");
    }
}

#[test]
fn what_is_empty_is_not_sent() {
    let part = image("image/png", b"");
    let blobs = BlobBytes::from([(BlobHash::of(b""), Bytes::new())]);
    let Piece::Text(words) = Piece::of_part(&part, &blobs) else { panic!("sent") };
    assert_eq!(words, "[image/png, 0 bytes, not sent]");
}

#[test]
fn bytes_are_written_in_base64() {
    let encoded = serde_json::to_string(&Encoded(b"\xfb\xff")).unwrap();
    assert_eq!(encoded, r#""+/8=""#);
    let uri = DataUri { mime: "image/png", bytes: b"\xfb\xff" };
    assert_eq!(serde_json::to_string(&uri).unwrap(), r#""data:image/png;base64,+/8=""#);
}
