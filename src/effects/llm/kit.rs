//! For tests: calls, what their deltas add up to, and transcripts played without a connection.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::reply::Reply;
use super::{Dialect, Progress, close, stream};
use crate::effects::BlobBytes;
use crate::effects::Delta;
use crate::ids::{CallId, LlmId, MessageId, tool_call_id};
use crate::protocol::blob::{BlobHash, Uri};
use crate::protocol::content::{BlobAudio, BlobFile, BlobUrl, Content, ContentPart};
use crate::protocol::event::Handler;
use crate::protocol::json::Json;
use crate::protocol::llm::LlmResponse;
use crate::protocol::message::{FunctionCall, FunctionTag, Message, Role, ToolCall};
use crate::protocol::tool::AgentTool;
use crate::session::{CallFailure, ModelCall};

pub const BYTES_MAX: usize = 1 << 20;
/// As much of an image as tells its type.
pub const PNG: &[u8] = b"\x89PNG";

pub fn call(messages: Vec<Message>) -> ModelCall {
    ModelCall {
        id: CallId::parse("c1").unwrap(),
        attempt: 1,
        reply_id: MessageId::parse("c1").unwrap(),
        llm: LlmId::parse("l1").unwrap(),
        model: "some-model".to_owned(),
        system: None,
        stream: true,
        // So short that the bounds of a test count.
        timeout: Some(Duration::from_millis(30)),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: Vec::new(),
    }
}

pub fn tool(name: &str, description: Option<&str>, input: Option<&str>) -> Arc<AgentTool> {
    Arc::new(AgentTool {
        name: name.to_owned(),
        description: description.map(str::to_owned),
        input: input.map(|schema| Json::parse(schema).unwrap()),
        output: None,
        handler: Handler::Client,
    })
}

/// The bytes that are at hand, each naming its kind. Those of `gone` are not among them.
pub fn blobs() -> BlobBytes {
    let known: [&[u8]; 12] = [
        PNG,
        b"pdf",
        b"# hi",
        b"{}",
        b"zip",
        b" ",
        b"\xff\xfe",
        b"tiff",
        b"mp3",
        b"wav",
        b"ogg",
        b"",
    ];
    known.into_iter().map(|bytes| (BlobHash::of(bytes), Bytes::from_static(bytes))).collect()
}

pub fn with_parts(message: Message, parts: Vec<ContentPart>) -> Message {
    Message { content: Some(Content::Parts(parts)), ..message }
}

pub fn image(mime: &str, bytes: &[u8]) -> ContentPart {
    ContentPart::ImageUrl {
        image_url: BlobUrl { url: BlobHash::of(bytes) },
        mime: mime.to_owned(),
        size: bytes.len() as u64,
    }
}

pub fn image_at(url: &str) -> ContentPart {
    let mime_type = Some("image/*".to_owned());
    ContentPart::link(Uri::Other(url.to_owned()), None, mime_type)
}

pub fn audio(mime: &str, bytes: &[u8]) -> ContentPart {
    ContentPart::InputAudio {
        input_audio: BlobAudio { data: BlobHash::of(bytes), format: "wav".to_owned() },
        mime: mime.to_owned(),
        size: bytes.len() as u64,
    }
}

pub fn file(name: &str, mime: &str, bytes: &[u8]) -> ContentPart {
    ContentPart::File {
        file: BlobFile { filename: name.to_owned(), file_data: BlobHash::of(bytes) },
        mime: mime.to_owned(),
        size: bytes.len() as u64,
    }
}

pub fn user(text: &str) -> Message {
    Message::text(Role::User, text)
}

/// The id of the `index`-th tool call in the reply to [`call`].
pub fn id(index: usize) -> CallId {
    tool_call_id(&MessageId::parse("c1").unwrap(), index)
}

