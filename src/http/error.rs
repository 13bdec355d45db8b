//! Refusals to statuses: the one place that knows which is which (interface 7, S54).

use std::borrow::Cow;

use http::header::{ALLOW, CONTENT_RANGE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::rate::TooMany;
use super::reply::{self, Reply};
use crate::auth;
use crate::auth::client_token::MintError;
use crate::protocol::json::DecodeError;
use crate::runtime::EngineError;
use crate::session::Rejection;

/// Why a request is refused. `Display` is what the caller reads: it names what was wrong and holds
/// nothing from the inside.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ApiError {
    #[error("{0}")]
    BadRequest(Cow<'static, str>),
    #[error("{}", auth::Refused)]
    Unauthorized,
    #[error("{0}")]
    Forbidden(Cow<'static, str>),
    #[error("{0}")]
    NotFound(Cow<'static, str>),
    /// With the methods that the path has, as `Allow` lists them.
    #[error("method not allowed; this path takes {0}")]
    MethodNotAllowed(&'static str),
    #[error("the request did not arrive in time")]
    Timeout,
    #[error("{error}")]
    Conflict { error: Cow<'static, str>, details: Map<String, Value> },
    #[error("{what} is larger than {bytes_max} bytes")]
    TooLarge { what: &'static str, bytes_max: usize },
    #[error("the request target is longer than {bytes_max} bytes")]
    UriTooLong { bytes_max: usize },
    #[error("the body must be `Content-Type: application/json` in UTF-8, without an encoding")]
    UnsupportedMediaType,
    #[error("no byte of the range is among the {length}")]
    RangeNotSatisfiable { length: usize },
    #[error("{0}")]
    Unprocessable(Cow<'static, str>),
    #[error("{what}; try again in {retry_after_secs} s")]
    TooMany { what: &'static str, retry_after_secs: u64 },
    #[error("internal error")]
    Internal,
    #[error("the server is busy or stopping; try again in {retry_after_secs} s")]
    Unavailable { retry_after_secs: u64 },
    #[error("this session is damaged")]
    Damaged,
}

/// When a caller may try again after finding a full queue: a turn takes seconds.
const QUEUE_RETRY_SECS: u64 = 5;
/// When the log of a damaged session is read again: somebody has to repair the disk first.
const DAMAGED_RETRY_SECS: u64 = 60;

impl ApiError {
    pub const UNAVAILABLE: Self = Self::Unavailable { retry_after_secs: 1 };

    pub fn bad_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::BadRequest(message.into())
    }

    pub fn forbidden(message: impl Into<Cow<'static, str>>) -> Self {
        Self::Forbidden(message.into())
    }

    pub fn not_found(message: impl Into<Cow<'static, str>>) -> Self {
        Self::NotFound(message.into())
    }

    pub fn conflict(error: impl Into<Cow<'static, str>>) -> Self {
        Self::Conflict { error: error.into(), details: Map::new() }
    }

    /// A conflict that says more, as `turn_id` or `seq`.
    pub fn conflict_with<T: Serialize>(
        error: impl Into<Cow<'static, str>>,
        details: impl IntoIterator<Item = (&'static str, T)>,
    ) -> Self {
        let details = details.into_iter().filter_map(|(name, detail)| {
            Some((name.to_owned(), serde_json::to_value(detail).ok()?))
        });
        Self::Conflict { error: error.into(), details: details.collect() }
    }

    pub fn status(&self) -> StatusCode {
        match self {
            Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::Timeout => StatusCode::REQUEST_TIMEOUT,
            Self::Conflict { .. } => StatusCode::CONFLICT,
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UriTooLong { .. } => StatusCode::URI_TOO_LONG,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::RangeNotSatisfiable { .. } => StatusCode::RANGE_NOT_SATISFIABLE,
            Self::Unprocessable(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::TooMany { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Unavailable { .. } | Self::Damaged => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    fn body(&self) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("error".to_owned(), Value::from(self.to_string()));
        if let Self::Conflict { details, .. } = self {
            body.extend(details.clone());
        }
        body
    }
}

impl From<ApiError> for Reply {
    fn from(error: ApiError) -> Self {
        let mut reply = reply::json(error.status(), &error.body());
        let headers = reply.headers_mut();
        if let ApiError::Unauthorized = error {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let ApiError::MethodNotAllowed(methods) = error {
            headers.insert(ALLOW, HeaderValue::from_static(methods));
        }
        if let ApiError::RangeNotSatisfiable { length } = error
            && let Ok(value) = HeaderValue::try_from(format!("bytes */{length}"))
        {
            headers.insert(CONTENT_RANGE, value);
        }
        if let ApiError::Damaged = error {
            headers.insert(RETRY_AFTER, DAMAGED_RETRY_SECS.into());
        }
        if let ApiError::TooMany { retry_after_secs, .. }
        | ApiError::Unavailable { retry_after_secs } = error
        {
            headers.insert(RETRY_AFTER, retry_after_secs.into());
        }
        reply
    }
}

impl From<TooMany> for ApiError {
    fn from(refused: TooMany) -> Self {
        Self::TooMany { what: "too many requests", retry_after_secs: refused.retry_after_secs }
    }
}

impl From<Rejection> for ApiError {
    fn from(rejection: Rejection) -> Self {
        let message = rejection.to_string();
        match rejection {
            Rejection::UnknownSession
            | Rejection::UnknownTurn
            | Rejection::UnknownCall
            | Rejection::UnknownAgent(_) => Self::not_found(message),
            Rejection::NotOwner | Rejection::ResumeForbidden | Rejection::NotClientHandled => {
                Self::forbidden(message)
            }
            Rejection::ConditionFailed { head_id, seq } => {
                Self::conflict_with(message, [("head_id", json!(head_id)), ("seq", json!(seq))])
            }
            Rejection::TurnAlreadyActive { turn_id, seq } => {
                Self::conflict_with(message, [("turn_id", json!(turn_id)), ("seq", json!(seq))])
            }
            Rejection::Interrupted { seq } | Rejection::Done { seq } => {
                Self::conflict_with(message, [("seq", seq)])
            }
            Rejection::NotPending { seq } => {
                Self::conflict_with(message, seq.map(|seq| ("seq", seq)))
            }
            Rejection::AgentMismatch(_) | Rejection::TooManyInterrupts => Self::conflict(message),
            Rejection::QueueFull => {
                Self::TooMany { what: "too many queued turns", retry_after_secs: QUEUE_RETRY_SECS }
            }
            Rejection::TooLarge { what, bytes_max } => Self::TooLarge { what, bytes_max },
            Rejection::Invalid { .. } => Self::bad_request(message),
        }
    }
}

impl From<EngineError> for ApiError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Rejected(rejection) => rejection.into(),
            EngineError::Unavailable => Self::UNAVAILABLE,
            EngineError::Damaged => Self::Damaged,
        }
    }
}

impl From<MintError> for ApiError {
    fn from(error: MintError) -> Self {
        match error {
            MintError::Ttl | MintError::TooLong => Self::bad_request(error.to_string()),
            MintError::Random(_) | MintError::Sign(_) => Self::Internal,
        }
    }
}

impl From<DecodeError> for ApiError {
    fn from(error: DecodeError) -> Self {
        let message = error.to_string().into();
        match error {
            DecodeError::Malformed(_) | DecodeError::Range { .. } => Self::BadRequest(message),
            DecodeError::Shape { .. } => Self::Unprocessable(message),
        }
    }
}

#[cfg(test)]
mod tests;
