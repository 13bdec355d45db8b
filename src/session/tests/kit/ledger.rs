//! What the log alone says, kept by a second reader that shares no code with the reducer, and the
//! invariants of the log.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::ids::{CallId, MessageId, TurnId};
use crate::protocol::event::{Event, LlmCallCompleted, Payload, TurnCompleted};
use crate::protocol::llm::{Cost, Usage};
use crate::time::Timestamp;

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    seq: u64,
    last_at: Timestamp,
    pub(crate) running: Option<TurnId>,
    pub(crate) turns: BTreeMap<TurnId, TurnProgress>,
    pub(crate) queue: VecDeque<TurnId>,
    calls: BTreeMap<CallId, CallEntry>,
    pub(crate) messages: BTreeSet<MessageId>,
    pub(crate) head: Option<MessageId>,
    /// Of the completed calls of the running turn.
    cost: Cost,
    usage: Usage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnProgress {
    Queued,
    Running { started: u64 },
    Completed { started: u64, completed: u64 },
}

#[derive(Debug)]
struct CallEntry {
    turn: TurnId,
    attempt: u32,
    progress: CallProgress,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallProgress {
    Requested,
    Running,
    Waiting,
    Settled,
}

impl Ledger {
    /// Checks that `event` may follow what came before, and takes it in.
    pub(crate) fn observe(&mut self, event: &Event) {
        invariant_seqs_are_dense(self, event);
        invariant_time_never_goes_back(self, event);
        invariant_the_envelope_names_the_running_turn(self, event);
        self.seq += 1;
        self.last_at = event.occurred_at;
        match &event.payload {
            Payload::SessionCreated(_) => assert_eq!(self.seq, 1, "created once, and first"),
            Payload::MessageNew(recorded) => {
                let id = recorded.message.id.clone().expect("a recorded id");
                invariant_a_message_hangs_below_the_head(self, recorded.parent_id.as_ref());
                assert!(self.messages.insert(id.clone()), "{id} is recorded twice");
                self.head = Some(id);
            }
            Payload::TurnQueued(queued) => {
                let before = self.turns.insert(queued.turn_id.clone(), TurnProgress::Queued);
                assert_eq!(before, None, "{} is queued anew", queued.turn_id);
                self.queue.push_back(queued.turn_id.clone());
            }
            Payload::TurnStarted(started) => self.turn_started(&started.turn_id),
            Payload::TurnCompleted(completed) => self.turn_completed(completed),
            Payload::LlmCallRequested(request) => self.requested(&request.id),
            Payload::LlmCallDispatched(dispatched) => {
                self.dispatched(&dispatched.id, dispatched.attempt);
            }
            Payload::LlmCallCompleted(completed) => self.completed(completed),
            Payload::LlmCallErrored(errored) => {
                assert_eq!(errored.will_retry, errored.retry_at.is_some());
                assert!(errored.retryable || !errored.will_retry);
                let call = self.running_call(&errored.id, errored.attempt);
                call.progress =
                    if errored.will_retry { CallProgress::Waiting } else { CallProgress::Settled };
            }
            Payload::ToolCallRequested(request) => self.requested(&request.id),
            Payload::ToolCallErrored(errored) => {
                let call = self.open_call(&errored.id);
                assert!(!errored.will_retry);
                call.progress = CallProgress::Settled;
            }
        }
    }

    fn turn_started(&mut self, id: &TurnId) {
        invariant_at_most_one_turn_runs(self, id);
        invariant_queued_turns_start_in_order(self, id);
        self.queue.retain(|queued| queued != id);
        let progress = TurnProgress::Running { started: self.seq };
        let before = self.turns.insert(id.clone(), progress);
        assert!(matches!(before, None | Some(TurnProgress::Queued)), "{id} starts twice");
        self.running = Some(id.clone());
        self.cost = Cost::default();
        self.usage = Usage::default();
    }

