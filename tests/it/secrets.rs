//! No credential is in any answer, event, log line or error (A10).

use serde_json::json;

use crate::kit::{API_KEY, Place, Provider, message, recorded};

const PROVIDER_KEY: &str = "sk-provider-7f3a9c1e5b";
const TOKEN_KEY: &str = "token-signing-key-0123456789abcdef";

fn hides(what: &str, text: &str, secrets: &[&str]) {
    for secret in secrets {
        assert!(!text.contains(secret), "{what} shows {secret}: {text}");
    }
}

fn data_hides(place: &Place, secrets: &[&str]) {
    let entries = std::fs::read_dir(place.data()).unwrap().map(Result::unwrap);
    for file in entries.filter(|entry| entry.file_type().unwrap().is_file()) {
        let bytes = std::fs::read(file.path()).unwrap();
        for secret in secrets {
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{} holds {secret}", file.path().display());
        }
    }
}

#[test]
fn no_credential_is_in_any_answer_event_or_log_line() {
    let provider = Provider::start();
    let manifest = format!(
        "[llm.local]\ntype = \"openai\"\nbase_url = \"{}\"\napi_key_env = \"SHOP_KEY\"\n\
         [agent.demo]\nllm = \"local\"\nmodel = \"m\"\n\
         retry.llm = {{ max_retries = 3, backoff_base_secs = 0.01 }}\n",
        provider.base_url()
    );
    let mut place = Place::with_manifest(&manifest);
    place.set("SHOP_KEY", PROVIDER_KEY);
    place.set("TURND_CLIENT_TOKEN_KEY", TOKEN_KEY);
    place.set("TURND_LOG", "trace");
    let server = place.serve();
    let (ann, machine) = (server.client("ann"), server.machine());
    let token = ann.bearer.clone().unwrap();
    let wrong = "tk_wrongwrong_and-a-long-guess-at-a-key";
    let secrets = [API_KEY, TOKEN_KEY, PROVIDER_KEY, &token, wrong];

    // A provider that repeats the key in everything it says wrong.
    let echo = format!("Incorrect API key provided: {PROVIDER_KEY}. See Authorization: Bearer");
    let told = json!({ "error": { "message": echo, "type": PROVIDER_KEY, "code": PROVIDER_KEY } });
    let mut answers = Vec::new();
    for (number, status) in ["401 Unauthorized", "400 Bad Request", "302 Found"].iter().enumerate()
    {
        let turn = format!("t{number}");
        answers.push(ann.input(&message("s1", &turn, "hello")).text());
        let call = provider.call();
        assert!(call.head.to_lowercase().contains(&format!("bearer {PROVIDER_KEY}")), "it is used");
        call.fail(status, &told);
        answers.push(recorded(&machine.watch_turn("s1", &turn)));
    }
    ann.say("s1", "t5", "hello");
    provider.call().fail("500 Oh No", &told);
    drop(provider.call());
    let mut call = provider.call();
    call.begin();
    call.piece("half");
    drop(call);
    answers.push(recorded(&machine.watch_turn("s1", "t5")));

    // Refusals of every kind.
    for caller in [&ann, &machine] {
        let guesser = crate::kit::Caller { bearer: Some(wrong.to_owned()), ..caller.clone() };
        answers.push(guesser.no_stream("s1", "", &[]).text());
        answers.push(guesser.post("/api/machine/client-tokens", &json!({})).text());
        answers.push(caller.post_text("/api/machine/client-tokens", "{").text());
        answers.push(caller.post_text("/api/client/sessions/input", "{").text());
        answers.push(caller.input(&json!({ "input": { "type": API_KEY.len() } })).text());
        answers.push(caller.get("/none").text());
        answers.push(caller.no_stream("s2", "?after_seq=x", &[]).text());
        answers.push(caller.get(&format!("/api/client/sessions/s1?token={token}")).text());
    }
    answers.push(ann.session("s1").to_string());
    answers.push(server.stdout());
    for answer in &answers {
        hides("an answer", answer, &secrets);
    }
    server.terminate();
    let exit = server.exit();
    assert_eq!(exit.code, Some(0));
    assert!(exit.stderr.lines().count() > 5, "it logs something: {}", exit.stderr);
    hides("the log", &exit.stderr, &secrets);

    // The signing key is the operator's own here; else the folder would hold it.
    data_hides(&place, &secrets);
}

#[test]
fn a_key_that_the_server_made_is_nowhere_but_in_the_greeting() {
    let mut place = Place::fresh();
    place.set("TURND_API_KEY", "");
    place.set("TURND_LOG", "trace");
    let server = place.serve();
    let greeting = server.stdout();
    let key = greeting.lines().find_map(|line| line.strip_prefix("export TURND_KEY=")).unwrap();
    let bearer = Some(key.to_owned());
    let machine = crate::kit::Caller { address: server.address, bearer, api: "machine" };
    let minted =
        machine.post("/api/machine/client-tokens", &json!({ "identity": { "id": "ann" } }));
    minted.expect(200);
    hides("an answer", &minted.text(), &[key]);
    server.terminate();
    hides("the log", &server.exit().stderr, &[key]);
    data_hides(&place, &[key]);
}

#[test]
fn the_log_is_one_json_object_a_line_whatever_callers_send() {
    let mut place = Place::new();
    place.set("TURND_LOG", "trace");
    let server = place.serve();
    let ann = server.client("ann\u{2028}{\"level\":\"x\"}");
    ann.say("s1", "t1", "line\n{\"level\":\"ERROR\"}\r\n");
    ann.watch_turn("s1", "t1");
    ann.get("/none%0a%7b%22level%22%7d");
    server.terminate();
    for line in server.exit().stderr.lines() {
        let parsed: serde_json::Value = serde_json::from_str(line).expect(line);
        assert!(parsed["timestamp"].is_string() && parsed["level"].is_string(), "{line}");
    }
}
