//! A turn that waits for its client alone gives way to what its user does next (S60).

use super::kit::*;
use crate::protocol::message::{Message, Role};
use crate::session::{Rejection, Reply};

const UNANSWERED: &str = "the user continued without answering";
/// Of one open call.
const GIVES_WAY: [&str; 3] = ["tool.call.errored", "message.new", "turn.completed"];

fn messages_of(conversation: &Conversation) -> Vec<Message> {
    conversation.view().messages.iter().map(|message| (**message).clone()).collect()
}

#[test]
fn a_new_message_on_any_input_closes_the_open_calls_and_starts_the_next_turn() {
    for which in 0..4 {
        let (mut conversation, calls) = Conversation::with_open_tools(&["left"]);
        let next = user("u2", "never mind");
        let input = match which {
            0 => ask_message(next),
            1 => append(&[next]),
            2 => append(&[next]).queued(),
            _ => view(&[&messages_of(&conversation)[..], &[next]].concat()),
        };
        let step = conversation.accepts(input.turn("t2"));
        let started = ["turn.started", "message.new", "llm.call.requested", "llm.call.dispatched"];
        assert_eq!(kinds(&step.events), [&GIVES_WAY[..], &started].concat(), "{which}");
        let errored = only(&step.events, tool_errored);
        assert_eq!((&errored.id, errored.error.message.as_str()), (&calls[0], UNANSWERED));
        assert!(!errored.retryable);
        let result = recorded(&step.events)[0];
        assert_eq!((result.role, result.tool_call_id.as_ref()), (Role::Tool, Some(&calls[0])));
        let completed = only(&step.events, turn_completed);
        assert_eq!(completed.turn_id, turn_id("t1"));
        assert!(completed.data.is_none() && completed.error.is_none() && !completed.cancelled);
        let seq = step.events[3].seq;
        assert_eq!(step.reply, Reply::Accepted { turn_id: turn_id("t2"), queued: false, seq });
        assert_eq!(conversation.prompt(), ["hello", "", UNANSWERED, "never mind"], "{which}");
        let late = conversation.refuses(tool_result(&calls[0], "42"));
        assert_eq!(late, Rejection::NotPending { seq: Some(step.events[0].seq) });
    }
}

#[test]
fn each_open_call_is_closed_and_answered_ones_keep_their_result() {
    let (mut conversation, calls) = Conversation::with_open_tools(&["left", "right", "up"]);
    conversation.accepts(tool_result(&calls[1], "42"));
    conversation.accepts(ask("never mind"));
    let prompt = conversation.prompt();
    assert_eq!(prompt, ["hello", "", "42", UNANSWERED, UNANSWERED, "never mind"]);
}

#[test]
fn answers_beside_a_new_message_count_and_the_rest_is_closed() {
    let (before, calls) = Conversation::with_open_tools(&["left", "right"]);
    let known = messages_of(&before);
    let news = [result_of(&calls[1], "r2", "42"), user("u2", "never mind")];
    for input in [append(&news), view(&[&known[..], &news].concat())] {
        let (mut conversation, _) = Conversation::with_open_tools(&["left", "right"]);
        let step = conversation.accepts(input.turn("t2"));
        assert_eq!(only(&step.events, tool_completed).run_id, None, "t2 is a turn of its own");
        let prompt = conversation.prompt();
        assert_eq!(prompt, ["hello", "", "42", UNANSWERED, "never mind"]);
        let record = conversation.session.turn(&turn_id("t2")).map(|(_, record)| record).unwrap();
        assert_ne!(
            Some(record),
            conversation.session.turn(&turn_id("t1")).map(|(_, record)| record)
        );
    }
}

#[test]
fn a_view_goes_on_below_what_closing_the_calls_recorded() {
    // hello, the calls, the one result: with it, and without.
    for keep in [3, 2] {
        let (mut conversation, calls) = Conversation::with_open_tools(&["left", "right"]);
        conversation.accepts(append(&[result_of(&calls[0], "r1", "42")]));
        let known = messages_of(&conversation);
        conversation.accepts(view(&[&known[..keep], &[user("u2", "never mind")]].concat()));
        let prompt = conversation.prompt();
        assert_eq!(prompt, ["hello", "", "42", UNANSWERED, "never mind"]);
    }
}

#[test]
fn an_edit_or_another_answer_to_an_earlier_message_takes_the_place_of_the_turn() {
    for (messages, prompt) in
        [(vec![user("m1", "edited")], "edited"), (vec![user("m1", "hello")], "hello")]
    {
        let (mut conversation, _) = Conversation::with_open_tools(&["left"]);
        let step = conversation.accepts(view(&messages));
        assert_eq!(kinds(&step.events)[..3], GIVES_WAY);
        assert_eq!(conversation.prompt(), [prompt]);
    }
}

