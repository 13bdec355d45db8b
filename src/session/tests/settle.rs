//! Answers of executors: one settle per attempt, failures, waits, the ids of replies (S24, S36 to S38,
//! S48, S50).

use std::time::Duration;

use super::kit::*;
use crate::ids::{CallId, MessageId, Seq, derive_call_id, tool_call_id};
use crate::protocol::content::Content;
use crate::protocol::error::{ErrorCode, ErrorInfo};
use crate::protocol::llm::{Cost, LlmResponse, Usage};
use crate::protocol::message::Role;
use crate::session::{CallFailure, Rejection, Reply};

#[test]
fn an_answer_is_recorded_under_the_id_of_its_call_and_completes_the_turn() {
    let mut conversation = Conversation::with_a_running_turn();
    let call = conversation.last_call_id();
    let step = conversation.answers("hi");
    let expected = ["llm.call.completed", "message.new", "turn.completed"];
    assert_eq!(kinds(&step.events), expected);
    assert_eq!(step.reply, Reply::Done);
    assert!(step.effects.is_empty());
    let reply = &only(&step.events, message_new).message;
    assert_eq!(reply.id, Some(message_id(call.as_str())));
    assert_eq!(reply.role, Role::Assistant);
    assert_eq!(reply.content, Some(Content::Text("hi".to_owned())));
    let completed = only(&step.events, turn_completed);
    assert_eq!(completed.data.as_ref().unwrap().text(), r#""hi""#);
    assert_eq!(completed.error, None);
}

#[test]
fn an_answer_without_text_completes_the_turn_without_data() {
    let mut conversation = Conversation::with_a_running_turn();
    let step = conversation.settles(responds(LlmResponse::default()));
    assert_eq!(only(&step.events, message_new).message.content, None);
    assert_eq!(only(&step.events, turn_completed).data, None);
}

#[test]
fn only_the_attempt_that_is_out_may_settle() {
    let mut conversation = Conversation::with_a_running_turn();
    conversation.fails(overloaded());
    conversation.wakes_at_its_timer();
    let (call, attempt) = conversation.open();
    assert_eq!(attempt, 2);
    let unknown = CallId::parse("unknown").unwrap();
    for (id, attempt) in [(&call, 0), (&call, 1), (&call, 3), (&unknown, 2)] {
        for outcome in [answer("late"), failed(overloaded(), false)] {
            let verdict = conversation.apply(settle(id.clone(), attempt, outcome));
            assert_eq!(verdict, Err(Rejection::NotPending { seq: None }), "{id} {attempt}");
        }
    }
    conversation.answers("hi");
}

#[test]
fn an_attempt_that_waits_to_be_retried_cannot_settle() {
    let mut conversation = Conversation::with_a_running_turn();
    let call = conversation.last_call_id();
    conversation.fails(overloaded());
    for attempt in [1, 2] {
        let verdict = conversation.apply(settle(call.clone(), attempt, answer("late")));
        assert_eq!(verdict, Err(Rejection::NotPending { seq: None }));
    }
}

#[test]
fn a_settled_call_stays_settled() {
    let mut conversation = Conversation::with_a_running_turn();
    let (call, attempt) = conversation.open();
    conversation.answers("hi");
    let decided = Err(Rejection::NotPending { seq: Some(Seq(6)) });
    let again = settle(call.clone(), attempt, answer("hi"));
    assert_eq!(conversation.apply(again.clone()), decided);
    assert_eq!(Rejection::NotPending { seq: None }.to_string(), "effect is not pending");
    conversation.restart();
    conversation.accepts(ask("more"));
    assert_eq!(conversation.apply(again), decided);
}

#[test]
fn a_failure_is_retried_until_the_attempts_are_used_up() {
    let mut conversation = Conversation::new();
    conversation.agent.retry = retry(Some(180), 3, 2, 30);
    conversation.accepts(ask("hello"));
    for attempt in [1, 2] {
        let step = conversation.fails(overloaded());
        assert_eq!(kinds(&step.events), ["llm.call.errored"]);
        let errored = only(&step.events, call_errored);
        assert!(errored.retryable && errored.will_retry && errored.attempt == attempt);
        assert!(conversation.session.outstanding().is_empty());
        let step = conversation.wakes_at_its_timer();
        assert_eq!(kinds(&step.events), ["llm.call.dispatched"]);
        assert_eq!(only(&step.events, call_dispatched).attempt, attempt + 1);
    }
    let step = conversation.fails(overloaded());
    assert_eq!(kinds(&step.events), ["llm.call.errored", "turn.completed"]);
    let errored = only(&step.events, call_errored);
    assert!(errored.retryable && !errored.will_retry);
    assert_eq!(errored.retry_at, None);
    let completed = only(&step.events, turn_completed);
    assert_eq!(completed.error, Some(overloaded().error));
    assert_eq!(completed.data, None);
}

#[test]
fn a_failure_that_is_final_ends_the_turn_at_once() {
    let mut conversation = Conversation::with_a_running_turn();
    let step = conversation.fails(refused());
    assert_eq!(kinds(&step.events), ["llm.call.errored", "turn.completed"]);
    let error = only(&step.events, turn_completed).error.as_ref().unwrap();
    assert_eq!(error.code, Some(ErrorCode::Refused));
    assert_eq!(conversation.session.wake_at(), None);
}

#[test]
fn a_call_keeps_the_policy_that_it_was_requested_with() {
    let mut conversation = Conversation::with_a_running_turn();
    conversation.agent.retry = retry(Some(1), 1, 1, 1);
    let step = conversation.fails(overloaded());
    assert!(only(&step.events, call_errored).will_retry);
    let step = conversation.wakes_at_its_timer();
    let deadline = only(&step.events, call_dispatched).deadline.unwrap();
    assert_eq!(deadline.since(conversation.now), Duration::from_mins(3));
}

/// Waits before attempts 2, 3 and so on, in milliseconds.
fn waits(base: u64, longest: u64, attempts: u32, retry_after: Option<Duration>) -> Vec<u64> {
    let mut conversation = Conversation::new();
    conversation.agent.retry = retry(None, attempts, base, longest);
    conversation.accepts(ask("hello"));
    let mut waits = Vec::new();
    for _ in 1..attempts {
        let step = conversation.fails(CallFailure { retry_after, ..overloaded() });
        let retry_at = only(&step.events, call_errored).retry_at.unwrap();
        waits.push(u64::try_from(retry_at.since(conversation.now).as_millis()).unwrap());
        conversation.wakes_at_its_timer();
    }
    waits
}

#[test]
fn waits_grow_by_the_power_of_the_base_up_to_the_longest_with_a_fifth_of_jitter() {
    for (base, longest, expected) in [
        (2, 30, vec![2, 4, 8, 16, 30, 30, 30]),
        (2, 60, vec![2, 4, 8, 16, 32, 60, 60]),
        (3, 1000, vec![3, 9, 27, 81, 243, 729, 1000]),
        (1, 30, vec![1, 1, 1]),
        (10, 5, vec![5, 5, 5]),
    ] {
        let attempts = u32::try_from(expected.len()).unwrap() + 1;
        let waited = waits(base, longest, attempts, None);
        for (secs, millis) in expected.into_iter().zip(waited) {
            let (least, most) = (secs * 1000, secs * 1200);
            assert!((least..=most).contains(&millis), "{base}^n <= {longest}: {millis}");
        }
    }
}

#[test]
fn jitter_differs_from_attempt_to_attempt_and_a_replay_waits_as_long() {
    let constant = waits(1, 1, 40, None);
    let mut different = constant.clone();
    different.sort_unstable();
    different.dedup();
    assert!(different.len() > 20, "{constant:?}");
    assert_eq!(constant, waits(1, 1, 40, None));
}

#[test]
fn a_policy_without_backoff_retries_at_once() {
    assert_eq!(waits(0, 30, 3, None), [0, 0]);
    assert_eq!(waits(2, 0, 3, None), [0, 0]);
}

#[test]
fn the_wait_that_the_other_side_asks_for_counts_when_it_is_longer() {
    assert_eq!(waits(2, 30, 2, Some(Duration::from_secs(90))), [90_000]);
    let own = waits(2, 30, 2, None);
    assert_eq!(waits(2, 30, 2, Some(Duration::from_millis(1))), own);
}

#[test]
fn a_reply_takes_another_id_only_after_an_earlier_attempt_showed_text() {
    // (what attempts 1 and 2 showed, the suffix of the reply of attempt 3)
    for (shown, suffix) in
        [([false, false], ""), ([true, false], "~3"), ([false, true], "~3"), ([true, true], "~3")]
    {
        let mut conversation = Conversation::with_a_running_turn();
        for streamed in shown {
            conversation.settles(failed(overloaded(), streamed));
            conversation.restart();
            conversation.wakes_at_its_timer();
        }
        let (call, _) = conversation.open();
        let expected = message_id(&format!("{call}{suffix}"));
        let work = conversation.work(&call).unwrap();
        assert_eq!((work.attempt, &work.reply_id), (3, &expected), "{shown:?}");
        let step = conversation.answers("hi");
        assert_eq!(only(&step.events, message_new).message.id, Some(expected));
    }
}

#[test]
fn the_first_retry_after_a_streamed_attempt_is_number_two() {
    let mut conversation = Conversation::with_a_running_turn();
    conversation.settles(failed(overloaded(), true));
    conversation.wakes_at_its_timer();
    let (call, _) = conversation.open();
    let step = conversation.answers("hi");
    let reply = only(&step.events, message_new).message.id.clone();
    assert_eq!(reply.as_ref().map(MessageId::as_str), Some(&*format!("{call}~2")));
}

#[test]
fn a_reply_whose_id_a_caller_took_is_recorded_under_another() {
    let mut conversation = Conversation::new();
    // created, started, message, requested
    let guess = derive_call_id(&key(), Seq(4), 0, conversation.now);
    conversation.accepts(ask("hello").message(guess.as_str()));
    assert_eq!(conversation.last_call_id(), guess);
    let step = conversation.answers("hi");
    let reply = only(&step.events, message_new).message.id.clone().unwrap();
    assert_ne!(reply.as_str(), guess.as_str());
    assert_eq!(conversation.view().messages.len(), 2);
}

#[test]
fn a_message_that_waits_under_the_id_of_the_running_reply_is_known_when_its_turn_comes() {
    let mut conversation = Conversation::with_a_running_turn();
    let call = conversation.last_call_id();
    conversation.accepts(ask("mine").message(call.as_str()).queued());
    let step = conversation.answers("hi");
    assert_eq!(only(&step.events, message_new).message.role, Role::Assistant);
    assert!(!conversation.session.owes());
}

#[test]
fn the_tool_calls_of_an_answer_are_recorded_under_the_ids_of_the_engine() {
    let mut conversation = Conversation::with_a_running_turn();
    let reply = message_id(conversation.last_call_id().as_str());
    let step = conversation.settles(tool_calls(&[("a", "{}"), ("b", "{}")]));
    let message = &step.events.iter().find_map(message_new).unwrap().message;
    let ids: Vec<&CallId> = message.tool_calls.iter().map(|call| &call.id).collect();
    assert_eq!(ids, [&tool_call_id(&reply, 0), &tool_call_id(&reply, 1)]);
    let stored = step.events[0].encode(&key().session);
    assert!(!String::from_utf8(stored).unwrap().contains("theirs"));
}

fn costing(dollars: Option<&str>, used: Option<Usage>, tools: bool) -> LlmResponse {
    let calls = if tools { vec![("x", "{}")] } else { vec![] };
    LlmResponse { cost: dollars.map(cost), usage: used, ..tool_calls(&calls).result.unwrap() }
}

#[test]
fn a_turn_costs_what_its_answered_calls_cost() {
    let mut conversation = Conversation::with_a_running_turn();
    let cached = Usage { cached_input_tokens: Some(7), ..usage(10, 2) };
    conversation.settles(responds(costing(Some("0.10"), Some(usage(5, 1)), true)));
    conversation.fails(overloaded());
    conversation.wakes_at_its_timer();
    conversation.settles(responds(costing(Some("0.000000000000000001"), Some(cached), true)));
    let step = conversation.settles(responds(costing(None, None, false)));
    let completed = only(&step.events, turn_completed);
    assert_eq!(completed.cost, cost("0.100000000000000001"));
    let expected = Usage { cached_input_tokens: Some(7), ..usage(15, 3) };
    assert_eq!(completed.usage, expected);
    let step = conversation.accepts(ask("next").role(Role::Assistant));
    let completed = only(&step.events, turn_completed);
    assert_eq!((completed.cost, completed.usage), (Cost::default(), Usage::default()));
}

#[test]
fn a_turn_that_fails_still_costs_what_was_answered() {
    let mut conversation = Conversation::with_a_running_turn();
    conversation.settles(responds(costing(Some("1.5"), Some(usage(5, 1)), true)));
    let step = conversation.fails(refused());
    assert_eq!(only(&step.events, turn_completed).cost, cost("1.5"));
}

#[test]
fn sums_that_leave_their_range_stop_at_its_end() {
    let mut conversation = Conversation::with_a_running_turn();
    let most = "79228162514264337593543950335";
    let all = usage(u64::MAX - 1, 1);
    conversation.settles(responds(costing(Some(most), Some(all), true)));
    let step = conversation.settles(responds(costing(Some(most), Some(all), false)));
    let completed = only(&step.events, turn_completed);
    assert_eq!(completed.cost, cost(most));
    assert_eq!(completed.usage.total_tokens, u64::MAX);
}

#[test]
fn a_failure_is_recorded_as_it_was_reported() {
    let mut conversation = Conversation::with_a_running_turn();
    let error = ErrorInfo::new("the provider answered 503", Some(ErrorCode::ProviderError));
    let step = conversation.settles(failed(
        CallFailure { error: error.clone(), retryable: true, retry_after: None },
        true,
    ));
    let errored = only(&step.events, call_errored);
    assert_eq!((&errored.error, errored.streamed), (&error, true));
}
