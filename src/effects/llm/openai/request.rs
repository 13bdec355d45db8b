//! What is sent: the conversation and the tools.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::effects::BlobBytes;
use crate::effects::llm::history::{self, Invocation, Step};
use crate::effects::llm::media::{DataUri, Encoded, Media, Piece};
use crate::effects::llm::schema::parameters;
use crate::protocol::tool::AgentTool;
use crate::session::ModelCall;

pub(super) fn request(call: &ModelCall, blobs: &BlobBytes) -> Vec<u8> {
    #[derive(Serialize)]
    struct Request<'a> {
        model: &'a str,
        messages: Vec<Outgoing<'a>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tools: Vec<OutgoingTool<'a>>,
        stream: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        stream_options: Option<StreamOptions>,
    }
    #[derive(Serialize)]
    struct StreamOptions {
        include_usage: bool,
    }
    let request = Request {
        model: &call.model,
        messages: messages(call, blobs),
        tools: call.tools.iter().map(|tool| OutgoingTool::of(tool)).collect(),
        stream: call.stream,
        stream_options: call.stream.then_some(StreamOptions { include_usage: true }),
    };
    // Plain structs of strings always serialize.
    serde_json::to_vec(&request).unwrap_or_default()
}

/// One message as it is sent.
#[derive(Serialize)]
struct Outgoing<'a> {
    role: &'static str,
    /// Null beside tool calls that came without text.
    content: Option<OutgoingContent<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<OutgoingCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum OutgoingContent<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<OutgoingPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum OutgoingPart<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: Image<'a> },
    InputAudio { input_audio: Audio<'a> },
    File { file: File<'a> },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Image<'a> {
    Bytes { url: DataUri<'a> },
    At { url: &'a str },
}

#[derive(Serialize)]
struct Audio<'a> {
    data: Encoded<'a>,
    format: &'static str,
}

#[derive(Serialize)]
struct File<'a> {
    filename: &'a str,
    file_data: DataUri<'a>,
}

#[derive(Serialize)]
struct OutgoingCall<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: OutgoingFunction<'a>,
}

#[derive(Serialize)]
struct OutgoingFunction<'a> {
    name: Cow<'a, str>,
    arguments: Cow<'a, str>,
}

#[derive(Serialize)]
struct OutgoingTool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: Offer<'a>,
}

#[derive(Serialize)]
struct Offer<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    parameters: Box<RawValue>,
}

fn messages<'a>(call: &'a ModelCall, blobs: &'a BlobBytes) -> Vec<Outgoing<'a>> {
    let system = call.system.as_deref();
    let mut messages: Vec<Outgoing<'_>> =
        system.map(|text| Outgoing::text("system", None, text)).into_iter().collect();
    for step in history::steps(&call.messages, blobs) {
        match step {
            Step::System { name, text } => messages.push(Outgoing::text("system", name, text)),
            Step::User { name, said } => {
                messages.push(Outgoing::new("user", name, OutgoingContent::of(said)));
            }
            Step::Assistant { name, text, calls } => {
                let mut message = Outgoing::text("assistant", name, text);
                if !calls.is_empty() {
                    message.content = message.content.filter(|content| !content.is_empty());
                }
                message.tool_calls = calls.into_iter().map(OutgoingCall::of).collect();
                messages.push(message);
            }
            Step::Results(results) => messages.extend(results.into_iter().map(|result| {
                let mut message = Outgoing::text("tool", None, Piece::join(result.said));
                message.tool_call_id = Some(result.call.as_str());
                message
            })),
        }
    }
    messages
}

impl<'a> Outgoing<'a> {
    fn new(role: &'static str, name: Option<&'a str>, content: OutgoingContent<'a>) -> Self {
        Self { role, content: Some(content), name, tool_calls: Vec::new(), tool_call_id: None }
    }

    fn text(role: &'static str, name: Option<&'a str>, text: impl Into<Cow<'a, str>>) -> Self {
        Self::new(role, name, OutgoingContent::Text(text.into()))
    }
}

impl<'a> OutgoingContent<'a> {
    /// A string where there is nothing but text: not every compatible server reads parts. A blank text
    /// beside an image says nothing, and some refuse it.
    fn of(said: Vec<Piece<'a>>) -> Self {
        let mut parts: Vec<OutgoingPart<'a>> = said.into_iter().map(OutgoingPart::of).collect();
        if let Some(texts) = parts.iter().map(OutgoingPart::as_text).collect::<Option<Vec<_>>>() {
            return Self::Text(texts.join("\n\n").into());
        }
        parts.retain(|part| part.as_text().is_none_or(|text| !text.trim().is_empty()));
        Self::Parts(parts)
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Parts(parts) => parts.is_empty(),
        }
    }
}

impl<'a> OutgoingPart<'a> {
    fn of(piece: Piece<'a>) -> Self {
        match piece {
            Piece::Text(text) => Self::Text { text },
            Piece::Media(Media::Image { mime, bytes }, _) => {
                Self::ImageUrl { image_url: Image::Bytes { url: DataUri { mime, bytes } } }
            }
            Piece::Media(Media::ImageAt(url), _) => Self::ImageUrl { image_url: Image::At { url } },
            Piece::Media(Media::Audio { format, bytes }, _) => {
                Self::InputAudio { input_audio: Audio { data: Encoded(bytes), format } }
            }
            Piece::Media(Media::Pdf { name: filename, bytes }, _) => {
                let file_data = DataUri { mime: "application/pdf", bytes };
                Self::File { file: File { filename, file_data } }
            }
            // The API refuses a file that is no PDF.
            Piece::Media(Media::TextFile { name, text }, _) => {
                Self::Text { text: format!("{name}:\n\n{text}").into() }
            }
        }
    }

    fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            Self::ImageUrl { .. } | Self::InputAudio { .. } | Self::File { .. } => None,
        }
    }
}

impl<'a> OutgoingCall<'a> {
    fn of(call: Invocation<'a>) -> Self {
        let function = OutgoingFunction { name: call.name, arguments: call.arguments };
        Self { id: call.id.as_str(), kind: "function", function }
    }
}

impl<'a> OutgoingTool<'a> {
    fn of(tool: &'a AgentTool) -> Self {
        let function = Offer {
            name: &tool.name,
            description: tool.description.as_deref(),
            parameters: parameters(tool.input.as_ref()),
        };
        Self { kind: "function", function }
    }
}

#[cfg(test)]
mod tests;
