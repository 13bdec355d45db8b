use std::path::Path;

use super::*;
use crate::config::Flags;

fn report(text: &str) -> Report {
    let manifest = Some((Path::new("turnd.toml"), text));
    Report::of(Config::resolve(&Flags::default(), &|_| None, manifest))
}

const MISSING_KEY: &str = "[llm.openai]\ntype = \"openai\"\n[agent.support]\nllm = \"openai\"\n\
                           model = \"gpt-mini\"\n[agent.quiet]\nllm = \"demo\"\nmodel = \"demo\"";

#[test]
fn a_good_file_is_summed_up_with_what_it_lacks() {
    assert_eq!(
        report(MISSING_KEY).text(),
        "turnd.toml: ok\n\
         agent quiet: demo / demo\n\
         agent support: openai / gpt-mini (no key)\n\
         missing OPENAI_API_KEY: models of `openai` cannot be called\n"
    );
}

#[test]
fn problems_come_one_per_line() {
    let report = report("nmae = 1\n[agent.a]\nllm = \"demo\"");
    assert!(!report.ok);
    assert_eq!(
        report.text(),
        "turnd.toml:1: nmae: unknown key; did you mean `name`?\n\
         turnd.toml:2: agent.a: missing: `model`, which an agent with an `llm` needs\n"
    );
}

#[test]
fn json_says_the_same() {
    let good: serde_json::Value = serde_json::from_str(&report(MISSING_KEY).json()).unwrap();
    let expected = serde_json::json!({
        "ok": true,
        "manifest": "turnd.toml",
        "problems": [],
        "agents": [
            { "id": "quiet", "llm": "demo", "model": "demo", "ready": true },
            { "id": "support", "llm": "openai", "model": "gpt-mini", "ready": false },
        ],
        "missing": [{ "llm": "openai", "variable": "OPENAI_API_KEY" }],
        "warnings": [],
    });
    assert_eq!(good, expected);

    let bad: serde_json::Value = serde_json::from_str(&report("\nnmae = 1").json()).unwrap();
    let problem = serde_json::json!([{
        "file": "turnd.toml",
        "line": 2,
        "key": "nmae",
        "problem": "unknown key; did you mean `name`?",
    }]);
    assert_eq!((&bad["ok"], &bad["problems"]), (&false.into(), &problem));
}

#[test]
fn a_file_that_cannot_be_read_is_a_problem() {
    let flags = Flags { config: Some("no/such/file".into()), ..Flags::default() };
    let report = Report::of(Config::load(&flags, &|_| None));
    assert!(!report.ok);
    assert!(report.text().starts_with("cannot read the manifest no/such/file: "));
}

#[test]
fn lines_fit_a_terminal_and_lose_no_word() {
    let text = report("[serve]\ncors_origins = [\"a/b\"]\n").text();
    let wrapped = wrap(&text);
    assert!(text.lines().any(|line| line.chars().count() > COLUMNS));
    assert!(wrapped.lines().all(|line| line.chars().count() <= COLUMNS), "{wrapped}");
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&wrapped), words(&text));
}

#[test]
fn the_command_line_is_consistent() {
    use clap::CommandFactory;
    crate::cli::Cli::command().debug_assert();
}
