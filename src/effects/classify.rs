//! What went wrong with an attempt, in the interface's words (S49).
//!
//! Every message is ours: no part of a key, a header or a provider's text is in it. A provider's
//! short error type goes to `detail`.

use std::error::Error;
use std::time::Duration;

use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::StatusCode;
use reqwest::header::{DATE, HeaderMap, HeaderName, RETRY_AFTER};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::egress::Refusal;
use crate::protocol::error::{ErrorCode, ErrorInfo, chain};
use crate::protocol::json::Json;
use crate::session::CallFailure;

/// A longer `Retry-After` counts as this much: a turn should rather fail than sleep for hours.
const RETRY_AFTER_MAX: Duration = Duration::from_mins(5);
/// Longest error type of a provider that is passed on, in bytes.
const WORD_BYTES_MAX: usize = 64;
/// Anthropic's own status for an overloaded service.
const OVERLOADED: u16 = 529;

/// What a provider calls an error, as far as it is a plain word.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
struct Fault {
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
}

/// An answer with a status other than success.
pub fn status(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> CallFailure {
    #[derive(Deserialize)]
    struct Body {
        error: Option<Box<RawValue>>,
    }
    let told = match serde_json::from_slice(body) {
        Ok(Body { error: Some(error) }) => Fault::read(error.get()),
        Ok(Body { error: None }) => Fault::read(&String::from_utf8_lossy(body)),
        Err(_) => Fault::default(),
    };
    let fault = Fault { status: Some(status.as_u16()), ..told };
    let mut failure = fault.failure();
    if failure.retryable {
        failure.retry_after = retry_after(headers);
    }
    failure
}

/// An error object inside an answer that began with success.
pub fn reported(error: &RawValue) -> CallFailure {
    Fault::read(error.get()).failure()
}

/// The connection failed, before or during the answer.
pub fn transport(error: &reqwest::Error) -> CallFailure {
    if let Some(refusal) = refusal_in(error) {
        return refused_address(refusal);
    }
    tracing::warn!(error = chain(error), "a call of a model provider failed");
    if error.is_timeout() {
        timed_out("answer")
    } else if error.is_builder() {
        failure(ErrorCode::ProviderError, false, "the request to the model provider is not valid")
    } else if error.is_connect() {
        failure(ErrorCode::ProviderError, true, "the model provider could not be reached")
    } else {
        failure(ErrorCode::ProviderError, true, "the connection to the model provider broke")
    }
}

pub fn refused_address(refusal: Refusal) -> CallFailure {
    let message = format!("the model provider's address is not called: {refusal}");
    failure(ErrorCode::ProviderError, false, message)
}

/// `what` completes "the model provider did not .. in time".
pub fn timed_out(what: &str) -> CallFailure {
    let message = format!("the model provider did not {what} in time");
    failure(ErrorCode::DeadlineExceeded, true, message)
}

/// An answer that cannot be read; another attempt may get a whole one.
pub fn garbled(what: &str) -> CallFailure {
    failure(ErrorCode::ProviderError, true, format!("the model provider sent {what}"))
}

/// A stream that ended before the answer was complete.
pub fn cut() -> CallFailure {
    let message = "the model provider's answer ended before it was complete";
    failure(ErrorCode::ProviderError, true, message)
}

/// More bytes than are taken. Not retried: another answer would be as long, and paid for again.
pub fn flooded(what: &str) -> CallFailure {
    failure(ErrorCode::ProviderError, false, format!("the model provider sent {what}"))
}

/// Not retried, as [`flooded`].
pub fn answer_too_large(bytes_max: usize) -> CallFailure {
    let message = format!("the model's answer is larger than {bytes_max} bytes");
    failure(ErrorCode::ProviderError, false, message)
}

/// Not retried, as [`flooded`].
pub fn too_many_calls(calls_max: usize) -> CallFailure {
    let message = format!("the model's answer holds more than {calls_max} tool calls");
    failure(ErrorCode::ProviderError, false, message)
}

/// Not retried, as [`flooded`].
pub fn name_too_long(bytes_max: usize) -> CallFailure {
    let message = format!("the model's answer names a tool in more than {bytes_max} bytes");
    failure(ErrorCode::ProviderError, false, message)
}

pub fn refused() -> CallFailure {
    failure(ErrorCode::Refused, false, "the model refused to answer")
}

pub fn missing_key(variable: &str) -> CallFailure {
    let message = format!("the model provider's API key is not set: set {variable}");
    failure(ErrorCode::ProviderError, false, message)
}

pub fn unusable_key(variable: Option<&str>) -> CallFailure {
    let place = variable.unwrap_or("the key");
    let message =
        format!("the model provider's API key holds characters that no key has: check {place}");
    failure(ErrorCode::ProviderError, false, message)
}

/// What the `demo` model was asked to do; retried where the same failure of a provider would be.
pub fn asked_for(code: ErrorCode) -> CallFailure {
    let retryable = match code {
        ErrorCode::ProviderError | ErrorCode::RateLimited | ErrorCode::DeadlineExceeded => true,
        ErrorCode::Refused | ErrorCode::BudgetExceeded => false,
    };
    failure(code, retryable, format!("the demo model failed with {} as asked", code.as_str()))
}

/// A short word of a provider that is safe to pass on.
pub fn is_word(text: &str) -> bool {
    let allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
    (1..=WORD_BYTES_MAX).contains(&text.len()) && text.bytes().all(allowed)
}

fn failure(code: ErrorCode, retryable: bool, message: impl Into<String>) -> CallFailure {
    CallFailure { error: ErrorInfo::new(message, Some(code)), retryable, retry_after: None }
}

impl Fault {
    /// Reads an error object: `type`, `code` and `status` are words or numbers, or not there.
    fn read(json: &str) -> Self {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Shape {
            #[serde(rename = "type", deserialize_with = "word")]
            kind: Option<String>,
            #[serde(deserialize_with = "word")]
            code: Option<String>,
            #[serde(deserialize_with = "word")]
            status: Option<String>,
        }
        let Ok(shape) = serde_json::from_str::<Shape>(json) else {
            return Self::default();
        };
        // Several servers write the HTTP status as `code`, Google its own word as `status`.
        let status_in = |word: &Option<String>| {
            let number = word.as_deref()?.parse::<u16>().ok()?;
            (400..=599).contains(&number).then_some(number)
        };
        let number = status_in(&shape.code).or_else(|| status_in(&shape.status));
        let code = shape.code.filter(|code| code.parse::<u64>().is_err());
        Self { status: number, kind: shape.kind.or(shape.status), code }
    }

    fn failure(self) -> CallFailure {
        // The code is the narrower word.
        let words = [self.code.as_deref(), self.kind.as_deref()];
        let by_word = words.into_iter().flatten().find_map(by_word);
        let (code, retryable, message) = match (by_word, self.status) {
            (Some((ErrorCode::Refused, ..)), _) => {
                (ErrorCode::Refused, false, "the model provider refused the content".to_owned())
            }
            (_, Some(status)) => {
                let (code, retryable, message) = by_status(status);
                (code, retryable, format!("{message} (status {status})"))
            }
            (Some((code, retryable, message)), None) => (code, retryable, message.to_owned()),
            (None, None) => (
                ErrorCode::ProviderError,
                true,
                "the model provider reported an error in its answer".to_owned(),
            ),
        };
        let mut failure = failure(code, retryable, message);
        if self != Self::default() {
            failure.error.detail = Json::of(&self);
        }
        failure
    }
}

fn by_status(status: u16) -> (ErrorCode, bool, &'static str) {
    use ErrorCode::{DeadlineExceeded, ProviderError, RateLimited};
    match status {
        300..=399 => (
            ProviderError,
            false,
            "the model provider redirects, which is not followed: check base_url",
        ),
        401 | 403 => {
            (ProviderError, false, "the model provider did not accept the API key: check it")
        }
        404 => (
            ProviderError,
            false,
            "the model provider knows no such model or address: check model and base_url",
        ),
        408 | 504 => (DeadlineExceeded, true, "the model provider ran out of time"),
        409 | 425 => (ProviderError, true, "the model provider could not take the request"),
        429 => (RateLimited, true, "the model provider limits the rate of requests"),
        OVERLOADED => (RateLimited, true, "the model provider is overloaded"),
        400..=499 => (ProviderError, false, "the model provider did not accept the request"),
        500..=599 => (ProviderError, true, "the model provider failed"),
        _ => (ProviderError, false, "the model provider answered with an unexpected status"),
    }
}

/// The error types of the providers' documentation; others leave the status to decide.
fn by_word(word: &str) -> Option<(ErrorCode, bool, &'static str)> {
    use ErrorCode::{DeadlineExceeded, ProviderError, RateLimited, Refused};
    match word {
        "rate_limit_error"
        | "rate_limit_exceeded"
        | "insufficient_quota"
        | "resource_exhausted" => {
            Some((RateLimited, true, "the model provider limits the rate of requests"))
        }
        "overloaded_error" => Some((RateLimited, true, "the model provider is overloaded")),
        "timeout_error" | "timeout" => {
            Some((DeadlineExceeded, true, "the model provider ran out of time"))
        }
        "content_filter" | "content_policy_violation" => {
            Some((Refused, false, "the model provider refused the content"))
        }
        "authentication_error" | "permission_error" | "invalid_api_key" | "billing_error" => {
            Some((ProviderError, false, "the model provider did not accept the API key: check it"))
        }
        "invalid_request_error"
        | "not_found_error"
        | "request_too_large"
        | "context_length_exceeded"
        | "model_not_found" => {
            Some((ProviderError, false, "the model provider did not accept the request"))
        }
        _ => None,
    }
}

/// A string or number as a safe word.
fn word<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    let text = serde_json::from_str(raw.get()).unwrap_or_else(|_| raw.get().to_owned());
    let text = text.to_ascii_lowercase();
    Ok((is_word(&text) && text != "null").then_some(text))
}

/// Seconds, or a date; a date is measured against the provider's own `Date`, so that no clock of
/// ours is in it.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: HeaderName| headers.get(name)?.to_str().ok().map(str::trim);
    let value = text(RETRY_AFTER)?;
    let wait = match value.parse::<f64>() {
        Ok(secs) if secs.is_nan() || secs < 0.0 => return None,
        Ok(secs) => Duration::try_from_secs_f64(secs).unwrap_or(RETRY_AFTER_MAX),
        Err(_) => {
            let parser = DateTimeParser::new();
            let until = parser.parse_timestamp(value).ok()?;
            let sent = parser.parse_timestamp(text(DATE)?).ok()?;
            Duration::try_from(until.duration_since(sent)).unwrap_or(Duration::ZERO)
        }
    };
    Some(wait.min(RETRY_AFTER_MAX))
}

fn refusal_in(error: &reqwest::Error) -> Option<Refusal> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(refusal) = error.downcast_ref::<Refusal>() {
            return Some(*refusal);
        }
        cause = error.source();
    }
    None
}

#[cfg(test)]
mod tests;
