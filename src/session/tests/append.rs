//! `client.message`, `client.append`, `client.action`, and the conditions of a submit (S18, S22).

use super::kit::*;
use crate::ids::{AgentId, MessageId, Seq};
use crate::protocol::event::Payload;
use crate::protocol::input::Input;
use crate::protocol::message::{Message, Role};
use crate::session::{Caller, Rejection, Reply};

const NOTHING: [&str; 2] = ["turn.started", "turn.completed"];

fn parents(conversation: &Conversation) -> Vec<Option<MessageId>> {
    let nodes = conversation.view().message_tree.unwrap().nodes;
    nodes.into_iter().map(|node| node.parent_id).collect()
}

#[test]
fn an_append_goes_below_the_head_one_message_below_the_other() {
    let mut conversation = Conversation::with_a_completed_turn();
    let head = conversation.head();
    let step = conversation.accepts(append(&[
        user("u2", "two"),
        assistant("a2", "second"),
        nameless(user("u3", "three")),
    ]));
    let expected = [
        "turn.started",
        "message.new",
        "message.new",
        "message.new",
        "llm.call.requested",
        "llm.call.dispatched",
    ];
    assert_eq!(kinds(&step.events), expected);
    let below: Vec<_> = parents(&conversation)[2..].to_vec();
    assert_eq!(below, [head.as_str(), "u2", "a2"].map(|id| Some(message_id(id))));
    assert_eq!(conversation.prompt(), ["hello", "hi", "two", "second", "three"]);
}

#[test]
fn known_ids_of_an_append_are_dropped_wherever_they_stand() {
    let mut conversation = Conversation::with_a_completed_turn();
    conversation.accepts(append(&[
        user("m1", "other words"),
        user("u2", "two"),
        user("m1", "hello"),
    ]));
    assert_eq!(conversation.prompt(), ["hello", "hi", "two"]);
}

#[test]
fn an_id_that_stands_twice_in_an_append_is_recorded_once() {
    let mut conversation = Conversation::new();
    conversation.accepts(append(&[user("u1", "one"), user("u1", "again")]));
    assert_eq!(conversation.prompt(), ["one"]);
}

#[test]
fn an_append_of_known_ids_only_completes_at_once() {
    let mut conversation = Conversation::with_a_completed_turn();
    let step = conversation.accepts(append(&[user("m1", "hello")]));
    assert_eq!(kinds(&step.events), NOTHING);
    assert!(!conversation.session.owes());
}

#[test]
fn an_append_that_ends_with_an_assistant_completes_at_once() {
    let mut conversation = Conversation::new();
    let step = conversation.accepts(append(&[user("u1", "one"), assistant("a1", "first")]));
    let expected =
        ["session.created", "turn.started", "message.new", "message.new", "turn.completed"];
    assert_eq!(kinds(&step.events), expected);
}

#[test]
fn an_append_whose_last_message_is_known_is_decided_by_the_last_new_one() {
    let mut conversation = Conversation::with_a_completed_turn();
    let reply = assistant(&conversation.head(), "hi");
    conversation.accepts(append(&[user("u2", "two"), reply.clone()]));
    conversation.answers("second");
    let step = conversation.accepts(append(&[assistant("a3", "third"), user("u2", "two"), reply]));
    assert_eq!(kinds(&step.events), ["turn.started", "message.new", "turn.completed"]);
}

#[test]
fn a_queued_append_lands_after_the_reply_of_the_running_turn() {
    let mut conversation = Conversation::with_a_running_turn();
    let step = conversation.accepts(append(&[user("m1", "hello"), user("u2", "two")]).queued());
    assert_eq!(kinds(&step.events), ["turn.queued"]);
    conversation.restart();
    conversation.answers("hi");
    assert_eq!(conversation.prompt(), ["hello", "hi", "two"]);
}

#[test]
fn what_became_known_while_an_append_waited_is_dropped_when_it_starts() {
    let mut conversation = Conversation::with_a_running_turn();
    for _ in 0..2 {
        conversation.accepts(append(&[user("u2", "two")]).queued());
    }
    conversation.answers("hi");
    let step = conversation.answers("second");
    assert_eq!(kinds(&step.events)[2..], ["turn.completed", "turn.started", "turn.completed"]);
    assert_eq!(conversation.texts(), ["hello", "hi", "two", "second"]);
}

#[test]
fn a_queued_append_keeps_the_tools_and_the_wish_it_came_with() {
    let mut conversation = Conversation::with_a_running_turn();
    let asked = append(&[user("u2", "two")]).client(&["left"]).streaming(false);
    conversation.accepts(asked.queued());
    conversation.restart();
    let step = conversation.answers("hi");
    assert_eq!(only(&step.events, turn_started).client, None, "turn.queued has it");
    let request = only(&step.events, call_requested);
    assert_eq!((request.stream, &request.tools[..]), (false, &["left".to_owned()][..]));
}

