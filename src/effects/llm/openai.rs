//! Chat Completions, as `OpenAI` and the many servers that call themselves compatible speak it.
//!
//! What is read is tolerant, because those servers differ: reasoning is `reasoning` or
//! `reasoning_content`, tool calls come in pieces or whole, with or without an index.

mod request;

use reqwest::header::AUTHORIZATION;
use rust_decimal::Decimal;
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

pub async fn answer(
    line: Line<'_>,
    llm: &Llm,
    call: &ModelCall,
    blobs: &BlobBytes,
    reply: Reply<'_>,
) -> Result<LlmResponse, CallFailure> {
    let mut request = line.post(llm, "/chat/completions", call)?.body(request(call, blobs));
    if let Some(key) = credential(llm, "Bearer ")? {
        request = request.header(AUTHORIZATION, key);
    }
    let answer = exchange::send(request, call, line.bounds).await?;
    receive(answer, Transcript::default(), reply).await
}

/// A chunk of a stream, or a whole answer.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Chunk {
    #[serde(deserialize_with = "lenient")]
    object: Option<String>,
    #[serde(deserialize_with = "lenient")]
    model: Option<String>,
    #[serde(deserialize_with = "lenient")]
    choices: Option<Vec<Choice>>,
    #[serde(deserialize_with = "lenient")]
    usage: Option<ReportedUsage>,
    error: Option<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Choice {
    /// In a stream.
    #[serde(deserialize_with = "lenient")]
    delta: Option<Piece>,
    /// In a whole answer.
    #[serde(deserialize_with = "lenient")]
    message: Option<Piece>,
    #[serde(deserialize_with = "lenient")]
    finish_reason: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Piece {
    content: Option<Box<RawValue>>,
    #[serde(deserialize_with = "lenient")]
    reasoning: Option<String>,
    #[serde(deserialize_with = "lenient")]
    reasoning_content: Option<String>,
    #[serde(deserialize_with = "lenient")]
    refusal: Option<String>,
    #[serde(deserialize_with = "lenient")]
    tool_calls: Option<Vec<CallPiece>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CallPiece {
    #[serde(deserialize_with = "lenient")]
    index: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    function: Option<FunctionPiece>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct FunctionPiece {
    #[serde(deserialize_with = "lenient")]
    name: Option<String>,
    arguments: Option<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ReportedUsage {
    #[serde(deserialize_with = "lenient")]
    prompt_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    completion_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    total_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    prompt_tokens_details: Option<TokenDetails>,
    #[serde(deserialize_with = "lenient")]
    completion_tokens_details: Option<TokenDetails>,
    /// `DeepSeek`'s name for cached tokens.
    #[serde(deserialize_with = "lenient")]
    prompt_cache_hit_tokens: Option<u64>,
    /// Dollars, a number or a string; `OpenRouter` and others.
    cost: Option<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TokenDetails {
    #[serde(deserialize_with = "lenient")]
    cached_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    reasoning_tokens: Option<u64>,
}

/// What has come of one answer, beside the pieces that the reply keeps.
#[derive(Default)]
pub(super) struct Transcript {
    model: Option<String>,
    finish_reason: Option<String>,
    usage: Option<Usage>,
    cost: Option<Decimal>,
    /// The provider's index and id of each call, by our index.
    calls: Vec<(Option<u64>, Option<String>)>,
}

impl Dialect for Transcript {
    fn event(&mut self, event: &Event, reply: &mut Reply<'_>) -> Result<Progress, CallFailure> {
        let data = event.data.trim();
        if data == "[DONE]" {
            if !reply.is_empty() {
                // Some servers never give a reason.
                self.finish_reason.get_or_insert_with(|| "stop".to_owned());
            }
            return Ok(Progress::Done);
        }
        if data.is_empty() {
            return Ok(Progress::More);
        }
        let choice = self.chunk(data.as_bytes())?;
        if let Some(Choice { delta: Some(piece), .. }) = &choice {
            self.piece(piece, reply)?;
        }
        self.finish(choice)?;
        Ok(Progress::More)
    }

    fn whole(&mut self, body: &[u8], reply: &mut Reply<'_>) -> Result<(), CallFailure> {
        let Some(mut choice) = self.chunk(body)? else {
            return Err(classify::garbled("an answer without choices"));
        };
        let piece = choice.message.take().or_else(|| choice.delta.take()).unwrap_or_default();
        self.piece(&piece, reply)?;
        self.finish(Some(choice))?;
        self.finish_reason.get_or_insert_with(|| "stop".to_owned());
        Ok(())
    }

    fn summary(&mut self) -> Option<Summary> {
        Some(Summary {
            finish_reason: self.finish_reason.take()?,
            model: self.model.take(),
            usage: self.usage,
            cost: self.cost,
        })
    }
}

impl Transcript {
    /// Notes what a chunk says about the whole answer and returns its first choice.
    fn chunk(&mut self, json: &[u8]) -> Result<Option<Choice>, CallFailure> {
        let chunk: Chunk = parse(json)?;
        if let Some(error) = &chunk.error {
            return Err(classify::reported(error));
        }
        if chunk.object.as_deref() == Some("error") {
            return Err(classify::reported(parse::<Box<RawValue>>(json)?.as_ref()));
        }
        if let Some(model) = chunk.model.filter(|model| !model.is_empty()) {
            self.model.get_or_insert(model);
        }
        if let Some(usage) = chunk.usage {
            self.cost = usage.cost.as_deref().and_then(dollars).or(self.cost);
            self.usage = Some(usage.into());
        }
        Ok(chunk.choices.and_then(|choices| choices.into_iter().next()))
    }

    fn finish(&mut self, choice: Option<Choice>) -> Result<(), CallFailure> {
        let Some(reason) = choice.and_then(|choice| choice.finish_reason) else {
            return Ok(());
        };
        let reason = match reason.as_str() {
            "" => return Ok(()),
            "content_filter" => return Err(classify::refused()),
            // OpenRouter and DeepSeek, where the model itself broke down.
            "error" | "insufficient_system_resource" => return Err(classify::cut()),
            "function_call" => "tool_calls".to_owned(),
            reason => finish_word(reason),
        };
        self.finish_reason = Some(reason);
        Ok(())
    }

    fn piece(&mut self, piece: &Piece, reply: &mut Reply<'_>) -> Result<(), CallFailure> {
        if piece.refusal.as_deref().is_some_and(|refusal| !refusal.is_empty()) {
            return Err(classify::refused());
        }
        // Servers that send both send the same text twice.
        let named = [&piece.reasoning, &piece.reasoning_content];
        if let Some(reasoning) = named.into_iter().flatten().find(|text| !text.is_empty()) {
            reply.reasoning(reasoning)?;
        }
        if let Some(content) = &piece.content {
            reply.text(&spoken(content))?;
        }
        for call in piece.tool_calls.iter().flatten() {
            self.call(call, reply)?;
        }
        Ok(())
    }

    fn call(&mut self, piece: &CallPiece, reply: &mut Reply<'_>) -> Result<(), CallFailure> {
        let function = piece.function.as_ref();
        let name = function.and_then(|function| function.name.as_deref()).unwrap_or_default();
        let id = piece.id.as_ref().filter(|id| !id.is_empty());
        let index = if let Some(index) = self.position(piece.index, id, name) {
            reply.name_call(index, name)?;
            index
        } else {
            self.calls.push((piece.index, id.cloned()));
            reply.open_call(name)?
        };
        match function.and_then(|function| function.arguments.as_deref()) {
            Some(arguments) => reply.arguments(index, &raw_text(arguments)),
            None => Ok(()),
        }
    }

    /// The call that a piece continues, by our index; `None` if it begins one.
    ///
    /// The index alone does not tell: some servers leave it out, some give every call index 0. A
    /// piece with a name and an id of its own is a new call in any case.
    fn position(&self, index: Option<u64>, id: Option<&String>, name: &str) -> Option<usize> {
        let last = self.calls.len().checked_sub(1)?;
        let at = match index {
            Some(_) => match self.calls.iter().rposition(|(known, _)| *known == index) {
                Some(at) => at,
                // Nothing but arguments: they belong to a call that came without its index.
                None if name.is_empty() && id.is_none() => last,
                None => return None,
            },
            None => last,
        };
        let known = self.calls.get(at).and_then(|(_, id)| id.as_ref());
        let is_new = match (id, known) {
            _ if name.is_empty() => false,
            (Some(id), Some(known)) => id != known,
            (None, _) | (Some(_), None) => index.is_none(),
        };
        (!is_new).then_some(at)
    }
}

impl From<ReportedUsage> for Usage {
    fn from(reported: ReportedUsage) -> Self {
        let input_tokens = reported.prompt_tokens.unwrap_or(0);
        let output_tokens = reported.completion_tokens.unwrap_or(0);
        let cached = reported.prompt_tokens_details.and_then(|details| details.cached_tokens);
        let total = input_tokens.saturating_add(output_tokens);
        Self {
            input_tokens,
            output_tokens,
            cached_input_tokens: cached.or(reported.prompt_cache_hit_tokens),
            reasoning_tokens: reported
                .completion_tokens_details
                .and_then(|details| details.reasoning_tokens),
            total_tokens: reported.total_tokens.unwrap_or(total),
        }
    }
}

/// A message's text: a string, or the text of its parts.
fn spoken(content: &RawValue) -> String {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Part {
        #[serde(deserialize_with = "lenient")]
        text: Option<String>,
    }
    if let Ok(text) = serde_json::from_str::<String>(content.get()) {
        return text;
    }
    let parts: Vec<Part> = serde_json::from_str(content.get()).unwrap_or_default();
    parts.into_iter().filter_map(|part| part.text).collect()
}

/// The text of a string; any other value as it was written, but null as nothing.
fn raw_text(value: &RawValue) -> String {
    match value.get() {
        "null" => String::new(),
        raw => serde_json::from_str(raw).unwrap_or_else(|_| raw.to_owned()),
    }
}

/// A reported cost, exact, with or without exponent.
fn dollars(cost: &RawValue) -> Option<Decimal> {
    let text = raw_text(cost);
    let cost = text.parse::<Decimal>().or_else(|_| Decimal::from_scientific_lossy(&text)).ok()?;
    (!cost.is_sign_negative() || cost.is_zero()).then_some(cost)
}

#[cfg(test)]
mod tests;
