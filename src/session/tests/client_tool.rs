//! Tools that a client runs: asked for, answered, settled once (S23, S36 to S38, S41, S58).

use super::kit::*;
use crate::ids::CallId;
use crate::protocol::agent::RetryPolicy;
use crate::protocol::content::Content;
use crate::protocol::event::{CallDispatched, Event, Handler, Payload};
use crate::protocol::json::Json;
use crate::protocol::message::{Message, Role};
use crate::protocol::tool_result::ToolResult;
use crate::session::{Caller, Command, Rejection, Reply};

const GOES_ON: [&str; 4] =
    ["tool.call.completed", "message.new", "llm.call.requested", "llm.call.dispatched"];
const WAITS: [&str; 2] = ["tool.call.completed", "message.new"];

fn tool_dispatched(event: &Event) -> Option<&CallDispatched> {
    if let Payload::ToolCallDispatched(dispatched) = &event.payload {
        return Some(dispatched);
    }
    None
}

fn not_pending(conversation: &Conversation, kind: &str) -> Rejection {
    Rejection::NotPending { seq: Some(conversation.seq_of_last(kind)) }
}

#[test]
fn a_call_of_a_tool_of_the_client_is_dispatched_to_it_and_waits() {
    let mut conversation = Conversation::new();
    conversation.accepts(ask_with_tools("hello", &["left"]));
    let step = conversation.settles(tool_calls(&[("left", r#"{"by": 2}"#)]));
    let expected =
        ["llm.call.completed", "message.new", "tool.call.requested", "tool.call.dispatched"];
    assert_eq!(kinds(&step.events), expected);
    assert!(step.effects.is_empty(), "no executor of the engine");
    let request = only(&step.events, tool_requested);
    assert_eq!((request.name.as_str(), request.handler), ("left", Handler::Client));
    assert_eq!(request.arguments, r#"{"by": 2}"#);
    assert_eq!(request.retry, RetryPolicy::CLIENT_TOOL);
    let dispatched = only(&step.events, tool_dispatched);
    assert_eq!((&dispatched.id, dispatched.attempt), (&request.id, 1));
    assert_eq!(dispatched.deadline, None, "a client may take its time");
    conversation.restart();
    assert!(!conversation.session.owes());
    assert!(conversation.recovers().events.is_empty());
}

#[test]
fn a_result_goes_to_the_model_that_goes_on() {
    let (mut conversation, calls) = Conversation::with_open_tools(&["left"]);
    let step = conversation.accepts(tool_result(&calls[0], "42"));
    assert_eq!(kinds(&step.events), GOES_ON);
    let completed = only(&step.events, tool_completed);
    assert_eq!((&completed.id, completed.attempt), (&calls[0], 1));
    assert_eq!((completed.name.as_str(), &completed.run_id), ("left", &None));
    assert_eq!(completed.result, ToolResult::text("42"));
    let message = recorded(&step.events)[0];
    assert_eq!((message.role, &message.name), (Role::Tool, &Some("left".to_owned())));
    assert_eq!(message.tool_call_id.as_ref(), Some(&calls[0]));
    let seq = step.events[0].seq;
    let expected = Reply::Accepted { turn_id: turn_id("t1"), queued: false, seq };
    assert_eq!(step.reply, expected);
    assert_eq!(conversation.prompt(), ["hello", "", "42"]);
    let again = conversation.calls_tools(&["left"]);
    conversation.accepts(tool_result(&again[0], "43"));
    let step = conversation.answers("done");
    assert_eq!(only(&step.events, turn_completed).turn_id, turn_id("t1"));
}

#[test]
fn the_model_waits_for_every_call_of_its_batch() {
    let (mut conversation, calls) = Conversation::with_open_tools(&["left", "right", "left"]);
    for call in [&calls[2], &calls[0]] {
        let step = conversation.accepts(tool_result(call, "some"));
        assert_eq!(kinds(&step.events), WAITS);
        conversation.restart();
    }
    let step = conversation.accepts(tool_error(&calls[1], "out of reach", false));
    assert_eq!(kinds(&step.events)[0], "tool.call.errored");
    assert_eq!(kinds(&step.events)[1..], GOES_ON[1..]);
    assert_eq!(conversation.prompt(), ["hello", "", "some", "some", "out of reach"]);
}

#[test]
fn an_undeclared_tool_fails_beside_one_that_waits() {
    for order in [["left", "unknown"], ["unknown", "left"]] {
        let mut conversation = Conversation::new();
        conversation.accepts(ask_with_tools("hello", &["left"]));
        let calls = order.map(|name| (name, "{}"));
        let step = conversation.settles(tool_calls(&calls));
        let errored = only(&step.events, tool_errored);
        assert_eq!(errored.error.message, "the tool `unknown` is not declared");
        let call = only(&step.events, tool_dispatched).id.clone();
        assert!(!step.events.iter().any(|event| call_requested(event).is_some()), "{order:?}");
        let undeclared = errored.id.clone();
        let rejection = conversation.refuses(tool_result(&undeclared, "x"));
        assert_eq!(rejection, not_pending(&conversation, "tool.call.errored"));
        let step = conversation.accepts(tool_result(&call, "42"));
        assert_eq!(kinds(&step.events), GOES_ON);
    }
}

#[test]
fn arguments_that_are_no_json_pass_as_text() {
    let mut conversation = Conversation::new();
    conversation.accepts(ask_with_tools("hello", &["left"]));
    let step = conversation.settles(tool_calls(&[("left", "{oops \"\n")]));
    assert_eq!(only(&step.events, tool_requested).arguments, "{oops \"\n");
    assert_eq!(only(&step.events, tool_dispatched).attempt, 1);
}

#[test]
fn a_tool_of_the_agent_keeps_its_name() {
    let mut conversation = Conversation::new();
    let mut own = (*client_tool("left")).clone();
    own.description = Some("the agent's".to_owned());
    conversation.agent.tools = vec![own.into()];
    let step = conversation.accepts(ask_with_tools("hello", &["left", "right"]));
    assert_eq!(only(&step.events, call_requested).tools, ["left", "right"]);
    let (call, _) = conversation.open();
    let offered = conversation.work(&call).unwrap().tools;
    let described: Vec<_> = offered.iter().map(|tool| tool.description.as_deref()).collect();
    assert_eq!(described, [Some("the agent's"), None]);
}

#[test]
fn a_tool_of_the_agent_is_run_by_the_client_in_every_turn() {
    let mut conversation = Conversation::with_a_completed_turn();
    conversation.agent.tools = vec![client_tool("left")];
    conversation.accepts(ask("more"));
    let calls = conversation.calls_tools(&["left"]);
    conversation.accepts(tool_result(&calls[0], "42"));
    conversation.answers("done");
}

#[test]
fn a_tool_error_is_final_and_read_by_the_model() {
    for retryable in [true, false] {
        let (mut conversation, calls) = Conversation::with_open_tools(&["left"]);
        let step = conversation.accepts(tool_error(&calls[0], "out of reach", retryable));
        let errored = only(&step.events, tool_errored);
        assert_eq!(errored.error.message, "out of reach");
        assert!(!errored.will_retry, "a client's tool has one attempt");
        assert_eq!(conversation.prompt(), ["hello", "", "out of reach"]);
    }
}

#[test]
fn a_result_that_is_not_one_text_is_read_as_what_it_holds() {
    let (mut conversation, calls) = Conversation::with_open_tools(&["left"]);
    let structured_content = Json::parse(r#"{"n":7}"#);
    let result = ToolResult { structured_content, ..ToolResult::default() };
    conversation.accepts(settle_tool_by(zoe(), &calls[0], Some(1), Ok(result)));
    assert_eq!(conversation.prompt()[2], r#"{"n":7}"#);
}

// Who may settle what.

#[test]
fn a_call_is_settled_once_and_the_loser_is_told_where() {
    let settles = |call: &CallId| [tool_result(call, "1"), tool_error(call, "no", false)];
    for first in 0..2 {
        let (mut conversation, calls) = Conversation::with_open_tools(&["left", "right"]);
        let step = conversation.accepts(settles(&calls[0])[first].clone());
        let seq = Some(step.events[0].seq);
        for second in settles(&calls[0]) {
            assert_eq!(conversation.refuses(second), Rejection::NotPending { seq });
        }
        conversation.restart();
        let late = settle_tool_by(zoe(), &calls[0], Some(7), Ok(ToolResult::text("x")));
        assert_eq!(conversation.refuses(late), Rejection::NotPending { seq });
    }
}

#[test]
fn a_settle_may_name_the_attempt_and_a_wrong_one_is_refused() {
    let (mut conversation, calls) = Conversation::with_open_tools(&["left"]);
    let attempt = |n| settle_tool_by(zoe(), &calls[0], Some(n), Ok(ToolResult::text("x")));
    for wrong in [0, 2, u32::MAX] {
        assert_eq!(conversation.refuses(attempt(wrong)), Rejection::NotPending { seq: None });
    }
    conversation.accepts(attempt(1));
}

#[test]
fn an_unknown_call_and_one_of_the_engine_are_not_the_clients_to_settle() {
    let mut conversation = Conversation::with_a_running_turn();
    let (model, _) = conversation.open();
    let unknown = call_id("unknown");
    assert_eq!(conversation.refuses(tool_result(&unknown, "x")), Rejection::UnknownCall);
    assert_eq!(conversation.refuses(tool_result(&model, "x")), Rejection::NotClientHandled);
    conversation.fails(overloaded());
    assert_eq!(conversation.refuses(tool_result(&model, "x")), Rejection::NotClientHandled);
    conversation.wakes_at_its_timer();
    conversation.answers("hi");
    assert_eq!(conversation.refuses(tool_result(&unknown, "x")), Rejection::UnknownCall);
    let settled = not_pending(&conversation, "llm.call.completed");
    assert_eq!(conversation.refuses(tool_result(&model, "x")), settled);
}

#[test]
fn an_executor_settles_no_tool_call() {
    let (mut conversation, calls) = Conversation::with_open_tools(&["left"]);
    let rejection = conversation.refuses(settle(calls[0].clone(), 1, answer("x")));
    assert_eq!(rejection, Rejection::NotPending { seq: None });
}

#[test]
fn only_the_owner_and_the_engine_s_own_side_settle() {
    for (caller, expected) in [
        (frontend_of("eve"), Some(Rejection::NotOwner)),
        (zoe(), None),
        (Caller::Machine, None),
        (Caller::System, None),
    ] {
        let (mut conversation, calls) = Conversation::with_open_tools(&["left"]);
        let command = settle_tool_by(caller, &calls[0], None, Ok(ToolResult::text("x")));
        assert_eq!(conversation.apply(command).err(), expected);
    }
    let nobody = Conversation::new().refuses(tool_result(&call_id("c"), "x"));
    assert_eq!(nobody, Rejection::UnknownSession);
}

#[test]
fn a_settle_may_have_conditions() {
    let (mut conversation, calls) = Conversation::with_open_tools(&["left"]);
    let seq = conversation.session.seq().0;
    let rejection = conversation.refuses(on_condition(tool_result(&calls[0], "x"), seq - 1));
    assert!(matches!(rejection, Rejection::ConditionFailed { .. }), "{rejection:?}");
    conversation.accepts(on_condition(tool_result(&calls[0], "x"), seq));
}

// Answers among the messages of an input.

#[test]
fn a_tool_message_in_any_input_settles_the_call_that_it_names() {
    let (before, _) = Conversation::with_open_tools(&["left"]);
    let known: Vec<Message> =
        before.view().messages.iter().map(|message| (**message).clone()).collect();
    for which in 0..4 {
        let (mut conversation, calls) = Conversation::with_open_tools(&["left"]);
        let answer = result_of(&calls[0], "r1", "42");
        let input = match which {
            0 => ask_message(answer),
            1 => append(&[answer]),
            2 => append(&[answer]).queued(),
            _ => view(&[&known[..], &[answer]].concat()),
        };
        let step = conversation.accepts(input.turn("run2"));
        assert_eq!(kinds(&step.events), GOES_ON, "{which}");
        let completed = only(&step.events, tool_completed);
        assert_eq!(completed.run_id, Some(turn_id("run2")));
        assert_eq!(completed.result, ToolResult::text("42"));
        let message = recorded(&step.events)[0];
        assert_eq!(message.id, Some(message_id("r1")), "the client's own id");
        assert_eq!(message.name.as_deref(), Some("left"));
        let seq = step.events[0].seq;
        let expected = Reply::Accepted { turn_id: turn_id("t1"), queued: false, seq };
        assert_eq!(step.reply, expected, "the turn keeps its id");
    }
}

#[test]
fn the_id_that_an_answer_came_with_names_the_turn_that_it_continued() {
    let (mut conversation, calls) = Conversation::with_open_tools(&["left"]);
    conversation.accepts(append(&[result_of(&calls[0], "r1", "42")]).turn("run2"));
    conversation.restart();
    let record = conversation.session.turn(&turn_id("run2")).map(|(_, record)| record);
    assert_eq!(record, conversation.session.turn(&turn_id("t1")).map(|(_, record)| record));
    assert!(record.is_some());
    let expected = conversation.ignores(ask("hello").turn("t1"));
    for _ in 0..2 {
        let reply = conversation.ignores(append(&[result_of(&calls[0], "r1", "42")]).turn("run2"));
        assert_eq!(reply, expected);
    }
    conversation.answers("done");
    assert_eq!(conversation.ignores(ask("whatever").turn("run2")), expected);
}

#[test]
fn the_first_answer_to_a_call_counts() {
    let (mut conversation, calls) = Conversation::with_open_tools(&["left"]);
    let answers = [result_of(&calls[0], "r1", "first"), result_of(&calls[0], "r2", "second")];
    conversation.accepts(append(&answers));
    assert_eq!(conversation.prompt(), ["hello", "", "first"]);
    conversation.answers("done");
    let step = conversation.accepts(append(&answers[1..]));
    assert_eq!(kinds(&step.events), ["turn.started", "turn.completed"], "it answers nothing now");
}

#[test]
fn two_answers_under_one_id_are_recorded_under_two() {
    let (mut conversation, calls) = Conversation::with_open_tools(&["left", "right"]);
    conversation.accepts(append(&[
        result_of(&calls[0], "r1", "first"),
        result_of(&calls[1], "r1", "second"),
    ]));
    assert_eq!(conversation.prompt(), ["hello", "", "first", "second"]);
}

#[test]
fn an_answer_without_an_id_is_given_one() {
    let (mut conversation, calls) = Conversation::with_open_tools(&["left"]);
    conversation.accepts(ask_message(nameless(result_of(&calls[0], "r1", "42"))));
    assert_eq!(conversation.prompt(), ["hello", "", "42"]);
}

#[test]
fn known_messages_beside_an_answer_are_dropped() {
    for queue in [false, true] {
        let (mut conversation, calls) = Conversation::with_open_tools(&["left"]);
        let mut input = append(&[user("m1", "hello"), result_of(&calls[0], "r1", "42")]);
        if queue {
            input = input.queued();
        }
        let step = conversation.accepts(input);
        assert_eq!(kinds(&step.events), GOES_ON);
    }
}

#[test]
fn an_answer_without_content_is_an_empty_result() {
    let (mut conversation, calls) = Conversation::with_open_tools(&["left"]);
    let silent = Message { content: None, ..result_of(&calls[0], "r1", "") };
    let step = conversation.accepts(append(&[silent]));
    assert_eq!(recorded(&step.events)[0].content, Some(Content::Text(String::new())));
    assert_eq!(only(&step.events, tool_completed).result, ToolResult::text(""));
}

#[test]
fn a_lone_tool_message_that_answers_no_open_call_is_refused() {
    let (mut conversation, calls) = Conversation::with_open_tools(&["left"]);
    let expected = Rejection::Invalid {
        path: "message.role".to_owned(),
        problem: "is `tool`, but answers no open client-handled call",
    };
    let nobody = Message { tool_call_id: None, ..result_of(&calls[0], "r1", "42") };
    for message in [result_of(&call_id("unknown"), "r1", "42"), nobody] {
        for ask in [ask_message(message.clone()), ask_message(message).by_a_machine()] {
            assert_eq!(conversation.refuses(ask), expected);
        }
    }
    conversation.accepts(tool_result(&calls[0], "42"));
    let late = ask_message(result_of(&calls[0], "r1", "42"));
    assert_eq!(conversation.refuses(late), expected);
}

#[test]
fn a_label_is_no_id_for_a_minted_turn() {
    let (mut conversation, calls) = Conversation::with_open_tools(&["left"]);
    // completed, message, requested, dispatched; completed, message, turn completed
    let next = crate::ids::Seq(conversation.session.seq().0 + 8);
    let guess = crate::ids::derive_turn_id(&key(), next, 0, conversation.now);
    conversation.accepts(append(&[result_of(&calls[0], "r1", "42")]).turn(guess.as_str()));
    conversation.answers("done");
    let step = conversation.accepts(ask("more"));
    let Reply::Accepted { turn_id: minted, .. } = step.reply else { panic!("accepted") };
    assert_ne!(minted, guess);
    assert_ne!(
        conversation.session.turn(&minted).map(|(_, record)| record),
        conversation.session.turn(&guess).map(|(_, record)| record)
    );
}

#[test]
fn a_command_that_settles_a_model_call_again_is_refused_while_tools_are_open() {
    let (mut conversation, _) = Conversation::with_open_tools(&["left"]);
    let call = conversation.last_call_id();
    let again = Command::SettleModelCall { id: call, attempt: 1, outcome: answer("x") };
    let expected = not_pending(&conversation, "llm.call.completed");
    assert_eq!(conversation.refuses(again), expected);
}
