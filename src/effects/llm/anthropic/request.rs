//! What is sent: the conversation in turns, and the tools.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::effects::BlobBytes;
use crate::effects::llm::history::{self, Invocation, Step, ToolResult};
use crate::effects::llm::media::{Encoded, Media, Piece};
use crate::effects::llm::schema::parameters;
use crate::session::ModelCall;

/// The API demands a bound on the answer. This is the most that every model of the 3.5 generation
/// and later takes; a higher value would be refused by some.
const MAX_TOKENS: u32 = 8192;
/// A conversation has to begin with the user.
const OPENING: &str = "(The conversation begins.)";
/// It has to end with the user too: some models refuse to go on with a reply.
const CONTINUATION: &str = "(The conversation goes on.)";
/// Largest image, in bytes: the API takes 5 MiB of base64.
const IMAGE_BYTES_MAX: usize = 5 * 1024 * 1024 / 4 * 3;
/// Longest title of a document.
const TITLE_CHARS_MAX: usize = 500;

pub(super) fn request(call: &ModelCall, blobs: &BlobBytes) -> Vec<u8> {
    #[derive(Serialize)]
    struct Request<'a> {
        model: &'a str,
        max_tokens: u32,
        #[serde(skip_serializing_if = "String::is_empty")]
        system: String,
        messages: Vec<Outgoing<'a>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tools: Vec<OutgoingTool<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_choice: Option<ToolChoice>,
        stream: bool,
    }
    let (system, messages) = conversation(call, blobs);
    let (tools, tool_choice) = tools(call, &messages);
    let request = Request {
        model: &call.model,
        max_tokens: MAX_TOKENS,
        system,
        messages,
        tools,
        tool_choice,
        stream: call.stream,
    };
    // Plain structs of strings always serialize.
    serde_json::to_vec(&request).unwrap_or_default()
}

/// One message as it is sent: all that one side said in a row.
#[derive(Serialize)]
struct Outgoing<'a> {
    role: &'static str,
    content: Vec<OutgoingBlock<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum OutgoingBlock<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        source: Source<'a>,
    },
    Document {
        source: Source<'a>,
        title: String,
    },
    ToolUse {
        id: &'a str,
        name: Cow<'a, str>,
        input: Box<RawValue>,
    },
    ToolResult {
        tool_use_id: &'a str,
        #[serde(skip_serializing_if = "Given::is_empty")]
        content: Given<'a>,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Source<'a> {
    Base64 { media_type: &'static str, data: Encoded<'a> },
    Url { url: &'a str },
    Text { media_type: &'static str, data: &'a str },
}

/// What a tool gave back.
#[derive(Serialize)]
#[serde(untagged)]
enum Given<'a> {
    Text(String),
    Blocks(Vec<OutgoingBlock<'a>>),
}

#[derive(Serialize)]
struct OutgoingTool<'a> {
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    input_schema: Box<RawValue>,
}

#[derive(Serialize)]
struct ToolChoice {
    #[serde(rename = "type")]
    kind: &'static str,
}

/// The tools that are offered. The API refuses a conversation with calls that declares no tool, so
/// where none is offered, those that were called are declared and ruled out.
fn tools<'a>(
    call: &'a ModelCall,
    messages: &[Outgoing<'a>],
) -> (Vec<OutgoingTool<'a>>, Option<ToolChoice>) {
    if !call.tools.is_empty() {
        let offered = call.tools.iter().map(|tool| OutgoingTool {
            name: Cow::Borrowed(&tool.name),
            description: tool.description.as_deref(),
            input_schema: parameters(tool.input.as_ref()),
        });
        return (offered.collect(), None);
    }
    let blocks = messages.iter().flat_map(|message| &message.content);
    let called: BTreeSet<&Cow<'a, str>> = blocks.filter_map(OutgoingBlock::called).collect();
    let ruled_out = (!called.is_empty()).then_some(ToolChoice { kind: "none" });
    let declared = called.into_iter().map(|name| OutgoingTool {
        name: name.clone(),
        description: None,
        input_schema: parameters(None),
    });
    (declared.collect(), ruled_out)
}

/// The system prompt with every system message behind it, and what the two sides said in turn.
fn conversation<'a>(call: &'a ModelCall, blobs: &'a BlobBytes) -> (String, Vec<Outgoing<'a>>) {
    let mut prompts: Vec<String> = call.system.iter().cloned().collect();
    let mut messages: Vec<Outgoing<'_>> = Vec::new();
    for step in history::steps(&call.messages, blobs) {
        let (role, blocks) = match step {
            Step::System { text, .. } => {
                prompts.push(text);
                continue;
            }
            Step::User { said, .. } => {
                ("user", said.into_iter().filter_map(OutgoingBlock::of).collect())
            }
            Step::Assistant { text, calls, .. } => {
                let mut blocks: Vec<_> = OutgoingBlock::said(text.into()).into_iter().collect();
                blocks.extend(calls.into_iter().map(OutgoingBlock::made));
                ("assistant", blocks)
            }
            Step::Results(results) => {
                ("user", results.into_iter().map(OutgoingBlock::answered).collect())
            }
        };
        push(&mut messages, role, blocks);
    }
    let missing = match messages.last() {
        None => Some(OPENING),
        Some(last) if last.role == "assistant" => Some(CONTINUATION),
        Some(_) => None,
    };
    if let Some(text) = missing {
        push(&mut messages, "user", vec![OutgoingBlock::Text { text: Cow::Borrowed(text) }]);
    }
    prompts.retain(|text| !text.trim().is_empty());
    (prompts.join("\n\n"), messages)
}

