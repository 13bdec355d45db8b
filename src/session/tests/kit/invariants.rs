//! Invariants of a session beside its log, checked after every step.

use std::collections::{BTreeMap, BTreeSet};

use super::ledger::{Ledger, TurnProgress};
use super::sayings::{call_dispatched, call_errored, call_voided, recorded, text_of};
use crate::ids::{CallId, MessageId, Seq};
use crate::protocol::event::Event;
use crate::protocol::message::Role;
use crate::protocol::view::{SessionStatus, ViewRequest};
use crate::session::{Effect, Rejection, Reply, Session, Shown, Step, TurnRecord};

/// Attempts that executors are at work on.
pub(super) type Asked = BTreeMap<CallId, u32>;

pub(super) fn invariant_a_refusal_changes_nothing(before: &Session, after: &Session) {
    assert_eq!(before, after, "a refusal changes nothing");
}

pub(super) fn invariant_a_refusal_cuts_nothing(cut: &[CallId]) {
    assert!(cut.is_empty(), "a refusal cuts nothing: {cut:?}");
}

pub(super) fn invariant_replay_equals_live(replayed: &Session, live: &Session) {
    assert_eq!(replayed, live, "equal logs make equal sessions");
}

/// One `CallModel` per `llm.call.dispatched`, in the same order.
pub(super) fn invariant_every_dispatch_is_asked_of_an_executor(step: &Step) {
    let dispatched: Vec<(&CallId, u32)> = step
        .events
        .iter()
        .filter_map(call_dispatched)
        .map(|dispatched| (&dispatched.id, dispatched.attempt))
        .collect();
    let asked: Vec<(&CallId, u32)> = step
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::CallModel { id, attempt } => Some((id, *attempt)),
            Effect::StopCall { .. } => None,
        })
        .collect();
    assert_eq!(asked, dispatched);
}

/// What a step ends without an answer is what it said that it would cut, and its executor is told.
pub(super) fn invariant_what_is_cut_ends_and_stops(asked: &Asked, cut: &[CallId], step: &Step) {
    let errored = step.events.iter().filter_map(call_errored).map(|errored| &errored.id);
    let voided = step.events.iter().filter_map(call_voided).map(|voided| &voided.id);
    let ended: BTreeMap<_, _> =
        errored.chain(voided).filter_map(|id| asked.get_key_value(id)).collect();
    let cut: BTreeSet<&CallId> = cut.iter().collect();
    assert!(ended.keys().copied().eq(cut), "{ended:?}: {step:?}");
    let stopped: BTreeMap<_, _> = step
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::StopCall { id, attempt } => Some((id, attempt)),
            Effect::CallModel { .. } => None,
        })
        .collect();
    assert_eq!(stopped, ended);
}

/// The text of a voided call is recorded, at once and once (S20).
pub(super) fn invariant_text_that_was_shown_is_kept(shown: &Shown, step: &Step) {
    let voided = step.events.iter().filter_map(call_voided);
    let texts = voided.filter_map(|voided| shown.get(&voided.id)).filter(|text| !text.is_empty());
    let mut replies = recorded(&step.events).into_iter();
    for text in texts {
        let kept = replies.any(|reply| reply.role == Role::Assistant && text_of(reply) == *text);
        assert!(kept, "{text:?} was shown, and is lost: {step:?}");
    }
}

/// S15.
pub(super) fn invariant_an_event_holds_no_bytes(stored: &[u8]) {
    let stored = String::from_utf8_lossy(stored);
    assert!(!stored.contains(";base64,"), "{stored}");
}

/// The event that decided is recorded.
pub(super) fn invariant_an_answer_names_a_recorded_event(
    log: &[Event],
    verdict: &Result<Step, Rejection>,
) {
    let seq = match verdict {
        Ok(Step {
            reply:
                Reply::Accepted { seq, .. }
                | Reply::Interrupted { seq, .. }
                | Reply::Cancelled { seq, .. },
            ..
        })
        | Err(
            Rejection::TurnAlreadyActive { seq, .. }
            | Rejection::Interrupted { seq }
            | Rejection::Done { seq }
            | Rejection::ConditionFailed { seq, .. }
            | Rejection::NotPending { seq: Some(seq) },
        ) => *seq,
        Ok(Step { reply: Reply::Done, .. })
        | Err(
            Rejection::NotPending { seq: None }
            | Rejection::UnknownSession
            | Rejection::NotOwner
            | Rejection::AgentMismatch(_)
            | Rejection::UnknownAgent(_)
            | Rejection::UnknownTurn
            | Rejection::QueueFull
            | Rejection::TooLarge { .. }
            | Rejection::TooManyInterrupts
            | Rejection::Invalid { .. }
            | Rejection::ResumeForbidden
            | Rejection::UnknownCall
            | Rejection::NotClientHandled,
        ) => return,
    };
    let last = log.last().map_or(Seq(0), |event| event.seq);
    assert!(seq <= last, "{verdict:?} after {last}");
}

