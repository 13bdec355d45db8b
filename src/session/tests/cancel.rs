//! The end of a turn or of a session before it is done (S20, S21).

use super::kit::*;
use crate::ids::Seq;
use crate::protocol::event::{
    CallKind, Event, Payload, ResumeStatus, SessionCancelled, VoidReason,
};
use crate::protocol::input::CancelRequest;
use crate::protocol::message::{FunctionCall, FunctionTag, Role, ToolCall};
use crate::protocol::view::SessionStatus;
use crate::session::{Caller, Command, Effect, Rejection, Reply, TurnRecord};

const BUSY: [&str; 2] = ["call.voided", "turn.completed"];

fn session_cancelled(event: &Event) -> Option<&SessionCancelled> {
    if let Payload::SessionCancelled(cancelled) = &event.payload {
        return Some(cancelled);
    }
    None
}

fn cancelled(seq: Seq) -> Reply {
    Reply::Cancelled { cancelled: true, seq }
}

fn too_late(seq: Seq) -> Reply {
    Reply::Cancelled { cancelled: false, seq }
}

fn because(reason: &str, session: bool) -> Command {
    let request = CancelRequest { turn_id: None, reason: Some(reason.to_owned()), session };
    Command::Cancel { caller: zoe(), request }
}

// One turn, in each of its states.

#[test]
fn a_running_call_is_voided_and_stopped_and_its_turn_completes() {
    for command in [cancel(), cancel_turn("t1"), cancel_by(Caller::Machine, None, false)] {
        let mut conversation = Conversation::with_a_running_turn();
        let (id, attempt) = conversation.open();
        let step = conversation.accepts(command);
        assert_eq!(kinds(&step.events), BUSY);
        let voided = only(&step.events, call_voided);
        assert_eq!((&voided.id, voided.kind), (&id, CallKind::LlmCall));
        assert_eq!(voided.reason, VoidReason::Cancelled);
        let completed = only(&step.events, turn_completed);
        assert!(completed.cancelled && completed.data.is_none() && completed.error.is_none());
        assert_eq!(step.effects, [Effect::StopCall { id: id.clone(), attempt }]);
        assert_eq!(step.reply, cancelled(step.events[1].seq));
        let late = conversation.refuses(settle(id, attempt, answer("late")));
        assert_eq!(late, Rejection::NotPending { seq: Some(step.events[0].seq) });
        assert_eq!(conversation.texts(), ["hello"]);
        assert!(!conversation.session.owes());
        conversation.accepts(ask("more"));
    }
}

#[test]
fn text_that_was_shown_is_kept_as_the_reply() {
    let mut conversation = Conversation::with_a_running_turn();
    let (call, _) = conversation.open();
    conversation.shows(&call, "Hel");
    let step = conversation.accepts(cancel());
    assert_eq!(kinds(&step.events), ["call.voided", "message.new", "turn.completed"]);
    let kept = recorded(&step.events)[0];
    assert_eq!((kept.role, &kept.id), (Role::Assistant, &Some(message_id(call.as_str()))));
    assert_eq!(conversation.texts(), ["hello", "Hel"]);
    conversation.accepts(ask("more"));
    assert_eq!(conversation.prompt(), ["hello", "Hel", "more"]);
}

#[test]
fn half_streamed_tool_calls_are_dropped() {
    let mut conversation = Conversation::new();
    conversation.accepts(ask_with_tools("hello", &["left"]));
    let (call, _) = conversation.open();
    // An executor that had begun to show a call tells the text alone.
    conversation.shows(&call, "let me look");
    let step = conversation.accepts(cancel());
    assert!(recorded(&step.events)[0].tool_calls.is_empty());
    assert!(!step.events.iter().any(|event| tool_requested(event).is_some()));
}

#[test]
fn a_cancelled_turn_costs_what_was_answered() {
    let (mut conversation, calls) = Conversation::with_open_tools(&["left"]);
    conversation.accepts(tool_result(&calls[0], "42"));
    let mut outcome = tool_calls(&[("left", "{}")]);
    if let Ok(response) = &mut outcome.result {
        response.cost = Some(cost("0.5"));
    }
    conversation.settles(outcome);
    let step = conversation.accepts(cancel());
    assert_eq!(only(&step.events, turn_completed).cost, cost("0.5"));
}

