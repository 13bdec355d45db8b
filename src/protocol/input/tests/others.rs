//! The inputs beside `client.message`, the client's context, and the bodies of other requests.

use super::*;
use crate::protocol::event::Handler;
use crate::protocol::tool::AgentTool;

/// The input of a client and the payload of a backend, as a good body of each.
fn bodies(input: &str) -> [Result<Submit, DecodeError>; 2] {
    let addressed = input.replacen('{', r#"{"agent_id":"helper","#, 1);
    [
        client(&format!(r#"{{"session_id":"s1","input":{addressed}}}"#)),
        machine(&format!(
            r#"{{"session_id":"s1","agent_id":"helper","identity":{{"id":"zoe"}},"payload":{input}}}"#
        ))
        .map(|(submit, _)| submit),
    ]
}

/// What both APIs read of `input`, which is the same.
#[track_caller]
fn taken(input: &str) -> Submit {
    let [from_client, from_machine] =
        bodies(input).map(|read| read.unwrap_or_else(|error| panic!("{input}: {error}")));
    assert_eq!(from_client, from_machine);
    from_client
}

/// `path` is below the input.
#[track_caller]
fn refused_below(input: &str, class: &Class, path: &str, problem: &str) {
    for (read, root) in bodies(input).into_iter().zip(["input", "payload"]) {
        let error = read.unwrap_err();
        let expected = format!("`{root}.{path}` {problem}");
        assert_eq!((error.to_string(), &super::class(&error)), (expected, class), "{input}");
    }
}

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

fn say(text: &str) -> Message {
    Message::text(Role::User, text)
}

const MESSAGES: &str =
    r#""messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]"#;

#[test]
fn views_and_appends_bring_their_messages_and_the_clients_context() {
    let context = r#""client":{"tools":[],"context":[{"b": 1, "a": 2}, null],
        "state":{"x":[1]},"forwarded_props":7,"later":1}"#;
    let expected = MessagesInput {
        messages: vec![say("a"), say("b")],
        stream: Some(true),
        client: Some(ClientContext {
            tools: vec![],
            context: vec![json(r#"{"b": 1, "a": 2}"#), json("null")],
            state: Some(json(r#"{"x":[1]}"#)),
            forwarded_props: Some(json("7")),
        }),
    };
    let view =
        taken(&format!(r#"{{"type":"client.messages",{MESSAGES},"stream":true,{context}}}"#));
    assert_eq!(turn(view).input, Input::Messages(expected.clone()));
    let append =
        taken(&format!(r#"{{"type":"client.append",{MESSAGES},"stream":true,{context}}}"#));
    assert_eq!(turn(append).input, Input::Append(expected));
    let bare = taken(&format!(r#"{{"type":"client.append",{MESSAGES}}}"#));
    let Input::Append(input) = turn(bare).input else { panic!("no append") };
    assert_eq!((input.stream, input.client), (None, None));
}

#[test]
fn a_view_or_an_append_holds_1_to_20000_messages() {
    for kind in ["client.messages", "client.append"] {
        let input = |messages: &str| format!(r#"{{"type":"{kind}","messages":{messages}}}"#);
        refused_below(&format!(r#"{{"type":"{kind}"}}"#), &Shape422, "messages", "is missing");
        refused_below(&input("{}"), &Shape422, "messages", "must be an array");
        refused_below(&input("[]"), &Range400, "messages", "must hold a message");
        let many = |count: usize| format!("[{}]", vec![r#"{"role":"user"}"#; count].join(","));
        assert!(bodies(&input(&many(MESSAGES_MAX))).iter().all(Result::is_ok));
        let too_many = "holds more than 20000 items";
        refused_below(&input(&many(MESSAGES_MAX + 1)), &Range400, "messages", too_many);
    }
}

#[test]
fn a_field_deep_in_a_view_is_named_by_its_path() {
    let input = |part: &str| {
        format!(
            r#"{{"type":"client.messages","messages":[{{"role":"user"}},{{"role":"user"}},{{"role":"user","content":[{part}]}}]}}"#
        )
    };
    let path = "messages[2].content[0].image_url.url";
    let part = |url: &str| input(&format!(r#"{{"type":"image_url","image_url":{{"url":{url}}}}}"#));
    refused_below(&part("7"), &Shape422, path, "must be a string");
    refused_below(&part("null"), &Shape422, path, "is missing");
    refused_below(&part(r#""data:image/png;base64,?""#), &Range400, path, "is not base64");
}

#[test]
fn bytes_of_every_message_come_with_the_submit() {
    let part = |data: &str| {
        format!(
            r#"{{"role":"user","content":[{{"type":"file","file":{{"filename":"a.txt","file_data":"{data}"}}}}]}}"#
        )
    };
    let messages = [part("YQ=="), part("Yg=="), part("YQ==")].join(",");
    let submit = taken(&format!(r#"{{"type":"client.append","messages":[{messages}]}}"#));
    let bytes: Vec<&[u8]> = submit.uploads.iter().map(|upload| &upload.bytes[..]).collect();
    assert_eq!(bytes, [b"a", b"b"]);
}

#[test]
fn an_action_has_a_name_and_may_have_arguments() {
    let submit = taken(r#"{"type":"client.action","name":"like","args":{"b": 1.0}}"#);
    let args = Some(json(r#"{"b": 1.0}"#));
    assert_eq!(turn(submit).input, Input::Action(ActionInput { name: "like".to_owned(), args }));
    let bare = turn(taken(r#"{"type":"client.action","name":"like","args":null}"#));
    assert_eq!(bare.input, Input::Action(ActionInput { name: "like".to_owned(), args: None }));
    let action = |fields: &str| format!(r#"{{"type":"client.action"{fields}}}"#);
    refused_below(&action(""), &Shape422, "name", "is missing");
    refused_below(&action(r#","name":7"#), &Shape422, "name", "must be a string");
    refused_below(&action(r#","name":"""#), &Range400, "name", "must not be empty");
    let long = format!(r#","name":"{}""#, "x".repeat(64 * 1024 + 1));
    refused_below(&action(&long), &Range400, "name", "is longer than 65536 bytes");
}

#[test]
fn an_interrupt_is_answered_in_one_of_two_ways() {
    for (fields, payload, status) in [
        ("", None, None),
        (r#","payload":{"ok":true}"#, Some(json(r#"{"ok":true}"#)), None),
        (r#","payload":null,"status":"resolved""#, None, None),
        (r#","status":"cancelled""#, None, Some(ResumeStatus::Cancelled)),
    ] {
        let submit =
            taken(&format!(r#"{{"type":"interrupt.resume","interrupt_id":"i1"{fields}}}"#));
        let interrupt_id = InterruptId::parse("i1").unwrap();
        let resume = Resume { interrupt_id, payload, status };
        assert_eq!(submit.body, SubmitBody::Resume { turn_id: None, resume });
    }
    let resume = |fields: &str| format!(r#"{{"type":"interrupt.resume"{fields}}}"#);
    refused_below(&resume(""), &Shape422, "interrupt_id", "is missing");
    refused_below(&resume(r#","interrupt_id":"a b""#), &Range400, "interrupt_id", ID_RULE);
    let status = r#","interrupt_id":"i1","status":"open""#;
    refused_below(&resume(status), &Shape422, "status", "`open` is not a status");
}

#[test]
fn a_tool_call_is_answered_with_a_result_or_an_error() {
    let id = || CallId::parse("c1").unwrap();
    let settled = |input: &str| match taken(input).body {
        SubmitBody::Settle(settlement) => settlement,
        other @ (SubmitBody::Turn(_) | SubmitBody::Resume { .. }) => panic!("{other:?}"),
    };
    let result = settled(r#"{"type":"tool.result","id":"c1","result":"sunny","attempt":2}"#);
    let outcome = Ok(ToolResult::text("sunny"));
    assert_eq!(result, Settlement { id: id(), attempt: Some(2), outcome });
    let error = settled(r#"{"type":"tool.error","id":"c1","error":"no net","retryable":true}"#);
    let failure = ToolFailure { error: "no net".to_owned(), retryable: true };
    assert_eq!(error, Settlement { id: id(), attempt: None, outcome: Err(failure) });

    let answer = |kind: &str, fields: &str| format!(r#"{{"type":"tool.{kind}"{fields}}}"#);
    for (kind, fields, class, path, problem) in [
        ("result", r#","result":1"#, Shape422, "id", "is missing"),
        ("result", r#","id":7,"result":1"#, Shape422, "id", "must be a string"),
        ("result", r#","id":"a b","result":1"#, Range400, "id", ID_RULE),
        ("result", r#","id":"c1""#, Shape422, "result", "is missing"),
        (
            "result",
            r#","id":"c1","result":1,"attempt":"1""#,
            Shape422,
            "attempt",
            "must be a number",
        ),
        (
            "result",
            r#","id":"c1","result":1,"attempt":4294967296"#,
            Range400,
            "attempt",
            "is not an attempt",
        ),
        (
            "result",
            r#","id":"c1","result":{"content":[{"type":"image","data":"?","mimeType":"a/b"}]}"#,
            Range400,
            "result.content[0].data",
            "is not base64",
        ),
        ("error", r#","id":"c1","retryable":true"#, Shape422, "error", "is missing"),
        ("error", r#","id":"c1","error":"a""#, Shape422, "retryable", "is missing"),
        (
            "error",
            r#","id":"c1","error":"a","retryable":1"#,
            Shape422,
            "retryable",
            "must be true or false",
        ),
        (
            "error",
            r#","id":"c1","error":"123456789012345678901","retryable":true"#,
            Range400,
            "error",
            "is longer than 20 bytes",
        ),
    ] {
        refused_below(&answer(kind, fields), &class, path, problem);
    }
}

#[test]
fn bytes_in_a_tool_result_come_with_the_submit() {
    let submit = taken(
        r#"{"type":"tool.result","id":"c1","result":
            {"content":[{"type":"image","data":"YQ==","mimeType":"image/png"}]}}"#,
    );
    assert_eq!(submit.uploads.len(), 1);
    assert_eq!(
        (submit.uploads[0].mime.as_str(), &submit.uploads[0].bytes[..]),
        ("image/png", &b"a"[..])
    );
}

#[test]
fn what_answers_a_session_names_it_and_may_leave_the_agent_out() {
    for input in [
        r#"{"type":"interrupt.resume","interrupt_id":"i1"}"#,
        r#"{"type":"tool.result","id":"c1","result":1}"#,
        r#"{"type":"tool.error","id":"c1","error":"a","retryable":false}"#,
    ] {
        assert!(client(&format!(r#"{{"session_id":"s1","input":{input}}}"#)).is_ok());
        let missing = "`session_id` is missing";
        refused(client(&format!(r#"{{"input":{input}}}"#)), Shape422, missing);
        let backend = format!(r#""identity":{{"id":"z"}},"payload":{input}"#);
        refused(machine(&format!(r#"{{"agent_id":"a",{backend}}}"#)), Shape422, missing);
        let agentless = machine(&format!(r#"{{"session_id":"s1",{backend}}}"#));
        refused(agentless, Shape422, "`agent_id` is missing");
    }
    for input in [
        r#"{"type":"client.action","name":"a"}"#.to_owned(),
        format!(r#"{{"type":"client.messages",{MESSAGES}}}"#),
        format!(r#"{{"type":"client.append",{MESSAGES}}}"#),
    ] {
        let missing = "`input.agent_id` is missing";
        refused(client(&format!(r#"{{"input":{input}}}"#)), Shape422, missing);
        let addressed = input.replacen('{', r#"{"agent_id":"a","#, 1);
        assert!(client(&format!(r#"{{"input":{addressed}}}"#)).is_ok());
    }
}

#[test]
fn conditions_stand_in_the_body_or_in_the_input() {
    let message = r#""agent_id":"a","type":"client.message","message":{"role":"user"}"#;
    let head = |id: &str| Some(MessageId::parse(id).unwrap());
    for (outer, inner, if_head, if_seq) in [
        ("", "", None, None),
        (r#""if_head":"m1","if_seq":7,"#, "", head("m1"), Some(Seq(7))),
        ("", r#""if_head":"m1","if_seq":7,"#, head("m1"), Some(Seq(7))),
        (r#""if_head":"m1","#, r#""if_head":"m2","if_seq":0,"#, head("m1"), Some(Seq(0))),
    ] {
        let submit = client(&format!(r#"{{{outer}"input":{{{inner}{message}}}}}"#)).unwrap();
        assert_eq!(submit.conditions, Conditions { if_head, if_seq });
    }
    let backend = |outer: &str, inner: &str| {
        let body = format!(
            r#"{{{outer}"agent_id":"a","identity":{{"id":"z"}},"payload":{{{inner}{message}}}}}"#
        );
        machine(&body).unwrap().0.conditions
    };
    let conditions = Conditions { if_head: head("m1"), if_seq: Some(Seq(7)) };
    assert_eq!(backend(r#""if_head":"m1","if_seq":7,"#, ""), conditions);
    assert_eq!(backend("", r#""if_head":"m1","if_seq":7,"#), Conditions::default());
    for (fields, class, text) in [
        (r#""if_head":7"#, Shape422, "`if_head` must be a string"),
        (r#""if_head":"a b""#, Range400, format!("`if_head` {ID_RULE}").as_str()),
        (r#""if_seq":"7""#, Shape422, "`if_seq` must be a number"),
        (r#""if_seq":-1"#, Range400, "`if_seq` must be a whole number of 0 or more"),
    ] {
        refused(client(&format!(r#"{{{fields},"input":{{{message}}}}}"#)), class, text);
    }
}

fn with_tools(tools: &str) -> String {
    format!(r#"{{"type":"client.append",{MESSAGES},"client":{{"tools":{tools}}}}}"#)
}

#[test]
fn a_clients_tools_are_handled_by_the_client_whatever_they_say() {
    let submit = taken(&with_tools(
        r#"[{"name":"pick-Colour_1","description":"Picks.","input":{"type": "object"},
            "output":true,"handler":"worker"},{"name":"bare"},{"name":"bare","description":"b"}]"#,
    ));
    let Input::Append(MessagesInput { client: Some(client), .. }) = turn(submit).input else {
        panic!("no context");
    };
    let bare = |name: &str| AgentTool {
        name: name.to_owned(),
        description: None,
        input: None,
        output: None,
        handler: Handler::Client,
    };
    let full = AgentTool {
        description: Some("Picks.".to_owned()),
        input: Some(json(r#"{"type": "object"}"#)),
        output: Some(json("true")),
        ..bare("pick-Colour_1")
    };
    let read: Vec<AgentTool> = client.tools.iter().map(|tool| (**tool).clone()).collect();
    assert_eq!(read, [full, bare("bare")]);
}

#[test]
fn a_clients_tool_that_no_model_could_be_offered_is_refused() {
    let rule = "must be 1 to 64 characters of A-Z a-z 0-9 _ -";
    for name in ["", "a b", "a.b", "\\u00e9", "a/b", &"x".repeat(65)] {
        let tools = with_tools(&format!(r#"[{{"name":"ok"}},{{"name":"{name}"}}]"#));
        refused_below(&tools, &Range400, "client.tools[1].name", rule);
    }
    let longest = "x".repeat(64);
    assert!(bodies(&with_tools(&format!(r#"[{{"name":"{longest}"}}]"#))).iter().all(Result::is_ok));
    for (tool, class, path, problem) in [
        ("{}", Shape422, "name", "is missing"),
        (r#"{"name":7}"#, Shape422, "name", "must be a string"),
        (r#"{"name":"a","description":{}}"#, Shape422, "description", "must be a string"),
        (r#"{"name":"a","handler":"me"}"#, Shape422, "handler", "`me` is not a handler"),
        (r#"{"name":"a","handler":1}"#, Shape422, "handler", "must be a string"),
    ] {
        let path = format!("client.tools[0].{path}");
        refused_below(&with_tools(&format!("[{tool}]")), &class, &path, problem);
    }
    let many =
        |count: usize| with_tools(&format!("[{}]", vec![r#"{"name":"a"}"#; count].join(",")));
    assert!(bodies(&many(256)).iter().all(Result::is_ok));
    refused_below(&many(257), &Range400, "client.tools", "holds more than 256 items");
    refused_below(&with_tools("{}"), &Shape422, "client.tools", "must be an array");
}

#[test]
fn a_schema_is_at_most_16_deep_and_64_kib_long() {
    for field in ["input", "output"] {
        let schema = |text: &str| with_tools(&format!(r#"[{{"name":"a","{field}":{text}}}]"#));
        let path = format!("client.tools[0].{field}");
        let nested = |depth: usize| {
            format!("{}{}{}", r#"{"a":"#.repeat(depth - 1), "1", "}".repeat(depth - 1))
        };
        assert!(bodies(&schema(&nested(16))).iter().all(Result::is_ok));
        refused_below(&schema(&nested(17)), &Range400, &path, "is nested deeper than 16");
        let long = |len: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(len - 8));
        assert!(bodies(&schema(&long(64 * 1024))).iter().all(Result::is_ok));
        refused_below(
            &schema(&long(64 * 1024 + 1)),
            &Range400,
            &path,
            "is longer than 65536 bytes",
        );
    }
    let depth = |text: &str| decode(text.as_bytes(), DEPTH_MAX, |node| Ok(node.depth())).unwrap();
    for (text, expected) in [
        ("1", 1),
        ("{}", 1),
        ("[[],[[2]],[]]", 4),
        (r#"{"a":[],"b":{"c":1},"d":2}"#, 3),
        // Beyond 64 bits, which another parser reads.
        (r#"{"a":[123456789012345678901234567890],"b":[[[]]]}"#, 4),
    ] {
        assert_eq!(depth(text), expected, "{text}");
    }
}

#[test]
fn every_input_is_read_back_from_the_log() {
    for input in [
        r#"{"type":"client.message","message":{"id":"m1","role":"user","content":"a"},"stream":false}"#
            .to_owned(),
        format!(r#"{{"type":"client.messages",{MESSAGES}}}"#),
        format!(r#"{{"type":"client.append",{MESSAGES},"client":{{"context":[null,{{"a": 1.50}}],"state":[1],"forwarded_props":{{}}}}}}"#),
        with_tools(r#"[{"name":"a","description":"b","input":{"b": 1, "a": 2},"output":{}}]"#),
        r#"{"type":"client.action","name":"a","args":{"z": 123456789012345678901234567890}}"#.to_owned(),
        r#"{"type":"client.message","message":{"role":"tool","tool_call_id":"c1","name":"n","content":
            [{"type":"image_url","image_url":{"url":"data:image/png;base64,YQ=="}},{"type":"link","uri":"x:y"}]}}"#
            .to_owned(),
    ] {
        let read = turn(taken(&input)).input;
        let stored = serde_json::to_string(&read).unwrap();
        let again: Input = serde_json::from_str(&stored).unwrap();
        assert_eq!(again, read, "{stored}");
        assert_eq!(again.kind(), read.kind());
    }
}

fn body<T>(
    text: &str,
    read: impl Fn(&Node<'_>) -> Result<T, DecodeError>,
) -> Result<T, DecodeError> {
    decode(text.as_bytes(), DEPTH_MAX, |root| read(root))
}

#[test]
fn a_cancel_says_which_turn_or_the_session() {
    let cancel = |text: &str| body(text, CancelRequest::read);
    assert_eq!(cancel("{}").unwrap(), CancelRequest::default());
    let full = cancel(r#"{"turn_id":"t1","reason":"enough","session":true,"later":1}"#).unwrap();
    let turn_id = Some(TurnId::parse("t1").unwrap());
    let reason = Some("enough".to_owned());
    assert_eq!(full, CancelRequest { turn_id, reason, session: true });
    refused(cancel("[]"), Shape422, "`body` must be an object");
    refused(cancel(r#"{"turn_id":7}"#), Shape422, "`turn_id` must be a string");
    refused(cancel(r#"{"turn_id":""}"#), Range400, &format!("`turn_id` {ID_RULE}"));
    refused(cancel(r#"{"reason":""}"#), Range400, "`reason` must not be empty");
    refused(cancel(r#"{"session":"yes"}"#), Shape422, "`session` must be true or false");
}

#[test]
fn an_interrupt_has_a_reason() {
    let interrupt = |text: &str| body(text, InterruptRequest::read);
    let bare = interrupt(r#"{"reason":"approve"}"#).unwrap();
    let expected =
        InterruptRequest { interrupt_id: None, reason: "approve".to_owned(), payload: None };
    assert_eq!(bare, expected);
    let full = interrupt(r#"{"reason":"approve","interrupt_id":"i1","payload":[1, 2]}"#).unwrap();
    assert_eq!(full.interrupt_id, Some(InterruptId::parse("i1").unwrap()));
    assert_eq!(full.payload, Some(json("[1, 2]")));
    refused(interrupt("{}"), Shape422, "`reason` is missing");
    refused(interrupt(r#"{"reason":""}"#), Range400, "`reason` must not be empty");
    refused(interrupt(r#"{"reason":{}}"#), Shape422, "`reason` must be a string");
    let id = interrupt(r#"{"reason":"a","interrupt_id":"a b"}"#);
    refused(id, Range400, &format!("`interrupt_id` {ID_RULE}"));
}

#[test]
fn a_patch_changes_what_it_names() {
    let patch = |text: &str| body(text, SessionPatch::read);
    assert_eq!(patch("{}").unwrap(), SessionPatch::default());
    let full = patch(r#"{"title":"","metadata":{"b": "1"}}"#).unwrap();
    let metadata = Some(json(r#"{"b": "1"}"#));
    assert_eq!(full, SessionPatch { title: Some(String::new()), metadata });
    refused(patch("7"), Shape422, "`body` must be an object");
    refused(patch(r#"{"title":7}"#), Shape422, "`title` must be a string");
    let long = format!(r#"{{"title":"{}"}}"#, "x".repeat(1025));
    refused(patch(&long), Range400, "`title` is longer than 1024 bytes");
    refused(patch(r#"{"metadata":{"a":1}}"#), Shape422, "`metadata.a` must be a string");
    let long = format!(r#"{{"metadata":{{"a":"{}"}}}}"#, "x".repeat(4096));
    refused(patch(&long), Range400, "`metadata` is longer than 4096 bytes");
}
