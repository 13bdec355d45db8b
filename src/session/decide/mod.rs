//! Commands to events: every check before the first emit, so that a refusal changes nothing.

mod deadline;
mod input;
mod proposal;
mod settle;

use std::time::Duration;

use super::command::Command;
use super::effect::Effect;
use super::rejection::Rejection;
use super::state::Session;
use crate::ids::{MessageId, Seq, TurnId};
use crate::protocol::agent::AgentConfig;
use crate::protocol::error::ErrorInfo;
use crate::protocol::event::{Event, Payload, TurnCompleted, TurnStarted};
use crate::protocol::input::Input;
use crate::protocol::json::Json;
use crate::time::Timestamp;

/// What a command comes to: events to make durable, then a reply to give and effects to perform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub events: Vec<Event>,
    pub effects: Vec<Effect>,
    pub reply: Reply,
}

/// What the caller is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// A submit is taken, now or earlier under the same turn id (S17).
    Accepted {
        turn_id: TurnId,
        queued: bool,
    },
    Done,
}

impl Session {
    /// Decides `command` with `agent` as the configuration of the session's agent, none when it is not
    /// declared. State changes only when this is `Ok`; time never runs backwards within a session
    /// (S4).
    pub fn decide(
        &mut self,
        command: Command,
        agent: Option<&AgentConfig>,
        now: Timestamp,
    ) -> Result<Step, Rejection> {
        let now = now.max(self.last_event_at);
        let mut decider =
            Decider { session: self, agent, now, events: Vec::new(), effects: Vec::new() };
        let reply = match command {
            Command::Submit(submission) => decider.submit(*submission)?,
            Command::SettleModelCall { id, attempt, outcome } => {
                decider.settle_model_call(&id, attempt, outcome)?
            }
            Command::Wake { streamed } => decider.wake(&streamed),
            Command::Recover => decider.recover(),
        };
        decider.start_queued_turn();
        let Decider { events, effects, .. } = decider;
        Ok(Step { events, effects, reply })
    }
}

/// One decision under way. `emit` is its only way to change the session.
struct Decider<'a> {
    session: &'a mut Session,
    agent: Option<&'a AgentConfig>,
    now: Timestamp,
    events: Vec<Event>,
    effects: Vec<Effect>,
}

impl Decider<'_> {
    fn emit(&mut self, payload: Payload) {
        let turn_id = match &payload {
            Payload::TurnStarted(started) => Some(started.turn_id.clone()),
            Payload::SessionCreated(_)
            | Payload::MessageNew(_)
            | Payload::TurnQueued(_)
            | Payload::TurnCompleted(_)
            | Payload::LlmCallRequested(_)
            | Payload::LlmCallDispatched(_)
            | Payload::LlmCallCompleted(_)
            | Payload::LlmCallErrored(_)
            | Payload::ToolCallRequested(_)
            | Payload::ToolCallErrored(_) => self.session.turn.as_ref().map(|turn| turn.id.clone()),
        };
        let event = Event { seq: self.session.seq.next(), occurred_at: self.now, turn_id, payload };
        self.session.evolve(&event);
        self.events.push(event);
    }

    fn next_seq(&self) -> Seq {
        self.session.seq.next()
    }

    /// An id for a message that came without one. A caller who guessed it loses nothing but luck.
    fn mint_message_id(&self) -> MessageId {
        let mint = |index| {
            crate::ids::derive_message_id(&self.session.key, self.next_seq(), index, self.now)
        };
        let mut id = mint(0);
        let mut index = 0;
        while self.session.tree.contains(&id) {
            index += 1;
            id = mint(index);
        }
        id
    }

    /// Begins a turn on `input` and goes on until it waits for something or is complete.
    fn start_turn(&mut self, turn_id: TurnId, input: Input) {
        self.emit(Payload::TurnStarted(TurnStarted { turn_id }));
        let Input::Message { message, stream } = input;
        if self.record_input(message) {
            self.request_model_call(stream);
        } else {
            self.complete_turn(None, None);
        }
    }

    /// Ends the running turn. Nothing of it may be open.
    fn complete_turn(&mut self, data: Option<Json>, error: Option<ErrorInfo>) {
        let Some(turn) = &self.session.turn else {
            return;
        };
        let completed = TurnCompleted {
            turn_id: turn.id.clone(),
            data,
            cost: turn.cost,
            usage: turn.usage,
            error,
        };
        self.emit(Payload::TurnCompleted(completed));
    }

    /// Starts the turn that has waited longest, if none runs. One at a time, which bounds the step:
    /// where it owes nothing and completes at once, the session wakes for the next.
    fn start_queued_turn(&mut self) {
        if self.session.turn.is_none()
            && let Some(queued) = self.session.queue.front().cloned()
        {
            self.start_turn(queued.turn_id, queued.input);
        }
    }

    fn after(&self, wait: Option<Duration>) -> Option<Timestamp> {
        wait.map(|wait| self.now.plus(wait))
    }
}
