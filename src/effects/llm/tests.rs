//! What holds for every dialect, whatever a provider sends.

use proptest::prelude::*;

use super::*;

/// Lines of both dialects, in the shapes that the readers look into.
const LINES: [&str; 14] = [
    r#"{"choices":[{"delta":{"content":"a "}}]}"#,
    r#"{"choices":[{"delta":{"reasoning":"hm"}}]}"#,
    r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"1","function":{"name":"t"}}]}}]}"#,
    r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{}"}}]}}]}"#,
    r#"{"choices":[{"delta":{"tool_calls":[{"function":{"name":"u","arguments":"{"}}]}}]}"#,
    r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}"#,
    "[DONE]",
    r#"{"type":"message_start","message":{"model":"m","usage":{"input_tokens":1}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"b"}}"#,
    r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","name":"v","input":{}}}"#,
    r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#,
    r#"{"type":"content_block_stop","index":1}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":2}}"#,
    r#"{"type":"message_stop"}"#,
];

/// Some of the lines in any order, some of them cut short.
fn transcripts() -> impl Strategy<Value = String> {
    let line = (proptest::sample::select(&LINES[..]), any::<proptest::sample::Index>(), 0..8u8);
    proptest::collection::vec(line, 0..12).prop_map(|lines| {
        let cut = |(line, at, odds): (&str, proptest::sample::Index, u8)| {
            let end = if odds == 0 { at.index(line.len()) } else { line.len() };
            line.split_at(end).0.to_owned()
        };
        let lines: Vec<String> = lines.into_iter().map(cut).collect();
        kit::sse(&lines.iter().map(String::as_str).collect::<Vec<_>>())
    })
}

proptest! {
    /// The kit checks that what was shown is what is recorded.
    #[test]
    fn any_stream_is_an_answer_or_a_failure(transcript in transcripts()) {
        for (result, shown) in [
            kit::stream::<openai::Transcript>(&transcript),
            kit::stream::<anthropic::Transcript>(&transcript),
        ] {
            prop_assert_eq!(result.is_ok(), shown.finish.is_some());
        }
    }

    #[test]
    fn any_body_is_an_answer_or_a_failure(lines in transcripts()) {
        let body = lines.trim_start_matches("data: ");
        for (result, shown) in [
            kit::whole::<openai::Transcript>(body),
            kit::whole::<anthropic::Transcript>(body),
        ] {
            prop_assert_eq!(result.is_ok(), shown.finish.is_some());
        }
    }
}