    fn turn_completed(&mut self, completed: &TurnCompleted) {
        let id = &completed.turn_id;
        let Some(TurnProgress::Running { started }) = self.turns.get(id).copied() else {
            panic!("{id} completes without running");
        };
        invariant_every_request_ended_before_its_turn(self, id);
        invariant_a_turn_costs_its_calls(self, completed);
        let progress = TurnProgress::Completed { started, completed: self.seq };
        self.turns.insert(id.clone(), progress);
        self.running = None;
    }

    fn requested(&mut self, id: &CallId) {
        let turn = self.running.clone().expect("calls belong to turns");
        let entry = CallEntry { turn, attempt: 0, progress: CallProgress::Requested };
        let before = self.calls.insert(id.clone(), entry);
        assert!(before.is_none(), "{id} is requested twice");
    }

    fn dispatched(&mut self, id: &CallId, attempt: u32) {
        let call = self.open_call(id);
        assert_ne!(call.progress, CallProgress::Running, "{id} is already out");
        assert_eq!(attempt, call.attempt + 1, "attempts of {id} count up");
        call.attempt = attempt;
        call.progress = CallProgress::Running;
    }

    fn completed(&mut self, completed: &LlmCallCompleted) {
        self.running_call(&completed.id, completed.attempt).progress = CallProgress::Settled;
        self.cost += completed.response.cost.unwrap_or_default();
        self.usage += completed.response.usage.unwrap_or_default();
    }

    fn running_call(&mut self, id: &CallId, attempt: u32) -> &mut CallEntry {
        let call = self.open_call(id);
        assert_eq!(
            (call.progress, call.attempt),
            (CallProgress::Running, attempt),
            "only the attempt of {id} that is out ends"
        );
        call
    }

    /// A settled call stays settled, and a call ends within its turn.
    fn open_call(&mut self, id: &CallId) -> &mut CallEntry {
        let call = self.calls.get_mut(id).expect("a requested call");
        assert_ne!(call.progress, CallProgress::Settled, "{id} is settled");
        assert_eq!(Some(&call.turn), self.running.as_ref());
        call
    }
}

fn invariant_seqs_are_dense(ledger: &Ledger, event: &Event) {
    assert_eq!(event.seq.0, ledger.seq + 1, "seqs are dense from 1");
}

fn invariant_time_never_goes_back(ledger: &Ledger, event: &Event) {
    assert!(event.occurred_at >= ledger.last_at, "S4: {event:?}");
}

fn invariant_the_envelope_names_the_running_turn(ledger: &Ledger, event: &Event) {
    let running = if let Payload::TurnStarted(started) = &event.payload {
        Some(&started.turn_id)
    } else {
        ledger.running.as_ref()
    };
    assert_eq!(event.turn_id.as_ref(), running, "{event:?}");
}

/// In this version nothing branches.
fn invariant_a_message_hangs_below_the_head(ledger: &Ledger, parent: Option<&MessageId>) {
    assert_eq!(parent, ledger.head.as_ref());
}

fn invariant_at_most_one_turn_runs(ledger: &Ledger, id: &TurnId) {
    assert_eq!(ledger.running, None, "{id} starts beside another turn");
}

fn invariant_queued_turns_start_in_order(ledger: &Ledger, id: &TurnId) {
    if let Some(first) = ledger.queue.front() {
        assert_eq!(id, first, "the queue goes first, in order");
    }
}

fn invariant_every_request_ended_before_its_turn(ledger: &Ledger, turn: &TurnId) {
    let mut calls = ledger.calls.iter();
    let open = calls.find(|(_, call)| call.turn == *turn && call.progress != CallProgress::Settled);
    assert!(open.is_none(), "{turn} completes with an open call: {open:?}");
}

fn invariant_a_turn_costs_its_calls(ledger: &Ledger, completed: &TurnCompleted) {
    assert_eq!(completed.cost, ledger.cost);
    assert_eq!(completed.usage, ledger.usage);
}