/// A restart owes exactly what was owed.
pub(super) fn invariant_outstanding_is_what_was_asked(asked: &Asked, session: &Session) {
    let outstanding: Asked = session
        .outstanding()
        .into_iter()
        .map(|effect| match effect {
            Effect::CallModel { id, attempt } => (id, attempt),
            Effect::StopCall { .. } => panic!("a stop is never owed: {effect:?}"),
        })
        .collect();
    assert_eq!(&outstanding, asked);
}

/// No turn is stuck: a call is open, an executor's or a client's, or somebody must answer a pause.
pub(super) fn invariant_a_running_turn_owns_something(ledger: &Ledger) {
    let waits = ledger.a_call_is_open() || ledger.is_paused();
    assert!(ledger.running.is_none() || waits, "{:?} waits for nothing", ledger.running);
    if ledger.is_paused() {
        assert!(!ledger.model_is_at_work(), "no model speaks on a paused branch");
    }
}

/// Pauses and clients are waited for by nobody (S18).
pub(super) fn invariant_owes_is_what_the_engine_itself_must_do(ledger: &Ledger, session: &Session) {
    let due = ledger.a_turn_is_due();
    assert_eq!(session.owes(), ledger.model_is_at_work() || due);
    if due {
        assert_eq!(session.wake_at(), Some(session.last_event_at()), "the next turn is due");
    }
    if !session.owes() {
        assert_eq!(session.wake_at(), None);
    }
}

pub(super) fn invariant_the_view_is_what_was_recorded(ledger: &Ledger, session: &Session) {
    let Ok(view) = session.view(&ViewRequest::default()) else {
        assert!(ledger.messages.is_empty());
        return;
    };
    let tree = view.message_tree.expect("a tree, unless the reader wants none");
    assert_eq!(tree.head_id, ledger.head);
    let mut recorded: BTreeSet<&MessageId> = BTreeSet::new();
    for node in &tree.nodes {
        let id = node.message.id.as_ref().expect("a recorded id");
        assert_eq!(ledger.messages.get(id), Some(&node.parent_id));
        let above = node.parent_id.as_ref();
        assert!(above.is_none_or(|parent| recorded.contains(parent)), "parents come first");
        recorded.insert(id);
    }
    assert!(recorded.into_iter().eq(ledger.messages.keys()), "the tree holds what was recorded");
    let shown: Vec<_> = view.messages.iter().filter_map(|message| message.id.as_ref()).collect();
    assert_eq!(shown, ledger.path(), "the view leads from the root to the head");
    let open: Vec<_> = view.interrupts.into_iter().map(|it| (it.interrupt_id, it.anchor)).collect();
    assert_eq!(open, ledger.interrupts);
}

/// Read at the active branch (S42).
pub(super) fn invariant_the_status_is_that_of_the_head(ledger: &Ledger, session: &Session) {
    let expected = match (ledger.done, ledger.is_paused()) {
        (Some(_), _) => SessionStatus::Done,
        (None, true) => SessionStatus::Interrupted,
        (None, false) => SessionStatus::Idle,
    };
    assert_eq!(session.status(), expected);
}

pub(super) fn invariant_the_session_knows_its_turns(ledger: &Ledger, session: &Session) {
    assert_eq!(session.running_turn(), ledger.running.as_ref());
    for (id, progress) in &ledger.turns {
        let record = session.turn(id).map(|(_, record)| record).map(|record| match record {
            TurnRecord::Queued { queued } => TurnProgress::Queued { queued: queued.0 },
            TurnRecord::Running { started } => TurnProgress::Running { started: started.0 },
            TurnRecord::Completed { started, completed } => {
                TurnProgress::Completed { started: started.0, completed: completed.0 }
            }
        });
        assert_eq!(record, Some(*progress), "turn {id}");
    }
}
