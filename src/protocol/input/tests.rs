//! Every body that is taken, and for every one that is not, the text that its sender reads.

mod others;

use super::*;
use crate::protocol::content::{Content, ContentPart};
use crate::protocol::json::{DEPTH_MAX, decode};
use crate::protocol::message::{FunctionCall, FunctionTag, Role, ToolCall};

/// Longest text in these tests, in bytes.
const TEXT_MAX: usize = 20;

fn client(body: &str) -> Result<Submit, DecodeError> {
    decode(body.as_bytes(), DEPTH_MAX, |root| Submit::read_client(root, TEXT_MAX))
}

fn machine(body: &str) -> Result<(Submit, Identity), DecodeError> {
    decode(body.as_bytes(), DEPTH_MAX, |root| Submit::read_machine(root, TEXT_MAX))
}

fn token(body: &str) -> Result<TokenRequest, DecodeError> {
    decode(body.as_bytes(), DEPTH_MAX, TokenRequest::read)
}

/// The turn that a submit asks for.
#[track_caller]
fn turn(submit: Submit) -> TurnRequest {
    match submit.body {
        SubmitBody::Turn(turn) => *turn,
        SubmitBody::Resume { .. } | SubmitBody::Settle(_) => panic!("no turn: {submit:?}"),
    }
}

/// All of a `client.message`.
#[track_caller]
fn client_message(submit: Submit) -> MessageInput {
    let input = turn(submit).input;
    let Input::Message(input) = input else { panic!("{input:?}") };
    input
}

/// A client body whose input is a good `client.message`, with `fields` before the others.
fn message_with(fields: &str) -> String {
    let fields = [fields, r#""role":"user""#].join(if fields.is_empty() { "" } else { "," });
    input_with("", &format!("{{{fields}}}"))
}

fn input_with(fields: &str, message: &str) -> String {
    format!(
        r#"{{"input":{{{fields}"type":"client.message","agent_id":"helper","message":{message}}}}}"#
    )
}

#[derive(Debug, PartialEq)]
enum Class {
    Malformed400,
    Shape422,
    Range400,
}

fn class(error: &DecodeError) -> Class {
    match error {
        DecodeError::Malformed(_) => Class::Malformed400,
        DecodeError::Shape { .. } => Class::Shape422,
        DecodeError::Range { .. } => Class::Range400,
    }
}

#[track_caller]
fn refused<T: std::fmt::Debug>(actual: Result<T, DecodeError>, expected: Class, text: &str) {
    let error = actual.unwrap_err();
    assert_eq!((error.to_string().as_str(), class(&error)), (text, expected));
}

use Class::{Malformed400, Range400, Shape422};

const ID_RULE: &str = "must be 1 to 128 characters of A-Z a-z 0-9 . _ : - ~ @ + =";

#[test]
fn the_smallest_client_body_is_taken() {
    let submit = client(&message_with("")).unwrap();
    let message = Message {
        id: None,
        role: Role::User,
        content: None,
        tool_calls: vec![],
        tool_call_id: None,
        name: None,
    };
    let turn = TurnRequest {
        agent_id: AgentId::parse("helper").unwrap(),
        turn_id: None,
        queue: false,
        input: Input::Message(MessageInput { message, stream: None }),
    };
    let expected = Submit {
        session_id: None,
        conditions: Conditions::default(),
        body: SubmitBody::Turn(Box::new(turn)),
        uploads: vec![],
    };
    assert_eq!(submit, expected);
}

#[test]
fn a_full_client_body_is_taken_and_what_is_unknown_is_passed_over() {
    let submit = client(
        r#"{
            "session_id": "s:1", "later": {"a": [1]},
            "input": {
                "turn_id": "t@1", "agent_id": "helper", "queue": true, "stream": false,
                "type": "client.message", "identity": {"id": "eve"},
                "message": {
                    "id": "m=1", "role": "tool", "tool_call_id": "c~1", "name": "weather",
                    "content": [{"type": "text", "text": "a"}, {"text": "b", "type": "text", "x": 1}],
                    "tool_calls": [{"id": "c1", "type": "function", "index": 0, "function":
                        {"name": "clock", "arguments": "{", "strict": true}}]
                }
            }
        }"#,
    )
    .unwrap();
    assert_eq!(submit.session_id, Some(SessionId::parse("s:1").unwrap()));
    let turn = turn(submit);
    assert_eq!(turn.turn_id, Some(TurnId::parse("t@1").unwrap()));
    assert!(turn.queue);
    let Input::Message(MessageInput { message, stream }) = turn.input else {
        panic!("{:?}", turn.input);
    };
    assert_eq!(stream, Some(false));
    assert_eq!(message.role, Role::Tool);
    assert_eq!(message.name.as_deref(), Some("weather"));
    let function = FunctionCall { name: "clock".to_owned(), arguments: "{".to_owned() };
    let id = CallId::parse("c1").unwrap();
    assert_eq!(message.tool_calls, [ToolCall { id, kind: FunctionTag::Function, function }]);
    let text = |text: &str| ContentPart::Text { text: text.to_owned() };
    assert_eq!(message.content, Some(Content::Parts(vec![text("a"), text("b")])));
}

