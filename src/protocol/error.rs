//! Failures as the log and the streams carry them, and as people read them.

use serde::{Deserialize, Serialize};

use super::json::Json;

/// Why a call or a turn failed, in the interface's closed set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    ProviderError,
    RateLimited,
    Refused,
    BudgetExceeded,
    DeadlineExceeded,
}

impl ErrorCode {
    pub const ALL: [Self; 5] = [
        Self::ProviderError,
        Self::RateLimited,
        Self::Refused,
        Self::BudgetExceeded,
        Self::DeadlineExceeded,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::ProviderError => "provider_error",
            Self::RateLimited => "rate_limited",
            Self::Refused => "refused",
            Self::BudgetExceeded => "budget_exceeded",
            Self::DeadlineExceeded => "deadline_exceeded",
        }
    }
}

/// `message` is one sentence that is safe to show a person: no key, no header, no provider's raw
/// body (S16).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorInfo {
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<Json>,
}

impl ErrorInfo {
    pub fn new(message: impl Into<String>, code: Option<ErrorCode>) -> Self {
        Self { message: message.into(), code, detail: None }
    }
}

/// An error and its causes in one line, for a log or a terminal.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests;