#[test]
fn a_move_to_another_branch_takes_the_place_of_the_turn() {
    let mut conversation = Conversation::new();
    conversation.accepts(append(&[user("u1", "one"), assistant("a1", "first")]));
    conversation.accepts(view(&[user("u9", "nine")]).client(&["left"]));
    conversation.calls_tools(&["left"]);
    let step = conversation.accepts(view(&[user("u1", "one"), assistant("a1", "first")]));
    let moved = ["turn.started", "head.moved", "turn.completed"];
    assert_eq!(kinds(&step.events), [&GIVES_WAY[..], &moved].concat());
    assert_eq!(conversation.head(), "a1");
}

#[test]
fn the_same_conversation_without_a_word_more_does_not_end_the_turn() {
    let (mut conversation, calls) = Conversation::with_open_tools(&["left", "right"]);
    let busy = |rejection| matches!(rejection, Rejection::TurnAlreadyActive { .. });
    assert!(busy(conversation.refuses(view(&messages_of(&conversation)))));
    assert!(busy(conversation.refuses(append(&messages_of(&conversation)))));
    assert!(busy(conversation.refuses(action("approve", None))));
    conversation.accepts(append(&[result_of(&calls[0], "r1", "42")]));
    let with_result = messages_of(&conversation);
    assert!(busy(conversation.refuses(view(&with_result[..2]))));
    assert!(busy(conversation.refuses(view(&with_result))));
    conversation.accepts(append(&[result_of(&calls[1], "r2", "43")]));
    assert_eq!(conversation.prompt(), ["hello", "", "42", "43"]);
}

#[test]
fn a_turn_whose_model_is_at_work_does_not_give_way() {
    let (mut conversation, calls) = Conversation::with_open_tools(&["left"]);
    conversation.accepts(tool_result(&calls[0], "42"));
    let rejection = conversation.refuses(ask("never mind"));
    assert!(matches!(rejection, Rejection::TurnAlreadyActive { .. }), "{rejection:?}");
}

#[test]
fn a_turn_that_gives_way_costs_what_its_calls_cost() {
    let mut conversation = Conversation::new();
    conversation.accepts(ask_with_tools("hello", &["left"]));
    let mut outcome = tool_calls(&[("left", "{}")]);
    if let Ok(response) = &mut outcome.result {
        response.cost = Some(cost("0.25"));
    }
    conversation.settles(outcome);
    let step = conversation.accepts(ask("never mind"));
    assert_eq!(only(&step.events, turn_completed).cost, cost("0.25"));
}

// The queue.

#[test]
fn the_head_of_the_queue_takes_the_place_of_a_turn_that_begins_to_wait_for_its_client() {
    let mut conversation = Conversation::new();
    conversation.accepts(ask_with_tools("hello", &["left"]).turn("t1"));
    conversation.accepts(ask("next").turn("t2").queued());
    conversation.accepts(ask("last").turn("t3").queued());
    let step = conversation.settles(tool_calls(&[("left", "{}")]));
    let completed = only(&step.events, turn_completed);
    assert_eq!(completed.turn_id, turn_id("t1"));
    assert_eq!(only(&step.events, turn_started).turn_id, turn_id("t2"));
    assert_eq!(conversation.prompt(), ["hello", "", UNANSWERED, "next"]);
    conversation.answers("hi");
    assert_eq!(conversation.prompt()[4..], ["hi", "last"]);
}

#[test]
fn a_message_for_the_queue_starts_at_once_while_only_the_client_is_waited_for() {
    let (mut conversation, _) = Conversation::with_open_tools(&["left"]);
    let step = conversation.accepts(ask("next").turn("t2").queued());
    assert!(matches!(step.reply, Reply::Accepted { queued: false, .. }), "{step:?}");
    assert_eq!(conversation.prompt(), ["hello", "", UNANSWERED, "next"]);
}

#[test]
fn a_known_message_in_the_queue_leaves_the_client_its_calls() {
    let (mut conversation, calls) = Conversation::with_open_tools(&["left"]);
    let step = conversation.accepts(ask("hello").message("m1").turn("t2").queued());
    assert_eq!(kinds(&step.events), ["turn.queued"]);
    assert!(!conversation.session.owes());
    conversation.apply(tool_result(&calls[0], "done")).unwrap();
    let step = conversation.answers("hi");
    let ended = &kinds(&step.events)[2..];
    assert_eq!(ended, ["turn.completed", "turn.started", "turn.completed"]);
}

#[test]
fn the_queue_goes_on_after_a_restart_in_the_middle() {
    let mut conversation = Conversation::new();
    conversation.accepts(ask_with_tools("hello", &["left"]).turn("t1"));
    conversation.accepts(ask("next").turn("t2").queued());
    let settled = conversation.settles(tool_calls(&[("left", "{}")]));
    let opened = settled.events.iter().position(|event| tool_errored(event).is_some()).unwrap();
    let events = &conversation.log[..conversation.log.len() - settled.events.len() + opened];
    let session = crate::session::Session::replay(key(), events);
    assert!(session.owes(), "a turn that may start is due");
    assert_eq!(session.wake_at(), Some(session.last_event_at()));
}
