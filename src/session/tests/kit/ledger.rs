//! What the log alone says, kept by a second reader that shares no code with the reducer, and the
//! invariants of the log.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::ids::{CallId, InterruptId, MessageId, TurnId};
use crate::protocol::event::{
    CallErrored, CallKind, CallVoided, Event, InterruptResumed, LlmCallCompleted, MessageNew,
    Payload, SessionInterrupted, ToolCallCompleted, TurnCompleted, TurnQueued,
};
use crate::protocol::llm::{Cost, Usage};
use crate::time::Timestamp;

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    seq: u64,
    last_at: Timestamp,
    /// Where the session was cancelled for good.
    pub(crate) done: Option<u64>,
    pub(crate) running: Option<TurnId>,
    pub(crate) turns: BTreeMap<TurnId, TurnProgress>,
    pub(crate) queue: VecDeque<TurnId>,
    /// The messages that each queued turn brings.
    queued_messages: BTreeMap<TurnId, Vec<MessageId>>,
    calls: BTreeMap<CallId, CallEntry>,
    /// Recorded messages with their parents.
    pub(crate) messages: BTreeMap<MessageId, Option<MessageId>>,
    pub(crate) head: Option<MessageId>,
    /// Open ones in the order in which they were raised, with their anchors.
    pub(crate) interrupts: Vec<(InterruptId, Option<MessageId>)>,
    answered: BTreeSet<InterruptId>,
    /// Of the completed calls of the running turn.
    cost: Cost,
    usage: Usage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnProgress {
    Queued { queued: u64 },
    Running { started: u64 },
    Completed { started: u64, completed: u64 },
}