#[test]
fn an_append_takes_what_a_view_takes_from_each_caller() {
    for (machine, roles) in [
        (false, &[Role::User, Role::Assistant, Role::User][..]),
        (true, &[Role::System, Role::Assistant, Role::Tool, Role::User]),
    ] {
        let mut conversation = Conversation::new();
        let mut ask = append(&[
            system("s1", "obey"),
            with_a_call(assistant("a1", "looking"), "c1", "left"),
            result_of(&call_id("c1"), "r1", "42"),
            user("u1", "hello"),
        ]);
        if machine {
            ask = ask.by_a_machine();
        }
        conversation.accepts(ask);
        let messages = conversation.view().messages;
        let said: Vec<Role> = messages.iter().map(|message| message.role).collect();
        assert_eq!(said, roles);
        assert_eq!(messages[1].tool_calls.len(), usize::from(machine));
    }
}

#[test]
fn the_tools_of_a_front_end_are_recorded_with_the_turn_and_offered_in_it_alone() {
    let mut conversation = Conversation::new();
    let step = conversation.accepts(append(&[user("u1", "one")]).client(&["left", "right"]));
    let client = only(&step.events, turn_started).client.as_ref().unwrap();
    assert_eq!(client.tools.len(), 2);
    assert_eq!(only(&step.events, call_requested).tools, ["left", "right"]);
    let (call, _) = conversation.open();
    assert_eq!(conversation.work(&call).unwrap().tools.len(), 2);
    conversation.answers("hi");
    let step = conversation.accepts(append(&[user("u2", "two")]));
    assert!(only(&step.events, call_requested).tools.is_empty());
}

// Actions.

