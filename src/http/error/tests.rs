use bytes::Bytes;
use serde_json::json;

use super::*;
use crate::http::reply::ReplyBody;

fn body(reply: Reply) -> Value {
    let ReplyBody::Full(text) = reply.into_body() else {
        panic!("a refusal is whole");
    };
    serde_json::from_slice(&text).unwrap()
}

#[test]
fn every_refusal_has_its_status_and_a_json_body() {
    for (error, status) in [
        (ApiError::bad_request("x"), 400),
        (ApiError::Unauthorized, 401),
        (ApiError::forbidden("x"), 403),
        (ApiError::not_found("x"), 404),
        (ApiError::MethodNotAllowed("GET"), 405),
        (ApiError::Timeout, 408),
        (ApiError::conflict("x"), 409),
        (ApiError::TooLarge { what: "x", bytes_max: 1 }, 413),
        (ApiError::UriTooLong { bytes_max: 1 }, 414),
        (ApiError::UnsupportedMediaType, 415),
        (ApiError::RangeNotSatisfiable { length: 1 }, 416),
        (ApiError::Unprocessable("x".into()), 422),
        (ApiError::TooMany { what: "x", retry_after_secs: 1 }, 429),
        (ApiError::Internal, 500),
        (ApiError::Unavailable { retry_after_secs: 1 }, 503),
        (ApiError::Damaged, 503),
    ] {
        let reply = Reply::from(error.clone());
        assert_eq!(reply.status().as_u16(), status);
        let header = |name: &str| reply.headers().get(name).unwrap().to_str().unwrap();
        assert_eq!(header("content-type"), "application/json");
        assert_eq!(header("cache-control"), "no-store");
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert!(body(reply).get("error").is_some(), "{error:?}");
    }
}

#[test]
fn a_conflict_says_what_it_conflicts_with() {
    let error = ApiError::conflict_with("turn_already_active", [("turn_id", "t-1")]);
    assert_eq!(body(error.into()), json!({ "error": "turn_already_active", "turn_id": "t-1" }));
}

#[test]
fn headers_say_how_to_go_on() {
    let header = |error: ApiError, name: &str| {
        let reply = Reply::from(error);
        reply.headers().get(name).map(|value| value.to_str().unwrap().to_owned())
    };
    assert_eq!(header(ApiError::Unauthorized, "www-authenticate").as_deref(), Some("Bearer"));
    assert_eq!(header(ApiError::MethodNotAllowed("GET"), "allow").as_deref(), Some("GET"));
    for error in [
        ApiError::TooMany { what: "x", retry_after_secs: 7 },
        ApiError::Unavailable { retry_after_secs: 7 },
    ] {
        assert_eq!(header(error, "retry-after").as_deref(), Some("7"));
    }
    assert_eq!(header(ApiError::Internal, "retry-after"), None);
    let range = header(ApiError::RangeNotSatisfiable { length: 9 }, "content-range");
    assert_eq!(range.as_deref(), Some("bytes */9"));
}

#[test]
fn a_damaged_session_is_told_from_a_busy_server() {
    let reply = Reply::from(ApiError::from(EngineError::Damaged));
    assert_eq!(reply.status().as_u16(), 503);
    assert_eq!(reply.headers().get("retry-after").unwrap(), "60");
    assert_eq!(body(reply), json!({ "error": "this session is damaged" }));
}

#[test]
fn a_mistake_in_a_body_is_400_or_422() {
    let path = || "input.agent_id".to_owned();
    for (error, status, message) in [
        (DecodeError::Malformed("x".to_owned()), 400, "malformed JSON: x"),
        (
            DecodeError::Shape { path: path(), problem: "is missing".to_owned() },
            422,
            "`input.agent_id` is missing",
        ),
        (
            DecodeError::Range { path: path(), problem: "is too long".to_owned() },
            400,
            "`input.agent_id` is too long",
        ),
    ] {
        let reply = Reply::from(ApiError::from(error));
        assert_eq!(reply.status().as_u16(), status);
        assert_eq!(body(reply), json!({ "error": message }));
    }
}

#[test]
fn a_stream_is_not_buffered_by_proxies() {
    let reply = reply::event_stream(ReplyBody::Full(Bytes::new()));
    let header = |name: &str| reply.headers().get(name).unwrap().to_str().unwrap();
    assert_eq!(header("content-type"), "text/event-stream");
    assert_eq!(header("cache-control"), "no-store");
    assert_eq!(header("x-accel-buffering"), "no");
}
