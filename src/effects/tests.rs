//! Whole calls over loopback: what hostile, broken and slow providers do to an attempt.

mod aimock;
mod server;

use secrecy::SecretString;

use super::llm::kit::{
    PNG, Shown, asking, blobs, call, calls, image, result, sse, tool, user, with_parts,
};
use super::*;
use crate::control::agents::Price;
use crate::protocol::error::ErrorCode;
use server::{Ending, Provider, head};

const KEY: &str = "sk-test-0123456789abcdef";
const OPENAI_TEXT: &str = r#"{"choices":[{"delta":{"content":"hello"}}]}"#;
const OPENAI_STOP: &str = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
const ANTHROPIC_TEXT: &str =
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello"}}"#;
const ANTHROPIC_STOP: &str = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#;

fn llm(kind: LlmKind, base_url: &str) -> Llm {
    Llm {
        kind,
        base_url: base_url.to_owned(),
        api_key: Some(SecretString::from(KEY)),
        api_key_env: Some("SOME_API_KEY".to_owned()),
        prices: std::collections::BTreeMap::new(),
    }
}

/// Long enough for any machine, so that only what is tested runs out.
fn bounds() -> Bounds {
    Bounds::new(1024 * 1024)
}

fn soon() -> Duration {
    Duration::from_millis(50)
}

async fn attempt(
    bounds: Bounds,
    llm: &Llm,
    stream: bool,
) -> (Result<LlmResponse, CallFailure>, Shown) {
    perform(bounds, llm, &ModelCall { stream, ..call(vec![user("hi")]) }).await
}

async fn perform(
    bounds: Bounds,
    llm: &Llm,
    call: &ModelCall,
) -> (Result<LlmResponse, CallFailure>, Shown) {
    let mut shown = Shown::default();
    let mut deltas = |delta: Delta<'_>| shown.add(delta);
    let result = Executors::new(bounds).call_model(llm, call, &BlobBytes::new(), &mut deltas).await;
    (result, shown)
}

/// A streamed call of each dialect against a provider that answers with `answer`.
async fn both(answer: impl AsRef<[u8]>, ending: Ending, bounds: Bounds) -> [CallFailure; 2] {
    let mut failures = Vec::new();
    for kind in [LlmKind::OpenAi, LlmKind::Anthropic] {
        let provider = Provider::start(answer.as_ref(), ending).await;
        let (result, shown) = attempt(bounds, &llm(kind, &provider.url), true).await;
        assert_eq!(shown.finish, None);
        failures.push(result.unwrap_err());
    }
    for failure in &failures {
        assert!(!format!("{failure:?}").contains(KEY));
    }
    failures.try_into().unwrap()
}

fn code(failure: &CallFailure) -> (ErrorCode, bool) {
    (failure.error.code.unwrap(), failure.retryable)
}

