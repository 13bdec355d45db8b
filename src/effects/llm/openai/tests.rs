use serde_json::{Value, json};

use super::*;
use crate::effects::llm::kit::{self, Shown, calls, id, sse};
use crate::protocol::error::ErrorCode;

fn stream(data: &[&str]) -> (Result<LlmResponse, CallFailure>, Shown) {
    kit::stream::<Transcript>(&sse(data))
}

fn whole(body: &str) -> Result<LlmResponse, CallFailure> {
    kit::whole::<Transcript>(body).0
}

#[test]
fn a_streamed_text_is_shown_and_recorded() {
    let (response, shown) = kit::stream::<Transcript>(concat!(
        ": OPENROUTER PROCESSING\n\n",
        r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-5-2","service_tier":"default","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null}"#,
        "\n\n",
        r#"data: {"id":"chatcmpl-1","model":"gpt-5-2","choices":[{"index":0,"delta":{"content":"Hel"},"finish_reason":null}],"usage":null}"#,
        "\n\n",
        r#"data: {"id":"chatcmpl-1","model":"gpt-5-2","choices":[{"index":0,"delta":{"content":"lo \u00e9"},"finish_reason":null}]}"#,
        "\n\n",
        r#"data: {"id":"chatcmpl-1","model":"gpt-5-2","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}"#,
        "\n\n",
        r#"data: {"id":"chatcmpl-1","model":"gpt-5-2","choices":[],"usage":{"prompt_tokens":19,"completion_tokens":10,"total_tokens":29,"prompt_tokens_details":{"cached_tokens":4,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":6}}}"#,
        "\n\n",
        "data: [DONE]\n\n",
    ));
    let response = response.unwrap();
    assert_eq!(response.content.as_deref(), Some("Hello \u{e9}"));
    assert_eq!(response.model, "gpt-5-2");
    assert_eq!(response.finish_reason.as_deref(), Some("stop"));
    assert_eq!(shown.texts, 2);
    let usage = Usage {
        input_tokens: 19,
        output_tokens: 10,
        cached_input_tokens: Some(4),
        reasoning_tokens: Some(6),
        total_tokens: 29,
    };
    assert_eq!(response.usage, Some(usage));
    assert_eq!(response.cost, None);
}

