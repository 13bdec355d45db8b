//! Executors: they perform what a session owes to the outside and answer with the outcome.
//!
//! They hold no state of a session and no deadline: dropping a future of theirs stops its work and
//! closes its connection.

mod classify;
mod egress;
mod exchange;
pub mod llm;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use rust_decimal::Decimal;

use crate::control::agents::{Llm, LlmKind};
use crate::ids::CallId;
use crate::protocol::blob::BlobHash;
use crate::protocol::event::ENVELOPE_BYTES_MAX;
use crate::protocol::llm::{Cost, LlmResponse, Usage};
use crate::session::{CallFailure, ModelCall};
use egress::Egress;
use llm::Line;
use llm::reply::Reply;

/// The bytes behind the blobs that the messages of a call name. The model is told in words of one
/// that is not among them.
pub type BlobBytes = BTreeMap<BlobHash, Bytes>;

/// A piece of a model's answer, in the order in which it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delta<'a> {
    Text(&'a str),
    Reasoning(&'a str),
    /// A part of the `index`-th tool call. `name` comes once; the `arguments` add up. `id` is the
    /// engine's, the one that the recorded call has (S34).
    ToolCall {
        index: usize,
        id: &'a CallId,
        name: Option<&'a str>,
        arguments: Option<&'a str>,
    },
    /// The last one of an answer that succeeds.
    Finish(&'a str),
}

/// Performs effects; cheap to clone, its connections are shared.
#[derive(Debug, Clone)]
pub struct Executors {
    egress: Egress,
    bounds: Bounds,
}

/// What an executor waits for and takes from the other side of a call. The deadline of an attempt
/// is not here: the session's timer keeps it.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The JSON of one answer, which becomes part of one event (S56), and all that is shown of it:
    /// text, reasoning and tool calls.
    pub answer_bytes_max: usize,
    pub connect_max: Duration,
    /// From the request to the head of an answer that streams; longer for a call with a long
    /// deadline.
    pub streamed_head_max: Duration,
    /// The same for an answer in one piece, whose head comes when all of it is written.
    pub whole_head_max: Duration,
    /// Between two pieces of an answer; longer for a call with a long deadline.
    pub idle_max: Duration,
}

impl Bounds {
    /// The standard ones, for a log whose events are at most `event_bytes_max` long.
    pub fn new(event_bytes_max: usize) -> Self {
        Self {
            answer_bytes_max: event_bytes_max.saturating_sub(ENVELOPE_BYTES_MAX),
            connect_max: Duration::from_secs(5),
            streamed_head_max: Duration::from_mins(1),
            whole_head_max: Duration::from_mins(10),
            idle_max: Duration::from_mins(1),
        }
    }

    /// From the request to the head of the answer to `call`; none waits forever.
    fn head_max(&self, call: &ModelCall) -> Option<Duration> {
        if call.stream {
            patience(self.streamed_head_max, call)
        } else {
            call.timeout.map(|timeout| self.whole_head_max.max(timeout))
        }
    }

    /// Between two pieces of the answer to `call`; none waits forever.
    fn idle_max(&self, call: &ModelCall) -> Option<Duration> {
        patience(self.idle_max, call)
    }
}

/// A bound as far as the deadline of `call` does not ask for more: who allows an attempt half an
/// hour has a model that is silent for minutes. A third still ends a dead connection early.
fn patience(bound: Duration, call: &ModelCall) -> Option<Duration> {
    call.timeout.map(|timeout| bound.max(timeout / 3))
}

impl Executors {
    pub fn new(bounds: Bounds) -> Self {
        Self { egress: Egress::new(bounds.connect_max), bounds }
    }

    /// One attempt of a model call. Shows pieces through `deltas` only if the call streams; what
    /// they add up to is what the response holds. The response carries a cost (S48).
    pub async fn call_model(
        &self,
        llm: &Llm,
        call: &ModelCall,
        blobs: &BlobBytes,
        deltas: &mut (dyn FnMut(Delta<'_>) + Send),
    ) -> Result<LlmResponse, CallFailure> {
        let mut unseen = |_: Delta<'_>| {};
        let deltas = if call.stream { deltas } else { &mut unseen };
        let line = Line { egress: &self.egress, bounds: &self.bounds };
        let reply = Reply::new(call, self.bounds.answer_bytes_max, deltas);
        let mut response = match llm.kind {
            LlmKind::Demo => llm::demo::answer(call, reply).await,
            LlmKind::OpenAi => llm::openai::answer(line, llm, call, blobs, reply).await,
            LlmKind::Anthropic => llm::anthropic::answer(line, llm, call, blobs, reply).await,
        }?;
        if response.cost.is_none() {
            response.cost = Some(priced(llm, &call.model, response.usage));
        }
        Ok(response)
    }
}

/// Tokens times the manifest's price; 0 where one of them is unknown (S48).
fn priced(llm: &Llm, model: &str, usage: Option<Usage>) -> Cost {
    let (Some(price), Some(usage)) = (llm.prices.get(model), usage) else {
        return Cost::default();
    };
    let cached = usage.cached_input_tokens.unwrap_or(0).min(usage.input_tokens);
    let part = |tokens: u64, per_million: Decimal| {
        Decimal::from(tokens).saturating_mul(per_million).saturating_mul(Decimal::new(1, 6))
    };
    let total = part(usage.input_tokens - cached, price.input)
        .saturating_add(part(cached, price.cached_input.unwrap_or(price.input)))
        .saturating_add(part(usage.output_tokens, price.output));
    Cost(total.normalize())
}

#[cfg(test)]
mod tests;