#[tokio::test]
async fn a_streamed_answer_arrives_with_the_key_in_its_header() {
    let stream = head(200, "text/event-stream") + &sse(&[OPENAI_TEXT, OPENAI_STOP, "[DONE]"]);
    let provider = Provider::start(stream, Ending::Close).await;
    let url = format!("{}/v1", provider.url);
    let (response, shown) = attempt(bounds(), &llm(LlmKind::OpenAi, &url), true).await;
    shown.assert_matches(&response.unwrap());
    assert_eq!(shown.text, "hello");
    let request = provider.request().await;
    assert!(request.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{request}");
    assert!(request.contains(&format!("\r\nauthorization: Bearer {KEY}\r\n")));
    assert!(request.contains("\r\naccept: text/event-stream\r\n"));
    assert!(!request.contains("accept-encoding"));

    let stream = head(200, "text/event-stream") + &sse(&[ANTHROPIC_TEXT, ANTHROPIC_STOP]);
    let provider = Provider::start(stream, Ending::Close).await;
    let (response, shown) = attempt(bounds(), &llm(LlmKind::Anthropic, &provider.url), true).await;
    shown.assert_matches(&response.unwrap());
    let request = provider.request().await;
    assert!(request.starts_with("POST /v1/messages HTTP/1.1\r\n"), "{request}");
    assert!(request.contains(&format!("\r\nx-api-key: {KEY}\r\n")));
    assert!(request.contains("\r\nanthropic-version: 2023-06-01\r\n"));
}

#[tokio::test]
async fn a_call_takes_its_system_prompt_its_tools_and_its_bytes_along() {
    let message = with_parts(user(""), vec![image("image/png", PNG)]);
    let call = ModelCall {
        system: Some("be kind".to_owned()),
        tools: vec![tool("clock", None, None)],
        ..call(vec![message])
    };
    for (kind, lines) in [
        (LlmKind::OpenAi, [OPENAI_TEXT, OPENAI_STOP]),
        (LlmKind::Anthropic, [ANTHROPIC_TEXT, ANTHROPIC_STOP]),
    ] {
        let stream = head(200, "text/event-stream") + &sse(&lines);
        let provider = Provider::start(stream, Ending::Close).await;
        let block = llm(kind, &provider.url);
        let executors = Executors::new(bounds());
        executors.call_model(&block, &call, &blobs(), &mut |_| {}).await.unwrap();
        let request = provider.request().await;
        for sent in ["be kind", "\"clock\"", "iVBORw=="] {
            assert!(request.contains(sent), "{request}");
        }
    }
}

#[tokio::test]
async fn an_answer_in_one_piece_is_read_and_shown_only_to_a_call_that_streams() {
    let openai = r#"{"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}]}"#;
    let anthropic = r#"{"content":[{"type":"text","text":"hello"}],"stop_reason":"end_turn"}"#;
    for (kind, body) in [(LlmKind::OpenAi, openai), (LlmKind::Anthropic, anthropic)] {
        for stream in [false, true] {
            let answer = head(200, "application/json") + body;
            let provider = Provider::start(answer, Ending::Close).await;
            let (response, shown) = attempt(bounds(), &llm(kind, &provider.url), stream).await;
            let response = response.unwrap();
            assert_eq!(response.content.as_deref(), Some("hello"));
            if stream {
                shown.assert_matches(&response);
            } else {
                assert_eq!(shown, Shown::default());
            }
        }
    }
}

#[tokio::test]
async fn a_stream_is_read_even_if_none_was_asked_for() {
    let stream = head(200, "text/event-stream; charset=utf-8") + &sse(&[OPENAI_TEXT, OPENAI_STOP]);
    let provider = Provider::start(stream, Ending::Close).await;
    let (response, shown) = attempt(bounds(), &llm(LlmKind::OpenAi, &provider.url), false).await;
    assert_eq!(response.unwrap().content.as_deref(), Some("hello"));
    assert_eq!(shown, Shown::default());
}

#[tokio::test]
async fn a_provider_that_never_begins_to_answer_runs_into_the_deadline() {
    let bounds = Bounds { streamed_head_max: soon(), ..bounds() };
    for failure in both("", Ending::Hang, bounds).await {
        assert_eq!(code(&failure), (ErrorCode::DeadlineExceeded, true));
    }
    let whole = Bounds { whole_head_max: soon(), ..bounds };
    let provider = Provider::start("", Ending::Hang).await;
    let (result, _) = attempt(whole, &llm(LlmKind::OpenAi, &provider.url), false).await;
    assert_eq!(code(&result.unwrap_err()), (ErrorCode::DeadlineExceeded, true));
}

#[tokio::test]
async fn a_provider_that_stops_in_the_middle_runs_into_the_deadline() {
    let bounds = Bounds { idle_max: soon(), ..bounds() };
    let started = head(200, "text/event-stream") + &sse(&[OPENAI_TEXT, ANTHROPIC_TEXT]);
    for failure in both(started, Ending::Hang, bounds).await {
        assert_eq!(code(&failure), (ErrorCode::DeadlineExceeded, true));
    }
    let part = head(200, "application/json") + "{\"choices\":";
    let provider = Provider::start(part, Ending::Hang).await;
    let (result, _) = attempt(bounds, &llm(LlmKind::OpenAi, &provider.url), false).await;
    assert_eq!(code(&result.unwrap_err()), (ErrorCode::DeadlineExceeded, true));
}

#[test]
fn the_waits_of_a_call_grow_with_its_deadline() {
    let bounds = bounds();
    let waits = |timeout: Option<u64>, stream| {
        let timeout = timeout.map(Duration::from_secs);
        let call = ModelCall { stream, timeout, ..call(vec![]) };
        let secs = |wait: Option<Duration>| wait.map(|wait| wait.as_secs());
        (secs(bounds.head_max(&call)), secs(bounds.idle_max(&call)))
    };
    assert_eq!(waits(Some(1), true), (Some(60), Some(60)));
    assert_eq!(waits(Some(180), true), (Some(60), Some(60)));
    assert_eq!(waits(Some(1800), true), (Some(600), Some(600)));
    assert_eq!(waits(Some(180), false), (Some(600), Some(60)));
    assert_eq!(waits(Some(1800), false), (Some(1800), Some(600)));
    assert_eq!(waits(None, true), (None, None));
    assert_eq!(waits(None, false), (None, None));
}

#[tokio::test]
async fn a_call_with_a_long_deadline_outwaits_the_bounds() {
    let bounds = Bounds { streamed_head_max: soon(), idle_max: soon(), ..bounds() };
    let started = head(200, "text/event-stream") + &sse(&[OPENAI_TEXT]);
    for timeout in [Some(Duration::from_mins(10)), None] {
        for answer in ["", started.as_str()] {
            let provider = Provider::start(answer, Ending::Hang).await;
            let block = llm(LlmKind::OpenAi, &provider.url);
            let call = ModelCall { timeout, ..call(vec![user("hi")]) };
            let attempt = perform(bounds, &block, &call);
            let ended = tokio::time::timeout(soon() * 6, attempt).await;
            assert!(ended.is_err(), "{timeout:?} {answer}");
        }
    }
}

#[tokio::test]
async fn an_answer_that_came_whole_counts_though_the_stream_never_ends() {
    let bounds = Bounds { idle_max: Duration::from_millis(500), ..bounds() };
    let stream = head(200, "text/event-stream") + &sse(&[OPENAI_TEXT, OPENAI_STOP]);
    let provider = Provider::start(stream, Ending::Hang).await;
    let (result, _) = attempt(bounds, &llm(LlmKind::OpenAi, &provider.url), true).await;
    assert_eq!(result.unwrap().content.as_deref(), Some("hello"));
}

#[tokio::test]
async fn a_cut_stream_is_retried() {
    let cut = head(200, "text/event-stream") + &sse(&[OPENAI_TEXT, ANTHROPIC_TEXT]);
    let in_a_chunk = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
        transfer-encoding: chunked\r\n\r\n400\r\ndata: {";
    for answer in [cut.as_str(), in_a_chunk, ""] {
        for failure in both(answer, Ending::Close, bounds()).await {
            assert_eq!(code(&failure), (ErrorCode::ProviderError, true), "{answer}");
        }
    }
}

#[tokio::test]
async fn garbage_is_a_failed_attempt() {
    let html = "<html><p>data: {</p></html>";
    let secret = "data: secret-of-the-provider\n\n";
    for answer in [
        "\0\u{1}\u{2} not http at all\r\n\r\n".to_owned(),
        head(200, "text/html") + html,
        head(200, "text/event-stream") + secret,
        head(200, "application/json") + html,
    ] {
        for failure in both(&answer, Ending::Close, bounds()).await {
            assert_eq!(code(&failure), (ErrorCode::ProviderError, true), "{answer}");
            assert!(!format!("{failure:?}").contains("secret"));
        }
    }
}

#[tokio::test]
async fn a_status_is_classified_with_its_wait() {
    let body = format!(r#"{{"error":{{"type":"rate_limit_error","message":"{KEY}"}}}}"#);
    let limited = "HTTP/1.1 429 Too Many\r\nretry-after: 7\r\nconnection: close\r\n\r\n";
    for failure in both(limited.to_owned() + &body, Ending::Close, bounds()).await {
        assert_eq!(code(&failure), (ErrorCode::RateLimited, true));
        assert_eq!(failure.retry_after, Some(Duration::from_secs(7)));
        let detail = failure.error.detail.unwrap();
        assert_eq!(detail.text(), r#"{"status":429,"type":"rate_limit_error"}"#);
    }
    for (status, expected) in [
        (529, (ErrorCode::RateLimited, true)),
        (500, (ErrorCode::ProviderError, true)),
        (401, (ErrorCode::ProviderError, false)),
    ] {
        for failure in both(head(status, "text/html") + "no", Ending::Close, bounds()).await {
            assert_eq!(code(&failure), expected);
        }
    }
}

#[tokio::test]
async fn the_body_of_an_error_is_not_waited_for() {
    let bounds = Bounds { idle_max: soon(), ..bounds() };
    for failure in both(head(503, "application/json") + "{", Ending::Hang, bounds).await {
        assert_eq!(code(&failure), (ErrorCode::ProviderError, true));
        assert_eq!(failure.error.detail.unwrap().text(), r#"{"status":503}"#);
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let target = Provider::start(head(200, "text/event-stream"), Ending::Close).await;
    let redirect =
        format!("HTTP/1.1 307 Moved\r\nlocation: {}\r\nconnection: close\r\n\r\n", target.url);
    for failure in both(redirect, Ending::Close, bounds()).await {
        assert_eq!(code(&failure), (ErrorCode::ProviderError, false));
    }
    assert!(!target.was_called());
}

#[tokio::test]
async fn a_flood_is_cut_off_and_not_retried() {
    let line = head(200, "text/event-stream") + "data: " + &"x".repeat(1024 * 1024);
    let text = "y".repeat(600_000);
    let piece = format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}}}}]}}"#);
    let same = format!(
        r#"{{"type":"content_block_delta","delta":{{"type":"text_delta","text":"{text}"}}}}"#
    );
    let long = head(200, "text/event-stream") + &sse(&[&piece, &same, &piece, &same]);
    for answer in [line, long] {
        for failure in both(answer, Ending::Close, bounds()).await {
            assert_eq!(code(&failure), (ErrorCode::ProviderError, false));
        }
    }
}