#[test]
fn tool_calls_come_in_pieces_under_our_ids() {
    let (response, _) = stream(&[
        r#"{"choices":[{"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_x","type":"function","function":{"name":"weather","arguments":""}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\":"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"call_y","type":"function","function":{"name":"clock","arguments":""}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":" \"Oslo\"}"}}]}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
        "[DONE]",
    ]);
    let response = response.unwrap();
    let expected = [
        (id(0).to_string(), "weather".to_owned(), r#"{"city": "Oslo"}"#.to_owned()),
        (id(1).to_string(), "clock".to_owned(), "{}".to_owned()),
    ];
    assert_eq!(calls(&response), expected);
    assert_eq!(response.content, None);
    assert_eq!(response.finish_reason.as_deref(), Some("tool_calls"));
}

/// Names and arguments of the calls in a stream of these `tool_calls` arrays.
fn made(pieces: &[&str]) -> Vec<(String, String)> {
    let chunks: Vec<String> = pieces
        .iter()
        .map(|calls| format!(r#"{{"choices":[{{"delta":{{"tool_calls":{calls}}}}}]}}"#))
        .collect();
    let mut data: Vec<&str> = chunks.iter().map(String::as_str).collect();
    data.push(r#"{"choices":[{"finish_reason":"stop"}]}"#);
    let response = stream(&data).0.unwrap();
    assert_eq!(response.finish_reason.as_deref(), Some("tool_calls"));
    calls(&response).into_iter().map(|(_, name, arguments)| (name, arguments)).collect()
}

fn expect(calls: &[(&str, &str)]) -> Vec<(String, String)> {
    calls.iter().map(|(name, arguments)| ((*name).to_owned(), (*arguments).to_owned())).collect()
}

#[test]
fn whole_calls_without_an_index_are_one_call_each() {
    let two = expect(&[("a", r#"{"x":1}"#), ("b", "{}")]);
    let together = r#"[{"id":"1","function":{"name":"a","arguments":"{\"x\":1}"}},{"id":"2","function":{"name":"b","arguments":"{}"}}]"#;
    assert_eq!(made(&[together]), two);
    let first = r#"[{"function":{"name":"a","arguments":"{\"x\":1}"}}]"#;
    let second = r#"[{"function":{"name":"b","arguments":"{}"}}]"#;
    assert_eq!(made(&[first, second]), two);
}

#[test]
fn pieces_without_an_index_continue_the_last_call() {
    let pieces = [
        r#"[{"id":"1","function":{"name":"a","arguments":"{\"x\""}}]"#,
        r#"[{"function":{"arguments":":1}"}}]"#,
        r#"[{"id":"2","function":{"name":"b"}}]"#,
        r#"[{"id":"","function":{"name":"","arguments":"{}"}}]"#,
    ];
    assert_eq!(made(&pieces), expect(&[("a", r#"{"x":1}"#), ("b", "{}")]));
}

#[test]
fn arguments_with_an_index_continue_a_call_that_came_without() {
    let pieces = [
        r#"[{"id":"1","function":{"name":"a"}}]"#,
        r#"[{"index":0,"function":{"arguments":"{}"}}]"#,
    ];
    assert_eq!(made(&pieces), expect(&[("a", "{}")]));
}

#[test]
fn calls_that_all_have_index_zero_are_told_apart_by_their_ids() {
    let pieces = [
        r#"[{"index":0,"id":"1","function":{"name":"a","arguments":"{}"}}]"#,
        r#"[{"index":0,"id":"2","function":{"name":"a","arguments":"{\"y\":2}"}}]"#,
    ];
    assert_eq!(made(&pieces), expect(&[("a", "{}"), ("a", r#"{"y":2}"#)]));
}

#[test]
fn a_fresh_id_or_a_repeated_name_in_a_piece_is_no_new_call() {
    let fresh_id = [
        r#"[{"index":0,"id":"1","function":{"name":"a","arguments":"{"}}]"#,
        r#"[{"index":0,"id":"2","function":{"arguments":"}"}}]"#,
    ];
    assert_eq!(made(&fresh_id), expect(&[("a", "{}")]));
    let same_name = [
        r#"[{"index":0,"id":"1","function":{"name":"a","arguments":"{"}}]"#,
        r#"[{"index":0,"id":"1","function":{"name":"a","arguments":"}"}}]"#,
    ];
    assert_eq!(made(&same_name), expect(&[("a", "{}")]));
}

#[test]
fn a_name_may_come_late_and_arguments_as_an_object() {
    let late = [
        r#"[{"index":0,"id":"1","function":{}}]"#,
        r#"[{"index":0,"function":{"name":"a","arguments":{"z":1, "b":1.50}}}]"#,
    ];
    assert_eq!(made(&late), expect(&[("a", r#"{"z":1, "b":1.50}"#)]));
}

#[test]
fn a_call_that_never_gets_a_name_is_a_failed_attempt() {
    let (response, _) = stream(&[
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#,
    ]);
    let failure = response.unwrap_err();
    assert_eq!(failure.error.code, Some(ErrorCode::ProviderError));
    assert!(failure.retryable);
}

#[test]
fn more_calls_than_an_answer_may_hold_are_a_failed_attempt() {
    let call = |n: usize| json!({ "index": n, "id": n.to_string(), "function": { "name": "a" } });
    let calls: Vec<Value> = (0..129).map(call).collect();
    let chunk = json!({ "choices": [{ "delta": { "tool_calls": calls } }] }).to_string();
    assert!(!stream(&[&chunk]).0.unwrap_err().retryable);
}

#[test]
fn reasoning_has_two_names_and_counts_once() {
    let (response, shown) = stream(&[
        r#"{"choices":[{"delta":{"reasoning_content":"so ","content":null}}]}"#,
        r#"{"choices":[{"delta":{"reasoning":"it "}}]}"#,
        r#"{"choices":[{"delta":{"reasoning":"goes","reasoning_content":"goes","reasoning_details":[{"type":"reasoning.text"}]}}]}"#,
        r#"{"choices":[{"delta":{"content":"42"},"finish_reason":"stop"}]}"#,
    ]);
    assert_eq!(shown.reasoning, "so it goes");
    assert_eq!(response.unwrap().content.as_deref(), Some("42"));
}

#[test]
fn an_answer_is_complete_with_a_finish_reason_or_done() {
    let text = r#"{"choices":[{"delta":{"content":"a"}}]}"#;
    let reason = r#"{"choices":[{"delta":{},"finish_reason":"length"}]}"#;
    assert_eq!(stream(&[text, reason]).0.unwrap().finish_reason.as_deref(), Some("length"));
    assert_eq!(stream(&[text, "[DONE]"]).0.unwrap().finish_reason.as_deref(), Some("stop"));
    for cut in [&[text][..], &["[DONE]"], &[], &[r#"{"choices":[]}"#]] {
        let (result, shown) = stream(cut);
        let failure = result.unwrap_err();
        assert_eq!(failure.error.code, Some(ErrorCode::ProviderError));
        assert!(failure.retryable);
        assert_eq!(shown.finish, None);
    }
}

#[test]
fn finish_reasons_are_one_word() {
    for (said, recorded) in [
        ("stop", "stop"),
        ("length", "length"),
        ("function_call", "tool_calls"),
        ("MALFORMED_FUNCTION_CALL", "malformed_function_call"),
        ("<script>", "stop"),
    ] {
        let chunk = format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"{said}"}}]}}"#);
        let response = stream(&[&chunk]).0.unwrap();
        assert_eq!(response.finish_reason.as_deref(), Some(recorded));
    }
}

#[test]
fn a_refusal_is_refused_and_not_retried() {
    for data in [
        r#"{"choices":[{"delta":{"refusal":"I cannot"}}]}"#,
        r#"{"choices":[{"delta":{"content":"par"},"finish_reason":"content_filter"}]}"#,
    ] {
        let failure = stream(&[data]).0.unwrap_err();
        assert_eq!(failure.error.code, Some(ErrorCode::Refused));
        assert!(!failure.retryable);
        assert!(!failure.error.message.contains("cannot"));
    }
    let failure =
        whole(r#"{"choices":[{"message":{"content":null,"refusal":"No."}}]}"#).unwrap_err();
    assert_eq!(failure.error.code, Some(ErrorCode::Refused));
}

#[test]
fn an_error_in_the_stream_is_classified() {
    use ErrorCode::{DeadlineExceeded, ProviderError, RateLimited, Refused};
    for (data, code, retryable) in [
        (r#"{"error":{"message":"x","type":"server_error"}}"#, ProviderError, true),
        (r#"{"error":{"message":"x","code":429}}"#, RateLimited, true),
        (r#"{"error":{"message":"x","code":"429"}}"#, RateLimited, true),
        (r#"{"error":{"type":"invalid_request_error","code":"content_filter"}}"#, Refused, false),
        (r#"{"error":{"type":"invalid_request_error"}}"#, ProviderError, false),
        (r#"{"error":{"code":504}}"#, DeadlineExceeded, true),
        (r#"{"error":"the model crashed"}"#, ProviderError, true),
        (r#"{"object":"error","message":"x","code":400}"#, ProviderError, false),
        (r#"{"error":{"code":502},"choices":[{"finish_reason":"error"}]}"#, ProviderError, true),
        (r#"{"choices":[{"delta":{},"finish_reason":"error"}]}"#, ProviderError, true),
    ] {
        let failure = stream(&[r#"{"choices":[{"delta":{"content":"a"}}]}"#, data]).0.unwrap_err();
        assert_eq!((failure.error.code, failure.retryable), (Some(code), retryable), "{data}");
        assert!(!failure.error.message.contains("crashed"));
    }
}

#[test]
fn garbage_is_a_failed_attempt_and_never_a_panic() {
    let deep = format!("{}{}", r#"{"choices":"#.repeat(300), "}".repeat(300));
    for data in ["<html>", "{", "[]", "7", "null", &deep] {
        let failure = stream(&[data]).0.unwrap_err();
        assert_eq!(failure.error.code, Some(ErrorCode::ProviderError), "{data}");
        assert!(failure.retryable);
    }
}

#[test]
fn fields_of_another_shape_are_ignored() {
    let (response, _) = stream(&[
        r#"{"model":7,"choices":[{"index":"a","delta":{"content":[{"type":"text","text":"hi"}],"reasoning":{},"tool_calls":null}}],"usage":"none"}"#,
        r#"{"choices":[{"delta":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":"x","completion_tokens":2},"error":null}"#,
    ]);
    let response = response.unwrap();
    assert_eq!(response.content.as_deref(), Some("hi"));
    assert_eq!(response.model, "some-model");
    assert_eq!(response.usage.unwrap().total_tokens, 2);
}

#[test]
fn a_reported_cost_is_exact() {
    for (cost, recorded) in [
        ("0.0142", Some("0.0142")),
        ("1.2e-5", Some("0.000012")),
        ("\"0.10\"", Some("0.1")),
        ("0", Some("0")),
        ("-1", None),
        ("null", None),
        ("{\"total\":1}", None),
        ("\"free\"", None),
    ] {
        let body = format!(
            r#"{{"choices":[{{"message":{{"content":"a"}}}}],"usage":{{"prompt_tokens":1,"cost":{cost}}}}}"#
        );
        let response = whole(&body).unwrap();
        assert_eq!(response.cost.map(|cost| cost.0.to_string()).as_deref(), recorded, "{cost}");
    }
}

#[test]
fn a_whole_answer_is_read() {
    let response = whole(
        r#"{"id":"chatcmpl-1","object":"chat.completion","model":"m-1","choices":[{"index":0,"message":{"role":"assistant","content":"hi","reasoning_content":"hm","tool_calls":[{"id":"x","type":"function","function":{"name":"a","arguments":"{\"q\": 1}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":4,"prompt_cache_hit_tokens":2}}"#,
    )
    .unwrap();
    assert_eq!(response.content.as_deref(), Some("hi"));
    let expected = [(id(0).to_string(), "a".to_owned(), r#"{"q": 1}"#.to_owned())];
    assert_eq!(calls(&response), expected);
    assert_eq!(response.usage.unwrap().cached_input_tokens, Some(2));
    assert_eq!(response.usage.unwrap().total_tokens, 7);
    for none in [r#"{"choices":[]}"#, "{}", r#"{"error":{"message":"x"}}"#, "<html>"] {
        assert!(whole(none).unwrap_err().retryable, "{none}");
    }
}
