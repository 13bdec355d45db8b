//! Submits: who may, idempotency, one turn at a time, the queue, what is recorded (S2 to S4, S17 to
//! S19, S22).

use super::kit::*;
use crate::ids::{AgentId, OwnerId, Seq, TurnId, derive_message_id, derive_turn_id};
use crate::protocol::content::Content;
use crate::protocol::message::Role;
use crate::session::{Caller, Rejection, Reply, TurnRecord};
use crate::time::Timestamp;

const FIRST_TURN: [&str; 5] =
    ["session.created", "turn.started", "message.new", "llm.call.requested", "llm.call.dispatched"];

fn accepted(id: &str, queued: bool, seq: u64) -> Reply {
    let turn_id = turn_id(id);
    Reply::Accepted { turn_id, queued, seq: Seq(seq) }
}

#[test]
fn the_first_submit_creates_the_session_and_starts_a_turn() {
    let mut conversation = Conversation::new();
    assert!(conversation.session.agent_id().is_none());
    assert_eq!(conversation.session.summary(), None);
    let step = conversation.accepts(ask("hello").turn("t1"));
    assert_eq!(kinds(&step.events), FIRST_TURN);
    assert_eq!(step.reply, accepted("t1", false, 2));
    let agent_id = conversation.session.agent_id().map(AgentId::as_str);
    assert_eq!(agent_id, Some("helper"));
}

#[test]
fn a_turn_without_an_id_is_given_one() {
    let mut conversation = Conversation::new();
    let Reply::Accepted { turn_id, .. } = conversation.accepts(ask("hello")).reply else {
        panic!("accepted");
    };
    let record = conversation.session.turn(&turn_id).map(|(_, record)| record);
    assert_eq!(record, Some(TurnRecord::Running { started: Seq(2) }));
}

#[test]
fn a_minted_id_steps_aside_for_one_that_a_caller_guessed() {
    let mut conversation = Conversation::with_a_completed_turn();
    // The guess is recorded as started, message and completed; the next submit mints after them.
    let next = conversation.session.seq().0 + 4;
    let turn = derive_turn_id(&key(), Seq(next), 0, conversation.now);
    let message = derive_message_id(&key(), Seq(next + 1), 0, conversation.now);
    let guess = ask("mine").turn(turn.as_str()).message(message.as_str());
    conversation.accepts(guess.role(Role::Assistant));
    let step = conversation.accepts(ask("hello"));
    assert_eq!(kinds(&step.events), FIRST_TURN[1..]);
    let Reply::Accepted { turn_id, .. } = step.reply else {
        panic!("accepted");
    };
    let minted = derive_turn_id(&key(), Seq(next), 1, conversation.now);
    assert_eq!(turn_id, minted);
    let minted = derive_message_id(&key(), Seq(next + 1), 1, conversation.now);
    let recorded = &only(&step.events, message_new).message;
    assert_eq!(recorded.id, Some(minted));
}

#[test]
fn the_same_turn_id_answers_with_that_turn_whatever_the_body_says() {
    let mut conversation = Conversation::with_a_running_turn();
    conversation.accepts(ask("next").turn("t2").queued());
    let other = || ask("other").agent("someone-else").role(Role::Tool);
    for (id, queued, seq) in [("t1", false, 2), ("t2", true, 6)] {
        let step = conversation.accepts(other().turn(id));
        assert_eq!(step.reply, accepted(id, queued, seq));
        assert!(step.events.is_empty() && step.effects.is_empty(), "{step:?}");
    }
    conversation.answers("hi");
    for (id, queued, seq) in [("t1", false, 2), ("t2", false, 10)] {
        let step = conversation.accepts(other().turn(id));
        assert_eq!((step.reply, step.events.len()), (accepted(id, queued, seq), 0));
    }
}

#[test]
fn turn_ids_are_remembered_across_restarts() {
    let mut conversation = Conversation::with_a_completed_turn();
    conversation.restart();
    let step = conversation.accepts(ask("hello").turn("t1"));
    assert_eq!((step.reply, step.events.len()), (accepted("t1", false, 2), 0));
}

#[test]
fn a_second_turn_is_refused_while_one_runs() {
    let mut conversation = Conversation::with_a_running_turn();
    let rejection = conversation.refuses(ask("more").turn("t2"));
    let turn_id = turn_id("t1");
    assert_eq!(rejection, Rejection::TurnAlreadyActive { turn_id, seq: Seq(2) });
    assert_eq!(rejection.to_string(), "turn_already_active");
}

#[test]
fn a_second_turn_is_refused_while_an_attempt_waits_to_be_retried() {
    let mut conversation = Conversation::with_a_running_turn();
    conversation.fails(overloaded());
    let rejection = conversation.refuses(ask("more"));
    assert!(matches!(rejection, Rejection::TurnAlreadyActive { .. }));
}