#[test]
fn a_call_that_waits_to_be_retried_is_voided_without_a_stop() {
    let mut conversation = Conversation::with_a_running_turn();
    conversation.settles(failed(overloaded(), true));
    let step = conversation.accepts(cancel());
    assert_eq!(kinds(&step.events), BUSY);
    assert!(step.effects.is_empty(), "nobody is at work");
}

#[test]
fn open_client_calls_are_voided_and_settled_ones_are_left() {
    let (mut conversation, calls) = Conversation::with_open_tools(&["left", "right", "up"]);
    conversation.accepts(tool_result(&calls[1], "42"));
    let step = conversation.accepts(cancel());
    assert_eq!(kinds(&step.events), ["call.voided", "call.voided", "turn.completed"]);
    let voided: Vec<_> = step.events.iter().filter_map(call_voided).collect();
    assert!(voided.iter().all(|voided| voided.kind == CallKind::ToolCall));
    for (call, event) in [(&calls[0], &step.events[0]), (&calls[2], &step.events[1])] {
        let late = conversation.refuses(tool_result(call, "42"));
        assert_eq!(late, Rejection::NotPending { seq: Some(event.seq) });
    }
    let rejection = conversation.refuses(ask_message(result_of(&calls[0], "r1", "42")));
    assert!(matches!(rejection, Rejection::Invalid { .. }), "{rejection:?}");
    assert_eq!(conversation.texts(), ["hello", "", "42"]);
    conversation.accepts(ask("more"));
}

#[test]
fn the_pauses_of_the_turn_are_answered_as_cancelled() {
    let mut conversation = Conversation::with_a_running_turn();
    conversation.accepts(interrupt("i1"));
    conversation.accepts(interrupt("i2"));
    let step = conversation.accepts(cancel());
    let expected = ["session.interrupt_resumed", "session.interrupt_resumed", "turn.completed"];
    assert_eq!(kinds(&step.events), expected);
    for answer in step.events.iter().filter_map(resumed) {
        assert_eq!((answer.status, &answer.payload), (Some(ResumeStatus::Cancelled), &None));
    }
    assert_eq!(conversation.session.status(), SessionStatus::Idle);
    conversation.accepts(ask("more"));
}

#[test]
fn a_pause_that_the_caller_may_not_answer_stays() {
    let mut conversation = Conversation::with_a_running_turn();
    conversation.accepts(interrupt_by(Caller::Machine, Some("i1")));
    conversation.accepts(interrupt("i2"));
    let step = conversation.accepts(cancel());
    assert_eq!(only(&step.events, resumed).interrupt_id, interrupt_id("i2"));
    assert_eq!(conversation.session.status(), SessionStatus::Interrupted);
    assert_eq!(conversation.session.running_turn(), None);
    conversation.accepts(resume_by(Caller::Machine, "i1", None));
    assert_eq!(conversation.prompt(), ["hello"], "the reply is owed still");
}

#[test]
fn a_pause_that_was_there_before_the_turn_stays() {
    let mut conversation = Conversation::with_a_completed_turn();
    conversation.accepts(interrupt("i1"));
    conversation.accepts(view(&[user("m1", "edited")]));
    conversation.accepts(interrupt("i2"));
    let step = conversation.accepts(cancel());
    assert_eq!(only(&step.events, resumed).interrupt_id, interrupt_id("i2"));
    assert_eq!(conversation.view().interrupts.len(), 1);
}

#[test]
fn the_queue_goes_on_in_the_same_step() {
    let mut conversation = Conversation::with_a_running_turn();
    conversation.accepts(ask("next").turn("t2").queued());
    let step = conversation.accepts(cancel());
    assert_eq!(step.reply, cancelled(step.events[1].seq), "of the end, not of the next turn");
    assert_eq!(only(&step.events, turn_started).turn_id, turn_id("t2"));
    assert_eq!(conversation.prompt(), ["hello", "next"]);
}

