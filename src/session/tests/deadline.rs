//! What time and a restart do: deadlines, retries that fall due, recovery (S36, S37, S39).

use std::time::Duration;

use super::kit::*;
use crate::protocol::error::ErrorCode;
use crate::session::{Command, Effect, Rejection};
use crate::time::Timestamp;

#[test]
fn an_attempt_has_the_deadline_of_its_policy() {
    for (timeout, expected) in [(Some(180), Some(180_000)), (Some(1), Some(1000)), (None, None)] {
        let mut conversation = Conversation::new();
        conversation.agent.retry = retry(timeout, 4, 2, 30);
        let step = conversation.accepts(ask("hello"));
        let expected = expected.map(|millis| conversation.now.plus(Duration::from_millis(millis)));
        assert_eq!(only(&step.events, call_dispatched).deadline, expected);
        assert_eq!(conversation.session.wake_at(), expected);
    }
}

#[test]
fn waking_with_nothing_due_changes_nothing() {
    let mut conversation = Conversation::new();
    assert!(conversation.wakes().events.is_empty());
    conversation.accepts(ask("hello"));
    let deadline = conversation.session.wake_at().unwrap();
    conversation.now = Timestamp::from_millis(deadline.millis() - 1);
    let step = conversation.wakes();
    assert!(step.events.is_empty() && step.effects.is_empty());
    conversation.fails(overloaded());
    assert!(conversation.wakes().events.is_empty());
    conversation.wakes_at_its_timer();
    conversation.answers("hi");
    conversation.passes(1_000_000);
    assert!(conversation.wakes().events.is_empty());
}

#[test]
fn a_deadline_that_passes_stops_the_attempt_and_retries_it() {
    let mut conversation = Conversation::with_a_running_turn();
    let (id, attempt) = conversation.open();
    let step = conversation.wakes_at_its_timer();
    assert_eq!(kinds(&step.events), ["llm.call.errored"]);
    assert_eq!(step.effects, [Effect::StopCall { id, attempt }]);
    let errored = only(&step.events, call_errored);
    assert_eq!(errored.error.code, Some(ErrorCode::DeadlineExceeded));
    assert!(errored.will_retry && !errored.streamed);
    let step = conversation.wakes_at_its_timer();
    assert_eq!(only(&step.events, call_dispatched).attempt, 2);
}

#[test]
fn the_last_deadline_that_passes_ends_the_turn() {
    let mut conversation = Conversation::new();
    conversation.agent.retry = retry(Some(5), 1, 2, 30);
    conversation.accepts(ask("hello"));
    let step = conversation.wakes_at_its_timer();
    assert_eq!(kinds(&step.events), ["llm.call.errored", "turn.completed"]);
    let error = only(&step.events, turn_completed).error.as_ref().unwrap();
    assert_eq!(error.code, Some(ErrorCode::DeadlineExceeded));
}

#[test]
fn an_answer_after_its_deadline_was_recorded_is_refused() {
    let mut conversation = Conversation::with_a_running_turn();
    let (id, attempt) = conversation.open();
    conversation.wakes_at_its_timer();
    let late = settle(id, attempt, answer("late"));
    assert_eq!(conversation.apply(late.clone()), Err(Rejection::NotPending { seq: None }));
    conversation.wakes_at_its_timer();
    assert_eq!(conversation.apply(late), Err(Rejection::NotPending { seq: None }));
    conversation.answers("in time");
}

#[test]
fn an_answer_that_comes_before_its_passed_deadline_was_noticed_counts() {
    let mut conversation = Conversation::with_a_running_turn();
    conversation.passes(200_000);
    conversation.answers("just so");
    assert!(conversation.wakes().events.is_empty());
}

#[test]
fn what_the_stopped_attempt_had_shown_decides_the_id_of_the_reply() {
    for (shown, suffix) in [(true, "~2"), (false, "")] {
        let mut conversation = Conversation::with_a_running_turn();
        let (call, _) = conversation.open();
        conversation.now = conversation.session.wake_at().unwrap();
        if shown {
            conversation.shows(&call, "Hel");
        }
        let step = conversation.wakes();
        assert_eq!(only(&step.events, call_errored).streamed, shown);
        conversation.wakes_at_its_timer();
        let reply_id = conversation.work(&call).unwrap().reply_id;
        assert_eq!(reply_id, message_id(&format!("{call}{suffix}")));
    }
}

