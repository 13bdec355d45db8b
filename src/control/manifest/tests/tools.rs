//! The tools of an agent.

use super::*;
use crate::protocol::event::Handler;
use crate::protocol::tool::AgentTool;

const AGENT: &str = "[agent.a]\nllm = \"demo\"\nmodel = \"demo\"\n";

fn tools(text: &str) -> Vec<AgentTool> {
    let manifest = parsed(&format!("{AGENT}{text}"));
    manifest.agents["a"].config.tools.iter().map(|tool| (**tool).clone()).collect()
}

#[track_caller]
fn refused_tools(text: &str, expected: &[&str]) {
    refused(&format!("{AGENT}{text}"), expected);
}

fn input(text: &str) -> String {
    let tools = tools(&format!("[[agent.a.tools]]\nname = \"t\"\n{text}"));
    tools[0].input.as_ref().unwrap().text().to_owned()
}

#[test]
fn a_tool_is_handled_by_the_client() {
    let bare = |name: &str| AgentTool {
        name: name.to_owned(),
        description: None,
        input: None,
        output: None,
        handler: Handler::Client,
    };
    let full = AgentTool {
        description: Some("Shows it.".to_owned()),
        input: Json::parse("{}"),
        output: Json::parse(r#"{"type":"string"}"#),
        ..bare("show-It_1")
    };
    let sections = "[[agent.a.tools]]\nname = \"show-It_1\"\ndescription = \"Shows it.\"\n\
                    input = {}\noutput.type = \"string\"\nhandler = \"client\"\n\
                    [[agent.a.tools]]\nname = \"bare\"\n";
    assert_eq!(tools(sections), [full, bare("bare")]);
    assert_eq!(tools("tools = [{ name = \"x\" }, { name = \"y\" }]"), [bare("x"), bare("y")]);
    assert_eq!(tools("tools = []"), []);
    assert_eq!(tools(""), []);
}

#[test]
fn a_schema_becomes_json_in_the_order_of_the_file() {
    for (text, json) in [
        ("input.z = 1\ninput.a = 2", r#"{"z":1,"a":2}"#),
        (
            "[agent.a.tools.input]\ntype = \"object\"\nproperties.z.type = \"string\"\n\
             properties.b = { enum = [\"x\", 1, true, false, []] }\nrequired = [\"z\"]",
            r#"{"type":"object","properties":{"z":{"type":"string"},"b":{"enum":["x",1,true,false,[]]}},"required":["z"]}"#,
        ),
        (
            "input = { a = 1_000, b = +7, c = -0, d = 0xff, e = 1.50, f = 5e+22, g = +1_0.5 }",
            r#"{"a":1000,"b":7,"c":-0,"d":255,"e":1.50,"f":5e+22,"g":10.5}"#,
        ),
        (
            "input = { \"a\\n\\\"\" = \"\\u0001\\u00e9\\\\\", pattern = '^\\d+$' }",
            "{\"a\\n\\\"\":\"\\u0001\u{e9}\\\\\",\"pattern\":\"^\\\\d+$\"}",
        ),
    ] {
        assert_eq!(input(text), json);
    }
}

#[test]
fn a_tool_that_no_model_could_be_offered_is_refused() {
    let rule = "must be 1 to 64 characters of A-Z a-z 0-9 _ -";
    for name in ["a b", "a.b", "\u{e9}", &"x".repeat(65)] {
        let text = format!("[[agent.a.tools]]\nname = \"{name}\"");
        refused_tools(&text, &[&format!("5: agent.a.tools[0].name: {rule}")]);
    }
    assert_eq!(tools(&format!("[[agent.a.tools]]\nname = \"{}\"", "x".repeat(64))).len(), 1);
    let cases = [
        (
            "[[agent.a.tools]]",
            "4: agent.a.tools[0]: missing: `name`, by which the model calls the tool",
        ),
        ("[[agent.a.tools]]\nname = \"\"", "5: agent.a.tools[0].name: must not be empty"),
        (
            "[[agent.a.tools]]\nname = 7",
            "5: agent.a.tools[0].name: must be a string, not a whole number",
        ),
        ("tools = \"x\"", "4: agent.a.tools: must be a list of sections, not a string"),
        (
            "[agent.a.tools]\nname = \"x\"",
            "4: agent.a.tools: must be a list of sections, not a section",
        ),
        ("tools = [\n\"x\"]", "5: agent.a.tools[0]: must be a section, not a string"),
        (
            "[[agent.a.tools]]\nname = \"x\"\n[[agent.a.tools]]\nname = \"x\"",
            "7: agent.a.tools[1].name: listed twice",
        ),
    ];
    for (text, expected) in cases {
        refused_tools(text, &[expected]);
    }
    let worker = "must be \"client\": the tools that a worker handles come from the worker";
    let cases = [
        ("handler = \"worker\"", format!("handler: {worker}")),
        ("handler = \"server\"", format!("handler: {worker}")),
        ("description = 1", "description: must be a string, not a whole number".to_owned()),
        ("descripton = \"x\"", "descripton: unknown key; did you mean `description`?".to_owned()),
        (
            "strict = true",
            "strict: unknown key; known: `name`, `description`, `input`, `output`, `handler`"
                .to_owned(),
        ),
        (
            "input = \"{}\"",
            "input: must be a table, which is a JSON Schema, not a string".to_owned(),
        ),
        ("output = []", "output: must be a table, which is a JSON Schema, not a list".to_owned()),
    ];
    for (line, expected) in cases {
        let text = format!("[[agent.a.tools]]\nname = \"x\"\n{line}");
        refused_tools(&text, &[&format!("6: agent.a.tools[0].{expected}")]);
    }
}

#[test]
fn every_tool_is_looked_at() {
    refused_tools(
        "[[agent.a.tools]]\nname = \"x\"\nhandler = \"worker\"\n[[agent.a.tools]]\nnme = \"y\"",
        &[
            "6: agent.a.tools[0].handler: must be \"client\": \
             the tools that a worker handles come from the worker",
            "7: agent.a.tools[1]: missing: `name`, by which the model calls the tool",
            "8: agent.a.tools[1].nme: unknown key; did you mean `name`?",
        ],
    );
}

#[test]
fn tools_and_schemas_are_bounded_as_those_of_a_client() {
    let many = |count: usize| {
        let tool = |n: usize| format!("{{ name = \"t{n}\" }}");
        format!("tools = [{}]", (0..count).map(tool).collect::<Vec<_>>().join(","))
    };
    assert_eq!(tools(&many(256)).len(), 256);
    refused_tools(&many(257), &["4: agent.a.tools: must hold at most 256"]);

    let tool = |line: &str| format!("[[agent.a.tools]]\nname = \"x\"\n{line}");
    let nested = |depth: usize| {
        tool(&format!("input = {}1{}", "{ a = ".repeat(depth - 1), " }".repeat(depth - 1)))
    };
    assert_eq!(tools(&nested(16)).len(), 1);
    let deep = "6: agent.a.tools[0].input: must not be nested deeper than 16";
    refused_tools(&nested(17), &[deep]);
    refused_tools(&nested(70), &[deep]);

    let schema = |len: usize| tool(&format!("input.a = \"{}\"", "x".repeat(len - 8)));
    assert_eq!(tools(&schema(65_536)).len(), 1);
    let long = "must be at most 65536 bytes long";
    refused_tools(&schema(65_537), &[&format!("6: agent.a.tools[0].input: {long}")]);
    let description = |len: usize| tool(&format!("description = \"{}\"", "x".repeat(len)));
    assert_eq!(tools(&description(65_536)).len(), 1);
    refused_tools(&description(65_537), &[&format!("6: agent.a.tools[0].description: {long}")]);
}

#[test]
fn what_json_does_not_have_is_refused() {
    let expected = "6: agent.a.tools[0].input: must not hold a date, a time, inf or nan, which JSON does not have";
    for value in ["2024-01-01", "07:32:00", "inf", "-inf", "nan", "[{ b = +nan }]"] {
        let text = format!("[[agent.a.tools]]\nname = \"x\"\ninput = {{ a = {value} }}");
        refused_tools(&text, &[expected]);
    }
}