#[test]
fn a_queued_turn_is_recorded_and_starts_when_the_running_one_completes() {
    let mut conversation = Conversation::with_a_running_turn();
    let step = conversation.accepts(ask("next").turn("t2").queued());
    assert_eq!(kinds(&step.events), ["turn.queued"]);
    assert_eq!(step.reply, accepted("t2", true, 6));
    assert_eq!(step.events[0].turn_id, Some(turn_id("t1")));
    let step = conversation.answers("hi");
    let expected = [
        "llm.call.completed",
        "message.new",
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
fn asking_for_the_queue_while_nothing_runs_starts_at_once() {
    let mut conversation = Conversation::with_a_completed_turn();
    let step = conversation.accepts(ask("next").turn("t2").queued());
    assert_eq!(step.reply, accepted("t2", false, 9));
    assert_eq!(kinds(&step.events), FIRST_TURN[1..]);
}

#[test]
fn queued_turns_start_in_the_order_of_arrival() {
    let mut conversation = Conversation::with_a_running_turn();
    for id in ["t9", "t3", "t5"] {
        conversation.accepts(ask(id).turn(id).queued());
    }
    conversation.restart();
    let mut started = Vec::new();
    for _ in 0..4 {
        conversation.answers("hi");
        started.extend(running(&conversation));
    }
    assert_eq!(started, ["t9", "t3", "t5"].map(turn_id));
}

fn running(conversation: &Conversation) -> Option<TurnId> {
    conversation
        .log
        .last()
        .filter(|event| turn_completed(event).is_none())
        .and_then(|event| event.turn_id.clone())
}

#[test]
fn a_failed_turn_lets_the_next_one_start() {
    let mut conversation = Conversation::with_a_running_turn();
    conversation.accepts(ask("next").turn("t2").queued());
    let step = conversation.fails(refused());
    assert!(only(&step.events, turn_completed).error.is_some());
    assert_eq!(running(&conversation), Some(turn_id("t2")));
}

#[test]
fn queued_turns_that_owe_nothing_complete_one_a_step() {
    let mut conversation = Conversation::with_a_running_turn();
    for id in ["t2", "t3", "t4"] {
        conversation.accepts(ask("known").turn(id).message("m2").role(Role::Assistant).queued());
    }
    let step = conversation.answers("hi");
    let expected = [
        "llm.call.completed",
        "message.new",
        "turn.completed",
        "turn.started",
        "message.new",
        "turn.completed",
    ];
    assert_eq!(kinds(&step.events), expected);
    for _ in ["t3", "t4"] {
        let refused = conversation.refuses(ask("in between"));
        assert!(matches!(refused, Rejection::TurnAlreadyActive { .. }), "{refused:?}");
        let step = conversation.wakes_at_its_timer();
        assert_eq!(kinds(&step.events), ["turn.started", "turn.completed"]);
    }
    assert!(!conversation.session.owes());
}

#[test]
fn as_many_turns_wait_as_may() {
    let mut conversation = Conversation::with_a_running_turn();
    conversation.queued_turns_max = 2;
    conversation.accepts(ask("a").queued());
    conversation.accepts(ask("b").queued());
    assert_eq!(conversation.refuses(ask("c").queued()), Rejection::QueueFull);
    conversation.answers("hi");
    conversation.accepts(ask("c").queued());
}

#[test]
fn another_owner_is_refused_before_anything_else_is_looked_at() {
    let mut conversation = Conversation::with_a_running_turn();
    for ask in [
        ask("mine").owner("eve"),
        ask("mine").owner("eve").turn("t1"),
        ask("mine").owner("eve").queued(),
        ask("mine").owner("eve").agent("other").role(Role::Tool),
    ] {
        assert_eq!(conversation.refuses(ask), Rejection::NotOwner);
    }
}

#[test]
fn another_agent_is_refused_while_idle_and_while_busy() {
    let mismatch = Rejection::AgentMismatch(AgentId::parse("helper").unwrap());
    let mut conversation = Conversation::with_a_running_turn();
    assert_eq!(conversation.refuses(ask("x").agent("other")), mismatch);
    assert_eq!(conversation.refuses(ask("x").agent("other").queued()), mismatch);
    conversation.answers("hi");
    assert_eq!(conversation.refuses(ask("x").agent("other")), mismatch);
    let text = "agent mismatch: this session runs `helper`";
    assert_eq!(mismatch.to_string(), text);
}

#[test]
fn a_tool_message_without_an_open_call_is_refused_and_creates_nothing() {
    let rejection = Rejection::Invalid {
        path: "message.role".to_owned(),
        problem: "is `tool`, but answers no open client-handled call",
    };
    let mut conversation = Conversation::new();
    assert_eq!(conversation.refuses(ask("42").role(Role::Tool)), rejection);
    assert!(conversation.session.agent_id().is_none());
    let mut conversation = Conversation::with_a_running_turn();
    assert_eq!(conversation.refuses(ask("42").role(Role::Tool).queued()), rejection);
}

#[test]
fn a_message_without_an_id_is_given_one_and_a_given_one_is_kept() {
    let mut conversation = Conversation::new();
    let step = conversation.accepts(ask("hello").message("m1"));
    let recorded = &only(&step.events, message_new).message;
    assert_eq!(recorded.id, Some(message_id("m1")));
    conversation.answers("hi");
    let step = conversation.accepts(ask("more"));
    assert!(only(&step.events, message_new).message.id.is_some());
}

#[test]
fn a_queued_message_has_its_id_before_it_is_recorded() {
    let mut conversation = Conversation::with_a_running_turn();
    let step = conversation.accepts(ask("next").queued());
    let stored = String::from_utf8(step.events[0].encode(&key().session)).unwrap();
    let step = conversation.answers("hi");
    let recorded = step.events.iter().filter_map(message_new).next_back().unwrap();
    let id = recorded.message.id.clone().unwrap();
    assert!(stored.contains(&format!(r#""message":{{"id":"{id}""#)), "{stored}");
}

#[test]
fn a_known_message_id_adds_nothing_and_its_turn_completes_at_once() {
    let mut conversation = Conversation::new();
    conversation.accepts(ask("hello").message("m1"));
    conversation.answers("hi");
    let step = conversation.accepts(ask("other words").message("m1").turn("t2"));
    assert_eq!(kinds(&step.events), ["turn.started", "turn.completed"]);
    assert_eq!(step.reply, accepted("t2", false, 9));
    assert!(step.effects.is_empty());
    assert_eq!(texts(&conversation), ["hello", "hi"]);
}

fn texts(conversation: &Conversation) -> Vec<String> {
    let messages = conversation.view().messages;
    let content = messages.iter().filter_map(|message| message.content.as_ref());
    content.map(Content::text).collect()
}

#[test]
fn an_assistant_message_is_recorded_and_owes_no_reply() {
    for machine in [false, true] {
        let mut conversation = Conversation::new();
        let mut ask = ask("as I said").role(Role::Assistant);
        if machine {
            ask = ask.by_a_machine();
        }
        let step = conversation.accepts(ask);
        let expected = ["session.created", "turn.started", "message.new", "turn.completed"];
        assert_eq!(kinds(&step.events), expected);
        assert!(!conversation.session.owes());
    }
}

#[test]
fn the_system_text_of_a_frontend_counts_as_user_text() {
    for (machine, expected) in [(false, Role::User), (true, Role::System)] {
        for queued in [false, true] {
            let mut conversation = Conversation::new();
            if queued {
                conversation.accepts(ask("first"));
            }
            let mut ask = ask("obey").role(Role::System).message("m1").queued();
            if machine {
                ask = ask.by_a_machine();
            }
            conversation.accepts(ask);
            if queued {
                conversation.answers("hi");
            }
            let messages = conversation.view().messages;
            let last = messages.last().unwrap();
            assert_eq!((last.role, &last.id), (expected, &Some(message_id("m1"))));
            assert_eq!(conversation.open().1, 1, "a system text is answered as well");
        }
    }
}

#[test]
fn a_session_belongs_to_whoever_created_it() {
    let conversation = Conversation::with_a_running_turn();
    for caller in [zoe(), Caller::Machine, Caller::System] {
        assert_eq!(conversation.session.check_reader(&caller), Ok(()));
        let nobody = Conversation::new().session.check_reader(&caller);
        assert_eq!(nobody, Err(Rejection::UnknownSession));
    }
    let eve = conversation.session.check_reader(&frontend_of("eve"));
    assert_eq!(eve, Err(Rejection::NotOwner));
    assert_eq!(conversation.session.owner().map(OwnerId::as_str), Some("zoe"));
}

#[test]
fn time_does_not_go_back_when_the_clock_does() {
    let mut conversation = Conversation::with_a_running_turn();
    let begun = conversation.now;
    conversation.now = Timestamp::from_millis(0);
    let step = conversation.answers("hi");
    assert!(step.events.iter().all(|event| event.occurred_at == begun));
    conversation.passes(10);
    let step = conversation.accepts(ask("more"));
    assert!(step.events.iter().all(|event| event.occurred_at == begun));
}

#[test]
fn ids_derive_from_the_session_and_the_place_so_that_equal_steps_mint_equal_ids() {
    let run = || {
        let mut conversation = Conversation::new();
        conversation.accepts(ask("hello"));
        conversation.answers("hi");
        conversation.log.clone()
    };
    assert_eq!(run(), run());
}
