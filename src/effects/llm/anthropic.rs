//! Anthropic's Messages API.

mod request;

use std::collections::BTreeMap;

use reqwest::header::{HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::value::RawValue;

use self::request::request;
use super::reply::{Reply, Summary};
use super::stream::Event;
use super::{Dialect, Line, Progress, credential, finish_word, lenient, parse, receive};
use crate::control::agents::Llm;
use crate::effects::{BlobBytes, classify, exchange};
use crate::protocol::llm::{LlmResponse, Usage};
use crate::session::{CallFailure, ModelCall};

const VERSION: &str = "2023-06-01";

pub async fn answer(
    line: Line<'_>,
    llm: &Llm,
    call: &ModelCall,
    blobs: &BlobBytes,
    reply: Reply<'_>,
) -> Result<LlmResponse, CallFailure> {
    let mut request = line
        .post(llm, "/v1/messages", call)?
        .header(HeaderName::from_static("anthropic-version"), HeaderValue::from_static(VERSION))
        .body(request(call, blobs));
    if let Some(key) = credential(llm, "")? {
        request = request.header(HeaderName::from_static("x-api-key"), key);
    }
    let answer = exchange::send(request, call, line.bounds).await?;
    receive(answer, Transcript::default(), reply).await
}

/// Any event of a stream. A whole answer is a `Head`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Incoming {
    #[serde(rename = "type", deserialize_with = "lenient")]
    kind: Option<String>,
    #[serde(deserialize_with = "lenient")]
    message: Option<Head>,
    #[serde(deserialize_with = "lenient")]
    index: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    content_block: Option<Block>,
    #[serde(deserialize_with = "lenient")]
    delta: Option<Change>,
    #[serde(deserialize_with = "lenient")]
    usage: Option<ReportedUsage>,
    error: Option<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Head {
    #[serde(deserialize_with = "lenient")]
    model: Option<String>,
    #[serde(deserialize_with = "lenient")]
    content: Option<Vec<Block>>,
    #[serde(deserialize_with = "lenient")]
    stop_reason: Option<String>,
    #[serde(deserialize_with = "lenient")]
    usage: Option<ReportedUsage>,
    error: Option<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Block {
    #[serde(rename = "type", deserialize_with = "lenient")]
    kind: Option<String>,
    #[serde(deserialize_with = "lenient")]
    text: Option<String>,
    #[serde(deserialize_with = "lenient")]
    thinking: Option<String>,
    #[serde(deserialize_with = "lenient")]
    name: Option<String>,
    input: Option<Box<RawValue>>,
}

/// What changes in a block (`content_block_delta`) or in the message (`message_delta`).
#[derive(Default, Deserialize)]
#[serde(default)]
struct Change {
    #[serde(rename = "type", deserialize_with = "lenient")]
    kind: Option<String>,
    #[serde(deserialize_with = "lenient")]
    text: Option<String>,
    #[serde(deserialize_with = "lenient")]
    thinking: Option<String>,
    #[serde(deserialize_with = "lenient")]
    partial_json: Option<String>,
    #[serde(deserialize_with = "lenient")]
    stop_reason: Option<String>,
}

/// Counts are cumulative; what is not repeated stands.
#[derive(Default, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_field_names, reason = "the provider's names")]
struct ReportedUsage {
    #[serde(deserialize_with = "lenient")]
    input_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    output_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    cache_creation_input_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    cache_read_input_tokens: Option<u64>,
}

/// What has come of one answer, beside the pieces that the reply keeps.
#[derive(Default)]
pub(super) struct Transcript {
    model: Option<String>,
    finish_reason: Option<String>,
    usage: Option<ReportedUsage>,
    /// Our index of the tool call in each of the provider's blocks.
    calls: BTreeMap<u64, StreamedCall>,
}

struct StreamedCall {
    index: usize,
    /// The input that came with the block's start; used only if no pieces of it follow.
    input: Option<Box<RawValue>>,
}

impl Dialect for Transcript {
    fn event(&mut self, event: &Event, reply: &mut Reply<'_>) -> Result<Progress, CallFailure> {
        if event.data.trim().is_empty() {
            return Ok(Progress::More);
        }
        let incoming: Incoming = parse(event.data.as_bytes())?;
        if let Some(error) = &incoming.error {
            return Err(classify::reported(error));
        }
        let block = incoming.index.unwrap_or_default();
        match incoming.kind.as_deref().unwrap_or_default() {
            "message_start" => self.head(incoming.message.unwrap_or_default())?,
            "content_block_start" => {
                self.open(block, incoming.content_block.unwrap_or_default(), reply)?;
            }
            "content_block_delta" => {
                self.change(block, &incoming.delta.unwrap_or_default(), reply)?;
            }
            "content_block_stop" => self.close(block, reply)?,
            "message_delta" => {
                self.usage(incoming.usage);
                self.stop(incoming.delta.and_then(|change| change.stop_reason))?;
            }
            "message_stop" => return Ok(Progress::Done),
            // `ping`, and events of later versions of the API.
            _ => {}
        }
        Ok(Progress::More)
    }

    fn whole(&mut self, body: &[u8], reply: &mut Reply<'_>) -> Result<(), CallFailure> {
        let mut head: Head = parse(body)?;
        let Some(blocks) = head.content.take() else {
            return Err(match &head.error {
                Some(error) => classify::reported(error),
                None => classify::garbled("an answer without content"),
            });
        };
        self.head(head)?;
        for (at, block) in (0..).zip(blocks) {
            self.open(at, block, reply)?;
            self.close(at, reply)?;
        }
        Ok(())
    }

    fn summary(&mut self) -> Option<Summary> {
        Some(Summary {
            finish_reason: self.finish_reason.take()?,
            model: self.model.take(),
            usage: self.usage.take().map(Usage::from),
            cost: None,
        })
    }
}

impl Transcript {
    fn head(&mut self, head: Head) -> Result<(), CallFailure> {
        self.model = head.model.filter(|model| !model.is_empty());
        self.usage(head.usage);
        self.stop(head.stop_reason)
    }

    fn open(&mut self, at: u64, block: Block, reply: &mut Reply<'_>) -> Result<(), CallFailure> {
        match block.kind.as_deref().unwrap_or_default() {
            "text" => reply.text(&block.text.unwrap_or_default()),
            "thinking" => reply.reasoning(&block.thinking.unwrap_or_default()),
            "tool_use" => {
                let index = reply.open_call(&block.name.unwrap_or_default())?;
                self.calls.insert(at, StreamedCall { index, input: block.input });
                Ok(())
            }
            // Redacted thinking and what only the provider's own tools give.
            _ => Ok(()),
        }
    }

    fn change(
        &mut self,
        at: u64,
        change: &Change,
        reply: &mut Reply<'_>,
    ) -> Result<(), CallFailure> {
        match change.kind.as_deref().unwrap_or_default() {
            "text_delta" => reply.text(change.text.as_deref().unwrap_or_default()),
            "thinking_delta" => reply.reasoning(change.thinking.as_deref().unwrap_or_default()),
            "input_json_delta" => {
                let piece = change.partial_json.as_deref().unwrap_or_default();
                match self.calls.get_mut(&at) {
                    Some(call) if !piece.is_empty() => {
                        call.input = None;
                        reply.arguments(call.index, piece)
                    }
                    Some(_) | None => Ok(()),
                }
            }
            // Signatures and citations.
            _ => Ok(()),
        }
    }

    fn close(&mut self, at: u64, reply: &mut Reply<'_>) -> Result<(), CallFailure> {
        match self.calls.remove(&at) {
            Some(StreamedCall { index, input: Some(input) }) => reply.arguments(index, input.get()),
            Some(_) | None => Ok(()),
        }
    }

    fn stop(&mut self, reason: Option<String>) -> Result<(), CallFailure> {
        let Some(reason) = reason else {
            return Ok(());
        };
        self.finish_reason = Some(match reason.as_str() {
            "end_turn" | "stop_sequence" | "pause_turn" => "stop".to_owned(),
            "max_tokens" | "model_context_window_exceeded" => "length".to_owned(),
            "tool_use" => "tool_calls".to_owned(),
            "refusal" => return Err(classify::refused()),
            other => finish_word(other),
        });
        Ok(())
    }

    fn usage(&mut self, reported: Option<ReportedUsage>) {
        let Some(new) = reported else {
            return;
        };
        let old = self.usage.take().unwrap_or_default();
        self.usage = Some(ReportedUsage {
            input_tokens: new.input_tokens.or(old.input_tokens),
            output_tokens: new.output_tokens.or(old.output_tokens),
            cache_creation_input_tokens: new
                .cache_creation_input_tokens
                .or(old.cache_creation_input_tokens),
            cache_read_input_tokens: new.cache_read_input_tokens.or(old.cache_read_input_tokens),
        });
    }
}

/// Our input tokens include those that a cache served or stored.
impl From<ReportedUsage> for Usage {
    fn from(reported: ReportedUsage) -> Self {
        let input_tokens = [
            reported.input_tokens,
            reported.cache_creation_input_tokens,
            reported.cache_read_input_tokens,
        ]
        .into_iter()
        .flatten()
        .fold(0, u64::saturating_add);
        let output_tokens = reported.output_tokens.unwrap_or(0);
        Self {
            input_tokens,
            output_tokens,
            cached_input_tokens: reported.cache_read_input_tokens,
            reasoning_tokens: None,
            total_tokens: input_tokens.saturating_add(output_tokens),
        }
    }
}

#[cfg(test)]
mod tests;
