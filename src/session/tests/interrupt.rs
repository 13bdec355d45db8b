//! Pauses: where they are attached, what they stop, what waits and what goes on (S5, S42).

use super::kit::*;
use crate::ids::{Seq, derive_interrupt_id};
use crate::protocol::event::{CallKind, Origin, Payload, VoidReason};
use crate::protocol::input::InterruptRequest;
use crate::protocol::json::Json;
use crate::protocol::message::{Message, Role};
use crate::protocol::view::SessionStatus;
use crate::session::{Caller, Command, Effect, Rejection, Reply};

fn paused(conversation: &mut Conversation, command: impl Into<Command>) {
    let seq = conversation.seq_of_last("session.interrupted");
    assert_eq!(conversation.refuses(command), Rejection::Interrupted { seq });
}

fn messages_of(conversation: &Conversation) -> Vec<Message> {
    conversation.view().messages.iter().map(|message| (**message).clone()).collect()
}

// Raising.

#[test]
fn an_interrupt_is_attached_to_the_head_with_what_it_asks() {
    let mut conversation = Conversation::with_a_completed_turn();
    let request = InterruptRequest {
        interrupt_id: Some(interrupt_id("i1")),
        reason: "may I?".to_owned(),
        payload: Json::parse(r#"{"amount":7}"#),
    };
    let step = conversation.accepts(Command::Interrupt { caller: zoe(), request });
    assert_eq!(kinds(&step.events), ["session.interrupted"]);
    let seq = step.events[0].seq;
    assert_eq!(step.reply, Reply::Interrupted { interrupt_id: interrupt_id("i1"), seq });
    assert_eq!(conversation.session.status(), SessionStatus::Interrupted);
    let view = conversation.view();
    let open = &view.interrupts[0];
    assert_eq!(open.anchor, Some(message_id(&conversation.head())));
    assert_eq!((open.reason.as_str(), open.origin), ("may I?", Origin::Frontend));
    assert_eq!(open.payload.as_ref().unwrap().text(), r#"{"amount":7}"#);
    assert!(!conversation.session.owes());
}

#[test]
fn the_origin_is_that_of_the_credential() {
    for (caller, origin) in [
        (zoe(), Origin::Frontend),
        (Caller::Machine, Origin::Machine),
        (Caller::System, Origin::System),
    ] {
        let mut conversation = Conversation::with_a_completed_turn();
        let step = conversation.accepts(interrupt_by(caller, None));
        assert_eq!(only(&step.events, interrupted).origin, origin);
    }
}

#[test]
fn only_who_may_see_the_session_interrupts_it() {
    let mut conversation = Conversation::with_a_running_turn();
    let eve = interrupt_by(frontend_of("eve"), Some("i1"));
    assert_eq!(conversation.refuses(eve), Rejection::NotOwner);
    let nobody = Conversation::new().refuses(interrupt("i1"));
    assert_eq!(nobody, Rejection::UnknownSession);
}

#[test]
fn an_interrupt_without_an_id_is_given_one() {
    let mut conversation = Conversation::with_a_completed_turn();
    let mut raises = || {
        let step = conversation.accepts(interrupt_by(zoe(), None));
        let Reply::Interrupted { interrupt_id, .. } = step.reply else { panic!("raised") };
        interrupt_id
    };
    assert_ne!(raises(), raises());
}

#[test]
fn a_minted_interrupt_steps_aside_for_one_that_a_caller_guessed() {
    for answered in [false, true] {
        let mut conversation = Conversation::with_a_completed_turn();
        let ahead = if answered { 3 } else { 2 };
        let seq = Seq(conversation.session.seq().0 + ahead);
        let guess = derive_interrupt_id(&key(), seq, 0, conversation.now);
        conversation.accepts(interrupt(guess.as_str()));
        if answered {
            conversation.accepts(resume(guess.as_str()));
        }
        let step = conversation.accepts(interrupt_by(zoe(), None));
        assert_ne!(only(&step.events, interrupted).interrupt_id, guess);
    }
}

#[test]
fn the_same_interrupt_again_is_the_same_answer() {
    let mut conversation = Conversation::with_a_running_turn();
    let first = conversation.accepts(interrupt("i1")).reply;
    assert_eq!(conversation.ignores(interrupt("i1")), first);
    assert_eq!(conversation.ignores(interrupt_by(Caller::Machine, Some("i1"))), first);
    conversation.accepts(resume("i1"));
    let (call, _) = conversation.open();
    conversation.shows(&call, "Hel");
    assert_eq!(conversation.ignores(interrupt("i1")), first, "the running call is left alone");
    conversation.answers("hi");
}

#[test]
fn before_any_message_an_interrupt_pauses_every_branch() {
    let mut conversation = Conversation::new();
    conversation.accepts(action("approve", None));
    let step = conversation.accepts(interrupt("i1"));
    assert_eq!(only(&step.events, interrupted).anchor, None);
    paused(&mut conversation, ask("hello"));
    paused(&mut conversation, view(&[user("u1", "one")]));
    paused(&mut conversation, action("approve", None));
    conversation.accepts(resume("i1"));
    conversation.accepts(ask("hello"));
}

// What stops.

#[test]
fn a_running_call_is_voided_and_stopped() {
    let mut conversation = Conversation::with_a_running_turn();
    let (id, attempt) = conversation.open();
    let step = conversation.accepts(interrupt("i1"));
    assert_eq!(kinds(&step.events), ["call.voided", "session.interrupted"]);
    let voided = only(&step.events, call_voided);
    assert_eq!((&voided.id, voided.kind), (&id, CallKind::LlmCall));
    assert_eq!(voided.reason, VoidReason::Interrupted);
    assert_eq!(step.effects, [Effect::StopCall { id: id.clone(), attempt }]);
    let late = conversation.refuses(settle(id, attempt, answer("late")));
    assert_eq!(late, Rejection::NotPending { seq: Some(step.events[0].seq) });
    assert_eq!(conversation.session.running_turn(), Some(&turn_id("t1")));
    assert_eq!(conversation.session.wake_at(), None, "its deadline is gone");
}

#[test]
fn text_that_was_shown_becomes_the_reply_and_the_pause_is_attached_to_it() {
    let mut conversation = Conversation::with_a_running_turn();
    let (call, _) = conversation.open();
    conversation.shows(&call, "Hel");
    let step = conversation.accepts(interrupt("i1"));
    assert_eq!(kinds(&step.events), ["call.voided", "message.new", "session.interrupted"]);
    let kept = only(&step.events, message_new);
    assert_eq!(kept.parent_id, Some(message_id("m1")));
    assert_eq!(kept.message.id, Some(message_id(call.as_str())));
    assert_eq!((kept.message.role, text_of(&kept.message)), (Role::Assistant, "Hel".to_owned()));
    let anchor = only(&step.events, interrupted).anchor.clone();
    assert_eq!(anchor, kept.message.id);
}

#[test]
fn the_text_of_a_later_attempt_is_kept_under_its_own_id() {
    let mut conversation = Conversation::with_a_running_turn();
    conversation.settles(failed(overloaded(), true));
    conversation.wakes_at_its_timer();
    let (call, _) = conversation.open();
    conversation.shows(&call, "again");
    let step = conversation.accepts(interrupt("i1"));
    let kept = recorded(&step.events)[0];
    assert_eq!(kept.id, Some(message_id(&format!("{call}~2"))));
}

#[test]
fn a_call_that_waits_to_be_retried_is_voided_without_a_stop() {
    let mut conversation = Conversation::with_a_running_turn();
    conversation.settles(failed(overloaded(), true));
    let step = conversation.accepts(interrupt("i1"));
    assert_eq!(kinds(&step.events), ["call.voided", "session.interrupted"]);
    assert!(step.effects.is_empty(), "nobody is at work");
    assert_eq!(conversation.session.wake_at(), None);
}

#[test]
fn open_client_calls_go_on_and_their_results_are_recorded() {
    let (mut conversation, calls) = Conversation::with_open_tools(&["left", "right", "up"]);
    let step = conversation.accepts(interrupt("i1"));
    assert_eq!(kinds(&step.events), ["session.interrupted"]);
    let step = conversation.accepts(tool_result(&calls[0], "42"));
    assert_eq!(kinds(&step.events), ["tool.call.completed", "message.new"]);
    let step = conversation.accepts(append(&[result_of(&calls[1], "r2", "43")]).turn("run2"));
    assert_eq!(kinds(&step.events), ["tool.call.completed", "message.new"]);
    assert!(matches!(step.reply, Reply::Accepted { turn_id: id, .. } if id == turn_id("t1")));
    conversation.accepts(tool_error(&calls[2], "no", false));
    assert!(!conversation.session.owes(), "the model waits for the answer to the pause");
    assert_eq!(conversation.session.status(), SessionStatus::Interrupted);
    conversation.restart();
    conversation.accepts(resume("i1"));
    assert_eq!(conversation.prompt(), ["hello", "", "42", "43", "no"]);
}

#[test]
fn an_interrupt_of_a_session_that_is_done_is_refused() {
    let mut conversation = Conversation::with_a_completed_turn();
    let known = conversation.accepts(interrupt("i1"));
    let Reply::Cancelled { seq, .. } = conversation.accepts(cancel_session()).reply else {
        panic!("cancelled")
    };
    assert_eq!(conversation.refuses(interrupt("i2")), Rejection::Done { seq });
    assert_eq!(conversation.ignores(interrupt("i1")), known.reply);
}

// What waits.

#[test]
fn new_messages_on_the_paused_path_are_refused() {
    let mut conversation = Conversation::with_a_completed_turn();
    let known = messages_of(&conversation);
    conversation.accepts(interrupt("i1"));
    let more = user("u2", "more");
    paused(&mut conversation, ask("more"));
    paused(&mut conversation, ask("more").by_a_machine());
    paused(&mut conversation, append(std::slice::from_ref(&more)));
    paused(&mut conversation, view(&[&known[..], &[more]].concat()));
    paused(&mut conversation, action("approve", None));
    assert_eq!(conversation.session.turn(&turn_id("t2")).map(|(_, record)| record), None);
}

#[test]
fn a_message_for_the_queue_waits_for_the_answer_to_the_pause() {
    for running in [false, true] {
        let mut conversation = if running {
            Conversation::with_a_running_turn()
        } else {
            Conversation::with_a_completed_turn()
        };
        conversation.accepts(interrupt("i1"));
        let step = conversation.accepts(ask("next").turn("t2").queued());
        assert_eq!(kinds(&step.events), ["turn.queued"]);
        assert!(!conversation.session.owes(), "nothing is due while it is paused");
        assert_eq!(kinds(&conversation.wakes().events), [""; 0]);
        conversation.restart();
        conversation.accepts(resume("i1"));
        if running {
            conversation.answers("hi");
        }
        assert_eq!(conversation.prompt(), ["hello", "hi", "next"]);
    }
}

#[test]
fn the_queue_of_a_paused_session_is_bounded_too() {
    let mut conversation = Conversation::with_a_completed_turn();
    conversation.queued_turns_max = 1;
    conversation.accepts(interrupt("i1"));
    conversation.accepts(ask("a").queued());
    assert_eq!(conversation.refuses(ask("b").queued()), Rejection::QueueFull);
}

#[test]
fn answers_beside_a_message_for_the_queue_count_while_it_is_paused() {
    let (mut conversation, calls) = Conversation::with_open_tools(&["left"]);
    conversation.accepts(interrupt("i1"));
    let input = append(&[result_of(&calls[0], "r1", "42"), user("u2", "next")]);
    paused(&mut conversation, input.clone());
    let step = conversation.accepts(input.turn("t2").queued());
    let expected = ["tool.call.completed", "message.new", "turn.queued"];
    assert_eq!(kinds(&step.events), expected);
    conversation.accepts(resume("i1"));
    assert_eq!(conversation.prompt(), ["hello", "", "42"]);
    conversation.answers("hi");
    assert_eq!(conversation.prompt(), ["hello", "", "42", "hi", "next"]);
}

// What goes on elsewhere.

#[test]
fn a_view_that_branches_above_the_pause_runs() {
    let mut conversation = Conversation::with_a_completed_turn();
    conversation.accepts(interrupt("i1"));
    conversation.accepts(view(&[user("m1", "hello"), user("u2", "other")]));
    assert_eq!(conversation.session.status(), SessionStatus::Idle);
    assert_eq!(conversation.view().interrupts.len(), 1, "it is open on its own branch");
    assert_eq!(conversation.prompt(), ["hello", "other"]);
    conversation.answers("fine");
    conversation.accepts(ask("and on"));
}

#[test]
fn a_paused_turn_gives_way_to_a_view_elsewhere() {
    for tools in [false, true] {
        let (mut conversation, calls) = if tools {
            Conversation::with_open_tools(&["left"])
        } else {
            (Conversation::with_a_running_turn(), vec![])
        };
        conversation.accepts(interrupt("i1"));
        let step = conversation.accepts(view(&[user("m1", "edited")]).turn("t2"));
        let voided: Vec<_> = step.events.iter().filter_map(call_voided).collect();
        assert_eq!(voided.len(), calls.len());
        assert!(voided.iter().all(|voided| voided.reason == VoidReason::Cancelled));
        let completed = only(&step.events, turn_completed);
        assert_eq!((&completed.turn_id, completed.cancelled), (&turn_id("t1"), true));
        assert!(!step.events.iter().any(|event| resumed(event).is_some()), "it stays open");
        assert_eq!(conversation.prompt(), ["edited"]);
        for call in &calls {
            let late = conversation.refuses(tool_result(call, "42"));
            assert!(matches!(late, Rejection::NotPending { seq: Some(_) }), "{late:?}");
        }
        let step = conversation.accepts(resume("i1"));
        assert_eq!(kinds(&step.events), ["session.interrupt_resumed"], "only recorded");
        conversation.answers("hi");
    }
}

#[test]
fn a_view_that_only_moves_is_let_in_while_no_turn_runs() {
    let mut conversation = Conversation::new();
    let told =
        [user("u1", "one"), assistant("a1", "first"), user("u2", "two"), assistant("a2", "second")];
    conversation.accepts(append(&told));
    conversation.accepts(interrupt("i1"));
    conversation.accepts(view(&told[..2]));
    assert_eq!(conversation.session.status(), SessionStatus::Idle);
    conversation.accepts(view(&told));
    assert_eq!(conversation.session.status(), SessionStatus::Interrupted);
    conversation.accepts(view(&told));
    paused(&mut conversation, view(&[&told[..], &[user("u3", "three")]].concat()));
    conversation.accepts(view(&[&told[..2], &[user("u9", "nine")]].concat()));
    let busy = conversation.refuses(view(&told[..2]));
    assert!(matches!(busy, Rejection::TurnAlreadyActive { .. }), "{busy:?}");
}

#[test]
fn a_view_that_runs_again_on_the_paused_path_is_refused() {
    let mut conversation = Conversation::with_a_running_turn();
    conversation.accepts(interrupt("i1"));
    conversation.accepts(cancel_by(zoe(), None, false));
    conversation.accepts(interrupt("i2"));
    paused(&mut conversation, view(&[user("m1", "hello")]));
}

#[test]
fn the_queue_goes_on_where_nothing_pauses() {
    let mut conversation = Conversation::with_a_completed_turn();
    conversation.accepts(interrupt("i1"));
    conversation.accepts(ask("next").turn("t2").queued());
    conversation.accepts(view(&[user("m1", "hello"), user("u2", "other")]).turn("t3"));
    conversation.answers("fine");
    assert_eq!(conversation.prompt(), ["hello", "other", "fine", "next"]);
}

#[test]
fn a_move_away_from_the_pause_lets_the_queue_go_on() {
    let mut conversation = Conversation::new();
    let told = [user("u1", "one"), assistant("a1", "first"), user("u2", "two")];
    conversation.accepts(append(&told));
    conversation.answers("second");
    conversation.accepts(interrupt("i1"));
    conversation.accepts(ask("next").queued());
    let step = conversation.accepts(view(&told[..2]));
    let expected = ["turn.started", "head.moved", "turn.completed", "turn.started", "message.new"];
    assert_eq!(kinds(&step.events)[..5], expected);
    assert_eq!(conversation.prompt(), ["one", "first", "next"]);
}

#[test]
fn several_interrupts_may_be_open_on_several_branches() {
    let mut conversation = Conversation::with_a_completed_turn();
    let first = messages_of(&conversation);
    conversation.accepts(interrupt("i1"));
    conversation.accepts(view(&[user("m1", "edited")]));
    conversation.answers("other");
    let second = messages_of(&conversation);
    conversation.accepts(interrupt("i2"));
    conversation.accepts(interrupt("i3"));
    let open = |conversation: &Conversation| -> Vec<String> {
        conversation.view().interrupts.iter().map(|it| it.interrupt_id.to_string()).collect()
    };
    assert_eq!(open(&conversation), ["i1", "i2", "i3"]);
    conversation.accepts(resume("i2"));
    assert_eq!(conversation.session.status(), SessionStatus::Interrupted, "i3 pauses it still");
    conversation.accepts(resume("i3"));
    assert_eq!(conversation.session.status(), SessionStatus::Idle);
    conversation.accepts(view(&first));
    assert_eq!(conversation.session.status(), SessionStatus::Interrupted);
    conversation.accepts(resume("i1"));
    assert_eq!(open(&conversation), [""; 0]);
    conversation.accepts(view(&second));
}

#[test]
fn a_message_below_the_anchor_is_paused_with_it() {
    let mut conversation = Conversation::new();
    let told = [user("u1", "one"), assistant("a1", "first"), user("u2", "two")];
    conversation.accepts(append(&told[..2]));
    conversation.accepts(interrupt("i1"));
    // However it came there: the log of an earlier version has a message below the anchor.
    let message = std::sync::Arc::new(told[2].clone());
    let parent_id = Some(message_id("a1"));
    let recorded = crate::protocol::event::MessageNew { message, parent_id };
    conversation.given(Payload::MessageNew(recorded));
    assert_eq!(conversation.session.status(), SessionStatus::Interrupted);
    paused(&mut conversation, ask("more"));
}
