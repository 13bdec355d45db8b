//! Every class of problem with its exact words, and what the docs' example means.

mod random;
mod sections;
mod tools;

use super::*;
use crate::control::agents::LlmKind;
use crate::protocol::agent::{RetryPolicy, Seconds};
use crate::protocol::json::Json;
use rust_decimal::Decimal;

const DOCS: &str = include_str!("../../../docs/manifest.md");

fn problems(text: &str) -> Vec<String> {
    match Manifest::parse(text) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(ToString::to_string).collect(),
    }
}

#[track_caller]
fn refused(text: &str, expected: &[&str]) {
    assert_eq!(problems(text), expected, "{text}");
}

#[track_caller]
fn parsed(text: &str) -> Manifest {
    Manifest::parse(text).unwrap_or_else(|problems| panic!("{text}\n{problems:#?}"))
}

fn example() -> &'static str {
    let (_, rest) = DOCS.split_once("```toml\n").unwrap();
    rest.split_once("```").unwrap().0
}

#[test]
fn an_empty_manifest_has_the_demo_agent_on_the_demo_model() {
    let manifest = parsed("");
    assert_eq!(manifest.limits, Limits::default());
    assert_eq!(manifest.serve.cors_origins, ["*"]);
    assert_eq!(manifest.serve.shutdown, Duration::from_secs(20));
    assert_eq!(manifest.llms["demo"].kind, LlmKind::Demo);
    assert_eq!(manifest.agents.len(), 1);
    let config = &manifest.agents["demo"].config;
    assert_eq!((config.llm.as_str(), config.model.as_str()), ("demo", "demo"));
    assert!(config.stream);
    assert_eq!(config.retry, RetryPolicy::MODEL_CALL);
}

#[test]
fn the_example_of_the_docs_says_what_it_seems_to_say() {
    let manifest = parsed(example());
    assert_eq!(manifest.name.as_deref(), Some("shop"));
    assert_eq!(manifest.data.as_deref(), Some("./data"));
    assert_eq!(manifest.serve.public_url.as_deref(), Some("https://chat.example.com"));
    assert_eq!(manifest.serve.cors_origins, ["https://example.com"]);

    let openai = &manifest.llms["openai"];
    assert_eq!(openai.base_url, "https://api.openai.com/v1");
    assert_eq!(openai.api_key_env.as_deref(), Some("OPENAI_API_KEY"));
    let price = openai.prices["gpt-mini"];
    assert_eq!((price.input, price.output), (Decimal::new(15, 2), Decimal::new(60, 2)));
    assert_eq!(price.cached_input, Some(Decimal::new(75, 3)));
    assert_eq!(manifest.llms["claude"].api_key_env.as_deref(), Some("SHOP_ANTHROPIC_KEY"));
    assert_eq!(manifest.llms["local"].api_key_env, None);

    let support = &manifest.agents["support"];
    assert_eq!(support.description.as_deref(), Some("Answers questions about orders"));
    assert_eq!(
        support.config.retry,
        RetryPolicy {
            timeout_secs: Some(Seconds::whole(60)),
            max_retries: 3,
            backoff_base_secs: Seconds::from_millis(1500),
            backoff_max_secs: Seconds::whole(20),
        }
    );
    let tool = &support.config.tools[0];
    assert_eq!(tool.name, "show_order");
    assert_eq!(tool.description.as_deref(), Some("Shows an order to the customer."));
    let input =
        r#"{"type":"object","properties":{"order_id":{"type":"string"}},"required":["order_id"]}"#;
    assert_eq!(tool.input.as_ref().map(Json::text), Some(input));
    assert_eq!(support.config.tools.len(), 2);
    let writer = &manifest.agents["writer"].config;
    assert!(!writer.stream);
    assert_eq!(writer.retry.timeout_secs, None);
    assert!(!manifest.agents.contains_key("demo"), "it is only there when none is declared");
}