fn push<'a>(messages: &mut Vec<Outgoing<'a>>, role: &'static str, blocks: Vec<OutgoingBlock<'a>>) {
    if blocks.is_empty() {
        return;
    }
    if messages.is_empty() && role != "user" {
        let text = OutgoingBlock::Text { text: Cow::Borrowed(OPENING) };
        messages.push(Outgoing { role: "user", content: vec![text] });
    }
    match messages.last_mut() {
        Some(last) if last.role == role => last.content.extend(blocks),
        Some(_) | None => messages.push(Outgoing { role, content: blocks }),
    }
}

impl<'a> OutgoingBlock<'a> {
    /// Blank texts are refused by the API.
    fn said(text: Cow<'a, str>) -> Option<Self> {
        (!text.trim().is_empty()).then_some(Self::Text { text })
    }

    fn of(piece: Piece<'a>) -> Option<Self> {
        match &piece {
            Piece::Media(Media::Image { mime, bytes }, _) if bytes.len() <= IMAGE_BYTES_MAX => {
                let source = Source::Base64 { media_type: mime, data: Encoded(bytes) };
                return Some(Self::Image { source });
            }
            Piece::Media(Media::ImageAt(url), _) => {
                return Some(Self::Image { source: Source::Url { url } });
            }
            Piece::Media(Media::Pdf { name, bytes }, _) => {
                let source = Source::Base64 { media_type: "application/pdf", data: Encoded(bytes) };
                return Some(Self::document(name, source));
            }
            Piece::Media(Media::TextFile { name, text }, _) => {
                let source = Source::Text { media_type: "text/plain", data: text };
                return Some(Self::document(name, source));
            }
            Piece::Text(_) | Piece::Media(Media::Image { .. } | Media::Audio { .. }, _) => {}
        }
        Self::said(piece.into_words())
    }

    fn document(name: &str, source: Source<'a>) -> Self {
        Self::Document { source, title: name.chars().take(TITLE_CHARS_MAX).collect() }
    }

    fn made(call: Invocation<'a>) -> Self {
        Self::ToolUse { id: call.id.as_str(), input: call.input(), name: call.name }
    }

    fn answered(result: ToolResult<'a>) -> Self {
        let is_image = |piece: &Piece<'_>| {
            matches!(piece, Piece::Media(Media::Image { .. } | Media::ImageAt(_), _))
        };
        let content = if result.said.iter().any(is_image) {
            let image_or_words =
                |piece| if is_image(&piece) { piece } else { Piece::Text(piece.into_words()) };
            let blocks = result.said.into_iter().map(image_or_words).filter_map(Self::of);
            Given::Blocks(blocks.collect())
        } else {
            Given::Text(Piece::join(result.said))
        };
        Self::ToolResult { tool_use_id: result.call.as_str(), content }
    }

    /// The name of the tool that the block calls.
    fn called(&self) -> Option<&Cow<'a, str>> {
        match self {
            Self::ToolUse { name, .. } => Some(name),
            Self::Text { .. }
            | Self::Image { .. }
            | Self::Document { .. }
            | Self::ToolResult { .. } => None,
        }
    }
}

impl Given<'_> {
    fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Blocks(blocks) => blocks.is_empty(),
        }
    }
}

#[cfg(test)]
mod tests;
