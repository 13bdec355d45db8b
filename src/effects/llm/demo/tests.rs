use proptest::prelude::*;

use super::*;
use crate::effects::Delta;
use crate::effects::llm::kit::{
    BYTES_MAX, Shown, asking, call, file, id, image, image_at, result, user, with_parts,
};
use crate::protocol::content::ContentPart;

async fn run(messages: Vec<Message>) -> (Result<LlmResponse, CallFailure>, Shown) {
    let call = ModelCall { system: Some("be kind".to_owned()), ..call(messages) };
    let mut shown = Shown::default();
    let mut deltas = |delta: Delta<'_>| shown.add(delta);
    let result = answer(&call, Reply::new(&call, BYTES_MAX, &mut deltas)).await;
    (result, shown)
}

async fn run_text(text: &str) -> (LlmResponse, Shown) {
    let (result, shown) = run(vec![user(text)]).await;
    let response = result.unwrap();
    shown.assert_matches(&response);
    (response, shown)
}

#[tokio::test]
async fn a_user_text_is_repeated_word_by_word() {
    let (response, shown) = run_text("hello  big\n world ").await;
    assert_eq!(response.content.as_deref(), Some("You said: hello  big\n world "));
    assert_eq!(shown.texts, 6);
    assert_eq!(response.finish_reason.as_deref(), Some("stop"));
    assert_eq!(response.model, "some-model");
    let usage = response.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.total_tokens), (5, 5, 10));
    assert_eq!(response.cost.unwrap().0, Decimal::ZERO);
}

#[tokio::test]
async fn call_lines_make_one_call_each_with_the_engines_ids() {
    let (response, _) =
        run_text("/call clock\n/call weather { \"city\":  \"Oslo\" }\n\n/call sum {\n\"a\": 1}")
            .await;
    let made: Vec<(&str, &str)> = response
        .tool_calls
        .iter()
        .map(|call| (call.function.name.as_str(), call.function.arguments.as_str()))
        .collect();
    let expected =
        [("clock", "{}"), ("weather", "{ \"city\":  \"Oslo\" }"), ("sum", "{\n\"a\": 1}")];
    assert_eq!(made, expected);
    assert_eq!(response.tool_calls[1].id, id(1));
    assert_eq!(response.finish_reason.as_deref(), Some("tool_calls"));
    assert_eq!(response.content, None);
}

#[tokio::test]
async fn a_tool_result_is_answered_by_the_tools_name() {
    let calls = asking("", &[("clock", "{}"), ("bell", "{}")]);
    let mut last = result(1, "12 o'clock");
    let (response, _) = run(vec![calls, result(0, "noon"), last.clone()]).await;
    let content = response.unwrap().content;
    assert_eq!(content.as_deref(), Some("bell answered: 12 o'clock"));

    last.name = Some("gong".to_owned());
    let (response, _) = run(vec![last.clone()]).await;
    let content = response.unwrap().content;
    assert_eq!(content.as_deref(), Some("gong answered: 12 o'clock"));

    last.name = None;
    let (response, _) = run(vec![last]).await;
    let content = response.unwrap().content;
    assert_eq!(content.as_deref(), Some("tool answered: 12 o'clock"));
}

#[tokio::test]
async fn a_part_that_is_no_text_is_mentioned() {
    let text = |text: &str| ContentPart::Text { text: text.to_owned() };
    let png = || image("image/png", b"png");
    let answered = async |message: Message| {
        let calls = asking("", &[("clock", "{}")]);
        run(vec![calls, message]).await.0.unwrap().content.unwrap()
    };
    for (parts, said) in [
        (vec![text("hello"), png()], "You said: hello [image/png, 3 bytes]"),
        (vec![text("a"), png(), text("b")], "You said: a\n\nb [image/png, 3 bytes]"),
        (
            vec![file("a.pdf", "application/pdf", b"pdf"), image_at("https://a.b/c.png")],
            "You said: [a.pdf, application/pdf, 3 bytes] [link: https://a.b/c.png, image/*]",
        ),
        (vec![text("/long 2"), png()], "word1 word2"),
    ] {
        assert_eq!(answered(with_parts(user(""), parts)).await, said);
    }
    let seen = with_parts(result(0, ""), vec![text("noon"), png()]);
    assert_eq!(answered(seen).await, "clock answered: noon [image/png, 3 bytes]");
}

#[tokio::test]
async fn think_reasons_before_it_answers() {
    let (response, shown) = run_text("/think of a  number").await;
    assert_eq!(shown.reasoning, "of a  number");
    assert_eq!(response.content.as_deref(), Some("You said: of a  number"));
    assert_eq!(response.usage.unwrap().reasoning_tokens, Some(3));
    assert_eq!(response.usage.unwrap().output_tokens, 8);
}

