use super::*;
use crate::effects::llm::kit::{self, Shown, calls, id, sse};
use crate::protocol::error::ErrorCode;

const START: &str = r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-x-1","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,"cache_creation_input_tokens":5,"cache_read_input_tokens":10,"output_tokens":1}}}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;

fn stream(data: &[&str]) -> (Result<LlmResponse, CallFailure>, Shown) {
    kit::stream::<Transcript>(&sse(data))
}

fn whole(body: &str) -> Result<LlmResponse, CallFailure> {
    kit::whole::<Transcript>(body).0
}

fn stopped(reason: &str) -> String {
    format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}"}},"usage":{{"output_tokens":15}}}}"#
    )
}

#[test]
fn thinking_text_and_tools_are_shown_and_recorded() {
    let (response, shown) = kit::stream::<Transcript>(&[
        "event: message_start\ndata: ", START, "\n\n",
        "event: ping\ndata: {\"type\": \"ping\"}\n\n",
        "event: content_block_start\n",
        r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#, "\n\n",
        r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}"#, "\n\n",
        r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQ"}}"#, "\n\n",
        r#"data: {"type":"content_block_stop","index":0}"#, "\n\n",
        r#"data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#, "\n\n",
        r#"data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Let me "}}"#, "\n\n",
        r#"data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"look."}}"#, "\n\n",
        r#"data: {"type":"content_block_stop","index":1}"#, "\n\n",
        r#"data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"weather","input":{}}}"#, "\n\n",
        r#"data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}"#, "\n\n",
        r#"data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"city\": "}}"#, "\n\n",
        r#"data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"\"Oslo\"}"}}"#, "\n\n",
        r#"data: {"type":"content_block_stop","index":2}"#, "\n\n",
        r#"data: {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_2","name":"clock","input":{}}}"#, "\n\n",
        r#"data: {"type":"content_block_stop","index":3}"#, "\n\n",
        "data: ", &stopped("tool_use"), "\n\n",
        "event: message_stop\ndata: ", STOP, "\n\n",
    ].concat());
    let response = response.unwrap();
    assert_eq!(shown.reasoning, "hm");
    assert_eq!(response.content.as_deref(), Some("Let me look."));
    assert_eq!(response.model, "claude-x-1");
    assert_eq!(response.finish_reason.as_deref(), Some("tool_calls"));
    let expected = [
        (id(0).to_string(), "weather".to_owned(), r#"{"city": "Oslo"}"#.to_owned()),
        (id(1).to_string(), "clock".to_owned(), "{}".to_owned()),
    ];
    assert_eq!(calls(&response), expected);
    let usage = Usage {
        input_tokens: 40,
        output_tokens: 15,
        cached_input_tokens: Some(10),
        reasoning_tokens: None,
        total_tokens: 55,
    };
    assert_eq!(response.usage, Some(usage));
}

#[test]
fn an_input_that_comes_with_the_block_is_taken() {
    let block = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","name":"a","input":{"z":1, "b":2}}}"#;
    let end = r#"{"type":"content_block_stop","index":0}"#;
    let response = stream(&[START, block, end, &stopped("tool_use"), STOP]).0.unwrap();
    assert_eq!(response.tool_calls[0].function.arguments, r#"{"z":1, "b":2}"#);
}

#[test]
fn stop_reasons_are_the_words_of_chat_completions() {
    for (said, recorded) in [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("pause_turn", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("something_new", "something_new"),
    ] {
        let response = stream(&[START, &stopped(said), STOP]).0.unwrap();
        assert_eq!(response.finish_reason.as_deref(), Some(recorded));
    }
    let failure = stream(&[START, &stopped("refusal"), STOP]).0.unwrap_err();
    assert_eq!(failure.error.code, Some(ErrorCode::Refused));
    assert!(!failure.retryable);
}

#[test]
fn an_answer_is_complete_with_its_stop_reason() {
    assert!(stream(&[START, &stopped("end_turn")]).0.is_ok());
    for cut in [&[START][..], &[START, STOP], &[]] {
        let failure = stream(cut).0.unwrap_err();
        assert_eq!(failure.error.code, Some(ErrorCode::ProviderError));
        assert!(failure.retryable);
    }
}

#[test]
fn an_error_in_the_stream_is_classified() {
    use ErrorCode::{DeadlineExceeded, ProviderError, RateLimited};
    for (kind, code, retryable) in [
        ("overloaded_error", RateLimited, true),
        ("rate_limit_error", RateLimited, true),
        ("api_error", ProviderError, true),
        ("timeout_error", DeadlineExceeded, true),
        ("invalid_request_error", ProviderError, false),
        ("authentication_error", ProviderError, false),
    ] {
        let error =
            format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"secret text"}}}}"#);
        let failure = stream(&[START, &error]).0.unwrap_err();
        assert_eq!((failure.error.code, failure.retryable), (Some(code), retryable), "{kind}");
        assert!(!failure.error.message.contains("secret"));
        let detail = failure.error.detail.unwrap();
        assert_eq!(detail.text(), format!(r#"{{"type":"{kind}"}}"#));
    }
}

#[test]
fn garbage_is_a_failed_attempt_and_unknown_events_are_nothing() {
    for data in ["<html>", "{", "7", "null"] {
        assert!(stream(&[START, data]).0.unwrap_err().retryable, "{data}");
    }
    let unknown = [
        r#"{"type":"new_event"}"#,
        "{}",
        "",
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"x"}}"#,
        r#"{"type":"content_block_delta","index":9,"delta":{"type":"input_json_delta","partial_json":"{"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{}}}"#,
        r#"{"type":"content_block_delta","delta":7}"#,
    ];
    let stop = stopped("end_turn");
    let all: Vec<&str> = unknown.into_iter().chain([stop.as_str(), STOP]).collect();
    let response = stream(&all).0.unwrap();
    assert_eq!((response.content, response.tool_calls), (None, vec![]));
    assert_eq!(response.model, "some-model");
}

#[test]
fn a_whole_answer_is_read() {
    let response = whole(
        r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-x-1","content":[{"type":"thinking","thinking":"hm","signature":"E"},{"type":"text","text":"hi"},{"type":"tool_use","id":"toolu_1","name":"a","input":{"q": 1}}],"stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":4}}"#,
    )
    .unwrap();
    assert_eq!(response.content.as_deref(), Some("hi"));
    let expected = [(id(0).to_string(), "a".to_owned(), r#"{"q": 1}"#.to_owned())];
    assert_eq!(calls(&response), expected);
    assert_eq!(response.usage.unwrap().total_tokens, 7);
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"x"}}"#;
    assert_eq!(whole(error).unwrap_err().error.code, Some(ErrorCode::RateLimited));
    for none in ["{}", "<html>", r#"{"content":[]}"#] {
        assert!(whole(none).unwrap_err().retryable, "{none}");
    }
}
