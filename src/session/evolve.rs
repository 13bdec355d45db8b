//! The reducer: the only place where state changes. Total: it never refuses.

use super::call::{Call, Phase, ToolCall};
use super::interrupt::{Answered, Interrupt};
use super::state::{Origin, Session};
use super::turn::{Turn, TurnRecord};
use crate::ids::{CallId, InterruptId, TurnId};
use crate::protocol::event::{
    CallDispatched, CallErrored, CallVoided, Event, LlmCallCompleted, LlmCallRequested, MessageNew,
    Payload, SessionCreated, SessionUpdated, ToolCallCompleted, TurnCompleted, TurnQueued,
    TurnStarted,
};
use crate::protocol::message::{Message, Role};

/// Longest title that is made from a message, in characters.
const TITLE_CHARS_MAX: usize = 80;

impl Session {
    /// Applies one event.
    pub fn evolve(&mut self, event: &Event) {
        self.seq = event.seq;
        self.last_event_at = event.occurred_at;
        match &event.payload {
            Payload::SessionCreated(created) => self.created(created),
            Payload::SessionUpdated(updated) => self.updated(updated),
            Payload::SessionCancelled(_) => self.cancelled(),
            Payload::MessageNew(recorded) => self.message_new(recorded),
            Payload::HeadMoved(moved) => self.tree.move_head(&moved.head_id),
            Payload::TurnQueued(queued) => self.turn_queued(queued),
            Payload::TurnStarted(started) => self.turn_started(started),
            Payload::TurnCompleted(completed) => self.turn_completed(completed),
            Payload::SessionInterrupted(raised) => self.interrupts.push(Interrupt {
                raised: raised.clone(),
                seq: event.seq,
                turn: event.turn_id.clone(),
            }),
            Payload::InterruptResumed(resumed) => {
                self.close_interrupt(&resumed.interrupt_id);
                self.label(resumed.run_id.as_ref(), event.turn_id.as_ref());
            }
            Payload::LlmCallRequested(request) => self.call_requested(request),
            Payload::LlmCallDispatched(dispatched) => self.call_dispatched(dispatched),
            Payload::LlmCallCompleted(completed) => self.call_completed(completed),
            Payload::LlmCallErrored(errored) => self.call_errored(errored),
            Payload::ToolCallRequested(request) => {
                if let Some(turn) = &mut self.turn {
                    turn.tools.push(ToolCall {
                        id: request.id.clone(),
                        name: request.name.clone(),
                        handler: request.handler,
                        attempt: 0,
                    });
                }
            }
            Payload::ToolCallDispatched(dispatched) => self.tool_dispatched(dispatched),
            Payload::ToolCallCompleted(completed) => {
                self.tool_completed(completed);
                self.label(completed.run_id.as_ref(), event.turn_id.as_ref());
            }
            Payload::ToolCallErrored(errored) => self.close_call(&errored.id),
            Payload::CallVoided(CallVoided { id, .. }) => self.close_call(id),
            Payload::WorkerStateUpdated(updated) => {
                self.tree.anchor_state(updated.anchor.as_ref(), updated.state.clone());
            }
            Payload::AgentUpdated(updated) => {
                self.tree.anchor_config(updated.anchor.as_ref(), updated.config.clone());
            }
        }
    }

    fn created(&mut self, created: &SessionCreated) {
        self.first_event_at = self.last_event_at;
        self.origin =
            Some(Origin { agent_id: created.agent_id.clone(), identity: created.identity.clone() });
    }

    fn updated(&mut self, updated: &SessionUpdated) {
        if let Some(title) = &updated.title {
            self.title.given = Some(title.clone()).filter(|title| !title.is_empty());
        }
        if let Some(metadata) = &updated.metadata {
            self.metadata = Some(metadata.clone());
        }
    }

    fn cancelled(&mut self) {
        self.done = Some(self.seq);
        while let Some(interrupt) = self.interrupts.last() {
            let id = interrupt.raised.interrupt_id.clone();
            self.close_interrupt(&id);
        }
    }

    fn message_new(&mut self, MessageNew { message, parent_id }: &MessageNew) {
        self.keep_blobs(message);
        if self.title.derived.is_none() && message.role == Role::User {
            self.title.derived = derived_title(message);
        }
        if let Some(id) = &message.id {
            self.tree.add(id.clone(), parent_id.as_ref(), message.clone());
        }
    }

    fn keep_blobs(&mut self, message: &Message) {
        for (hash, info) in message.blobs() {
            self.blobs.entry(hash).or_insert(info);
        }
    }