#[test]
fn a_queued_turn_ends_without_having_started() {
    let mut conversation = Conversation::with_a_running_turn();
    conversation.accepts(ask("a").turn("t2").queued());
    conversation.accepts(ask("b").turn("t3").queued());
    let step = conversation.accepts(cancel_turn("t2"));
    assert_eq!(kinds(&step.events), ["turn.completed"]);
    let completed = only(&step.events, turn_completed);
    assert_eq!((&completed.turn_id, completed.cancelled), (&turn_id("t2"), true));
    let seq = step.events[0].seq;
    assert_eq!(step.reply, cancelled(seq));
    let record = conversation.session.turn(&turn_id("t2")).map(|(_, record)| record);
    assert_eq!(record, Some(TurnRecord::Completed { started: seq, completed: seq }));
    let reply = conversation.ignores(ask("a").turn("t2"));
    assert_eq!(reply, Reply::Accepted { turn_id: turn_id("t2"), queued: false, seq });
    conversation.answers("hi");
    assert_eq!(conversation.prompt(), ["hello", "hi", "b"]);
}

#[test]
fn a_completed_turn_is_not_cancelled_again() {
    let mut conversation = Conversation::with_a_completed_turn();
    let seq = conversation.seq_of_last("turn.completed");
    assert_eq!(conversation.ignores(cancel()), too_late(seq));
    assert_eq!(conversation.ignores(cancel_turn("t1")), too_late(seq));
    conversation.accepts(ask("more").turn("t2"));
    assert_eq!(conversation.ignores(cancel_turn("t1")), too_late(seq), "t2 goes on");
    conversation.answers("fine");
}

#[test]
fn cancelling_twice_is_cancelling_once() {
    let mut conversation = Conversation::with_a_running_turn();
    let Reply::Cancelled { seq, .. } = conversation.accepts(cancel()).reply else {
        panic!("cancelled")
    };
    assert_eq!(conversation.ignores(cancel()), too_late(seq));
    conversation.restart();
    assert_eq!(conversation.ignores(cancel_turn("t1")), too_late(seq));
}

#[test]
fn without_a_name_the_turn_that_started_last_is_meant() {
    let mut conversation = Conversation::with_a_completed_turn();
    conversation.accepts(ask("more").turn("t2"));
    conversation.accepts(ask("next").turn("t3").queued());
    let step = conversation.accepts(cancel());
    assert_eq!(only(&step.events, turn_completed).turn_id, turn_id("t2"));
}

#[test]
fn an_unknown_turn_is_refused() {
    let mut conversation = Conversation::with_a_running_turn();
    assert_eq!(conversation.refuses(cancel_turn("t9")), Rejection::UnknownTurn);
    let named = cancel_by(zoe(), Some("t9"), true);
    assert_eq!(conversation.refuses(named), Rejection::UnknownTurn);
    conversation.answers("hi");
}

#[test]
fn only_who_may_see_the_session_cancels_it() {
    let mut conversation = Conversation::with_a_running_turn();
    for session in [false, true] {
        let eve = cancel_by(frontend_of("eve"), None, session);
        assert_eq!(conversation.refuses(eve), Rejection::NotOwner);
        let nobody = Conversation::new().refuses(cancel_by(zoe(), None, session));
        assert_eq!(nobody, Rejection::UnknownSession);
    }
}

#[test]
fn a_reason_is_recorded_with_what_it_ended() {
    let mut conversation = Conversation::with_a_running_turn();
    let step = conversation.accepts(because("changed my mind", false));
    let completed = only(&step.events, turn_completed);
    assert_eq!(completed.reason.as_deref(), Some("changed my mind"));
    conversation.accepts(ask("more"));
    let step = conversation.accepts(because("moving out", true));
    assert_eq!(only(&step.events, turn_completed).reason, None);
    let ended = only(&step.events, session_cancelled);
    assert_eq!(ended.reason.as_deref(), Some("moving out"));
}

// The whole session.