#[derive(Debug)]
struct CallEntry {
    turn: TurnId,
    kind: CallKind,
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
        invariant_the_envelope_names_the_turn(self, event);
        invariant_a_session_that_is_done_is_only_updated(self, event);
        self.seq += 1;
        self.last_at = event.occurred_at;
        match &event.payload {
            Payload::SessionCreated(_) => assert_eq!(self.seq, 1, "created once, and first"),
            Payload::SessionUpdated(updated) => {
                let something = updated.title.is_some() || updated.metadata.is_some();
                assert!(something, "an update changes something");
            }
            Payload::SessionCancelled(_) => self.cancelled(),
            Payload::MessageNew(recorded) => self.recorded(recorded),
            Payload::HeadMoved(moved) => {
                invariant_the_head_moves_to_recorded_messages(self, &moved.head_id);
                self.head = Some(moved.head_id.clone());
            }
            Payload::TurnQueued(queued) => self.turn_queued(queued),
            Payload::TurnStarted(started) => self.turn_started(&started.turn_id),
            Payload::TurnCompleted(completed) => self.turn_completed(completed),
            Payload::SessionInterrupted(raised) => self.raised(raised),
            Payload::InterruptResumed(resumed) => self.answered(resumed),
            Payload::LlmCallRequested(request) => {
                assert!(self.messages.contains_key(&request.head_id), "it prompts from a message");
                self.requested(&request.id, CallKind::LlmCall);
            }
            Payload::LlmCallDispatched(call) => {
                self.dispatched(&call.id, CallKind::LlmCall, call.attempt);
            }
            Payload::LlmCallCompleted(completed) => self.completed(completed),
            Payload::LlmCallErrored(errored) => self.model_call_errored(errored),
            Payload::ToolCallRequested(request) => self.requested(&request.id, CallKind::ToolCall),
            Payload::ToolCallDispatched(call) => {
                self.dispatched(&call.id, CallKind::ToolCall, call.attempt);
            }
            Payload::ToolCallCompleted(completed) => self.tool_call_completed(completed),
            Payload::ToolCallErrored(errored) => self.tool_call_errored(errored),
            Payload::CallVoided(voided) => self.voided(voided),
            Payload::WorkerStateUpdated(updated) => self.anchored(updated.anchor.as_ref()),
            Payload::AgentUpdated(updated) => self.anchored(updated.anchor.as_ref()),
        }
    }

    fn anchored(&self, anchor: Option<&MessageId>) {
        assert!(anchor.is_none_or(|anchor| self.messages.contains_key(anchor)));
    }

    fn cancelled(&mut self) {
        assert_eq!(self.running, None, "a session ends between turns");
        assert!(self.queue.is_empty(), "nothing waits in a session that is done");
        self.done = Some(self.seq);
        self.answered.extend(self.interrupts.drain(..).map(|(id, _)| id));
    }

    fn recorded(&mut self, recorded: &MessageNew) {
        let id = recorded.message.id.clone().expect("a recorded id");
        invariant_a_parent_is_recorded_before_its_child(self, recorded.parent_id.as_ref());
        let before = self.messages.insert(id.clone(), recorded.parent_id.clone());
        assert!(before.is_none(), "{id} is recorded twice");
        self.head = Some(id);
    }

    // Turns.

    fn turn_queued(&mut self, queued: &TurnQueued) {
        let progress = TurnProgress::Queued { queued: self.seq };
        let before = self.turns.insert(queued.turn_id.clone(), progress);
        assert_eq!(before, None, "{} is queued anew", queued.turn_id);
        let named = queued.input.messages().iter().all(|message| message.id.is_some());
        assert!(named, "a queued message has its id");
        let ids = queued.input.messages().iter().filter_map(|message| message.id.clone());
        self.queued_messages.insert(queued.turn_id.clone(), ids.collect());
        self.queue.push_back(queued.turn_id.clone());
    }

    fn turn_started(&mut self, id: &TurnId) {
        invariant_at_most_one_turn_runs(self, id);
        let progress = TurnProgress::Running { started: self.seq };
        match self.turns.insert(id.clone(), progress) {
            None => {}
            Some(TurnProgress::Queued { .. }) => {
                assert_eq!(self.queue.pop_front().as_ref(), Some(id), "the queue is in order");
            }
            Some(before) => panic!("{id} starts twice: {before:?}"),
        }
        self.running = Some(id.clone());
        self.cost = Cost::default();
        self.usage = Usage::default();
    }

    fn turn_completed(&mut self, completed: &TurnCompleted) {
        let id = &completed.turn_id;
        if completed.cancelled {
            assert!(completed.data.is_none() && completed.error.is_none(), "{completed:?}");
        } else {
            assert_eq!(completed.reason, None, "only a cancelled turn has a reason");
        }
        let started = match self.turns.get(id) {
            Some(TurnProgress::Running { started }) => {
                invariant_every_request_ended_before_its_turn(self, id);
                invariant_a_turn_costs_its_calls(self, completed);
                let started = *started;
                self.running = None;
                started
            }
            Some(TurnProgress::Queued { .. }) => {
                invariant_a_queued_turn_ends_only_as_cancelled(completed);
                self.queue.retain(|queued| queued != id);
                self.seq
            }
            other => panic!("{id} completes, but it is {other:?}"),
        };
        let progress = TurnProgress::Completed { started, completed: self.seq };
        self.turns.insert(id.clone(), progress);
    }

    // Interrupts.

    fn raised(&mut self, raised: &SessionInterrupted) {
        let id = &raised.interrupt_id;
        let open = self.interrupts.iter().any(|(open, _)| open == id);
        assert!(!open && !self.answered.contains(id), "{id} is raised twice");
        assert_eq!(raised.anchor, self.head, "an interrupt is attached to the head");
        assert!(!self.model_is_at_work(), "a pause voids the model calls");
        self.interrupts.push((id.clone(), raised.anchor.clone()));
    }

    fn answered(&mut self, resumed: &InterruptResumed) {
        let id = &resumed.interrupt_id;
        let at = self.interrupts.iter().position(|(open, _)| open == id);
        self.interrupts.remove(at.unwrap_or_else(|| panic!("{id} is answered, but not open")));
        self.answered.insert(id.clone());
    }

    /// The messages from the root to the head.
    pub(crate) fn path(&self) -> Vec<&MessageId> {
        let parent = |id: &&MessageId| self.messages.get(*id).and_then(Option::as_ref);
        let mut path: Vec<_> = std::iter::successors(self.head.as_ref(), parent).collect();
        path.reverse();
        path
    }

    /// Whether an open interrupt pauses the head.
    pub(crate) fn is_paused(&self) -> bool {
        let path: BTreeSet<&MessageId> = self.path().into_iter().collect();
        let mut anchors = self.interrupts.iter().map(|(_, anchor)| anchor.as_ref());
        anchors.any(|anchor| anchor.is_none_or(|anchor| path.contains(anchor)))
    }

    // Calls.

    fn requested(&mut self, id: &CallId, kind: CallKind) {
        let turn = self.running.clone().expect("calls belong to turns");
        let entry = CallEntry { turn, kind, attempt: 0, progress: CallProgress::Requested };
        let before = self.calls.insert(id.clone(), entry);
        assert!(before.is_none(), "{id} is requested twice");
    }

    fn dispatched(&mut self, id: &CallId, kind: CallKind, attempt: u32) {
        let call = self.open_call(id, kind);
        assert_ne!(call.progress, CallProgress::Running, "{id} is already out");
        assert_eq!(attempt, call.attempt + 1, "attempts of {id} count up");
        call.attempt = attempt;
        call.progress = CallProgress::Running;
    }

    fn completed(&mut self, completed: &LlmCallCompleted) {
        let call = self.running_call(&completed.id, CallKind::LlmCall, completed.attempt);
        call.progress = CallProgress::Settled;
        self.cost += completed.response.cost.unwrap_or_default();
        self.usage += completed.response.usage.unwrap_or_default();
    }

    fn model_call_errored(&mut self, errored: &CallErrored) {
        assert_eq!(errored.will_retry, errored.retry_at.is_some());
        assert!(errored.retryable || !errored.will_retry);
        let call = self.running_call(&errored.id, CallKind::LlmCall, errored.attempt);
        call.progress =
            if errored.will_retry { CallProgress::Waiting } else { CallProgress::Settled };
    }

    fn tool_call_completed(&mut self, completed: &ToolCallCompleted) {
        let call = self.running_call(&completed.id, CallKind::ToolCall, completed.attempt);
        call.progress = CallProgress::Settled;
    }

    /// A call of an undeclared tool fails before anybody is asked for it.
    fn tool_call_errored(&mut self, errored: &CallErrored) {
        assert!(!errored.will_retry && !errored.streamed && errored.retry_at.is_none());
        let call = self.open_call(&errored.id, CallKind::ToolCall);
        assert_eq!(errored.attempt, call.attempt.max(1));
        call.progress = CallProgress::Settled;
    }

    fn voided(&mut self, voided: &CallVoided) {
        self.open_call(&voided.id, voided.kind).progress = CallProgress::Settled;
    }

    fn running_call(&mut self, id: &CallId, kind: CallKind, attempt: u32) -> &mut CallEntry {
        let call = self.open_call(id, kind);
        assert_eq!(
            (call.progress, call.attempt),
            (CallProgress::Running, attempt),
            "only the attempt of {id} that is out ends"
        );
        call
    }

    /// `invariant_settled_calls_stay_settled`, voided ones too; and a call ends within its turn.
    fn open_call(&mut self, id: &CallId, kind: CallKind) -> &mut CallEntry {
        let call = self.calls.get_mut(id).unwrap_or_else(|| panic!("{id} was never requested"));
        assert_ne!(call.progress, CallProgress::Settled, "{id} is settled");
        assert_eq!((Some(&call.turn), call.kind), (self.running.as_ref(), kind));
        call
    }

    fn open_calls(&self) -> impl Iterator<Item = &CallEntry> {
        self.calls.values().filter(|call| call.progress != CallProgress::Settled)
    }

    pub(crate) fn a_call_is_open(&self) -> bool {
        self.open_calls().next().is_some()
    }

    /// An executor is at work on a model call, or its next attempt is timed.
    pub(crate) fn model_is_at_work(&self) -> bool {
        self.open_calls().any(|call| call.kind == CallKind::LlmCall)
    }

    /// A queued turn that nothing holds up: it starts without anybody asking.
    pub(crate) fn a_turn_is_due(&self) -> bool {
        let Some(next) = self.queue.front() else { return false };
        let says_more = self.queued_messages[next].iter().any(|id| !self.messages.contains_key(id));
        let gives_way = self.a_call_is_open() && !self.model_is_at_work() && says_more;
        (self.running.is_none() || gives_way) && !self.is_paused()
    }
}

