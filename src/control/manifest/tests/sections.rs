//! What each section takes and refuses.

use super::*;

#[test]
fn limits_hold_to_the_table_of_the_docs() {
    let (_, rest) = DOCS.split_once("### `[limits]`").unwrap();
    let (table, _) = rest.split_once("###").unwrap();
    let mut rows = 0;
    let mut all_defaults = String::from("[limits]\n");
    for row in table.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let key = cells[1].trim_matches('`');
        let (min, max) = cells[3].split_once(" to ").unwrap();
        let (min, max): (u64, u64) = (min.parse().unwrap(), max.parse().unwrap());
        let expected = format!("2: limits.{key}: must be {min} to {max}");
        parsed(&format!("[limits]\n{key} = {min}"));
        parsed(&format!("[limits]\n{key} = {max}"));
        refused(&format!("[limits]\n{key} = {}", max + 1), &[&expected]);
        match min.checked_sub(1) {
            Some(below) => refused(&format!("[limits]\n{key} = {below}"), &[&expected]),
            None => assert!(key.ends_with("_per_second"), "only a rate takes 0"),
        }
        all_defaults.push_str(&[key, " = ", cells[2], "\n"].concat());
        rows += 1;
    }
    assert_eq!(rows, 15);
    assert_eq!(parsed(&all_defaults).limits, Limits::default());
}

#[test]
fn every_limit_reaches_its_field() {
    let limits = parsed(
        "[limits]\nbody_bytes_max = 5001\njson_depth_max = 52\nmessage_bytes_max = 5003\n\
         header_count_max = 54\nheader_bytes_max = 10_005\nhead_secs_max = 56\n\
         keep_alive_secs = 57\nconnections_max = 58\nconnections_per_address_max = 59\n\
         streams_max = 60\nqueued_turns_max = 61\nevent_bytes_max = 0x8000\n\
         inputs_per_second = 0\nmints_per_second = 64\nreads_per_second = 65\n",
    )
    .limits;
    let expected = Limits {
        body_bytes_max: 5001,
        json_depth_max: 52,
        message_bytes_max: 5003,
        header_count_max: 54,
        header_bytes_max: 10_005,
        head_max: Duration::from_secs(56),
        keep_alive: Duration::from_secs(57),
        connections_max: 58,
        connections_per_address_max: 59,
        streams_max: 60,
        queued_turns_max: 61,
        event_bytes_max: 0x8000,
        inputs_per_second: 0,
        mints_per_second: 64,
        reads_per_second: 65,
    };
    assert_eq!(limits, expected);
}

#[test]
fn addresses_urls_and_origins_are_checked() {
    let address = "2: serve.listen: must be an address and a port, such as 127.0.0.1:7171";
    for text in ["localhost:80", "127.0.0.1", ":80", "127.0.0.1:70000"] {
        refused(&format!("[serve]\nlisten = \"{text}\""), &[address]);
    }
    parsed("[serve]\nlisten = \"[::1]:0\"");

    let url = "2: serve.public_url: must be an http:// or https:// URL, without a query";
    for text in ["ftp://a", "a.b", "https://", "https://a/?q", "https://a/#f", "https://a b"] {
        refused(&format!("[serve]\npublic_url = \"{text}\""), &[url]);
    }
    for text in ["https://user:word@a.b/", "HTTPS://user@a.b", "http://a:b@", "https://@a"] {
        let expected = "2: serve.public_url: must not hold a user name or password";
        refused(&format!("[serve]\npublic_url = \"{text}\""), &[expected]);
    }
    let manifest = parsed("[serve]\npublic_url = \"https://a.b/chat@home/\"");
    assert_eq!(manifest.serve.public_url.as_deref(), Some("https://a.b/chat@home"));

    let origin = "2: serve.cors_origins[0]: \
                  must be \"*\" or an origin such as https://example.com, without a path";
    for text in ["https://a.b/", "a.b", "https://", "null", "https://*.a b", "://a"] {
        refused(&format!("[serve]\ncors_origins = [\"{text}\"]"), &[origin]);
    }
    refused(
        "[serve]\ncors_origins = [\"http://a\", \"http://A\"]",
        &["2: serve.cors_origins[1]: listed twice"],
    );
    let manifest =
        parsed("[serve]\ncors_origins = [\"capacitor://Localhost\", \"http://[::1]:3000\"]");
    assert_eq!(manifest.serve.cors_origins, ["capacitor://localhost", "http://[::1]:3000"]);
}

#[test]
fn a_model_block_says_its_type_and_nothing_useless() {
    refused(
        "[llm.a]\nbase_url = \"http://a\"",
        &["1: llm.a: missing: `type`, one of \"demo\", \"openai\", \"anthropic\""],
    );
    refused("[llm.a]\ntype = \"opneai\"", &["2: llm.a.type: no such type; did you mean `openai`?"]);
    refused(
        "[llm.a]\ntype = \"bedrock\"",
        &["2: llm.a.type: no such type; known: `demo`, `openai`, `anthropic`"],
    );
    refused(
        "[llm.demo]\ntype = \"openai\"",
        &["2: llm.demo.type: must be \"demo\": this block is the built-in model"],
    );
    refused(
        "[llm.a]\ntype = \"demo\"\nbase_url = \"http://a\"\nprice.m = { input = 1, output = 1 }",
        &[
            "3: llm.a.base_url: has no use with type \"demo\"",
            "4: llm.a.price: has no use with type \"demo\"",
        ],
    );
    refused(
        "[llm.\"a b\"]\ntype = \"openai\"",
        &["1: llm.\"a b\": must be 1 to 128 characters of A-Z a-z 0-9 . _ : - ~ @ + ="],
    );
    parsed("[llm.demo]\ntype = \"demo\"");
}

