//! Both dialects against a provider that someone else wrote: aimock, as `tests/clients/aimock`
//! starts it. Runs where `TURND_TEST_AIMOCK_URL` says where it listens.

use super::*;

/// Each API that aimock speaks, as a block that calls it.
fn blocks(url: &str) -> Vec<Llm> {
    vec![
        llm(LlmKind::OpenAi, &format!("{url}/v1")),
        llm(LlmKind::OpenAi, &format!("{url}/api/v1")),
        llm(LlmKind::Anthropic, url),
    ]
}

async fn ask(
    block: &Llm,
    stream: bool,
    messages: Vec<crate::protocol::message::Message>,
) -> Result<LlmResponse, CallFailure> {
    let mut call = call(messages);
    call.system = Some("be kind".to_owned());
    call.tools = vec![tool("weather", None, None), tool("clock", None, None)];
    call.stream = stream;
    // Only a model of this kind thinks there.
    call.model = "o3-claude-opus-4".to_owned();
    let mut shown = Shown::default();
    let mut deltas = |delta: Delta<'_>| shown.add(delta);
    let executors = Executors::new(bounds());
    let response = executors.call_model(block, &call, &BlobBytes::new(), &mut deltas).await?;
    if stream {
        shown.assert_matches(&response);
        assert_eq!(response.content.as_deref() == Some("It is 42."), !shown.reasoning.is_empty());
    }
    Ok(response)
}

#[tokio::test]
async fn a_third_partys_provider_is_understood() {
    let Ok(url) = std::env::var("TURND_TEST_AIMOCK_URL") else {
        eprintln!("skipped: TURND_TEST_AIMOCK_URL is not set");
        return;
    };
    for block in blocks(&url) {
        for stream in [true, false] {
            answers(&block, stream).await;
            tool_calls(&block, stream).await;
            failures(&block, stream).await;
        }
    }
    let router = llm(LlmKind::OpenAi, &format!("{url}/api/v1"));
    for stream in [true, false] {
        let response = ask(&router, stream, vec![user("please cost")]).await.unwrap();
        assert_eq!(response.cost.unwrap().0.to_string(), "0.00123");
    }
}

async fn answers(block: &Llm, stream: bool) {
    let response = ask(block, stream, vec![user("please greet")]).await.unwrap();
    let content = response.content.as_deref();
    assert_eq!(content, Some("Hello there, \u{e9}\u{e8} \u{2603} and welcome."));
    assert_eq!(response.finish_reason.as_deref(), Some("stop"));
    let usage = response.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.total_tokens), (11, 7, 18));

    let response = ask(block, stream, vec![user("please think")]).await.unwrap();
    assert_eq!(response.content.as_deref(), Some("It is 42."));

    let response = ask(block, stream, vec![user("please be long")]).await.unwrap();
    assert_eq!(response.finish_reason.as_deref(), Some("length"));
}

async fn tool_calls(block: &Llm, stream: bool) {
    let question = user("please call");
    let response = ask(block, stream, vec![question.clone()]).await.unwrap();
    assert_eq!(response.finish_reason.as_deref(), Some("tool_calls"));
    assert_eq!(response.content.as_deref(), Some("Let me look."));
    let made = calls(&response);
    let weather = r#"{"city":"Oslo","days":3}"#;
    let expected = [("weather", weather), ("clock", "{}")];
    let made: Vec<(&str, &str)> =
        made.iter().map(|(_, name, arguments)| (name.as_str(), arguments.as_str())).collect();
    assert_eq!(made, expected);

    let history =
        vec![question, asking("Let me look.", &expected), result(0, "sunny"), result(1, "noon")];
    let response = ask(block, stream, history).await.unwrap();
    assert_eq!(response.content.as_deref(), Some("Sunny at noon."));
}

async fn failures(block: &Llm, stream: bool) {
    for (text, expected) in [
        ("please limit", (ErrorCode::RateLimited, true)),
        ("please overload", (ErrorCode::RateLimited, true)),
        ("please fail", (ErrorCode::ProviderError, true)),
        ("please reject", (ErrorCode::ProviderError, false)),
        ("nothing is known about this", (ErrorCode::ProviderError, false)),
    ] {
        let failure = ask(block, stream, vec![user(text)]).await.unwrap_err();
        assert_eq!(code(&failure), expected, "{text}");
        let waits = text == "please limit";
        assert_eq!(failure.retry_after, waits.then_some(Duration::from_secs(9)), "{text}");
    }
    if stream {
        let failure = ask(block, true, vec![user("please break off")]).await.unwrap_err();
        assert_eq!(code(&failure), (ErrorCode::ProviderError, true));
    }
}
