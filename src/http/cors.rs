//! CORS for the client API and the AG-UI channel (S10). No other route sends any of these headers,
//! and credentials (cookies) are never allowed: the token travels in `Authorization`.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, StatusCode};

use super::reply::{self, Reply};

const ALLOWED_HEADERS: &str =
    "authorization, content-type, last-event-id, accept, range, if-none-match";
const EXPOSED_HEADERS: &str =
    "retry-after, www-authenticate, etag, accept-ranges, content-range, content-disposition";
/// How long a browser may keep a preflight answer: a change of the list reaches it in ten minutes.
const MAX_AGE_SECS: &str = "600";

/// An entry of `cors_origins` that is no origin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not `*` or an origin such as `https://app.example.com`")]
pub struct OriginError(String);

/// Which pages may call the client API.
#[derive(Debug, Clone)]
pub enum Cors {
    Any,
    /// As browsers spell them.
    These(Vec<HeaderValue>),
}

impl Cors {
    pub fn new<T: AsRef<str>>(origins: &[T]) -> Result<Self, OriginError> {
        if origins.iter().any(|origin| origin.as_ref() == "*") {
            return Ok(Self::Any);
        }
        let origins = origins.iter().map(|origin| parse_origin(origin.as_ref()));
        origins.collect::<Result<_, _>>().map(Self::These)
    }

    /// The answer to a preflight for a path with `methods` ("GET, OPTIONS"). A page that is not
    /// allowed gets it without the permission, which a browser takes as a no.
    pub fn preflight(&self, request: &HeaderMap, methods: &'static str) -> Reply {
        let mut reply = reply::empty(StatusCode::NO_CONTENT);
        let headers = reply.headers_mut();
        if self.permit(request, headers) {
            headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(methods));
            let allowed = HeaderValue::from_static(ALLOWED_HEADERS);
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
            headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE_SECS));
        }
        reply
    }

    /// Adds what a page needs to read `reply`, whatever its status.
    pub fn apply(&self, request: &HeaderMap, reply: &mut HeaderMap) {
        if self.permit(request, reply) {
            let exposed = HeaderValue::from_static(EXPOSED_HEADERS);
            reply.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
        }
    }

    fn permit(&self, request: &HeaderMap, reply: &mut HeaderMap) -> bool {
        match self {
            Self::Any => {
                reply.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
                true
            }
            Self::These(origins) => {
                // Also where the answer is no: a cache must not show it to an allowed page.
                reply.append(VARY, HeaderValue::from_static("Origin"));
                let origin = request.get(ORIGIN).filter(|origin| origins.contains(origin));
                if let Some(origin) = origin {
                    reply.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
                }
                origin.is_some()
            }
        }
    }
}

fn parse_origin(text: &str) -> Result<HeaderValue, OriginError> {
    let refuse = || OriginError(text.to_owned());
    let (scheme, host) = text.split_once("://").ok_or_else(refuse)?;
    let bare = !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_graphic());
    if scheme.is_empty() || !bare || host.contains(['/', '?', '#', '@', '*', ',']) {
        return Err(refuse());
    }
    HeaderValue::try_from(text.to_ascii_lowercase()).map_err(|_| refuse())
}

#[cfg(test)]
mod tests;
