//! Invariants of a session beside its log, checked after every step.

use std::collections::BTreeSet;

use super::ledger::{Ledger, TurnProgress};
use super::words::call_dispatched;
use crate::ids::{CallId, MessageId};
use crate::session::{Effect, Session, Step, TurnRecord};

pub(super) fn invariant_a_refusal_changes_nothing(before: &Session, after: &Session) {
    assert_eq!(before, after, "a refusal changes nothing");
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

/// A restart owes exactly what was owed.
pub(super) fn invariant_outstanding_is_what_was_asked(
    asked: &BTreeSet<(CallId, u32)>,
    session: &Session,
) {
    let outstanding: BTreeSet<(CallId, u32)> = session
        .outstanding()
        .into_iter()
        .map(|effect| match effect {
            Effect::CallModel { id, attempt } => (id, attempt),
            Effect::StopCall { .. } => panic!("a stop is never owed: {effect:?}"),
        })
        .collect();
    assert_eq!(&outstanding, asked);
}

/// No turn is stuck: an executor is at work or a timer is set. What waits behind no turn is due.
pub(super) fn invariant_a_running_turn_owes_something(ledger: &Ledger, session: &Session) {
    let owed = !session.outstanding().is_empty() || session.wake_at().is_some();
    let turns = ledger.running.is_some() || !ledger.queue.is_empty();
    assert_eq!(turns, owed, "a turn runs on what it owes");
    assert_eq!(session.owes(), owed);
    if ledger.running.is_none() && !ledger.queue.is_empty() {
        assert_eq!(session.wake_at(), Some(session.last_event_at()), "the next turn is due");
    }
}

pub(super) fn invariant_the_head_is_in_the_tree(ledger: &Ledger, session: &Session) {
    let Some(view) = session.view() else {
        assert!(ledger.messages.is_empty());
        return;
    };
    assert_eq!(view.message_tree.head_id, ledger.head);
    let mut recorded: BTreeSet<&MessageId> = BTreeSet::new();
    for node in &view.message_tree.nodes {
        if let Some(parent) = &node.parent_id {
            assert!(recorded.contains(parent), "a parent comes before its child");
        }
        recorded.extend(&node.message.id);
    }
    assert!(recorded.into_iter().eq(&ledger.messages), "the tree holds what was recorded");
    let last = view.messages.last().and_then(|message| message.id.as_ref());
    assert_eq!(last, ledger.head.as_ref(), "the view ends at the head");
}

pub(super) fn invariant_the_session_knows_its_turns(ledger: &Ledger, session: &Session) {
    for (id, progress) in &ledger.turns {
        let record = session.turn_record(id).map(|record| match record {
            TurnRecord::Queued => TurnProgress::Queued,
            TurnRecord::Running { started } => TurnProgress::Running { started: started.0 },
            TurnRecord::Completed { started, completed } => {
                TurnProgress::Completed { started: started.0, completed: completed.0 }
            }
        });
        assert_eq!(record, Some(*progress), "turn {id}");
    }
}