#[test]
fn a_session_ends_with_its_running_and_its_waiting_turns() {
    let mut conversation = Conversation::with_a_running_turn();
    let (call, attempt) = conversation.open();
    conversation.shows(&call, "Hel");
    for id in ["t2", "t3"] {
        conversation.accepts(ask(id).turn(id).queued());
    }
    let step = conversation.accepts(cancel_session());
    let expected = [
        "call.voided",
        "message.new",
        "turn.completed",
        "turn.completed",
        "turn.completed",
        "session.cancelled",
    ];
    assert_eq!(kinds(&step.events), expected);
    assert!(step.events.iter().filter_map(turn_completed).all(|completed| completed.cancelled));
    let ended: Vec<_> = step.events[2..5].iter().map(|event| event.turn_id.clone()).collect();
    assert_eq!(ended, ["t1", "t2", "t3"].map(|id| Some(turn_id(id))));
    assert_eq!(step.reply, cancelled(step.events[5].seq));
    assert_eq!(step.effects, [Effect::StopCall { id: call, attempt }]);
    assert_eq!(conversation.session.status(), SessionStatus::Done);
    assert!(!conversation.session.owes());
}

#[test]
fn a_session_ends_in_every_state() {
    let idle = Conversation::with_a_completed_turn();
    let (waiting, _) = Conversation::with_open_tools(&["left"]);
    let mut paused = Conversation::with_a_running_turn();
    paused.accepts(interrupt_by(Caller::Machine, Some("i1")));
    paused.accepts(ask("next").turn("t2").queued());
    let mut retrying = Conversation::with_a_running_turn();
    retrying.fails(overloaded());
    for mut conversation in [idle, waiting, paused, retrying] {
        let step = conversation.accepts(cancel_session());
        assert_eq!(kinds(&step.events).last(), Some(&"session.cancelled"));
        conversation.restart();
        assert_eq!(conversation.session.status(), SessionStatus::Done);
        assert_eq!(conversation.view().interrupts, [], "open pauses count as answered");
        assert_eq!(conversation.session.wake_at(), None);
        assert!(conversation.recovers().events.is_empty());
    }
}

#[test]
fn a_session_that_is_done_takes_nothing_more_but_updates() {
    let (mut conversation, calls) = Conversation::with_open_tools(&["left"]);
    let model = conversation.last_call_id();
    conversation.accepts(interrupt("i1"));
    conversation.accepts(ask("next").turn("t2").queued());
    let Reply::Cancelled { seq, .. } = conversation.accepts(cancel_session()).reply else {
        panic!("cancelled")
    };
    let done = Rejection::Done { seq };
    for ask in [
        ask("more"),
        ask("more").queued(),
        ask("more").by_a_machine(),
        append(&[user("u2", "two")]),
        view(&[user("m1", "hello")]),
        action("approve", None),
    ] {
        assert_eq!(conversation.refuses(ask), done);
    }
    assert_eq!(conversation.refuses(interrupt("i2")), done);
    conversation.ignores(ask("hello").turn("t1"));
    conversation.ignores(ask("next").turn("t2"));
    conversation.ignores(resume("i1"));
    conversation.ignores(resume("unknown"));
    for command in [cancel(), cancel_turn("t1"), cancel_turn("t2"), cancel_session()] {
        assert_eq!(conversation.ignores(command), too_late(seq));
    }
    for id in [&calls[0], &model] {
        let late = conversation.refuses(tool_result(id, "42"));
        assert!(matches!(late, Rejection::NotPending { seq: Some(_) }), "{late:?}");
    }
    let late = conversation.refuses(settle(model, 1, answer("late")));
    assert!(matches!(late, Rejection::NotPending { seq: Some(_) }), "{late:?}");
    conversation.ignores(Command::Wake);
    conversation.ignores(Command::Recover);
    let step = conversation.accepts(update(Some("over"), None));
    assert_eq!(kinds(&step.events), ["session.updated"]);
    assert_eq!(conversation.view().title.as_deref(), Some("over"));
}

#[test]
fn the_reply_of_a_model_that_called_tools_is_kept_with_its_calls() {
    let (mut conversation, calls) = Conversation::with_open_tools(&["left"]);
    conversation.accepts(cancel());
    let reply = conversation.view().messages[1].clone();
    let function = FunctionCall { name: "left".to_owned(), arguments: "{}".to_owned() };
    let expected = ToolCall { id: calls[0].clone(), kind: FunctionTag::Function, function };
    assert_eq!(reply.tool_calls, [expected]);
}