#[tokio::test]
async fn slow_answers_the_same_text() {
    let (response, _) = run_text("/slow 1 one  two").await;
    assert_eq!(response.content.as_deref(), Some("You said: one  two"));
}

#[tokio::test]
async fn long_answers_that_many_words_and_fits_an_event() {
    let (response, _) = run_text("/long 3").await;
    assert_eq!(response.content.as_deref(), Some("word1 word2 word3"));
    let (response, _) = run_text(&format!("/long {LONG_WORDS_MAX}")).await;
    assert_eq!(words(&response.content.unwrap()), u64::from(LONG_WORDS_MAX));
}

#[tokio::test]
async fn fail_fails_with_every_code_and_retries_as_a_provider_would() {
    for code in ErrorCode::ALL {
        let text = format!("/fail {}", code.as_str());
        let (result, shown) = run(vec![user(&text)]).await;
        let failure = result.unwrap_err();
        assert_eq!(failure.error.code, Some(code));
        let final_code = matches!(code, ErrorCode::Refused | ErrorCode::BudgetExceeded);
        assert_eq!(failure.retryable, !final_code, "{code:?}");
        assert_eq!(shown.finish, None);
    }
}

#[tokio::test]
async fn a_malformed_command_is_answered_with_how_to_write_it() {
    for (text, says) in [
        ("/help", "/call <tool> <json>"),
        ("/nonsense at all", "/nonsense is not a command"),
        ("/", "/ is not a command"),
        ("/call", "Write /call <tool> <json>"),
        ("/call clock {", "The arguments for clock are not JSON"),
        ("/call clock {}\nand more", "The arguments for clock are not JSON"),
        ("/slow", "Write /slow <ms> <text>"),
        ("/slow soon hello", "Write /slow <ms> <text>"),
        ("/slow 10001 hello", "at most 10000"),
        ("/slow 5  ", "Write /slow <ms> <text>"),
        ("/think ", "Write /think <text>"),
        ("/fail", "provider_error, rate_limited, refused, budget_exceeded, deadline_exceeded"),
        ("/fail badly", "Write /fail <code>"),
        ("/long 0", "Write /long <n>"),
        ("/long 50001", "from 1 to 50000"),
        ("/long many", "Write /long <n>"),
    ] {
        let (response, _) = run_text(text).await;
        let content = response.content.unwrap();
        assert!(content.contains(says), "{text:?} is answered {content:?}");
        assert_eq!(response.finish_reason.as_deref(), Some("stop"));
    }
}

#[tokio::test]
async fn the_help_lists_every_command_and_bound() {
    let (response, _) = run_text("/help").await;
    let help = response.content.unwrap();
    for code in ErrorCode::ALL {
        assert!(help.contains(code.as_str()));
    }
    assert!(help.contains(&SLOW_MS_MAX.to_string()) && help.contains(&LONG_WORDS_MAX.to_string()));
    assert!(help.lines().all(|line| line.len() <= 80));
}

#[tokio::test]
async fn an_answer_beyond_the_bound_fails_the_attempt() {
    let call = call(vec![user("/long 50000")]);
    let mut deltas = |_: Delta<'_>| {};
    let result = answer(&call, Reply::new(&call, 1000, &mut deltas)).await;
    let failure = result.unwrap_err();
    assert_eq!(failure.error.code, Some(ErrorCode::ProviderError));
    assert!(!failure.retryable);
}

#[tokio::test]
async fn nothing_to_answer_is_said_and_not_a_failure() {
    for messages in [vec![], vec![Message::text(Role::Assistant, "hi")]] {
        let (result, _) = run(messages).await;
        assert!(result.unwrap().content.unwrap().starts_with("There is nothing"));
    }
}

proptest! {
    #[test]
    fn pieces_add_up_to_the_text(text in "[ab \n\t\u{a0}\u{e9}]{0,40}") {
        prop_assert_eq!(pieces(&text).collect::<String>(), text.clone());
        let with_words = pieces(&text).filter(|piece| !piece.trim().is_empty());
        prop_assert_eq!(with_words.count() as u64, words(&text));
    }

    #[test]
    fn no_text_makes_the_model_panic(text in "/?(call|slow|think|fail|long|help)?[ -~\n\u{e9}]{0,40}") {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        // A wait of the text's own choice would need the clock.
        prop_assume!(!text.starts_with("/slow"));
        let (result, shown) = runtime.block_on(run(vec![user(&text)]));
        if let Ok(response) = result {
            prop_assert_eq!(shown.text, response.content.unwrap_or_default());
        }
    }
}