#[tokio::test]
async fn an_answer_whose_json_is_too_large_is_a_failed_attempt() {
    // Each of these characters takes six bytes in JSON.
    let half =
        format!(r#"{{"choices":[{{"delta":{{"content":"{}"}}}}]}}"#, "\\u0001".repeat(100_000));
    let answer = head(200, "text/event-stream") + &sse(&[&half, &half, OPENAI_STOP]);
    let provider = Provider::start(answer, Ending::Close).await;
    let (result, shown) = attempt(bounds(), &llm(LlmKind::OpenAi, &provider.url), true).await;
    assert_eq!(code(&result.unwrap_err()), (ErrorCode::ProviderError, false));
    assert_eq!((shown.text.len(), shown.finish), (200_000, None));
}

#[tokio::test]
async fn an_error_in_the_stream_fails_the_attempt() {
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#;
    let stream = head(200, "text/event-stream") + &sse(&[OPENAI_TEXT, error]);
    for failure in both(stream, Ending::Close, bounds()).await {
        assert_eq!(code(&failure), (ErrorCode::RateLimited, true));
    }
}

#[tokio::test]
async fn a_missing_key_is_named_and_nothing_is_sent() {
    let provider = Provider::start("", Ending::Close).await;
    for kind in [LlmKind::OpenAi, LlmKind::Anthropic] {
        let keyless = Llm { api_key: None, ..llm(kind, &provider.url) };
        let failure = attempt(bounds(), &keyless, true).await.0.unwrap_err();
        assert_eq!(code(&failure), (ErrorCode::ProviderError, false));
        assert!(failure.error.message.contains("SOME_API_KEY"));

        let odd = Llm { api_key: Some(SecretString::from("a\nb")), ..llm(kind, &provider.url) };
        let failure = attempt(bounds(), &odd, true).await.0.unwrap_err();
        assert_eq!(code(&failure), (ErrorCode::ProviderError, false));
        assert!(failure.error.message.contains("SOME_API_KEY"));
    }
    assert!(!provider.was_called());
}

#[tokio::test]
async fn a_block_that_names_no_key_calls_without_one() {
    let stream = head(200, "text/event-stream") + &sse(&[OPENAI_TEXT, OPENAI_STOP]);
    let provider = Provider::start(stream, Ending::Close).await;
    let block = llm(LlmKind::OpenAi, &provider.url);
    let keyless = Llm { api_key: None, api_key_env: None, ..block };
    assert!(attempt(bounds(), &keyless, true).await.0.is_ok());
    assert!(!provider.request().await.contains("authorization"));
}

#[tokio::test]
async fn an_address_that_is_refused_or_dead_is_a_failed_attempt() {
    for url in ["http://169.254.169.254/v1", "ftp://example.com", "http://u:p@127.0.0.1:1"] {
        for kind in [LlmKind::OpenAi, LlmKind::Anthropic] {
            let failure = attempt(bounds(), &llm(kind, url), true).await.0.unwrap_err();
            assert_eq!(code(&failure), (ErrorCode::ProviderError, false), "{url}");
        }
    }
    let unused = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}", unused.local_addr().unwrap());
    drop(unused);
    let failure = attempt(bounds(), &llm(LlmKind::OpenAi, &url), true).await.0.unwrap_err();
    assert_eq!(code(&failure), (ErrorCode::ProviderError, true));
}

