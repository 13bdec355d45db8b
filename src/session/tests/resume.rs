//! Answers to pauses: who may give them, what goes on, what they are remembered as (S43, S44, S58).

use super::kit::*;
use crate::protocol::event::ResumeStatus;
use crate::protocol::input::{Conditions, Resume};
use crate::protocol::message::Message;
use crate::protocol::view::SessionStatus;
use crate::session::{Caller, Command, Rejection, Reply};

const CALLS: [&str; 3] = ["session.interrupt_resumed", "llm.call.requested", "llm.call.dispatched"];

fn messages_of(conversation: &Conversation) -> Vec<Message> {
    conversation.view().messages.iter().map(|message| (**message).clone()).collect()
}

fn resume_as(id: &str, turn: &str) -> Command {
    resume_by(zoe(), id, Some(turn))
}

#[test]
fn whoever_resumes_needs_the_privilege_of_whoever_interrupted() {
    let callers = [zoe(), Caller::Machine, Caller::System];
    // A machine may answer what the system raised; a front end only what front ends raised.
    let allowed = [[true, true, true], [false, true, true], [false, true, true]];
    for (raiser, allowed) in callers.iter().zip(allowed) {
        for (answerer, allowed) in callers.iter().zip(allowed) {
            let mut conversation = Conversation::with_a_running_turn();
            conversation.accepts(interrupt_by(raiser.clone(), Some("i1")));
            match conversation.apply(resume_by(answerer.clone(), "i1", None)) {
                Ok(step) => {
                    assert!(allowed, "{answerer:?} answers {raiser:?}");
                    assert_eq!(kinds(&step.events), CALLS);
                }
                Err(rejection) => {
                    assert!(!allowed, "{answerer:?} answers {raiser:?}");
                    assert_eq!(rejection, Rejection::ResumeForbidden);
                }
            }
        }
    }
    let mut conversation = Conversation::with_a_running_turn();
    conversation.accepts(interrupt("i1"));
    let eve = resume_by(frontend_of("eve"), "i1", None);
    assert_eq!(conversation.refuses(eve), Rejection::NotOwner);
    assert_eq!(Conversation::new().refuses(resume("i1")), Rejection::UnknownSession);
}