#[test]
fn what_is_not_toml_is_told_with_its_line_and_without_its_text() {
    refused("name = \n", &["1: not TOML: string values must be quoted, expected literal string"]);
    let found = problems("name = \"shop\"\n\n[llm.a]\napi_key = sk-abcdefghijklmnop\n");
    assert!(found[0].starts_with("4: not TOML: "), "{found:?}");
    assert!(!found.concat().contains("sk-"), "{found:?}");
}

#[test]
fn a_key_that_is_set_twice_is_named_in_full() {
    refused("name = \"a\"\nname = \"b\"", &["2: name: set twice"]);
    refused("[serve]\nlisten = \"\"\nlisten = \"\"", &["3: serve.listen: set twice"]);
    refused(
        "[agent.a]\nretry.llm.max_retries = 1\nretry.llm.max_retries = 2",
        &["3: agent.a.retry.llm.max_retries: set twice"],
    );
    refused("[agent.a]\n[serve]\n[agent.a]\n", &["3: agent.a: set twice"]);
    refused("[llm.a]\nprice = { m = 1, m = 2 }", &["2: m: set twice"]);
    refused("x = [\n  [{ m = 'hidden', m = 2 }]]", &["2: m: set twice"]);
    refused("[llm.\"a b\"]\n[llm.\"a b\"]", &["2: llm.\"a b\": set twice"]);
}

#[test]
fn an_unknown_key_is_named_and_the_nearest_known_one_offered() {
    refused(
        "[agent.support]\nllm = \"demo\"\nmodel = \"demo\"\nsytem = \"hi\"\n",
        &["4: agent.support.sytem: unknown key; did you mean `system`?"],
    );
    refused("nmae = \"a\"", &["1: nmae: unknown key; did you mean `name`?"]);
    refused("[agents.a]", &["1: agents: unknown key; did you mean `agent`?"]);
    refused("[limits]\nelephants = 1", &["2: limits.elephants: unknown key"]);
    refused(
        "[agent.a]\nllm = \"demo\"\nmodel = \"demo\"\nretry.max_retries = 2",
        &["4: agent.a.retry.max_retries: unknown key; known: `default`, `llm`"],
    );
    refused(
        "[llm.a]\ntype = \"openai\"\nprice.\"gpt 4.1\" = { input = 1, output = 2, inpt = 3 }",
        &["3: llm.a.price.\"gpt 4.1\".inpt: unknown key; did you mean `input`?"],
    );
}

#[test]
fn keys_of_capabilities_to_come_are_refused_by_name() {
    let later = [
        ("max_subagent_depth = 3", "1: max_subagent_depth", "sub-agents"),
        ("[mcp.a]", "1: mcp", "connectors"),
        ("[retention]", "1: retention", "retention"),
        ("[budget]", "1: budget", "budgets"),
        ("[webhook.a]", "1: webhook", "webhooks"),
        ("[channels]", "1: channels", "channels"),
        ("[serve]\nmetrics_listen = \"\"", "2: serve.metrics_listen", "metrics"),
        ("[llm.a]\ntype = \"openai\"\nformat = \"\"", "3: llm.a.format", "workers"),
    ];
    for (text, place, capability) in later {
        let name = place.rsplit([' ', '.']).next().unwrap();
        refused(text, &[&later_words(place, name, capability)]);
    }
    let of_agent = [
        ("worker", "workers"),
        ("signing_secret_env", "workers"),
        ("parallel_executes", "workers"),
        ("notify_turn_finished", "workers"),
        ("sub_agents", "sub-agents"),
        ("mcp", "connectors"),
        ("budget", "budgets"),
        ("detached_run", "AG-UI"),
        ("share_state", "AG-UI"),
        ("retry.tool", "workers"),
        ("retry.sub_agent", "sub-agents"),
        ("retry.connector", "connectors"),
        ("retry.decision", "workers"),
    ];
    for (key, capability) in of_agent {
        let text = format!("[agent.a]\nllm = \"demo\"\nmodel = \"demo\"\n{key} = {{}}");
        let name = key.rsplit('.').next().unwrap();
        refused(&text, &[&later_words(&format!("4: agent.a.{key}"), name, capability)]);
    }
    for (kind, capability) in [("worker", "workers"), ("openrouter", "OpenRouter")] {
        let text = format!("[llm.a]\ntype = \"{kind}\"");
        refused(&text, &[&later_words("2: llm.a.type", kind, capability)]);
    }
}