#[tokio::test]
async fn dropping_a_call_closes_its_connection() {
    let stream = head(200, "text/event-stream") + &sse(&[OPENAI_TEXT]);
    let mut provider = Provider::start(stream, Ending::Hang).await;
    let block = llm(LlmKind::OpenAi, &provider.url);
    let executors = Executors::new(bounds());
    let (call, blobs) = (call(vec![user("hi")]), BlobBytes::new());
    let (shown, mut seen) = tokio::sync::mpsc::channel(8);
    let mut deltas = move |_: Delta<'_>| shown.try_send(()).unwrap_or_default();
    tokio::select! {
        _ = executors.call_model(&block, &call, &blobs, &mut deltas) => panic!("it hangs"),
        _ = seen.recv() => {}
    }
    provider.closed().await;
}

#[tokio::test]
async fn a_future_of_a_call_can_move_between_threads() {
    let executors = Executors::new(bounds());
    let answered = tokio::spawn(async move {
        let block = llm(LlmKind::Demo, "");
        let call = call(vec![user("hi")]);
        executors.call_model(&block, &call, &BlobBytes::new(), &mut |_| {}).await
    });
    let response = answered.await.unwrap().unwrap();
    assert_eq!(response.content.as_deref(), Some("You said: hi"));
    assert_eq!(response.cost, Some(Cost::default()));
}

