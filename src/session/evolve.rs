//! The reducer: the only place where state changes. Total: it never refuses.

use super::call::{Call, Phase};
use super::state::{Origin, Session};
use super::turn::{Turn, TurnRecord};
use crate::protocol::event::{
    CallDispatched, CallErrored, Event, LlmCallCompleted, LlmCallRequested, MessageNew, Payload,
    TurnCompleted, TurnStarted,
};

impl Session {
    /// Applies one event.
    pub fn evolve(&mut self, event: &Event) {
        self.seq = event.seq;
        self.last_event_at = event.occurred_at;
        match &event.payload {
            Payload::SessionCreated(created) => {
                self.origin = Some(Origin {
                    agent_id: created.agent_id.clone(),
                    identity: created.identity.clone(),
                });
            }
            Payload::MessageNew(MessageNew { message, parent_id }) => {
                if let Some(id) = &message.id {
                    self.tree.add(id.clone(), parent_id.as_ref(), message.clone());
                }
            }
            Payload::TurnQueued(queued) => {
                self.turns.insert(queued.turn_id.clone(), TurnRecord::Queued);
                self.queue.push_back(queued.clone());
            }
            Payload::TurnStarted(started) => self.turn_started(started),
            Payload::TurnCompleted(completed) => self.turn_completed(completed),
            Payload::LlmCallRequested(request) => self.call_requested(request),
            Payload::LlmCallDispatched(dispatched) => self.call_dispatched(dispatched),
            Payload::LlmCallCompleted(completed) => self.call_completed(completed),
            Payload::LlmCallErrored(errored) => self.call_errored(errored),
            Payload::ToolCallRequested(request) => {
                if let Some(turn) = &mut self.turn {
                    turn.tool_calls.push(request.id.clone());
                }
            }
            Payload::ToolCallErrored(errored) => {
                if let Some(turn) = &mut self.turn {
                    turn.tool_calls.retain(|id| *id != errored.id);
                }
            }
        }
    }

    fn turn_started(&mut self, started: &TurnStarted) {
        self.queue.retain(|queued| queued.turn_id != started.turn_id);
        let record = TurnRecord::Running { started: self.seq };
        self.turns.insert(started.turn_id.clone(), record);
        self.turn = Some(Turn::new(started.turn_id.clone()));
    }

    fn turn_completed(&mut self, completed: &TurnCompleted) {
        let completed_at = self.seq;
        if let Some(record) = self.turns.get_mut(&completed.turn_id) {
            let started = match *record {
                TurnRecord::Running { started } | TurnRecord::Completed { started, .. } => started,
                TurnRecord::Queued => completed_at,
            };
            *record = TurnRecord::Completed { started, completed: completed_at };
        }
        self.turn = None;
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
            turn.calls.remove(&completed.id);
            turn.cost += completed.response.cost.unwrap_or_default();
            turn.usage += completed.response.usage.unwrap_or_default();
        }
    }

    fn call_errored(&mut self, errored: &CallErrored) {
        match errored.retry_at.filter(|_| errored.will_retry) {
            Some(retry_at) => {
                if let Some(call) = self.call_mut(&errored.id) {
                    call.phase = Phase::Waiting { retry_at };
                    call.streamed_before |= errored.streamed;
                }
            }
            None => {
                if let Some(turn) = &mut self.turn {
                    turn.calls.remove(&errored.id);
                }
            }
        }
    }

    fn call_mut(&mut self, id: &crate::ids::CallId) -> Option<&mut Call> {
        self.turn.as_mut().and_then(|turn| turn.calls.get_mut(id))
    }
}
