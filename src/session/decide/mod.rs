//! Commands to events: every check before the first emit, so that a refusal changes nothing.

mod admit;
mod cancel;
mod deadline;
mod input;
mod interrupt;
mod proposal;
mod settle;
mod size;
mod tool;
mod turn;
mod view;

use std::time::Duration;

use super::command::{Command, Context};
use super::effect::Effect;
use super::rejection::Rejection;
use super::state::Session;
use crate::ids::{self, CallId, InterruptId, MessageId, Seq, SessionKey, TurnId};
use crate::protocol::agent::AgentConfig;
use crate::protocol::event::{Event, Payload, SessionUpdated};
use crate::protocol::input::{Conditions, SessionPatch};
use crate::time::Timestamp;

/// What a command comes to: events to make durable, then a reply to give and effects to perform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub events: Vec<Event>,
    pub effects: Vec<Effect>,
    pub reply: Reply,
}

/// What the caller is told. `seq` is the position of the event that decided it, of this step or an
/// earlier one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// An input is taken, now or earlier under the same turn id (S17).
    Accepted {
        turn_id: TurnId,
        queued: bool,
        seq: Seq,
    },
    /// A pause is there, now or earlier under the same id.
    Interrupted {
        interrupt_id: InterruptId,
        seq: Seq,
    },
    /// Whether this cancel is what ended the turn or the session (S20).
    Cancelled {
        cancelled: bool,
        seq: Seq,
    },
    Done,
}

impl Session {
    /// Decides `command`. State changes only when this is `Ok`; time never runs backwards within a
    /// session (S4).
    pub fn decide(
        &mut self,
        command: Command,
        context: &Context<'_>,
        now: Timestamp,
    ) -> Result<Step, Rejection> {
        let now = now.max(self.last_event_at);
        let mut decider =
            Decider { session: self, context, now, events: Vec::new(), effects: Vec::new() };
        let reply = match command {
            Command::Submit(submission) => decider.submit(*submission)?,
            Command::Resume { caller, conditions, turn_id, resume } => {
                decider.resume(&caller, &conditions, turn_id, resume)?
            }
            Command::SettleToolCall { caller, conditions, settlement } => {
                decider.settle_tool_call(&caller, &conditions, settlement)?
            }
            Command::Interrupt { caller, request } => decider.interrupt(&caller, request)?,
            Command::Cancel { caller, request } => decider.cancel(&caller, request)?,
            Command::Update { caller, patch } => decider.update(&caller, patch)?,
            Command::SettleModelCall { id, attempt, outcome } => {
                decider.settle_model_call(&id, attempt, outcome)?
            }
            Command::Wake => decider.wake(),
            Command::Recover => decider.recover(),
        };
        decider.go_on_with_the_queue();
        let Decider { events, effects, .. } = decider;
        Ok(Step { events, effects, reply })
    }

    /// The calls whose running attempt `command` ends without an answer, if it is taken: nothing
    /// more of them may be shown, and what was shown comes with the command
    /// ([`Context::shown`]; S20).
    pub fn cut_by(&self, command: &Command, now: Timestamp) -> Vec<CallId> {
        let now = now.max(self.last_event_at);
        match command {
            Command::Interrupt { caller, request } => self.cut_by_interrupt(caller, request),
            Command::Cancel { caller, request } => self.cut_by_cancel(caller, request),
            Command::Wake => self.overdue(now),
            Command::Submit(_)
            | Command::Resume { .. }
            | Command::SettleToolCall { .. }
            | Command::Update { .. }
            | Command::SettleModelCall { .. }
            | Command::Recover => Vec::new(),
        }
    }
}

/// One decision under way. `emit` is its only way to change the session.
struct Decider<'a> {
    session: &'a mut Session,
    context: &'a Context<'a>,
    now: Timestamp,
    events: Vec<Event>,
    effects: Vec<Effect>,
}

impl Decider<'_> {
    /// Records what happened, in the turn that it is about or that runs. Returns its position.
    fn emit(&mut self, payload: Payload) -> Seq {
        let turn_id = if let Payload::TurnStarted(started) = &payload {
            Some(started.turn_id.clone())
        } else if let Payload::TurnCompleted(completed) = &payload {
            Some(completed.turn_id.clone())
        } else {
            self.session.running_turn().cloned()
        };
        let event = Event { seq: self.session.seq.next(), occurred_at: self.now, turn_id, payload };
        self.session.evolve(&event);
        self.events.push(event);
        self.session.seq
    }

    fn next_seq(&self) -> Seq {
        self.session.seq.next()
    }

    fn agent(&self) -> Option<&AgentConfig> {
        self.session.config(self.context.agent)
    }

    /// An id for the `index`-th message of a step that comes without one.
    fn mint_message_id(&self, index: usize) -> MessageId {
        // Far from each other, so that no two of a step meet while one looks for a free id.
        let first = u32::try_from(index).unwrap_or(0) << 12;
        self.mint(first, ids::derive_message_id, |id| self.session.tree.contains(id))
    }

    fn mint_turn_id(&self) -> TurnId {
        self.mint(0, ids::derive_turn_id, |id| self.session.turn(id).is_some())
    }

    fn mint_interrupt_id(&self) -> InterruptId {
        let session = &*self.session;
        self.mint(0, ids::derive_interrupt_id, |id| {
            session.open_interrupt(id).is_some() || session.resumed.contains_key(id)
        })
    }

    /// The first id from `index` on that nobody has. A caller who guessed one loses nothing but luck.
    fn mint<T>(
        &self,
        index: u32,
        derive: fn(&SessionKey, Seq, u32, Timestamp) -> T,
        is_taken: impl Fn(&T) -> bool,
    ) -> T {
        let mut ids = (index..).map(|at| derive(&self.session.key, self.next_seq(), at, self.now));
        let free = ids.find(|id| !is_taken(id));
        free.unwrap_or_else(|| derive(&self.session.key, self.next_seq(), index, self.now))
    }

    /// Names or labels the session; what stays as it is is not recorded.
    fn update(
        &mut self,
        caller: &super::command::Caller,
        patch: SessionPatch,
    ) -> Result<Reply, Rejection> {
        self.session.check_reader(caller)?;
        let given = self.session.title.given.as_deref().unwrap_or_default();
        let title = patch.title.filter(|title| title != given);
        let metadata =
            patch.metadata.filter(|metadata| self.session.metadata.as_ref() != Some(metadata));
        if title.is_some() || metadata.is_some() {
            self.emit(Payload::SessionUpdated(SessionUpdated { title, metadata }));
        }
        Ok(Reply::Done)
    }

    fn check_conditions(&self, conditions: &Conditions) -> Result<(), Rejection> {
        let (head, seq) = (self.session.tree.head(), self.session.seq);
        let head_holds = conditions.if_head.is_none() || conditions.if_head.as_ref() == head;
        let seq_holds = conditions.if_seq.is_none_or(|wanted| wanted == seq);
        if head_holds && seq_holds {
            return Ok(());
        }
        Err(Rejection::ConditionFailed { head_id: head.cloned(), seq })
    }

    fn check_not_done(&self) -> Result<(), Rejection> {
        self.session.done.map_or(Ok(()), |seq| Err(Rejection::Done { seq }))
    }

    fn after(&self, wait: Option<Duration>) -> Option<Timestamp> {
        wait.map(|wait| self.now.plus(wait))
    }
}