    fn turn_queued(&mut self, queued: &TurnQueued) {
        for message in queued.input.messages() {
            self.keep_blobs(message);
        }
        self.turns.insert(queued.turn_id.clone(), TurnRecord::Queued { queued: self.seq });
        self.queue.push_back(queued.clone());
    }

    fn turn_started(&mut self, started: &TurnStarted) {
        let queued = self.queue.iter().find(|queued| queued.turn_id == started.turn_id);
        let client = queued.map_or(started.client.as_ref(), |queued| queued.input.client());
        let turn = Turn::new(started.turn_id.clone(), client.cloned());
        self.queue.retain(|queued| queued.turn_id != started.turn_id);
        self.turns.insert(started.turn_id.clone(), TurnRecord::Running { started: self.seq });
        self.last_turn = Some(started.turn_id.clone());
        self.turn = Some(turn);
    }

    /// Of the running turn, or of one that is cancelled while it waits.
    fn turn_completed(&mut self, completed: &TurnCompleted) {
        let completed_at = self.seq;
        if let Some(record) = self.turns.get_mut(&completed.turn_id) {
            let started = match *record {
                TurnRecord::Running { started } | TurnRecord::Completed { started, .. } => started,
                TurnRecord::Queued { .. } => completed_at,
            };
            *record = TurnRecord::Completed { started, completed: completed_at };
        }
        self.queue.retain(|queued| queued.turn_id != completed.turn_id);
        self.turn.take_if(|turn| turn.id == completed.turn_id);
    }

    fn close_interrupt(&mut self, id: &InterruptId) {
        let open = self.interrupts.iter().position(|open| open.raised.interrupt_id == *id);
        if let Some(open) = open.map(|at| self.interrupts.remove(at)) {
            let answered = Answered { raised: open.seq, answered: self.seq };
            self.resumed.insert(id.clone(), answered);
        }
    }

    /// The turn that `run_id` came to stand for, too.
    fn label(&mut self, run_id: Option<&TurnId>, turn: Option<&TurnId>) {
        if let (Some(run_id), Some(turn)) = (run_id, turn) {
            self.labels.insert(run_id.clone(), turn.clone());
        }
    }

    fn call_requested(&mut self, request: &LlmCallRequested) {
        if let Some(turn) = &mut self.turn {
            turn.model_calls += 1;
            turn.stream = Some(request.stream);
            turn.calls.insert(request.id.clone(), Call::new(request.clone()));
        }
    }

    fn call_dispatched(&mut self, dispatched: &CallDispatched) {
        if let Some(call) = self.call_mut(&dispatched.id) {
            call.attempt = dispatched.attempt;
            call.phase = Phase::Running { deadline: dispatched.deadline };
        }
    }

    fn call_completed(&mut self, completed: &LlmCallCompleted) {
        if let Some(turn) = &mut self.turn {
            turn.cost += completed.response.cost.unwrap_or_default();
            turn.usage += completed.response.usage.unwrap_or_default();
        }
        self.close_call(&completed.id);
    }

    fn call_errored(&mut self, errored: &CallErrored) {
        match errored.retry_at.filter(|_| errored.will_retry) {
            Some(retry_at) => {
                if let Some(call) = self.call_mut(&errored.id) {
                    call.phase = Phase::Waiting { retry_at };
                    call.streamed_before |= errored.streamed;
                }
            }
            None => self.close_call(&errored.id),
        }
    }

    fn tool_dispatched(&mut self, dispatched: &CallDispatched) {
        let tools = self.turn.iter_mut().flat_map(|turn| &mut turn.tools);
        for tool in tools.filter(|tool| tool.id == dispatched.id) {
            tool.attempt = dispatched.attempt;
        }
    }

    fn tool_completed(&mut self, completed: &ToolCallCompleted) {
        for (hash, info) in completed.result.blobs() {
            self.blobs.entry(hash).or_insert(info);
        }
        self.close_call(&completed.id);
    }

    fn close_call(&mut self, id: &CallId) {
        if let Some(turn) = &mut self.turn {
            turn.calls.remove(id);
            turn.tools.retain(|tool| tool.id != *id);
        }
        self.settled.insert(id.clone(), self.seq);
    }

    fn call_mut(&mut self, id: &CallId) -> Option<&mut Call> {
        self.turn.as_mut().and_then(|turn| turn.calls.get_mut(id))
    }
}

/// The start of the first line that says something.
fn derived_title(message: &Message) -> Option<String> {
    let text = message.content.as_ref()?.text();
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(TITLE_CHARS_MAX).collect())
}
