//! Bytes of a conversation: named by their hash, described by the engine, never in an event (S15).

use super::kit::*;
use crate::protocol::blob::{BlobHash, Uri};
use crate::protocol::content::{
    BlobAudio, BlobFile, BlobInfo, BlobUrl, Blobs, Content, ContentPart,
};
use crate::protocol::message::Message;
use crate::protocol::tool_result::{MediaBlock, ToolContent, ToolResult};
use crate::session::Rejection;

fn hash(bytes: &str) -> BlobHash {
    BlobHash::of(bytes.as_bytes())
}

fn info(mime: &str, size: u64) -> BlobInfo {
    BlobInfo { mime: mime.to_owned(), size }
}

/// What came with a request.
fn uploads(of: &[(&str, &str)]) -> Blobs {
    let described = |(bytes, mime): &(&str, &str)| (hash(bytes), info(mime, bytes.len() as u64));
    of.iter().map(described).collect()
}

/// A picture whose caller says what it likes of it.
fn picture(id: &str, bytes: &str, mime: &str, size: u64) -> Message {
    let image_url = BlobUrl { url: hash(bytes) };
    let part = ContentPart::ImageUrl { image_url, mime: mime.to_owned(), size };
    Message { content: Some(Content::Parts(vec![part])), ..user(id, "") }
}

fn with_parts(parts: Vec<ContentPart>) -> Message {
    Message { content: Some(Content::Parts(parts)), ..user("u1", "") }
}

fn unknown_blob(path: &str) -> Rejection {
    let problem = "names a blob that this session does not have";
    Rejection::Invalid { path: path.to_owned(), problem }
}

fn said(conversation: &Conversation, at: usize) -> Content {
    conversation.view().messages[at].content.clone().unwrap()
}

fn image(bytes: &str, mime: &str, size: u64) -> Content {
    picture("x", bytes, mime, size).content.unwrap()
}

#[test]
fn a_blob_that_came_along_is_described_by_the_engine() {
    let mut conversation = Conversation::new();
    let claimed = picture("u1", "cat", "text/html", 999);
    conversation.accepts(ask_message(claimed).uploads(uploads(&[("cat", "image/png")])));
    assert_eq!(said(&conversation, 0), image("cat", "image/png", 3));
    let known = conversation.session.blob(&hash("cat"));
    assert_eq!(known, Some(&info("image/png", 3)));
    assert_eq!(conversation.session.blob(&hash("dog")), None);
}

#[test]
fn every_kind_of_part_that_names_a_blob_is_described() {
    let mime = || "?".to_owned();
    let url = hash("cat");
    let parts = |mime: String, size: u64, link: Option<String>| {
        vec![
            ContentPart::ImageUrl { image_url: BlobUrl { url }, mime: mime.clone(), size },
            ContentPart::VideoUrl { video_url: BlobUrl { url }, mime: mime.clone(), size },
            ContentPart::File {
                file: BlobFile { filename: "cat.png".to_owned(), file_data: url },
                mime: mime.clone(),
                size,
            },
            ContentPart::InputAudio {
                input_audio: BlobAudio { data: url, format: "wav".to_owned() },
                mime: mime.clone(),
                size,
            },
            ContentPart::Blob { uri: url, mime: mime.clone(), size },
            ContentPart::Link {
                uri: Uri::Blob(url),
                name: None,
                size: link.is_some().then_some(size),
                mime_type: link,
            },
            ContentPart::Attachment { id: "a".to_owned(), mime, size, uri: Uri::Blob(url) },
        ]
    };
    let mut conversation = Conversation::new();
    let ask = ask_message(with_parts(parts(mime(), 0, None)));
    conversation.accepts(ask.uploads(uploads(&[("cat", "image/png")])));
    let png = "image/png".to_owned();
    let expected = parts(png.clone(), 3, Some(png));
    assert_eq!(said(&conversation, 0), Content::Parts(expected));
}

#[test]
fn an_address_that_is_no_blob_is_left_as_it_is() {
    let uri = || Uri::Other("https://example.com/cat.png".to_owned());
    let parts = vec![
        ContentPart::Link { uri: uri(), name: Some("cat".to_owned()), mime_type: None, size: None },
        ContentPart::Attachment { id: "a".to_owned(), mime: "x/y".to_owned(), size: 7, uri: uri() },
    ];
    let mut conversation = Conversation::new();
    conversation.accepts(ask_message(with_parts(parts.clone())));
    assert_eq!(said(&conversation, 0), Content::Parts(parts));
}

