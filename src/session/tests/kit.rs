//! Given, when, then for conversations: a live session beside its whole log, checked after every
//! step.

mod invariants;
mod ledger;
mod words;

use std::collections::BTreeSet;

pub(crate) use ledger::Ledger;
pub(crate) use words::*;

use crate::ids::CallId;
use crate::protocol::agent::AgentConfig;
use crate::protocol::event::{Event, Payload};
use crate::session::{CallFailure, Command, Effect, ModelOutcome, Rejection, Session, Step};
use crate::time::Timestamp;

/// A session, everything it ever recorded, and what its executors were asked for.
pub(crate) struct Conversation {
    pub(crate) session: Session,
    pub(crate) log: Vec<Event>,
    /// The log as storage has it.
    stored: Vec<Vec<u8>>,
    pub(crate) agent: AgentConfig,
    pub(crate) now: Timestamp,
    /// The session again, folded from the log event by event.
    replayed: Session,
    /// As `replayed`, from events that went through their stored form.
    reread: Session,
    ledger: Ledger,
    /// Attempts that executors were asked for and that the log has not ended.
    asked: BTreeSet<(CallId, u32)>,
}

impl Conversation {
    pub(crate) fn new() -> Self {
        let key = key();
        Self {
            session: Session::new(key.clone()),
            log: Vec::new(),
            stored: Vec::new(),
            agent: agent(),
            now: start(),
            replayed: Session::new(key.clone()),
            reread: Session::new(key),
            ledger: Ledger::default(),
            asked: BTreeSet::new(),
        }
    }

    /// A conversation whose first turn, `t1`, waits for the first attempt of its model call.
    pub(crate) fn with_a_running_turn() -> Self {
        let mut conversation = Self::new();
        conversation.accepts(ask("hello").turn("t1"));
        conversation
    }

    /// A conversation whose turn `t1` is complete.
    pub(crate) fn with_a_completed_turn() -> Self {
        let mut conversation = Self::with_a_running_turn();
        conversation.answers("hi");
        conversation
    }

    /// Decides `command` and checks every invariant.
    pub(crate) fn apply(&mut self, command: Command) -> Result<Step, Rejection> {
        let before = self.session.clone();
        let verdict = self.session.decide(command, Some(&self.agent), self.now);
        match &verdict {
            Ok(step) => self.absorb(step),
            Err(_) => invariants::invariant_a_refusal_changes_nothing(&before, &self.session),
        }
        self.check();
        verdict
    }

    fn absorb(&mut self, step: &Step) {
        invariants::invariant_every_dispatch_is_asked_of_an_executor(step);
        for event in &step.events {
            self.ledger.observe(event);
            self.replayed.evolve(event);
            let stored = event.encode(&self.session.key().session);
            self.reread.evolve(&decoded(&stored));
            self.stored.push(stored);
            if let Payload::LlmCallCompleted(completed) = &event.payload {
                self.asked.remove(&(completed.id.clone(), completed.attempt));
            }
            if let Payload::LlmCallErrored(errored) = &event.payload {
                self.asked.remove(&(errored.id.clone(), errored.attempt));
            }
            self.log.push(event.clone());
        }
        for effect in &step.effects {
            match effect {
                Effect::CallModel { id, attempt } => {
                    self.asked.insert((id.clone(), *attempt));
                }
                Effect::StopCall { .. } => {}
            }
        }
    }

    fn check(&self) {
        invariants::invariant_replay_equals_live(&self.replayed, &self.session);
        invariants::invariant_replay_equals_live(&self.reread, &self.session);
        invariants::invariant_outstanding_is_what_was_asked(&self.asked, &self.session);
        invariants::invariant_a_running_turn_owes_something(&self.ledger, &self.session);
        invariants::invariant_the_head_is_in_the_tree(&self.ledger, &self.session);
        invariants::invariant_the_session_knows_its_turns(&self.ledger, &self.session);
    }

    /// The process ends and another reads the log from its stored bytes.
    pub(crate) fn restart(&mut self) {
        let key = self.session.key().clone();
        let events: Vec<Event> = self.stored.iter().map(|stored| decoded(stored)).collect();
        let session = Session::replay(key, &events);
        invariants::invariant_replay_equals_live(&session, &self.session);
        self.session = session;
    }

    // When.

    pub(crate) fn accepts(&mut self, ask: Ask) -> Step {
        self.apply(ask.into()).unwrap()
    }

    pub(crate) fn refuses(&mut self, ask: Ask) -> Rejection {
        self.apply(ask.into()).unwrap_err()
    }

    /// The open attempt ends with `outcome`.
    pub(crate) fn settles(&mut self, outcome: ModelOutcome) -> Step {
        let (id, attempt) = self.open();
        self.apply(settle(id, attempt, outcome)).unwrap()
    }

    pub(crate) fn answers(&mut self, text: &str) -> Step {
        self.settles(answer(text))
    }

    pub(crate) fn fails(&mut self, failure: CallFailure) -> Step {
        self.settles(failed(failure, false))
    }

    pub(crate) fn wakes(&mut self, streamed: &[CallId]) -> Step {
        let streamed = streamed.to_vec();
        self.apply(Command::Wake { streamed }).unwrap()
    }

    /// Time passes to the one timer, which fires.
    pub(crate) fn wakes_at_its_timer(&mut self) -> Step {
        self.now = self.session.wake_at().expect("a timer is set");
        self.wakes(&[])
    }

    /// The process ends; the next one reads the log and recovers.
    pub(crate) fn recovers(&mut self) -> Step {
        self.restart();
        self.apply(Command::Recover).unwrap()
    }

    pub(crate) fn passes(&mut self, millis: u64) {
        self.now = self.now.plus(std::time::Duration::from_millis(millis));
    }

    // Then.

    /// The one attempt that an executor is at work on.
    pub(crate) fn open(&self) -> (CallId, u32) {
        let outstanding = self.session.outstanding();
        match outstanding.as_slice() {
            [Effect::CallModel { id, attempt }] => (id.clone(), *attempt),
            other => panic!("one attempt is out, not {other:?}"),
        }
    }

    pub(crate) fn last_call_id(&self) -> CallId {
        let requests = self.log.iter().rev();
        requests
            .filter_map(|event| call_requested(event))
            .map(|request| request.id.clone())
            .next()
            .expect("a model call was requested")
    }
}

/// What a failing test prints: the log as it would be stored.
impl Drop for Conversation {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for stored in &self.stored {
                eprintln!("{}", String::from_utf8_lossy(stored));
            }
        }
    }
}

fn decoded(stored: &[u8]) -> Event {
    Event::decode(stored)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(stored)))
}