#[test]
fn an_action_is_recorded_with_its_turn_and_owes_nothing() {
    let mut conversation = Conversation::new();
    let step = conversation.accepts(action("approve", Some(r#"{ "id": 7 }"#)).turn("t1"));
    assert_eq!(kinds(&step.events), ["session.created", "turn.started", "turn.completed"]);
    let Some(Input::Action(recorded)) = &only(&step.events, turn_started).input else {
        panic!("an action")
    };
    assert_eq!(recorded.name, "approve");
    assert_eq!(recorded.args.as_ref().unwrap().text(), r#"{ "id": 7 }"#);
    assert!(conversation.view().messages.is_empty());
    assert!(!conversation.session.owes());
}

#[test]
fn an_action_leaves_the_conversation_as_it_is() {
    let mut conversation = Conversation::with_a_completed_turn();
    let step = conversation.accepts(action("approve", None));
    assert_eq!(kinds(&step.events), NOTHING);
    assert_eq!(conversation.texts(), ["hello", "hi"]);
}

#[test]
fn an_action_does_not_wait_in_the_queue() {
    let mut conversation = Conversation::with_a_running_turn();
    let rejection = conversation.refuses(action("approve", None).queued());
    let turn_id = turn_id("t1");
    assert_eq!(rejection, Rejection::TurnAlreadyActive { turn_id, seq: Seq(2) });
}

#[test]
fn only_an_action_is_recorded_as_the_input_of_its_turn() {
    let mut conversation = Conversation::new();
    for ask in [ask("a"), append(&[user("u1", "b")]), view(&[user("u2", "c")])] {
        let step = conversation.accepts(ask);
        assert_eq!(only(&step.events, turn_started).input, None, "its messages are recorded");
        conversation.answers("hi");
    }
}

// Conditions.

#[test]
fn a_submit_may_ask_for_a_head_and_a_position() {
    let completed = Conversation::with_a_completed_turn();
    let (head, seq) = (completed.head(), completed.session.seq().0);
    let failed = Rejection::ConditionFailed { head_id: Some(message_id(&head)), seq: Seq(seq) };
    for (asked, holds) in [
        (ask("more").if_head(&head), true),
        (ask("more").if_seq(seq), true),
        (ask("more").if_head(&head).if_seq(seq), true),
        (ask("more").if_head("m1"), false),
        (ask("more").if_head("unknown"), false),
        (ask("more").if_seq(seq - 1), false),
        (ask("more").if_seq(seq + 1), false),
        (ask("more").if_head(&head).if_seq(0), false),
        (ask("more").if_head("m1").if_seq(seq), false),
    ] {
        let mut conversation = Conversation::with_a_completed_turn();
        match conversation.apply(asked.into()) {
            Ok(_) => assert!(holds),
            Err(rejection) => {
                assert!(!holds);
                assert_eq!(rejection, failed);
            }
        }
    }
}

#[test]
fn a_condition_may_ask_for_a_session_that_does_not_exist() {
    Conversation::new().accepts(ask("hello").if_seq(0));
    let rejection = Conversation::new().refuses(ask("hello").if_head("m1"));
    assert_eq!(rejection, Rejection::ConditionFailed { head_id: None, seq: Seq(0) });
}

#[test]
fn a_known_turn_is_answered_whatever_the_conditions_say() {
    let mut conversation = Conversation::with_a_completed_turn();
    conversation.ignores(ask("hello").turn("t1").if_seq(1).if_head("m9"));
}

#[test]
fn checks_come_in_one_order() {
    let helper = Rejection::AgentMismatch(AgentId::parse("helper").unwrap());
    let mut conversation = Conversation::with_a_running_turn();
    let silent = || append(&[user("u1", " ")]);
    let misplaced = || view(&[assistant("a1", "a"), user("m1", "hello")]);
    assert_eq!(conversation.refuses(silent().owner("eve").if_seq(0)), Rejection::NotOwner);
    let silence = conversation.refuses(silent().agent("other").if_seq(0));
    assert!(matches!(silence, Rejection::Invalid { .. }), "{silence:?}");
    assert_eq!(conversation.refuses(misplaced().agent("other").if_seq(0)), helper);
    let misplaced = conversation.refuses(misplaced().if_seq(0));
    assert!(matches!(misplaced, Rejection::Invalid { .. }), "{misplaced:?}");
    conversation.declared = false;
    let unknown = Rejection::UnknownAgent(AgentId::parse("helper").unwrap());
    assert_eq!(conversation.refuses(ask("more").if_seq(0)), unknown);
    conversation.declared = true;
    let condition = conversation.refuses(ask("more").if_seq(0));
    assert!(matches!(condition, Rejection::ConditionFailed { .. }), "{condition:?}");
    let busy = conversation.refuses(ask("more"));
    assert!(matches!(busy, Rejection::TurnAlreadyActive { .. }), "{busy:?}");
    conversation.accepts(interrupt("i1"));
    let paused = conversation.refuses(ask("more"));
    assert!(matches!(paused, Rejection::Interrupted { .. }), "{paused:?}");
    conversation.accepts(cancel_session());
    let condition = conversation.refuses(ask("more").if_seq(0));
    assert!(matches!(condition, Rejection::ConditionFailed { .. }), "{condition:?}");
    assert!(matches!(conversation.refuses(ask("more")), Rejection::Done { .. }));
}

#[test]
fn an_agent_that_is_not_declared_creates_nothing() {
    let mut conversation = Conversation::new();
    conversation.declared = false;
    let unknown = Rejection::UnknownAgent(AgentId::parse("helper").unwrap());
    assert_eq!(conversation.refuses(ask("hello")), unknown);
    assert_eq!(conversation.session.agent_id(), None);
}

#[test]
fn a_turn_whose_agent_is_gone_ends_with_an_error() {
    let mut conversation = Conversation::with_a_running_turn();
    conversation.declared = false;
    let step = conversation.settles(tool_calls(&[("x", "{}")]));
    let error = only(&step.events, turn_completed).error.as_ref().unwrap();
    assert_eq!(error.message, "the agent of this session is no longer declared");
}

#[test]
fn a_machine_speaks_for_the_owner_it_names() {
    let mut conversation = Conversation::with_a_completed_turn();
    let step = conversation.accepts(ask("as zoe").by_a_machine());
    assert!(matches!(step.reply, Reply::Accepted { queued: false, .. }));
    let rejection = conversation.refuses(ask("as eve").by_a_machine().owner("eve"));
    assert_eq!(rejection, Rejection::NotOwner);
    let mut submission = ask("as eve").owner("eve").0;
    submission.caller = Caller::System;
    let rejection = conversation.apply(crate::session::Command::Submit(Box::new(submission)));
    assert_eq!(rejection, Err(Rejection::NotOwner));
}

#[test]
fn a_lone_assistant_message_that_says_nothing_is_refused() {
    let silent = Message { content: None, ..assistant("a1", "") };
    let rejection = Conversation::new().refuses(ask_message(silent.clone()));
    assert!(matches!(rejection, Rejection::Invalid { path, .. } if path == "message.content"));
    let step = Conversation::new().accepts(append(&[silent]));
    assert!(!step.events.iter().any(|event| matches!(event.payload, Payload::MessageNew(_))));
}
