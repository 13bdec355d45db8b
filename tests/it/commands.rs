//! `turnd run` and `turnd check` as a person or a script calls them.

use serde_json::{Value, json};

use crate::kit::{Caller, Exit, Place, Server, recorded};

const TWO_AGENTS: &str = "[agent.first]\nllm = \"demo\"\nmodel = \"demo\"\n\
                          [agent.second]\nllm = \"demo\"\nmodel = \"demo\"\n\
                          retry.llm = { max_retries = 1 }\n";

fn json_lines(exit: &Exit) -> Vec<Value> {
    exit.stdout.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

/// What `run` made, as its own owner.
fn local(server: &Server) -> Caller {
    server.client("local")
}

#[test]
fn run_prints_the_reply_and_how_to_go_on() {
    let place = Place::new();
    let exit = place.run(&["run", "hello there"]);
    assert_eq!((exit.code, exit.stdout.as_str()), (Some(0), "You said: hello there\n"), "{exit:?}");
    let hint = exit.stderr.lines().last().unwrap();
    let session = hint.strip_prefix("(session ").and_then(|rest| rest.split_once(';')).unwrap().0;
    assert_eq!(hint, format!("(session {session}; continue with --session {session})"));

    let exit = place.run(&["run", "again", "--session", session]);
    assert_eq!((exit.code, exit.stdout.as_str()), (Some(0), "You said: again\n"));
    let server = place.serve();
    let said: Vec<String> =
        local(&server).conversation(session).into_iter().map(|(_, text)| text).collect();
    assert_eq!(said, ["hello there", "You said: hello there", "again", "You said: again"]);
}

#[test]
fn run_starts_a_session_under_the_id_that_it_is_given() {
    let place = Place::new();
    assert_eq!(place.run(&["run", "hi", "--session", "mine"]).code, Some(0));
    let exit = place.run(&["run", "hi", "--session", "not/one"]);
    assert_eq!(exit.code, Some(1));
    assert!(exit.stderr.contains("turnd: --session: must be 1 to 128 characters"), "{exit:?}");
    let server = place.serve();
    assert_eq!(local(&server).conversation("mine").len(), 2);
}

#[test]
fn run_prints_the_events_of_its_turn_as_json_lines() {
    let place = Place::new();
    assert_eq!(place.run(&["run", "one", "--session", "s1"]).code, Some(0));
    let exit = place.run(&["run", "two", "--session", "s1", "--json"]);
    assert_eq!(exit.code, Some(0));
    let lines = json_lines(&exit);
    let events: Vec<&Value> = lines.iter().filter(|line| line.get("payload").is_some()).collect();
    let kinds: Vec<&str> =
        events.iter().map(|event| event["payload"]["type"].as_str().unwrap()).collect();
    assert_eq!(kinds.first(), Some(&"turn.started"));
    assert_eq!(kinds.last(), Some(&"turn.completed"));
    assert!(!kinds.contains(&"session.created"), "the turn alone: {kinds:?}");
    let turn = events[0]["turn_id"].as_str().unwrap();
    assert_eq!(events.last().unwrap()["payload"]["data"], "You said: two");
    // Byte for byte what the stream says.
    let server = place.serve();
    let streamed = recorded(&server.machine().watch_turn("s1", turn));
    let data: Vec<&str> = streamed.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    let printed: Vec<&str> =
        exit.stdout.lines().filter(|line| !line.contains("llm.token.delta")).collect();
    assert_eq!(printed, data);
}

#[test]
fn run_asks_the_only_agent_or_the_one_that_is_named() {
    let place = Place::with_manifest(TWO_AGENTS);
    let exit = place.run(&["run", "hi"]);
    assert_eq!((exit.code, exit.stdout.as_str()), (Some(1), ""));
    assert_eq!(exit.stderr.trim_end(), "turnd: --agent: name one of: first, second");
    let exit = place.run(&["run", "hi", "--agent", "third"]);
    assert_eq!(exit.code, Some(1));
    let expected = "turnd: --agent: `third` is not declared; there are: first, second";
    assert_eq!(exit.stderr.trim_end(), expected);
    let exit = place.run(&["run", "hi", "--agent", "second"]);
    assert_eq!((exit.code, exit.stdout.as_str()), (Some(0), "You said: hi\n"));
}

#[test]
fn a_turn_that_fails_is_a_run_that_fails() {
    let place = Place::with_manifest(TWO_AGENTS);
    let exit = place.run(&["run", "/fail refused", "--agent", "second", "--session", "s1"]);
    assert_eq!((exit.code, exit.stdout.as_str()), (Some(1), ""), "{exit:?}");
    let told = exit.stderr.lines().find(|line| line.starts_with("turnd: "));
    assert!(told.is_some_and(|line| line.len() > 20), "{exit:?}");
    let exit = place.run(&["run", "/fail refused", "--agent", "second", "--json"]);
    assert_eq!(exit.code, Some(1));
    let last = json_lines(&exit).pop().unwrap();
    assert_eq!(last["payload"]["error"]["code"], "refused");
    // The session is fine.
    let exit = place.run(&["run", "hi", "--agent", "second", "--session", "s1"]);
    assert_eq!((exit.code, exit.stdout.as_str()), (Some(0), "You said: hi\n"));
    // Another agent cannot take it over.
    let exit = place.run(&["run", "hi", "--agent", "first", "--session", "s1"]);
    assert_eq!(exit.code, Some(1));
    assert!(exit.stderr.contains("agent mismatch: this session runs `second`"), "{exit:?}");
}

#[test]
fn run_says_that_it_tries_again() {
    let place = Place::with_manifest(
        "[agent.demo]\nllm = \"demo\"\nmodel = \"demo\"\n\
         retry.llm = { max_retries = 3, backoff_base_secs = 0.01 }\n",
    );
    let exit = place.run(&["run", "/fail rate_limited"]);
    assert_eq!((exit.code, exit.stdout.as_str()), (Some(1), ""), "{exit:?}");
    let told = exit.stderr.lines().filter(|line| line.ends_with("; trying again")).count();
    assert_eq!(told, 2, "{exit:?}");
}

#[test]
fn run_does_not_cut_into_a_turn_that_a_kill_interrupted() {
    let place = Place::with_manifest(
        "[agent.demo]\nllm = \"demo\"\nmodel = \"demo\"\nretry.llm = { backoff_base_secs = 0.01 }\n",
    );
    let server = place.serve();
    let client = local(&server);
    client.say("s1", "t1", "/slow 40 a b c d e f");
    client.stream("s1", "").until(crate::kit::Frame::is_delta);
    server.kill();
    // One turn at a time.
    let exit = place.run(&["run", "and now", "--session", "s1"]);
    assert_eq!(exit.code, Some(1));
    assert!(exit.stderr.contains("turn_already_active"), "{exit:?}");
    let server = place.serve();
    let frames = local(&server).watch_turn("s1", "t1");
    assert_eq!(frames.last().unwrap().payload()["data"], "You said: a b c d e f");
}

#[test]
fn a_wrong_command_line_is_told_from_a_failure() {
    let place = Place::new();
    for arguments in
        [&[][..], &["fly"], &["run"], &["serve", "--listen", "nowhere"], &["check", "--x"]]
    {
        let exit = place.run(arguments);
        assert_eq!((exit.code, exit.stdout.as_str()), (Some(2), ""), "{arguments:?}: {exit:?}");
        assert!(!exit.stderr.is_empty());
    }
    for arguments in
        [&["--help"][..], &["serve", "--help"], &["run", "--help"], &["check", "--help"]]
    {
        let exit = place.run(arguments);
        assert_eq!(exit.code, Some(0));
        let widest = exit.stdout.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= 80, "{widest} columns: {}", exit.stdout);
    }
    let exit = place.run(&["--version"]);
    assert_eq!(exit.stdout.trim_end(), concat!("turnd ", env!("CARGO_PKG_VERSION")));
}