fn invariant_seqs_are_dense(ledger: &Ledger, event: &Event) {
    assert_eq!(event.seq.0, ledger.seq + 1, "seqs are dense from 1");
}

fn invariant_time_never_goes_back(ledger: &Ledger, event: &Event) {
    assert!(event.occurred_at >= ledger.last_at, "S4: {event:?}");
}

/// The turn that it is about, or else the one that runs.
fn invariant_the_envelope_names_the_turn(ledger: &Ledger, event: &Event) {
    let turn = if let Payload::TurnStarted(started) = &event.payload {
        Some(&started.turn_id)
    } else if let Payload::TurnCompleted(completed) = &event.payload {
        Some(&completed.turn_id)
    } else {
        ledger.running.as_ref()
    };
    assert_eq!(event.turn_id.as_ref(), turn, "{event:?}");
}

fn invariant_a_session_that_is_done_is_only_updated(ledger: &Ledger, event: &Event) {
    let update = matches!(event.payload, Payload::SessionUpdated(_));
    assert!(ledger.done.is_none() || update, "after the end: {event:?}");
}

fn invariant_a_parent_is_recorded_before_its_child(ledger: &Ledger, parent: Option<&MessageId>) {
    let known = parent.is_none_or(|parent| ledger.messages.contains_key(parent));
    assert!(known, "{parent:?} is not recorded");
}

fn invariant_the_head_moves_to_recorded_messages(ledger: &Ledger, to: &MessageId) {
    assert!(ledger.messages.contains_key(to), "{to} is not recorded");
    assert_ne!(ledger.head.as_ref(), Some(to), "a head that stays does not move");
}

fn invariant_at_most_one_turn_runs(ledger: &Ledger, id: &TurnId) {
    assert_eq!(ledger.running, None, "{id} starts beside another turn");
}

fn invariant_a_queued_turn_ends_only_as_cancelled(completed: &TurnCompleted) {
    assert!(completed.cancelled, "{completed:?}");
    assert_eq!((completed.cost, completed.usage), (Cost::default(), Usage::default()));
}

fn invariant_every_request_ended_before_its_turn(ledger: &Ledger, turn: &TurnId) {
    let open = ledger.open_calls().find(|call| call.turn == *turn);
    assert!(open.is_none(), "{turn} completes with an open call: {open:?}");
}

fn invariant_a_turn_costs_its_calls(ledger: &Ledger, completed: &TurnCompleted) {
    assert_eq!(completed.cost, ledger.cost);
    assert_eq!(completed.usage, ledger.usage);
}
