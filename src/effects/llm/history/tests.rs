use super::*;
use crate::effects::llm::kit::{asking, blobs, id, result, user};

/// One line for each step.
fn lines(messages: Vec<Message>) -> Vec<String> {
    let messages: Vec<Arc<Message>> = messages.into_iter().map(Arc::new).collect();
    let line = |step: Step<'_>| match step {
        Step::System { name, text } => format!("system {name:?} {text}"),
        Step::User { name, said } => format!("user {name:?} {}", Piece::join(said)),
        Step::Assistant { name, text, calls } => {
            let made: Vec<String> =
                calls.iter().map(|call| format!(" {}({})", call.name, call.arguments)).collect();
            format!("assistant {name:?} {text}{}", made.concat())
        }
        Step::Results(results) => {
            let given: Vec<String> = results
                .into_iter()
                .map(|result| format!("{}: {}", result.call == &id(0), Piece::join(result.said)))
                .collect();
            given.join(" | ")
        }
    };
    let blobs = blobs();
    steps(&messages, &blobs).into_iter().map(line).collect()
}

#[test]
fn results_stand_behind_their_calls_in_the_order_of_the_calls() {
    let calls = asking("let me see", &[("a", "{}"), ("b", r#"{ "x":1 }"#)]);
    let found = lines(vec![user("hi"), calls, result(1, "two"), result(0, "one"), user("and?")]);
    let expected = [
        "user None hi",
        r#"assistant None let me see a({}) b({ "x":1 })"#,
        "true: one | false: two",
        "user None and?",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_call_without_a_result_gets_one_and_a_result_without_a_call_is_left_out() {
    let calls = asking("", &[("a", "{}"), ("b", "{}")]);
    let found = lines(vec![result(5, "lost"), calls, result(0, "one"), user("go on")]);
    let expected = [
        "assistant None  a({}) b({})",
        "true: one | false: No result of this call was recorded.",
        "user None go on",
    ];
    assert_eq!(found, expected);
}

#[test]
fn the_first_result_of_a_call_counts() {
    let found = lines(vec![asking("", &[("a", "{}")]), result(0, "one"), result(0, "two")]);
    assert_eq!(found[1..], ["true: one"]);
}

#[test]
fn an_id_that_is_used_again_has_a_result_for_each_use() {
    let calls = || asking("", &[("a", "{}")]);
    let none = "true: No result of this call was recorded.";
    for (messages, given) in [
        (vec![calls(), result(0, "one"), calls(), result(0, "two")], ["true: one", "true: two"]),
        (vec![calls(), calls(), result(0, "two"), result(0, "three")], [none, "true: two"]),
        (vec![calls(), result(0, "one"), user("and?"), calls()], ["true: one", none]),
    ] {
        let mut found = lines(messages);
        found.retain(|line| line.starts_with("true"));
        assert_eq!(found, given);
    }
}

#[test]
fn calls_in_messages_of_their_own_find_their_results_behind_the_last() {
    let first = asking("", &[("a", "{}")]);
    let mut second = asking("", &[("_", "{}"), ("b", "{}")]);
    second.tool_calls.remove(0);
    let found = lines(vec![first, second, result(0, "one"), result(1, "two")]);
    let expected = ["assistant None  a({})", "true: one", "assistant None  b({})", "false: two"];
    assert_eq!(found, expected);
}

#[test]
fn arguments_are_always_an_object() {
    let deep = format!("{}1{}", r#"{"a":"#.repeat(200), "}".repeat(200));
    for (written, sent) in [
        (r#"{"b": 1, "a": 1.0}"#, r#"{"b": 1, "a": 1.0}"#),
        ("", "{}"),
        (" \n", "{}"),
        (r#"{"a":"#, r#"{"malformed_arguments":"{\"a\":"}"#),
        ("[1]", r#"{"malformed_arguments":"[1]"}"#),
        ("null", r#"{"malformed_arguments":"null"}"#),
    ] {
        assert_eq!(object(written), sent);
    }
    assert!(object(&deep).starts_with(r#"{"malformed_arguments":"#));
}

#[test]
fn names_are_plain() {
    let mut speaker = user("hi");
    for (name, sent) in [("ann-1_B", Some("ann-1_B")), ("Ann B", None), ("", None)] {
        speaker.name = Some(name.to_owned());
        assert_eq!(lines(vec![speaker.clone()]), [format!("user {sent:?} hi")]);
    }
    for (name, sent) in [("get.the weather", "get_the_weather"), ("\u{e9}", "_"), ("", "_")] {
        assert_eq!(plain(name), sent);
    }
    assert_eq!(plain(&"x".repeat(70)), "x".repeat(64));
}