#[test]
fn a_late_wake_fires_one_timer_at_a_time() {
    let mut conversation = Conversation::with_a_running_turn();
    conversation.passes(3_600_000);
    assert_eq!(kinds(&conversation.wakes().events), ["llm.call.errored"]);
    assert!(conversation.session.wake_at().unwrap() > conversation.now);
    conversation.passes(3_600_000);
    assert_eq!(kinds(&conversation.wakes().events), ["llm.call.dispatched"]);
}

#[test]
fn a_clock_that_went_back_fires_nothing_early_and_moves_no_timer() {
    let mut conversation = Conversation::with_a_running_turn();
    conversation.passes(1000);
    conversation.fails(overloaded());
    let retry_at = conversation.session.wake_at();
    conversation.now = Timestamp::from_millis(0);
    assert!(conversation.wakes().events.is_empty());
    assert_eq!(conversation.session.wake_at(), retry_at);
    let step = conversation.wakes_at_its_timer();
    assert_eq!(kinds(&step.events), ["llm.call.dispatched"]);
}

#[test]
fn timers_survive_a_restart() {
    let mut conversation = Conversation::with_a_running_turn();
    for _ in 0..2 {
        let timer = conversation.session.wake_at();
        conversation.restart();
        assert_eq!(conversation.session.wake_at(), timer);
        conversation.wakes_at_its_timer();
    }
    assert_eq!(conversation.open().1, 2);
}

#[test]
fn a_restart_ends_the_attempt_in_flight_and_retries_it_before_its_deadline() {
    let mut conversation = Conversation::with_a_running_turn();
    let (call, attempt) = conversation.open();
    let step = conversation.recovers();
    assert_eq!(kinds(&step.events), ["llm.call.errored"]);
    assert!(step.effects.is_empty(), "nobody is left to be stopped");
    let errored = only(&step.events, call_errored);
    assert_eq!(errored.error.detail.as_ref().unwrap().text(), r#""interrupted""#);
    assert!(errored.will_retry);
    assert!(errored.retry_at.unwrap().since(conversation.now) <= Duration::from_millis(2400));
    let late = settle(call, attempt, answer("from the dead"));
    assert_eq!(conversation.apply(late), Err(Rejection::NotPending { seq: None }));
    conversation.wakes_at_its_timer();
    conversation.answers("hi");
}

#[test]
fn a_restarted_attempt_counts_as_shown_exactly_when_it_streams() {
    for stream in [true, false] {
        let mut conversation = Conversation::new();
        conversation.accepts(ask("hello").streaming(stream));
        let step = conversation.recovers();
        assert_eq!(only(&step.events, call_errored).streamed, stream);
    }
}

#[test]
fn a_restart_leaves_alone_what_only_waits() {
    let mut conversation = Conversation::new();
    assert!(conversation.recovers().events.is_empty());
    conversation.accepts(ask("hello"));
    conversation.fails(overloaded());
    let retry_at = conversation.session.wake_at();
    assert!(conversation.recovers().events.is_empty());
    assert_eq!(conversation.session.wake_at(), retry_at);
    conversation.wakes_at_its_timer();
    conversation.answers("hi");
    assert!(conversation.recovers().events.is_empty());
}

#[test]
fn recovering_twice_is_recovering_once() {
    let mut conversation = Conversation::with_a_running_turn();
    conversation.recovers();
    assert!(conversation.apply(Command::Recover).unwrap().events.is_empty());
    assert!(conversation.recovers().events.is_empty());
}

#[test]
fn restarts_use_up_attempts_and_then_the_queue_goes_on() {
    let mut conversation = Conversation::with_a_running_turn();
    conversation.accepts(ask("next").turn("t2").queued());
    for _ in 0..3 {
        conversation.recovers();
        conversation.wakes_at_its_timer();
    }
    let step = conversation.recovers();
    let expected = [
        "llm.call.errored",
        "turn.completed",
        "turn.started",
        "message.new",
        "llm.call.requested",
        "llm.call.dispatched",
    ];
    assert_eq!(kinds(&step.events), expected);
    assert_eq!(conversation.open(), (conversation.last_call_id(), 1));
}

#[test]
fn times_at_the_end_of_the_calendar_do_not_overflow() {
    let mut conversation = Conversation::new();
    conversation.now = Timestamp::from_millis(i64::MAX);
    conversation.accepts(ask("hello"));
    let wait = Duration::MAX;
    conversation.fails(overloaded_for(wait));
    assert_eq!(conversation.session.wake_at(), Some(conversation.now));
    conversation.wakes_at_its_timer();
    conversation.answers("hi");
}