#[test]
fn a_vendors_key_goes_to_the_vendor_only() {
    let variable = |lines: &str| {
        let manifest = parsed(&format!("[llm.a]\n{lines}"));
        manifest.llms["a"].api_key_env.clone()
    };
    assert_eq!(variable("type = \"anthropic\"").as_deref(), Some("ANTHROPIC_API_KEY"));
    let vendor = "type = \"openai\"\nbase_url = \"https://api.openai.com/v1/\"";
    assert_eq!(variable(vendor).as_deref(), Some("OPENAI_API_KEY"));
    assert_eq!(variable("type = \"openai\"\nbase_url = \"https://other.example/v1\""), None);
    let named = "type = \"openai\"\nbase_url = \"https://other.example\"\napi_key_env = \"OTHER\"";
    assert_eq!(variable(named).as_deref(), Some("OTHER"));
}

#[test]
fn prices_are_exact_and_bounded() {
    let price = |text: &str| format!("[llm.a]\ntype = \"openai\"\nprice.m = {text}");
    let manifest = parsed(&price("{ input = 0.1, output = 1_000.000_001, cached_input = 5e-2 }"));
    let read = manifest.llms["a"].prices["m"];
    assert_eq!(read.input.to_string(), "0.1");
    assert_eq!(read.output.to_string(), "1000.000001");
    assert_eq!(read.cached_input.map(|price| price.to_string()).as_deref(), Some("0.05"));

    let incomplete = "3: llm.a.price.m: missing: a price is `{ input = .., output = .. }`";
    refused(&price("{ input = 1 }"), &[incomplete]);
    for wrong in ["-1", "nan", "inf", "1000001", "1e400", "0.00000000000000000000000000001"] {
        let expected = "3: llm.a.price.m.input: must be a number of dollars from 0 to 1000000";
        refused(&price(&format!("{{ input = {wrong}, output = 1 }}")), &[expected]);
    }
    refused(
        &price("{ input = \"1\", output = 1 }"),
        &["3: llm.a.price.m.input: must be a number, not a string"],
    );
}

#[test]
fn an_agent_needs_a_model_of_a_block_that_is_there() {
    refused(
        "[agent.a]\nmodel = \"m\"",
        &["1: agent.a: missing: `llm`, the model block that the agent runs on"],
    );
    refused(
        "[agent.a]\nllm = \"demo\"",
        &["1: agent.a: missing: `model`, which an agent with an `llm` needs"],
    );
    refused(
        "[llm.openai]\ntype = \"openai\"\n[agent.a]\nllm = \"opnai\"\nmodel = \"m\"",
        &["4: agent.a.llm: no such model block; did you mean `openai`?"],
    );
    refused(
        "[agent.a]\nllm = \"elsewhere\"\nmodel = \"m\"",
        &["2: agent.a.llm: no such model block; known: `demo`"],
    );
    refused(
        "[llm.x]\ntype = \"worker\"\n[agent.a]\nllm = \"x\"\nmodel = \"m\"",
        &[&later_words("2: llm.x.type", "worker", "workers")],
    );
    let long = "m".repeat(257);
    refused(
        &format!("[agent.a]\nllm = \"demo\"\nmodel = \"{long}\""),
        &["3: agent.a.model: must be at most 256 characters without control characters"],
    );
}

#[test]
fn retry_policies_are_bounded() {
    let policy =
        |text: &str| format!("[agent.a]\nllm = \"demo\"\nmodel = \"demo\"\nretry.llm.{text}");
    let cases = [
        ("max_retries = 0", "max_retries: must be 1 to 100"),
        ("timeout_secs = 0", "timeout_secs: must be a number of seconds from 0.001 to 604800"),
        ("timeout_secs = -1", "timeout_secs: must be a number of seconds, or \"never\""),
        ("timeout_secs = \"soon\"", "timeout_secs: must be a number of seconds, or \"never\""),
        ("timeout_secs = false", "timeout_secs: must be a number of seconds, or \"never\""),
        (
            "backoff_base_secs = -0.5",
            "backoff_base_secs: must be a number of seconds from 0 to 604800",
        ),
        (
            "backoff_max_secs = 604801",
            "backoff_max_secs: must be a number of seconds from 0 to 604800",
        ),
        (
            "backoff_max_secs = nan",
            "backoff_max_secs: must be a number of seconds from 0 to 604800",
        ),
        ("backoff_max_secs = \"1\"", "backoff_max_secs: must be a number of seconds, not a string"),
    ];
    for (text, expected) in cases {
        refused(&policy(text), &[&format!("4: agent.a.retry.llm.{expected}")]);
    }
    let manifest = parsed(&policy("timeout_secs = 0.25"));
    let timeout = manifest.agents["a"].config.retry.timeout_secs;
    assert_eq!(timeout, Some(Seconds::from_millis(250)));
}