#[test]
fn null_is_absent() {
    let body = r#"{"session_id":null,"input":{"turn_id":null,"queue":null,"stream":null,
        "type":"client.message","agent_id":"helper",
        "message":{"id":null,"role":"user","content":null,"tool_call_id":null,"name":null}}}"#;
    assert_eq!(client(body).unwrap(), client(&message_with("")).unwrap());
}

#[test]
fn every_role_is_read_by_its_name() {
    for (name, role) in [
        ("system", Role::System),
        ("user", Role::User),
        ("assistant", Role::Assistant),
        ("tool", Role::Tool),
    ] {
        let submit = client(&input_with("", &format!(r#"{{"role":"{name}"}}"#))).unwrap();
        assert_eq!(client_message(submit).message.role, role);
    }
}

#[test]
fn a_client_body_of_another_shape_names_the_field() {
    let object = "must be an object";
    for (body, path, problem) in [
        ("7".to_owned(), "body", object),
        ("[]".to_owned(), "body", object),
        ("null".to_owned(), "body", object),
        ("{}".to_owned(), "input", "is missing"),
        (r#"{"input":[]}"#.to_owned(), "input", object),
        (r#"{"input":{}}"#.to_owned(), "input.type", "is missing"),
        (r#"{"input":{"agent_id":"a"}}"#.to_owned(), "input.type", "is missing"),
        (r#"{"input":{"type":"client.message"}}"#.to_owned(), "input.agent_id", "is missing"),
        (r#"{"input":{"agent_id":7}}"#.to_owned(), "input.agent_id", "must be a string"),
        (
            r#"{"session_id":7,"input":{"agent_id":"a"}}"#.to_owned(),
            "session_id",
            "must be a string",
        ),
        (r#"{"input":{"agent_id":"a","type":7}}"#.to_owned(), "input.type", "must be a string"),
    ] {
        refused(client(&body), Shape422, &format!("`{path}` {problem}"));
    }
}

#[test]
fn an_input_of_another_shape_names_the_field() {
    let object = "must be an object";
    let good = r#"{"role":"user"}"#;
    for (body, path, problem) in [
        (input_with(r#""turn_id":{},"#, good), "input.turn_id", "must be a string"),
        (input_with(r#""queue":"yes","#, good), "input.queue", "must be true or false"),
        (input_with(r#""queue":1,"#, good), "input.queue", "must be true or false"),
        (input_with(r#""stream":0,"#, good), "input.stream", "must be true or false"),
        (input_with(r#""type":"client.message","#, good), "input.type", "stands twice"),
        (input_with("", "null"), "input.message", "is missing"),
        (input_with("", "\"hi\""), "input.message", object),
        (input_with("", "{}"), "input.message.role", "is missing"),
        (input_with("", r#"{"role":1}"#), "input.message.role", "must be a string"),
        (input_with("", r#"{"role":"User"}"#), "input.message.role", "`User` is not a role"),
        (
            input_with("", r#"{"role":"developer"}"#),
            "input.message.role",
            "`developer` is not a role",
        ),
    ] {
        refused(client(&body), Shape422, &format!("`{path}` {problem}"));
    }
}

#[test]
fn an_input_of_another_type_is_named() {
    for kind in ["client.stop", "session.start", "", "Client.Message"] {
        let body = format!(r#"{{"input":{{"agent_id":"a","type":"{kind}"}}}}"#);
        let text = format!("`input.type` `{kind}` is not an input");
        refused(client(&body), Shape422, &text);
    }
}

#[test]
fn a_message_of_another_shape_names_the_field() {
    for (fields, path, problem) in [
        (r#""id":7"#, "id", "must be a string"),
        (r#""content":7"#, "content", "must be a string or an array of content parts"),
        (r#""content":{}"#, "content", "must be a string or an array of content parts"),
        (r#""content":["hi"]"#, "content[0]", "must be an object"),
        (r#""content":[{"type":"text","text":"a"},{}]"#, "content[1].type", "is missing"),
        (r#""content":[{"type":"text"}]"#, "content[0].text", "is missing"),
        (r#""content":[{"type":"text","text":1}]"#, "content[0].text", "must be a string"),
        (r#""content":[{"type":1}]"#, "content[0].type", "must be a string"),
        (r#""content":[{"type":"image"}]"#, "content[0].type", "`image` is not a content type"),
        (r#""tool_call_id":[]"#, "tool_call_id", "must be a string"),
        (r#""name":true"#, "name", "must be a string"),
        (r#""role":"user""#, "role", "stands twice"),
        (r#""tool_calls":{}"#, "tool_calls", "must be an array"),
        (r#""tool_calls":[{"id":"c1"}]"#, "tool_calls[0].function", "is missing"),
        (r#""tool_calls":[{"id":"c1","type":"x"}]"#, "tool_calls[0].type", "must be `function`"),
        (r#""tool_calls":[{"id":"c","function":{}}]"#, "tool_calls[0].function.name", "is missing"),
    ] {
        let text = format!("`input.message.{path}` {problem}");
        refused(client(&message_with(fields)), Shape422, &text);
    }
}

#[test]
fn an_id_outside_the_rule_is_out_of_range() {
    for id in ["", "a b", "../x", "a/b", "%00", "\\u0000", "a\\n", "\\u00e9", &"x".repeat(129)] {
        let good = r#"{"role":"user"}"#;
        let session = format!(r#"{{"session_id":"{id}","input":{{"agent_id":"a"}}}}"#);
        let agent = format!(r#"{{"input":{{"agent_id":"{id}"}}}}"#);
        let turn = input_with(&format!(r#""turn_id":"{id}","#), good);
        let message = message_with(&format!(r#""id":"{id}""#));
        let call = message_with(&format!(r#""tool_call_id":"{id}""#));
        for (body, path) in [
            (session, "session_id"),
            (agent, "input.agent_id"),
            (turn, "input.turn_id"),
            (message, "input.message.id"),
            (call, "input.message.tool_call_id"),
        ] {
            refused(client(&body), Range400, &format!("`{path}` {ID_RULE}"));
        }
    }
    let longest = "x".repeat(128);
    assert!(client(&message_with(&format!(r#""id":"{longest}""#))).is_ok());
}

#[test]
fn a_text_is_as_long_as_it_may_be_in_bytes() {
    let body = |text: &str| message_with(&format!(r#""content":"{text}""#));
    assert!(client(&body(&"x".repeat(TEXT_MAX))).is_ok());
    let text = "`input.message.content` is longer than 20 bytes";
    refused(client(&body(&"x".repeat(TEXT_MAX + 1))), Range400, text);
    refused(client(&body(&"\u{e9}".repeat(TEXT_MAX / 2 + 1))), Range400, text);
    // An escape counts as what it stands for.
    assert!(client(&body(&"\\u0041".repeat(TEXT_MAX))).is_ok());
    let part = format!(r#""content":[{{"type":"text","text":"{}"}}]"#, "x".repeat(TEXT_MAX + 1));
    let text = "`input.message.content[0].text` is longer than 20 bytes";
    refused(client(&message_with(&part)), Range400, text);
    let name = format!(r#""name":"{}""#, "x".repeat(64 * 1024 + 1));
    let text = "`input.message.name` is longer than 65536 bytes";
    refused(client(&message_with(&name)), Range400, text);
}

#[test]
fn a_message_has_at_most_256_parts() {
    let body = |count: usize| {
        let parts = vec![r#"{"type":"text","text":"x"}"#; count].join(",");
        message_with(&format!(r#""content":[{parts}]"#))
    };
    assert!(client(&body(0)).is_ok());
    assert!(client(&body(256)).is_ok());
    let text = "`input.message.content` holds more than 256 items";
    refused(client(&body(257)), Range400, text);
}

#[test]
fn what_is_not_json_is_malformed_wherever_it_breaks() {
    for body in ["", "{", r#"{"input":}"#, r#"{"input":{"agent_id":"a"},}"#, "{} {}", "\u{feff}{}"]
    {
        assert_eq!(class(&client(body).unwrap_err()), Malformed400, "{body:?}");
    }
    let deep = format!(r#"{{"x":{}{}}}"#, "[".repeat(DEPTH_MAX), "]".repeat(DEPTH_MAX));
    assert_eq!(class(&client(&deep).unwrap_err()), Malformed400);
}

fn machine_with(identity: &str) -> String {
    format!(
        r#"{{"agent_id":"helper","identity":{identity},"payload":{{"type":"client.message","message":{{"role":"system"}}}}}}"#
    )
}

#[test]
fn a_machine_body_is_taken_with_the_identity_that_it_speaks_for() {
    let body = r#"{"agent_id":"helper","session_id":"s1","turn_id":"t1","queue":true,
        "identity":{"id":"Zo\u00eb <zoe@example.com>","metadata":{ "b":"1", "a":"\u0041" }},
        "payload":{"type":"client.message","stream":true,"message":{"role":"user","content":"hi"}}}"#;
    let (submit, identity) = machine(body).unwrap();
    assert_eq!(submit.session_id, Some(SessionId::parse("s1").unwrap()));
    let turn = turn(submit);
    assert_eq!(turn.turn_id, Some(TurnId::parse("t1").unwrap()));
    assert!(turn.queue);
    let message = Message::text(Role::User, "hi");
    assert_eq!(turn.input, Input::Message(MessageInput { message, stream: Some(true) }));
    assert_eq!(identity.id.as_str(), "Zo\u{eb} <zoe@example.com>");
    assert_eq!(identity.metadata.unwrap().text(), r#"{ "b":"1", "a":"\u0041" }"#);
}

#[test]
fn a_payload_takes_its_addressing_from_outside() {
    let body = r#"{"agent_id":"helper","identity":{"id":"zoe"},"payload":{"agent_id":7,"turn_id":7,
        "queue":7,"type":"client.message","message":{"role":"user"}}}"#;
    let (submit, _) = machine(body).unwrap();
    let turn = turn(submit);
    assert_eq!((turn.agent_id.as_str(), turn.turn_id, turn.queue), ("helper", None, false));
}

#[test]
fn a_machine_body_of_another_shape_names_the_field() {
    for (body, text) in [
        ("[]".to_owned(), "`body` must be an object"),
        ("{}".to_owned(), "`agent_id` is missing"),
        (r#"{"agent_id":"a"}"#.to_owned(), "`payload` is missing"),
        (r#"{"agent_id":"a","payload":"x"}"#.to_owned(), "`payload` must be an object"),
        (r#"{"agent_id":"a","payload":{}}"#.to_owned(), "`payload.type` is missing"),
        (
            r#"{"agent_id":"a","payload":{"type":"decision"}}"#.to_owned(),
            "`payload.type` `decision` is not an input",
        ),
        (
            r#"{"agent_id":"a","payload":{"type":"client.message"}}"#.to_owned(),
            "`payload.message` is missing",
        ),
        (machine_with("null"), "`identity` is missing"),
        (machine_with("\"zoe\""), "`identity` must be an object"),
        (machine_with("{}"), "`identity.id` is missing"),
        (machine_with(r#"{"id":1}"#), "`identity.id` must be a string"),
        (machine_with(r#"{"id":"z","metadata":[]}"#), "`identity.metadata` must be an object"),
        (
            machine_with(r#"{"id":"z","metadata":{"a":1}}"#),
            "`identity.metadata.a` must be a string",
        ),
        (
            machine_with(r#"{"id":"z","metadata":{"a":null}}"#),
            "`identity.metadata.a` must be a string",
        ),
    ] {
        refused(machine(&body), Shape422, text);
    }
}

#[test]
fn an_identity_out_of_range_names_the_field() {
    let owner = "`identity.id` must be 1 to 256 bytes of printable text";
    for id in ["", "a\\u0000", "a\\r\\nb", &"x".repeat(257)] {
        refused(machine(&machine_with(&format!(r#"{{"id":"{id}"}}"#))), Range400, owner);
    }
    let metadata = |members: &[String]| {
        let metadata = members.join(",");
        machine_with(&format!(r#"{{"id":"z","metadata":{{{metadata}}}}}"#))
    };
    let many: Vec<String> = (0..257).map(|n| format!(r#""k{n}":"v""#)).collect();
    assert!(machine(&metadata(&many[1..])).is_ok());
    let text = "`identity.metadata` holds more than 256 entries";
    refused(machine(&metadata(&many)), Range400, text);
    let long = format!(r#""k":"{}""#, "x".repeat(64 * 1024));
    let text = "`identity.metadata` is longer than 65536 bytes";
    refused(machine(&metadata(&[long])), Range400, text);
}

#[test]
fn a_token_request_is_read() {
    let request = token(r#"{"identity":{"id":"zoe"},"ttl_seconds":60}"#).unwrap();
    assert_eq!((request.identity.id.as_str(), request.ttl_secs), ("zoe", Some(60)));
    for (ttl, expected) in [("null", None), ("1", Some(1)), ("86400", Some(86_400))] {
        let body = format!(r#"{{"ttl_seconds":{ttl},"identity":{{"id":"zoe"}}}}"#);
        assert_eq!(token(&body).unwrap().ttl_secs, expected);
    }
}

#[test]
fn a_token_request_that_is_not_taken_names_the_field() {
    refused(token("{}"), Shape422, "`identity` is missing");
    let whole = "must be a whole number of 0 or more";
    for (ttl, class, problem) in [
        ("0", Range400, "must be 1 to 86400"),
        ("86401", Range400, "must be 1 to 86400"),
        ("18446744073709551615", Range400, "must be 1 to 86400"),
        ("18446744073709551616", Range400, whole),
        ("-1", Range400, whole),
        ("1.5", Range400, whole),
        ("1e2", Range400, whole),
        ("\"60\"", Shape422, "must be a number"),
        ("true", Shape422, "must be a number"),
        ("[]", Shape422, "must be a number"),
    ] {
        let body = format!(r#"{{"ttl_seconds":{ttl},"identity":{{"id":"zoe"}}}}"#);
        refused(token(&body), class, &format!("`ttl_seconds` {problem}"));
    }
}