#[test]
fn check_sums_up_a_good_configuration() {
    let place = Place::new();
    let exit = place.run(&["check"]);
    assert_eq!(exit.code, Some(0), "{exit:?}");
    assert_eq!(
        exit.stdout,
        "no turnd.toml: everything is at its default\nagent demo: demo / demo\n"
    );
    let place = Place::with_manifest(
        "[llm.openai]\ntype = \"openai\"\n[agent.a]\nllm = \"openai\"\nmodel = \"m\"\n",
    );
    let exit = place.run(&["check"]);
    assert_eq!(exit.code, Some(0), "a missing key is no fault of the file");
    assert_eq!(
        exit.stdout,
        "turnd.toml: ok\nagent a: openai / m (no key)\n\
         missing OPENAI_API_KEY: models of `openai` cannot be called\n"
    );
    let mut place = place;
    place.set("OPENAI_API_KEY", "sk-check-0123456789");
    assert_eq!(place.run(&["check"]).stdout, "turnd.toml: ok\nagent a: openai / m\n");
    let report: Value = serde_json::from_str(&place.run(&["check", "--json"]).stdout).unwrap();
    assert_eq!(report["ok"], true);
    assert_eq!(
        report["agents"],
        json!([{ "id": "a", "llm": "openai", "model": "m", "ready": true }])
    );
    // Nothing was started: there is no data.
    let fresh = Place::fresh();
    fresh.run(&["check"]);
    assert!(!fresh.data().exists());
}

