//! What went wrong with an attempt, in the interface's words (S49).
//!
//! Every message is ours: no part of a key, a header or a provider's text is in it.

use crate::protocol::error::{ErrorCode, ErrorInfo};
use crate::session::CallFailure;

fn failure(code: ErrorCode, retryable: bool, message: impl Into<String>) -> CallFailure {
    CallFailure { error: ErrorInfo::new(message, Some(code)), retryable, retry_after: None }
}

/// What the `demo` model was asked to do; retried where the same failure of a provider would be.
pub fn asked_for(code: ErrorCode) -> CallFailure {
    let retryable = match code {
        ErrorCode::ProviderError | ErrorCode::RateLimited | ErrorCode::DeadlineExceeded => true,
        ErrorCode::Refused | ErrorCode::BudgetExceeded => false,
    };
    failure(code, retryable, format!("the demo model failed with {} as asked", code.as_str()))
}

/// An answer that cannot be read; another attempt may get a whole one.
pub fn garbled(what: &str) -> CallFailure {
    failure(ErrorCode::ProviderError, true, format!("the model provider sent {what}"))
}

/// Not retried: another answer would be as long, and paid for again.
pub fn answer_too_large(bytes_max: usize) -> CallFailure {
    let message = format!("the model's answer is larger than {bytes_max} bytes");
    failure(ErrorCode::ProviderError, false, message)
}

/// Not retried, as [`answer_too_large`].
pub fn too_many_calls(calls_max: usize) -> CallFailure {
    let message = format!("the model's answer holds more than {calls_max} tool calls");
    failure(ErrorCode::ProviderError, false, message)
}

pub fn no_adapter() -> CallFailure {
    failure(ErrorCode::ProviderError, false, "this build speaks to no such provider")
}
