//! Two requests meet. In either order exactly one wins, and the other is told where it was decided.

use super::kit::*;
use crate::ids::{CallId, Seq};
use crate::session::{Command, Rejection, Reply, Step};

/// A conversation, and the two requests that meet in it.
struct Race {
    given: fn() -> (Conversation, Vec<CallId>),
    first: fn(&[CallId]) -> Command,
    second: fn(&[CallId]) -> Command,
    /// The kind of the event by which the first decides against the second.
    decided_by: &'static str,
    loses: fn(Seq) -> Verdict,
}

/// What the second is told.
#[derive(Debug, PartialEq)]
enum Verdict {
    Refused(Rejection),
    /// It is taken and records nothing.
    Late(Reply),
}

impl Race {
    #[track_caller]
    fn runs(self) {
        let (mut conversation, calls) = (self.given)();
        let (first, second) = ((self.first)(&calls), (self.second)(&calls));
        let before = conversation.session.seq();
        let won = conversation.accepts(first);
        let decided = won.events.iter().find(|event| event.payload.kind() == self.decided_by);
        let decided = decided.unwrap_or_else(|| panic!("{:?}", kinds(&won.events))).seq;
        assert!(decided > before);
        let verdict = match conversation.apply(second) {
            Err(rejection) => Verdict::Refused(rejection),
            Ok(Step { events, reply, .. }) => {
                assert!(events.is_empty(), "both won: {:?}", kinds(&events));
                Verdict::Late(reply)
            }
        };
        assert_eq!(verdict, (self.loses)(decided));
    }
}

// What is given.

fn idle() -> (Conversation, Vec<CallId>) {
    (Conversation::with_a_completed_turn(), vec![])
}

fn running() -> (Conversation, Vec<CallId>) {
    (Conversation::with_a_running_turn(), vec![])
}

fn waiting() -> (Conversation, Vec<CallId>) {
    Conversation::with_open_tools(&["left"])
}

/// The turn `t1` waits for the answer to `i1`.
fn paused() -> (Conversation, Vec<CallId>) {
    let mut conversation = Conversation::with_a_running_turn();
    conversation.accepts(interrupt("i1"));
    (conversation, vec![])
}

/// As `paused`, where its client has not answered either.
fn paused_and_waiting() -> (Conversation, Vec<CallId>) {
    let (mut conversation, calls) = waiting();
    conversation.accepts(interrupt("i1"));
    (conversation, calls)
}

// What meets.

fn submit(_: &[CallId]) -> Command {
    ask("mine").turn("t2").into()
}

fn submit_too(_: &[CallId]) -> Command {
    ask("mine too").turn("t3").into()
}

fn edit(_: &[CallId]) -> Command {
    view(&[user("m1", "edited")]).turn("t2").into()
}

fn resumes(_: &[CallId]) -> Command {
    resume("i1")
}

fn cancels(_: &[CallId]) -> Command {
    cancel_turn("t1")
}

fn settles(calls: &[CallId]) -> Command {
    tool_result(&calls[0], "42")
}

fn settles_too(calls: &[CallId]) -> Command {
    append(&[result_of(&calls[0], "r1", "43")]).into()
}

// What the loser is told.

fn busy_with_t1(seq: Seq) -> Verdict {
    Verdict::Refused(Rejection::TurnAlreadyActive { turn_id: turn_id("t1"), seq })
}

fn busy_with_t2(seq: Seq) -> Verdict {
    Verdict::Refused(Rejection::TurnAlreadyActive { turn_id: turn_id("t2"), seq })
}

fn not_pending(seq: Seq) -> Verdict {
    Verdict::Refused(Rejection::NotPending { seq: Some(seq) })
}

fn too_late(seq: Seq) -> Verdict {
    Verdict::Late(Reply::Cancelled { cancelled: false, seq })
}

fn resumed_before(seq: Seq) -> Verdict {
    Verdict::Late(Reply::Accepted { turn_id: turn_id("t1"), queued: false, seq })
}

fn race(
    given: fn() -> (Conversation, Vec<CallId>),
    first: fn(&[CallId]) -> Command,
    second: fn(&[CallId]) -> Command,
    decided_by: &'static str,
    loses: fn(Seq) -> Verdict,
) {
    Race { given, first, second, decided_by, loses }.runs();
}

#[test]
fn two_submits() {
    race(idle, submit, submit_too, "turn.started", busy_with_t2);
    race(idle, submit_too, submit, "turn.started", |seq| {
        Verdict::Refused(Rejection::TurnAlreadyActive { turn_id: turn_id("t3"), seq })
    });
}

#[test]
fn two_resumes() {
    race(paused, resumes, resumes, "session.interrupt_resumed", resumed_before);
}

#[test]
fn two_cancels() {
    race(running, cancels, cancels, "turn.completed", too_late);
    race(paused, cancels, cancels, "turn.completed", too_late);
}

#[test]
fn two_settles() {
    race(waiting, settles, settles, "tool.call.completed", not_pending);
    race(paused_and_waiting, settles, settles, "tool.call.completed", not_pending);
    // The second way to settle answers nothing any more.
    let (mut conversation, calls) = waiting();
    conversation.accepts(settles(&calls));
    let late = conversation.refuses(settles_too(&calls));
    assert!(matches!(late, Rejection::TurnAlreadyActive { .. }), "{late:?}");
    race(waiting, settles_too, settles, "tool.call.completed", not_pending);
}

