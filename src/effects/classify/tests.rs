use reqwest::header::HeaderValue;

use super::*;

fn of(code: u16, headers: &[(HeaderName, &str)], body: &str) -> CallFailure {
    let headers = headers
        .iter()
        .map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()))
        .collect();
    status(StatusCode::from_u16(code).unwrap(), &headers, body.as_bytes())
}

#[test]
fn a_status_decides_the_code_and_whether_to_retry() {
    use ErrorCode::{DeadlineExceeded, ProviderError, RateLimited};
    for (status, code, retryable) in [
        (301, ProviderError, false),
        (307, ProviderError, false),
        (400, ProviderError, false),
        (401, ProviderError, false),
        (402, ProviderError, false),
        (403, ProviderError, false),
        (404, ProviderError, false),
        (408, DeadlineExceeded, true),
        (409, ProviderError, true),
        (413, ProviderError, false),
        (422, ProviderError, false),
        (425, ProviderError, true),
        (429, RateLimited, true),
        (499, ProviderError, false),
        (500, ProviderError, true),
        (501, ProviderError, true),
        (502, ProviderError, true),
        (503, ProviderError, true),
        (504, DeadlineExceeded, true),
        (529, RateLimited, true),
        (600, ProviderError, false),
    ] {
        let failure = of(status, &[], "");
        assert_eq!((failure.error.code, failure.retryable), (Some(code), retryable), "{status}");
        assert!(failure.error.message.contains(&status.to_string()));
        assert_eq!(failure.error.detail.unwrap().text(), format!(r#"{{"status":{status}}}"#));
    }
}

#[test]
fn only_short_plain_words_of_a_provider_are_passed_on() {
    let key = "sk-live-0123456789";
    let long = "x".repeat(65);
    for (body, detail) in [
        (
            r#"{"error":{"type":"invalid_request_error","code":"model_not_found","message":"sk-live-0123456789"}}"#.to_owned(),
            r#"{"status":400,"type":"invalid_request_error","code":"model_not_found"}"#,
        ),
        (format!(r#"{{"error":{{"type":"{key}","code":"{long}"}}}}"#), r#"{"status":400}"#),
        (format!(r#"{{"error":"{key}"}}"#), r#"{"status":400}"#),
        (r#"{"error":{"code":400,"status":"INVALID_ARGUMENT"}}"#.to_owned(), r#"{"status":400,"type":"invalid_argument"}"#),
        (r#"{"object":"error","type":"BadRequestError","code":400}"#.to_owned(), r#"{"status":400,"type":"badrequesterror"}"#),
        (format!("<html>{key}"), r#"{"status":400}"#),
        (r#"{"error":null}"#.to_owned(), r#"{"status":400}"#),
        (r#"{"error":{"type":null,"code":{"a":1}}}"#.to_owned(), r#"{"status":400}"#),
    ] {
        let failure = of(400, &[], &body);
        assert!(!failure.error.message.contains(key));
        assert_eq!(failure.error.detail.unwrap().text(), detail, "{body}");
    }
}

#[test]
fn the_status_of_the_response_counts_before_the_one_in_its_body() {
    let failure = of(500, &[], r#"{"error":{"code":400,"type":"rate_limit_error"}}"#);
    assert_eq!((failure.error.code, failure.retryable), (Some(ErrorCode::ProviderError), true));
}

#[test]
fn a_content_filter_is_a_refusal_whatever_the_status() {
    for code in ["content_filter", "content_policy_violation"] {
        let failure = of(400, &[], &format!(r#"{{"error":{{"code":"{code}"}}}}"#));
        assert_eq!((failure.error.code, failure.retryable), (Some(ErrorCode::Refused), false));
    }
}

#[test]
fn retry_after_is_seconds_or_a_date_and_capped() {
    let date = "Wed, 21 Oct 2026 07:28:00 GMT";
    let secs = |secs| Some(Duration::from_secs(secs));
    for (value, wait) in [
        ("7", secs(7)),
        (" 0 ", secs(0)),
        ("1.5", Some(Duration::from_millis(1500))),
        ("86400", secs(300)),
        ("1e300", secs(300)),
        ("inf", secs(300)),
        ("-1", None),
        ("NaN", None),
        ("soon", None),
        ("", None),
        ("Wed, 21 Oct 2026 07:28:30 GMT", secs(30)),
        ("Wed, 21 Oct 2026 07:27:00 GMT", secs(0)),
        ("Thu, 22 Oct 2026 07:28:00 GMT", secs(300)),
    ] {
        let failure = of(429, &[(RETRY_AFTER, value), (DATE, date)], "");
        assert_eq!(failure.retry_after, wait, "{value}");
    }
    // Without a date to measure against, a date says nothing; nor does any wait without a retry.
    assert_eq!(of(429, &[(RETRY_AFTER, date)], "").retry_after, None);
    assert_eq!(of(503, &[(RETRY_AFTER, "3")], "").retry_after, secs(3));
    assert_eq!(of(400, &[(RETRY_AFTER, "3")], "").retry_after, None);
}