#[test]
fn an_answer_is_recorded_with_what_it_says() {
    let mut conversation = Conversation::with_a_completed_turn();
    conversation.accepts(interrupt("i1"));
    let step = conversation.accepts(resume_with("i1", Some(r#"{"ok":true}"#), None));
    assert_eq!(kinds(&step.events), ["session.interrupt_resumed"]);
    let answer = only(&step.events, resumed);
    assert_eq!(answer.payload.as_ref().unwrap().text(), r#"{"ok":true}"#);
    assert_eq!((answer.status, &answer.run_id), (None, &None));
    conversation.accepts(interrupt("i2"));
    let step = conversation.accepts(resume_with("i2", None, Some(ResumeStatus::Cancelled)));
    assert_eq!(only(&step.events, resumed).status, Some(ResumeStatus::Cancelled));
}

#[test]
fn an_unknown_or_answered_interrupt_changes_nothing_and_names_the_latest_turn() {
    let mut conversation = Conversation::with_a_completed_turn();
    let seq = conversation.session.seq();
    let latest = |seq| Reply::Accepted { turn_id: turn_id("t1"), queued: false, seq };
    assert_eq!(conversation.ignores(resume("unknown")), latest(seq));
    conversation.accepts(interrupt_by(Caller::Machine, Some("i1")));
    let answered = conversation.accepts(resume_by(Caller::Machine, "i1", None)).events[0].seq;
    conversation.accepts(interrupt("i2"));
    assert_eq!(conversation.ignores(resume("i1")), latest(answered), "whoever asks");
    assert_eq!(conversation.ignores(resume_as("i1", "t9")), latest(answered));
    assert_eq!(conversation.session.turn(&turn_id("t9")).map(|(_, record)| record), None);
}

#[test]
fn a_resume_may_have_conditions() {
    let mut conversation = Conversation::with_a_completed_turn();
    conversation.accepts(interrupt("i1"));
    let seq = conversation.session.seq().0;
    let rejection = conversation.refuses(on_condition(resume("i1"), seq - 1));
    assert!(matches!(rejection, Rejection::ConditionFailed { .. }), "{rejection:?}");
    conversation.accepts(on_condition(resume("i1"), seq));
}

// The paused turn is the same turn after the resume.

#[test]
fn a_turn_whose_call_was_voided_asks_the_model_again() {
    let mut conversation = Conversation::with_a_running_turn();
    let first = conversation.last_call_id();
    conversation.accepts(interrupt("i1"));
    conversation.restart();
    let step = conversation.accepts(resume("i1"));
    assert_eq!(kinds(&step.events), CALLS);
    let seq = step.events[0].seq;
    assert_eq!(step.reply, Reply::Accepted { turn_id: turn_id("t1"), queued: false, seq });
    let (again, attempt) = conversation.open();
    assert_ne!(again, first);
    assert_eq!(attempt, 1);
    let step = conversation.answers("hi");
    assert_eq!(only(&step.events, turn_completed).turn_id, turn_id("t1"));
    assert_eq!(conversation.texts(), ["hello", "hi"]);
}

#[test]
fn a_turn_whose_retry_was_voided_asks_the_model_again() {
    let mut conversation = Conversation::with_a_running_turn();
    conversation.fails(overloaded());
    conversation.accepts(interrupt("i1"));
    let step = conversation.accepts(resume("i1"));
    assert_eq!(kinds(&step.events), CALLS);
    assert_eq!(conversation.open().1, 1);
}

#[test]
fn a_turn_that_goes_on_keeps_its_tools_and_its_wish() {
    let mut conversation = Conversation::new();
    conversation.accepts(ask_with_tools("hello", &["left"]).streaming(false));
    conversation.accepts(interrupt("i1"));
    let step = conversation.accepts(resume("i1"));
    let request = only(&step.events, call_requested);
    assert_eq!((request.stream, &request.tools[..]), (false, &["left".to_owned()][..]));
}

#[test]
fn a_turn_whose_reply_was_kept_completes_without_data() {
    let mut conversation = Conversation::with_a_running_turn();
    let (call, _) = conversation.open();
    conversation.shows(&call, "Hel");
    conversation.accepts(interrupt("i1"));
    let step = conversation.accepts(resume("i1"));
    assert_eq!(kinds(&step.events), ["session.interrupt_resumed", "turn.completed"]);
    let completed = only(&step.events, turn_completed);
    assert!(completed.data.is_none() && completed.error.is_none() && !completed.cancelled);
    assert_eq!(conversation.texts(), ["hello", "Hel"]);
}

#[test]
fn a_turn_with_open_client_calls_waits_on() {
    let (mut conversation, calls) = Conversation::with_open_tools(&["left"]);
    conversation.accepts(interrupt("i1"));
    let step = conversation.accepts(resume("i1"));
    assert_eq!(kinds(&step.events), ["session.interrupt_resumed"]);
    conversation.accepts(tool_result(&calls[0], "42"));
    assert_eq!(conversation.prompt(), ["hello", "", "42"]);
}

#[test]
fn a_turn_whose_results_came_during_the_pause_asks_the_model() {
    let (mut conversation, calls) = Conversation::with_open_tools(&["left"]);
    conversation.accepts(interrupt("i1"));
    conversation.accepts(tool_result(&calls[0], "42"));
    assert_eq!(kinds(&conversation.accepts(resume("i1")).events), CALLS);
    assert_eq!(conversation.prompt(), ["hello", "", "42"]);
}

#[test]
fn a_turn_goes_on_only_after_the_last_of_its_pauses() {
    for order in [["i1", "i2"], ["i2", "i1"]] {
        let mut conversation = Conversation::with_a_running_turn();
        conversation.accepts(interrupt("i1"));
        conversation.accepts(interrupt("i2"));
        let step = conversation.accepts(resume_as(order[0], "run2"));
        assert_eq!(kinds(&step.events), ["session.interrupt_resumed"]);
        assert_eq!(conversation.session.status(), SessionStatus::Interrupted);
        assert_eq!(kinds(&conversation.accepts(resume_as(order[1], "run3")).events), CALLS);
    }
}

#[test]
fn a_turn_that_completes_on_a_resume_lets_the_queue_go_on_in_the_same_step() {
    let mut conversation = Conversation::with_a_running_turn();
    let (call, _) = conversation.open();
    conversation.shows(&call, "Hel");
    conversation.accepts(interrupt("i1"));
    conversation.accepts(ask("next").turn("t2").queued());
    let step = conversation.accepts(resume("i1"));
    assert_eq!(only(&step.events, turn_completed).turn_id, turn_id("t1"));
    assert_eq!(conversation.prompt(), ["hello", "Hel", "next"]);
    let Reply::Accepted { turn_id: named, .. } = step.reply else { panic!("accepted") };
    assert_eq!(named, turn_id("t1"), "the turn that the answer continued");
}

#[test]
fn a_queued_turn_takes_the_place_of_open_client_calls_after_the_pause() {
    let (mut conversation, _) = Conversation::with_open_tools(&["left"]);
    conversation.accepts(interrupt("i1"));
    conversation.accepts(ask("next").queued());
    conversation.accepts(resume("i1"));
    let unanswered = "the user continued without answering";
    assert_eq!(conversation.prompt(), ["hello", "", unanswered, "next"]);
}

// With no turn running.

#[test]
fn without_a_turn_a_resume_only_clears() {
    let mut conversation = Conversation::with_a_completed_turn();
    conversation.accepts(interrupt("i1"));
    let step = conversation.accepts(resume_as("i1", "t2"));
    assert_eq!(kinds(&step.events), ["session.interrupt_resumed"]);
    assert_eq!(only(&step.events, resumed).run_id, None);
    assert_eq!(conversation.session.turn(&turn_id("t2")).map(|(_, record)| record), None);
    conversation.accepts(ask("more").turn("t2"));
}

#[test]
fn without_a_turn_a_resume_starts_one_for_the_reply_that_is_owed() {
    for turn in [Some("t2"), None] {
        let mut conversation = Conversation::with_a_running_turn();
        conversation.fails(refused());
        conversation.accepts(interrupt("i1"));
        let step = conversation.accepts(resume_by(zoe(), "i1", turn));
        let expected = [&CALLS[..1], &["turn.started"], &CALLS[1..]].concat();
        assert_eq!(kinds(&step.events), expected);
        assert_eq!(only(&step.events, resumed).run_id, None, "it is a turn, not a label");
        let started = only(&step.events, turn_started).turn_id.clone();
        assert!(turn.is_none_or(|turn| turn_id(turn) == started));
        let seq = step.events[0].seq;
        let expected = Reply::Accepted { turn_id: started, queued: false, seq };
        assert_eq!(step.reply, expected);
        assert_eq!(conversation.prompt(), ["hello"]);
    }
}

#[test]
fn a_reply_that_was_given_on_another_branch_is_not_owed() {
    let mut conversation = Conversation::with_a_completed_turn();
    conversation.accepts(view(&[user("m1", "hello")]));
    conversation.accepts(interrupt("i1"));
    conversation.accepts(cancel_by(Caller::Machine, None, false));
    conversation.accepts(interrupt("i2"));
    let step = conversation.accepts(resume("i2"));
    assert_eq!(kinds(&step.events), ["session.interrupt_resumed"], "m1 has a reply");
}

#[test]
fn a_resume_off_the_head_path_is_only_recorded() {
    let mut conversation = Conversation::with_a_running_turn();
    conversation.accepts(interrupt("i1"));
    conversation.accepts(view(&[user("m1", "edited")]).turn("t2"));
    let step = conversation.accepts(resume_as("i1", "run3"));
    assert_eq!(kinds(&step.events), ["session.interrupt_resumed"]);
    assert_eq!(only(&step.events, resumed).run_id, None, "it continues nothing");
    assert_eq!(conversation.session.turn(&turn_id("run3")).map(|(_, record)| record), None);
    conversation.answers("hi");
}

#[test]
fn a_resume_on_a_branch_that_was_left_and_found_again_finds_no_turn() {
    let mut conversation = Conversation::with_a_completed_turn();
    let first = messages_of(&conversation);
    conversation.accepts(ask("more").turn("t2"));
    let (call, _) = conversation.open();
    conversation.shows(&call, "Hel");
    conversation.accepts(interrupt("i1"));
    let paused = messages_of(&conversation);
    conversation.accepts(view(&first).turn("t3"));
    conversation.accepts(view(&paused).turn("t4"));
    assert_eq!(conversation.session.status(), SessionStatus::Interrupted);
    let step = conversation.accepts(resume("i1"));
    assert_eq!(kinds(&step.events), ["session.interrupt_resumed"]);
    assert_eq!(conversation.session.status(), SessionStatus::Idle);
}

// Labels.

#[test]
fn the_id_that_an_answer_came_with_names_the_turn_that_it_continued() {
    let mut conversation = Conversation::with_a_running_turn();
    conversation.accepts(interrupt("i1"));
    let step = conversation.accepts(resume_as("i1", "run2"));
    assert_eq!(only(&step.events, resumed).run_id, Some(turn_id("run2")));
    conversation.restart();
    let expected = conversation.ignores(ask("hello").turn("t1"));
    assert_eq!(conversation.ignores(resume_as("i1", "run2")), expected);
    assert_eq!(conversation.ignores(ask("whatever").turn("run2")), expected);
    let record = conversation.session.turn(&turn_id("run2")).map(|(_, record)| record);
    assert_eq!(record, conversation.session.turn(&turn_id("t1")).map(|(_, record)| record));
    let step = conversation.accepts(cancel_turn("run2"));
    assert_eq!(only(&step.events, turn_completed).turn_id, turn_id("t1"));
}

#[test]
fn a_resume_under_a_known_turn_is_that_turn_and_answers_nothing() {
    let mut conversation = Conversation::with_a_completed_turn();
    conversation.accepts(interrupt("i1"));
    conversation.accepts(ask("next").turn("t2").queued());
    let reply = conversation.ignores(resume_as("i1", "t1"));
    assert!(matches!(reply, Reply::Accepted { turn_id: id, .. } if id == turn_id("t1")));
    let reply = conversation.ignores(resume_as("i1", "t2"));
    assert!(matches!(reply, Reply::Accepted { queued: true, .. }));
    assert_eq!(conversation.session.status(), SessionStatus::Interrupted);
}

#[test]
fn a_known_turn_is_answered_before_privilege_and_conditions_are_looked_at() {
    let mut conversation = Conversation::with_a_completed_turn();
    conversation.accepts(interrupt_by(Caller::Machine, Some("i1")));
    let resume = Resume { interrupt_id: interrupt_id("i1"), payload: None, status: None };
    let conditions = Conditions { if_head: Some(message_id("m9")), if_seq: None };
    let turn_id = Some(turn_id("t1"));
    conversation.ignores(Command::Resume { caller: zoe(), conditions, turn_id, resume });
}