/// An assistant message that says `text` and makes these calls, with the ids of [`id`].
pub fn asking(text: &str, calls: &[(&str, &str)]) -> Message {
    let mut message = Message::text(Role::Assistant, text);
    message.tool_calls = calls
        .iter()
        .enumerate()
        .map(|(index, (name, arguments))| ToolCall {
            id: id(index),
            kind: FunctionTag::Function,
            function: FunctionCall { name: (*name).to_owned(), arguments: (*arguments).to_owned() },
        })
        .collect();
    message
}

pub fn result(index: usize, text: &str) -> Message {
    let mut message = Message::text(Role::Tool, text);
    message.tool_call_id = Some(id(index));
    message
}

/// What the deltas of an answer add up to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Shown {
    pub text: String,
    pub texts: usize,
    pub reasoning: String,
    /// Id, name and arguments.
    pub calls: Vec<(String, String, String)>,
    pub finish: Option<String>,
}

impl Shown {
    pub fn add(&mut self, delta: Delta<'_>) {
        assert!(self.finish.is_none(), "nothing comes after the finish");
        match delta {
            Delta::Text(text) => {
                self.text.push_str(text);
                self.texts += 1;
            }
            Delta::Reasoning(text) => self.reasoning.push_str(text),
            Delta::ToolCall { index, id, name, arguments } => {
                if index == self.calls.len() {
                    self.calls.push((id.to_string(), String::new(), String::new()));
                }
                let call = &mut self.calls[index];
                assert_eq!(call.0, id.as_str());
                call.1.push_str(name.unwrap_or_default());
                call.2.push_str(arguments.unwrap_or_default());
            }
            Delta::Finish(reason) => self.finish = Some(reason.to_owned()),
        }
    }

    /// What was shown is what is recorded.
    pub fn assert_matches(&self, response: &LlmResponse) {
        assert_eq!(self.text, response.content.clone().unwrap_or_default());
        assert_eq!(self.finish, response.finish_reason);
        assert_eq!(self.calls, calls(response));
    }
}

/// Id, name and arguments of each call.
pub fn calls(response: &LlmResponse) -> Vec<(String, String, String)> {
    response
        .tool_calls
        .iter()
        .map(|call| {
            let FunctionCall { name, arguments } = call.function.clone();
            (call.id.to_string(), name, arguments)
        })
        .collect()
}

/// `data` lines as a stream.
pub fn sse(data: &[&str]) -> String {
    data.iter().flat_map(|data| ["data: ", data, "\n\n"]).collect()
}

/// Plays a streamed answer, each byte on its own: no transcript depends on where it is split.
pub fn stream<D: Dialect + Default>(transcript: &str) -> (Result<LlmResponse, CallFailure>, Shown) {
    let call = call(Vec::new());
    let mut shown = Shown::default();
    let mut deltas = |delta: Delta<'_>| shown.add(delta);
    let mut reply = Reply::new(&call, BYTES_MAX, &mut deltas);
    let mut dialect = D::default();
    let mut play = || {
        for event in stream::decode(transcript.as_bytes().chunks(1)).unwrap() {
            match dialect.event(&event, &mut reply)? {
                Progress::More => {}
                Progress::Done => break,
            }
        }
        Ok(dialect.summary())
    };
    let played = play();
    let result = played.and_then(|summary| close(summary, reply));
    if let Ok(response) = &result {
        shown.assert_matches(response);
    }
    (result, shown)
}

/// Plays an answer that came in one piece.
pub fn whole<D: Dialect + Default>(body: &str) -> (Result<LlmResponse, CallFailure>, Shown) {
    let call = call(Vec::new());
    let mut shown = Shown::default();
    let mut deltas = |delta: Delta<'_>| shown.add(delta);
    let mut reply = Reply::new(&call, BYTES_MAX, &mut deltas);
    let mut dialect = D::default();
    let read = dialect.whole(body.as_bytes(), &mut reply);
    let result = read.and_then(|()| close(dialect.summary(), reply));
    if let Ok(response) = &result {
        shown.assert_matches(response);
    }
    (result, shown)
}