#[test]
fn a_blob_that_nobody_brought_is_refused() {
    let cat = || picture("u1", "cat", "image/png", 3);
    let other = || uploads(&[("dog", "image/png")]);
    let refused = Conversation::new().refuses(ask_message(cat()).uploads(other()));
    assert_eq!(refused, unknown_blob("message.content"));
    for messages in [vec![user("u0", "see"), cat()], vec![assistant("a0", "see"), cat()]] {
        for ask in [append(&messages), view(&messages), append(&messages).by_a_machine()] {
            let refused = Conversation::new().refuses(ask.uploads(other()));
            assert_eq!(refused, unknown_blob("messages[1].content"));
        }
    }
}

#[test]
fn a_blob_of_the_session_may_be_named_again_by_its_hash_alone() {
    let mut conversation = Conversation::new();
    let ask = ask_message(picture("u1", "cat", "", 0));
    conversation.accepts(ask.uploads(uploads(&[("cat", "image/png")])));
    conversation.answers("a cat");
    conversation.restart();
    conversation.accepts(ask_message(picture("u2", "cat", "", 0)));
    assert_eq!(said(&conversation, 2), image("cat", "image/png", 3));
}

#[test]
fn bytes_that_come_again_are_what_their_part_says_and_are_read_as_what_they_were_first() {
    let mut conversation = Conversation::new();
    let first = ask_message(picture("u1", "cat", "", 0));
    conversation.accepts(first.uploads(uploads(&[("cat", "image/png")])));
    conversation.answers("a cat");
    let second = ask_message(picture("u2", "cat", "", 0));
    conversation.accepts(second.uploads(uploads(&[("cat", "text/html")])));
    assert_eq!(said(&conversation, 2), image("cat", "text/html", 3));
    assert_eq!(conversation.session.blob(&hash("cat")), Some(&info("image/png", 3)));
}

#[test]
fn a_message_that_waits_has_its_blobs_already() {
    let mut conversation = Conversation::with_a_running_turn();
    let next = ask_message(picture("u2", "cat", "", 0)).queued();
    let step = conversation.accepts(next.uploads(uploads(&[("cat", "image/png")])));
    assert_eq!(step.events[0].payload.blobs(), [hash("cat")]);
    assert_eq!(conversation.session.blob(&hash("cat")), Some(&info("image/png", 3)));
    conversation.restart();
    conversation.answers("hi");
    assert_eq!(said(&conversation, 2), image("cat", "image/png", 3));
}

#[test]
fn the_same_picture_spelled_by_its_client_is_no_edit() {
    let mut conversation = Conversation::new();
    let ask = ask_message(picture("u1", "cat", "", 0));
    conversation.accepts(ask.uploads(uploads(&[("cat", "image/png")])));
    conversation.answers("a cat");
    let echoed = picture("u1", "cat", "application/octet-stream", 0);
    let step = conversation.accepts(view(&[echoed, user("u2", "sure?")]));
    assert_eq!(recorded(&step.events).len(), 1);
    let other = view(&[picture("u1", "dog", "", 0)]);
    conversation.answers("yes");
    let step = conversation.accepts(other.uploads(uploads(&[("dog", "image/png")])));
    assert_eq!(only(&step.events, message_new).parent_id, None, "another picture is an edit");
}

#[test]
fn the_bytes_of_a_result_are_known_to_the_session() {
    let (mut conversation, calls) = Conversation::with_open_tools(&["left"]);
    let block = MediaBlock { data: hash("map"), mime_type: "image/png".to_owned(), size: 3 };
    let content = vec![ToolContent::Image(block)];
    let result = ToolResult { content, ..ToolResult::default() };
    let step = conversation.accepts(settle_tool_by(zoe(), &calls[0], None, Ok(result)));
    assert_eq!(step.events[0].payload.blobs(), [hash("map")]);
    assert_eq!(step.events[1].payload.blobs(), [hash("map")]);
    assert_eq!(conversation.session.blob(&hash("map")), Some(&info("image/png", 3)));
    assert_eq!(said(&conversation, 2), image("map", "image/png", 3));
}

#[test]
fn the_bytes_of_an_answering_message_are_described_in_its_result_too() {
    let (mut conversation, calls) = Conversation::with_open_tools(&["left"]);
    let answer =
        Message { content: Some(image("map", "text/html", 0)), ..result_of(&calls[0], "r1", "") };
    let ask = append(&[answer]).uploads(uploads(&[("map", "image/png")]));
    let step = conversation.accepts(ask);
    let result = &only(&step.events, tool_completed).result;
    let block = MediaBlock { data: hash("map"), mime_type: "image/png".to_owned(), size: 3 };
    assert_eq!(result.content, [ToolContent::Image(block)]);
    assert_eq!(said(&conversation, 2), image("map", "image/png", 3));
}

#[test]
fn a_picture_alone_says_something() {
    let mut conversation = Conversation::new();
    let ask = ask_message(picture("u1", "cat", "", 0));
    conversation.accepts(ask.uploads(uploads(&[("cat", "image/png")])));
    conversation.answers("a cat");
}