fn later_words(place: &str, name: &str, capability: &str) -> String {
    format!("{place}: `{name}` needs the {capability} capability, which this version does not have")
}

#[test]
fn a_wrong_type_names_what_it_must_be_and_what_it_is() {
    let cases = [
        ("name = 3", "1: name: must be a string, not a whole number"),
        ("serve = 3", "1: serve: must be a section, not a whole number"),
        ("[[agent]]", "1: agent: must be a section, not a list"),
        ("[agent]\na = \"x\"", "2: agent.a: must be a section, not a string"),
        (
            "[serve]\ncors_origins = \"*\"",
            "2: serve.cors_origins: must be a list of strings, not a string",
        ),
        (
            "[serve]\ncors_origins = [true]",
            "2: serve.cors_origins[0]: must be a string, not true or false",
        ),
        (
            "[limits]\nstreams_max = 1.5",
            "2: limits.streams_max: must be a whole number, not a number with a fraction",
        ),
        ("[limits]\nstreams_max = -1", "2: limits.streams_max: must be 1 to 1000000"),
        ("[serve]\nlisten = 2024-01-01", "2: serve.listen: must be a string, not a date or time"),
    ];
    for (text, expected) in cases {
        refused(text, &[expected]);
    }
    refused(
        "[agent.a]\nllm = \"demo\"\nmodel = \"demo\"\nstream = \"yes\"\nsystem = \"\"",
        &[
            "4: agent.a.stream: must be true or false, not a string",
            "5: agent.a.system: must not be empty",
        ],
    );
}

#[test]
fn secrets_in_the_file_are_refused_and_never_repeated() {
    let secret = "sk-abcdefghijklmnopqrstuvwxyz";
    let in_llm =
        "a secret must not be in the file; name its environment variable with `api_key_env`";
    let elsewhere = "a secret must not be in the file; set it in the environment";
    let cases = [
        (format!("[llm.a]\ntype = \"openai\"\napi_key = \"{secret}\""), "3: llm.a.api_key", in_llm),
        (
            format!("[llm.a]\ntype = \"openai\"\napi_key_env = \"{secret}\""),
            "3: llm.a.api_key_env",
            in_llm,
        ),
        ("[llm.a]\ntype = \"openai\"\ntoken = \"plain\"".to_owned(), "3: llm.a.token", in_llm),
        ("[serve]\npassword = \"plain\"".to_owned(), "2: serve.password", elsewhere),
        (format!("[serve]\ncors_origins = [\"{secret}\"]"), "2: serve.cors_origins[0]", elsewhere),
        (format!("name = \"{secret}\""), "1: name", elsewhere),
    ];
    for (text, place, words) in cases {
        refused(&text, &[&format!("{place}: {words}")]);
        assert!(!problems(&text).concat().contains(secret));
    }
    refused(
        "[llm.a]\ntype = \"openai\"\napi_key_env = \"my key\"",
        &["3: llm.a.api_key_env: must be the name of an environment variable: A-Z, 0-9 and _"],
    );
    refused(
        "[llm.a]\ntype = \"openai\"\nbase_url = \"https://me:word@host/v1\"",
        &["3: llm.a.base_url: must not hold a user name or password"],
    );
}

#[test]
fn all_problems_come_at_once_in_the_order_of_the_file() {
    refused(
        "[agent.a]\nllm = \"dmo\"\nmodel = 1\n\n[serve]\nlisten = \"x\"\n[limits]\nstreams_max = 0\n",
        &[
            "2: agent.a.llm: no such model block; did you mean `demo`?",
            "3: agent.a.model: must be a string, not a whole number",
            "6: serve.listen: must be an address and a port, such as 127.0.0.1:7171",
            "8: limits.streams_max: must be 1 to 1000000",
        ],
    );
}
