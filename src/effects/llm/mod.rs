//! Model providers. Each dialect turns what a provider sends into pieces of a [`reply::Reply`].

pub(super) mod anthropic;
pub(super) mod demo;
mod history;
#[cfg(test)]
pub(super) mod kit;
mod media;
pub(super) mod openai;
pub(super) mod reply;
mod schema;
pub mod stream;

use reqwest::RequestBuilder;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::egress::Egress;
use super::exchange::Answer;
use super::{Bounds, classify};
use crate::control::agents::Llm;
use crate::protocol::llm::LlmResponse;
use crate::session::{CallFailure, ModelCall};
use reply::{Reply, Summary};
use stream::Event;

/// What a call goes out through.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    pub egress: &'a Egress,
    pub bounds: &'a Bounds,
}

impl Line<'_> {
    /// A request of `call` to `path` below the block's address, still without key and body.
    fn post(self, llm: &Llm, path: &str, call: &ModelCall) -> Result<RequestBuilder, CallFailure> {
        let url = self.egress.endpoint(&llm.base_url, path).map_err(classify::refused_address)?;
        let accept = if call.stream { "text/event-stream" } else { "application/json" };
        let post = self.egress.client().post(url).header(ACCEPT, HeaderValue::from_static(accept));
        Ok(post.header(CONTENT_TYPE, HeaderValue::from_static("application/json")))
    }
}

/// The reading side of a provider's protocol, for one answer.
pub(super) trait Dialect {
    /// One event of a streamed answer.
    fn event(&mut self, event: &Event, reply: &mut Reply<'_>) -> Result<Progress, CallFailure>;

    /// An answer that came in one piece.
    fn whole(&mut self, body: &[u8], reply: &mut Reply<'_>) -> Result<(), CallFailure>;

    /// What was said about the answer; `None` while it is not known to be complete.
    fn summary(&mut self) -> Option<Summary>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    More,
    Done,
}

async fn receive(
    answer: Answer,
    mut dialect: impl Dialect,
    mut reply: Reply<'_>,
) -> Result<LlmResponse, CallFailure> {
    let mut events = match answer {
        Answer::Events(events) => events,
        Answer::Whole(body) => {
            dialect.whole(&body, &mut reply)?;
            return close(dialect.summary(), reply);
        }
    };
    loop {
        match events.next().await {
            Ok(Some(event)) => match dialect.event(&event, &mut reply)? {
                Progress::More => {}
                Progress::Done => return close(dialect.summary(), reply),
            },
            Ok(None) => return close(dialect.summary(), reply),
            // The answer itself may have come whole before the connection broke.
            Err(failure) => {
                let summary = dialect.summary().ok_or(failure)?;
                return reply.complete(summary);
            }
        }
    }
}

fn close(summary: Option<Summary>, reply: Reply<'_>) -> Result<LlmResponse, CallFailure> {
    reply.complete(summary.ok_or_else(classify::cut)?)
}

/// The key as a header's value, behind `prefix`. A block that names no variable needs no key: many
/// servers on one's own machine have none.
fn credential(llm: &Llm, prefix: &str) -> Result<Option<HeaderValue>, CallFailure> {
    let variable = llm.api_key_env.as_deref();
    let Some(key) = &llm.api_key else {
        return variable.map_or(Ok(None), |variable| Err(classify::missing_key(variable)));
    };
    let value = SecretString::from(format!("{prefix}{}", key.expose_secret().trim()));
    let mut value = HeaderValue::from_str(value.expose_secret())
        .map_err(|_| classify::unusable_key(variable))?;
    value.set_sensitive(true);
    Ok(Some(value))
}

/// Reads JSON of a provider; `serde_json` bounds its nesting.
fn parse<T: DeserializeOwned>(json: &[u8]) -> Result<T, CallFailure> {
    serde_json::from_slice(json).map_err(|_| classify::garbled("an answer that cannot be read"))
}

/// A field that is absent, null or of another shape than expected is `None`: servers that call
/// themselves compatible differ in what they leave out.
fn lenient<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(raw.get()).ok())
}

/// A provider's reason to finish as a word that is safe to record.
fn finish_word(reason: &str) -> String {
    let reason = reason.to_ascii_lowercase();
    if classify::is_word(&reason) { reason } else { "stop".to_owned() }
}

#[cfg(test)]
mod tests;