#[test]
fn a_submit_and_a_cancel() {
    // The submit loses while the turn runs, and the cancel wins whichever comes first.
    let (mut conversation, _) = running();
    let seq = conversation.seq_of_last("turn.started");
    assert_eq!(Verdict::Refused(conversation.refuses(submit(&[]))), busy_with_t1(seq));
    conversation.accepts(cancels(&[]));
    conversation.accepts(submit(&[]));
    assert!(matches!(
        conversation.accepts(cancels(&[])).reply,
        Reply::Cancelled { cancelled: false, .. }
    ));
    // A turn that gives way was ended by the submit.
    race(waiting, submit, cancels, "turn.completed", too_late);
    let (mut conversation, calls) = waiting();
    conversation.accepts(cancels(&calls));
    conversation.accepts(submit(&calls));
}

#[test]
fn a_submit_and_a_resume() {
    // On the paused path the submit waits for the resume.
    let (mut conversation, _) = paused();
    let seq = conversation.seq_of_last("session.interrupted");
    assert_eq!(conversation.refuses(submit(&[])), Rejection::Interrupted { seq });
    conversation.accepts(resumes(&[]));
    let seq = conversation.seq_of_last("turn.started");
    assert_eq!(Verdict::Refused(conversation.refuses(submit(&[]))), busy_with_t1(seq));
    // Elsewhere the turn is left, and the resume is only recorded; or it goes on, and is busy.
    let (mut conversation, _) = paused();
    conversation.accepts(edit(&[]));
    let step = conversation.accepts(resumes(&[]));
    assert_eq!(kinds(&step.events), ["session.interrupt_resumed"]);
    let (mut conversation, _) = paused();
    conversation.accepts(resumes(&[]));
    let seq = conversation.seq_of_last("turn.started");
    assert_eq!(Verdict::Refused(conversation.refuses(edit(&[]))), busy_with_t1(seq));
}

#[test]
fn a_submit_and_a_settle() {
    race(waiting, submit, settles, "tool.call.errored", not_pending);
    race(waiting, edit, settles, "tool.call.errored", not_pending);
    race(paused_and_waiting, edit, settles, "call.voided", not_pending);
    // The answer sets the model to work, and the submit finds the turn busy.
    let (mut conversation, calls) = waiting();
    conversation.accepts(settles(&calls));
    let seq = conversation.seq_of_last("turn.started");
    assert_eq!(Verdict::Refused(conversation.refuses(submit(&calls))), busy_with_t1(seq));
}

#[test]
fn a_resume_and_a_cancel() {
    race(paused, cancels, resumes, "session.interrupt_resumed", resumed_before);
    // The resume sets the model to work, and the cancel ends that.
    let (mut conversation, _) = paused();
    conversation.accepts(resumes(&[]));
    let step = conversation.accepts(cancels(&[]));
    assert_eq!(kinds(&step.events), ["call.voided", "turn.completed"]);
}

#[test]
fn a_resume_that_completes_the_turn_and_a_cancel() {
    fn kept() -> (Conversation, Vec<CallId>) {
        let mut conversation = Conversation::with_a_running_turn();
        let (call, _) = conversation.open();
        conversation.shows(&call, "Hel");
        conversation.accepts(interrupt("i1"));
        (conversation, vec![])
    }
    race(kept, resumes, cancels, "turn.completed", too_late);
    race(kept, cancels, resumes, "session.interrupt_resumed", resumed_before);
}

#[test]
fn a_resume_and_a_settle() {
    // Both count, in either order: the model goes on once there are both.
    for resume_first in [true, false] {
        let (mut conversation, calls) = paused_and_waiting();
        let (first, second) = if resume_first {
            (resumes(&calls), settles(&calls))
        } else {
            (settles(&calls), resumes(&calls))
        };
        let step = conversation.accepts(first);
        assert!(!step.events.iter().any(|event| call_requested(event).is_some()));
        let step = conversation.accepts(second);
        only(&step.events, call_requested);
        assert_eq!(conversation.prompt(), ["hello", "", "42"]);
    }
}

#[test]
fn a_cancel_and_a_settle() {
    race(waiting, cancels, settles, "call.voided", not_pending);
    race(paused_and_waiting, cancels, settles, "call.voided", not_pending);
    let (mut conversation, calls) = waiting();
    conversation.accepts(settles(&calls));
    let step = conversation.accepts(cancels(&calls));
    assert_eq!(kinds(&step.events), ["call.voided", "turn.completed"]);
    assert_eq!(conversation.texts(), ["hello", "", "42"]);
}

#[test]
fn an_answer_of_the_model_and_whoever_stops_it() {
    fn stops_with(stop: Command) {
        let mut conversation = Conversation::with_a_running_turn();
        let (call, attempt) = conversation.open();
        let won = conversation.accepts(stop.clone());
        let seq = won.events[0].seq;
        assert_eq!(won.events[0].payload.kind(), "call.voided");
        let late = settle(call, attempt, answer("hi"));
        assert_eq!(conversation.refuses(late), Rejection::NotPending { seq: Some(seq) });

        let mut conversation = Conversation::with_a_running_turn();
        conversation.answers("hi");
        let late = conversation.accepts(stop);
        assert!(late.effects.is_empty());
        assert_eq!(conversation.texts(), ["hello", "hi"]);
    }
    stops_with(cancels(&[]));
    stops_with(cancel_session());
    stops_with(interrupt("i1"));
}

#[test]
fn an_answer_of_the_model_and_its_deadline() {
    let mut conversation = Conversation::with_a_running_turn();
    let (call, attempt) = conversation.open();
    conversation.wakes_at_its_timer();
    let late = conversation.refuses(settle(call, attempt, answer("hi")));
    assert_eq!(late, Rejection::NotPending { seq: None }, "the call goes on with another attempt");
    let mut conversation = Conversation::with_a_running_turn();
    let deadline = conversation.session.wake_at().unwrap();
    conversation.answers("hi");
    conversation.now = deadline;
    conversation.ignores(Command::Wake);
}