#[test]
fn check_prints_every_problem_with_its_place() {
    let mut place = Place::with_manifest(
        "nmae = \"x\"\n[serve]\nshutdown_secs = 0\n[llm.x]\ntype = \"openai\"\n\
         api_key = \"sk-this-is-a-secret\"\n[agent.a]\nllm = \"y\"\nmodel = \"m\"\n",
    );
    place.set("TURND_API_KEY", "short-secret");
    place.set("TURND_LISTEN", "somewhere");
    let exit = place.run(&["check"]);
    assert_eq!(exit.code, Some(1));
    let lines: Vec<&str> = exit.stdout.lines().collect();
    for start in [
        "turnd.toml:1: nmae: unknown key; did you mean `name`?",
        "turnd.toml:3: serve.shutdown_secs: must be 1 to 600",
        "turnd.toml:6: llm.x.api_key: ",
        "turnd.toml:8: agent.a.llm: no such model block",
        "TURND_API_KEY: ",
        "TURND_LISTEN: must be an address and a port",
    ] {
        assert!(lines.iter().any(|line| line.starts_with(start)), "{start}: {lines:#?}");
    }
    assert_eq!(lines.len(), 6, "{lines:#?}");
    let report = place.run(&["check", "--json"]);
    assert_eq!(report.code, Some(1));
    let report: Value = serde_json::from_str(&report.stdout).unwrap();
    assert_eq!(report["ok"], false);
    assert_eq!(report["problems"].as_array().unwrap().len(), 6);
    // The server says the same and does not start.
    let refused = place.try_serve().err().unwrap();
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""));
    assert_eq!(refused.stderr.lines().collect::<Vec<_>>(), lines);
    for text in [exit.stdout, refused.stderr, report.to_string()] {
        assert!(!text.contains("sk-this") && !text.contains("short-secret"), "{text}");
    }
}

#[test]
fn a_manifest_that_is_named_must_be_there() {
    let mut place = Place::new();
    let exit = place.run(&["check", "--config", "no.toml"]);
    assert_eq!(exit.code, Some(1));
    assert!(exit.stdout.starts_with("cannot read the manifest no.toml: "), "{exit:?}");
    place.set("TURND_CONFIG", "no.toml");
    assert_eq!(place.run(&["check"]).code, Some(1));
    let refused = place.try_serve().err().unwrap();
    let text = "turnd: cannot start: cannot read the manifest no.toml: ";
    assert!(refused.stderr.starts_with(text), "{refused:?}");
}

#[test]
fn an_address_that_is_taken_is_told() {
    let server = Place::new().serve_once();
    let place = Place::new();
    let exit = place.run(&["serve", "--listen", &server.address.to_string()]);
    assert_eq!((exit.code, exit.stdout.as_str()), (Some(1), ""));
    let told = format!("turnd: cannot listen on {}: ", server.address);
    assert!(exit.stderr.lines().last().unwrap().starts_with(&told), "{exit:?}");
}

#[test]
fn run_prints_all_of_an_answer_to_a_reader_that_is_slow() {
    let place = Place::new();
    let program = place.command(&["run", "/long 20000"]);
    let program = [program.get_program()].into_iter().chain(program.get_args());
    let line: Vec<String> = program.map(|word| format!("'{}'", word.to_string_lossy())).collect();
    let slow = format!("{} 2>/dev/null | (sleep 1; wc -w)", line.join(" "));
    let mut shell = std::process::Command::new("sh");
    shell.current_dir(place.data().parent().unwrap()).args(["-c", &slow]);
    let words = String::from_utf8(shell.output().unwrap().stdout).unwrap();
    assert_eq!(words.trim(), "20000");
}