#[test]
fn tokens_cost_what_the_manifest_says_exactly() {
    let mut block = llm(LlmKind::OpenAi, "");
    let decimal = |text: &str| text.parse::<Decimal>().unwrap();
    let price = Price {
        input: decimal("2.50"),
        output: decimal("10"),
        cached_input: Some(decimal("0.25")),
    };
    block.prices.insert("m".to_owned(), price);
    let usage = Usage {
        input_tokens: 1_000_003,
        output_tokens: 7,
        cached_input_tokens: Some(3),
        reasoning_tokens: Some(5),
        total_tokens: 1_000_010,
    };
    let cost = |block: &Llm, usage| priced(block, "m", usage).0.to_string();
    assert_eq!(cost(&block, Some(usage)), "2.50007075");
    let uncached = Price { cached_input: None, ..price };
    block.prices.insert("m".to_owned(), uncached);
    assert_eq!(cost(&block, Some(usage)), "2.5000775");
    // A server that counts more cached tokens than tokens is not paid for it.
    let odd = Usage { cached_input_tokens: Some(u64::MAX), ..usage };
    assert_eq!(cost(&block, Some(odd)), "2.5000775");
    let huge = Usage { input_tokens: u64::MAX, output_tokens: u64::MAX, ..usage };
    assert_eq!(cost(&block, Some(huge)), "230584300921369.3951875");
    assert_eq!(cost(&block, None), "0");
    assert_eq!(priced(&block, "other", Some(usage)), Cost::default());
}

#[tokio::test]
async fn what_the_provider_reports_as_cost_counts_before_the_price() {
    let usage = r#"{"choices":[],"usage":{"prompt_tokens":1000000,"completion_tokens":0}}"#;
    let cost = usage.replace("}}", r#","cost":0.5}}"#);
    let mut block = llm(LlmKind::OpenAi, "");
    let price = Price { input: Decimal::TWO, output: Decimal::ONE, cached_input: None };
    block.prices.insert("some-model".to_owned(), price);
    for (usage, expected) in [(usage, "2"), (cost.as_str(), "0.5")] {
        let stream = head(200, "text/event-stream") + &sse(&[OPENAI_TEXT, OPENAI_STOP, usage]);
        let provider = Provider::start(stream, Ending::Close).await;
        block.base_url.clone_from(&provider.url);
        let response = attempt(bounds(), &block, true).await.0.unwrap();
        assert_eq!(response.cost.unwrap().0.to_string(), expected);
    }
}
