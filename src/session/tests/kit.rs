//! Given, when, then for conversations: a live session beside its whole log, checked after every
//! step.

mod invariants;
mod ledger;
mod sayings;
mod words;

pub(crate) use ledger::Ledger;
pub(crate) use sayings::*;
pub(crate) use words::*;

use self::invariants::Asked;
use crate::ids::{CallId, Seq};
use crate::protocol::agent::AgentConfig;
use crate::protocol::event::{Event, Payload};
use crate::protocol::view::{SessionView, ViewRequest};
use crate::session::{
    Bounds, CallFailure, Command, Context, Effect, ModelCall, ModelOutcome, Rejection, Reply,
    Session, Shown, Step,
};
use crate::time::Timestamp;

/// A session, everything it ever recorded, and what its executors were asked for and have shown.
pub(crate) struct Conversation {
    pub(crate) session: Session,
    pub(crate) log: Vec<Event>,
    /// The log as storage has it.
    stored: Vec<Vec<u8>>,
    pub(crate) agent: AgentConfig,
    /// Whether the manifest declares the agent.
    pub(crate) declared: bool,
    pub(crate) queued_turns_max: usize,
    /// What the feeds of the calls at work have shown.
    pub(crate) shown: Shown,
    pub(crate) now: Timestamp,
    /// The session again, folded from the log event by event.
    replayed: Session,
    /// As `replayed`, from events that went through their stored form.
    reread: Session,
    ledger: Ledger,
    /// Attempts that executors were asked for and that the log has not ended.
    asked: Asked,
}

impl Conversation {
    pub(crate) fn new() -> Self {
        let key = key();
        Self {
            session: Session::new(key.clone()),
            log: Vec::new(),
            stored: Vec::new(),
            agent: agent(),
            declared: true,
            queued_turns_max: 100,
            shown: Shown::new(),
            now: start(),
            replayed: Session::new(key.clone()),
            reread: Session::new(key),
            ledger: Ledger::default(),
            asked: Asked::new(),
        }
    }

    /// A conversation whose first turn, `t1`, waits for the first attempt of its model call.
    pub(crate) fn with_a_running_turn() -> Self {
        let mut conversation = Self::new();
        conversation.accepts(ask("hello").message("m1").turn("t1"));
        conversation
    }

    /// A conversation whose turn `t1` is complete.
    pub(crate) fn with_a_completed_turn() -> Self {
        let mut conversation = Self::with_a_running_turn();
        conversation.answers("hi");
        conversation
    }

    /// A conversation whose turn `t1` waits for its client to run a call of each of `tools`.
    pub(crate) fn with_open_tools(tools: &[&str]) -> (Self, Vec<CallId>) {
        let mut conversation = Self::new();
        conversation.accepts(append(&[user("m1", "hello")]).client(tools).turn("t1"));
        let calls = conversation.calls_tools(tools);
        (conversation, calls)
    }

    pub(crate) fn bounds(&self) -> Bounds {
        Bounds { queued_turns_max: self.queued_turns_max, event_bytes_max: 1024 * 1024 }
    }

    /// Decides `command` and checks every invariant.
    pub(crate) fn apply(&mut self, command: Command) -> Result<Step, Rejection> {
        let before = self.session.clone();
        let cut = self.session.cut_by(&command, self.now);
        let cut_shown: Shown = self
            .shown
            .iter()
            .filter(|(id, _)| cut.contains(id))
            .map(|(id, text)| (id.clone(), text.clone()))
            .collect();
        let answered = matches!(command, Command::SettleModelCall { .. } | Command::Recover);
        let context = Context {
            agent: Some(&self.agent).filter(|_| self.declared),
            bounds: self.bounds(),
            shown: &cut_shown,
        };
        let verdict = self.session.decide(command, &context, self.now);
        if let Ok(step) = &verdict {
            if !answered {
                invariants::invariant_what_is_cut_ends_and_stops(&self.asked, &cut, step);
            }
            invariants::invariant_text_that_was_shown_is_kept(&self.shown, step);
            self.absorb(step);
        } else {
            invariants::invariant_a_refusal_changes_nothing(&before, &self.session);
            invariants::invariant_a_refusal_cuts_nothing(&cut);
        }
        invariants::invariant_an_answer_names_a_recorded_event(&self.log, &verdict);
        self.check();
        verdict
    }

    fn absorb(&mut self, step: &Step) {
        invariants::invariant_every_dispatch_is_asked_of_an_executor(step);
        for event in &step.events {
            self.take(event);
        }
        for effect in &step.effects {
            match effect {
                Effect::CallModel { id, attempt } => {
                    self.asked.insert(id.clone(), *attempt);
                }
                Effect::StopCall { .. } => {}
            }
        }
    }

    fn take(&mut self, event: &Event) {
        self.ledger.observe(event);
        self.replayed.evolve(event);
        let stored = event.encode(&self.session.key().session);
        invariants::invariant_an_event_holds_no_bytes(&stored);
        self.reread.evolve(&decoded(&stored));
        self.stored.push(stored);
        if let Some(ended) = ended_call(event) {
            self.asked.remove(ended);
            self.shown.remove(ended);
        }
        self.log.push(event.clone());
    }

    fn check(&self) {
        invariants::invariant_replay_equals_live(&self.replayed, &self.session);
        invariants::invariant_replay_equals_live(&self.reread, &self.session);
        invariants::invariant_outstanding_is_what_was_asked(&self.asked, &self.session);
        invariants::invariant_a_running_turn_owns_something(&self.ledger);
        invariants::invariant_owes_is_what_the_engine_itself_must_do(&self.ledger, &self.session);
        invariants::invariant_the_view_is_what_was_recorded(&self.ledger, &self.session);
        invariants::invariant_the_status_is_that_of_the_head(&self.ledger, &self.session);
        invariants::invariant_the_session_knows_its_turns(&self.ledger, &self.session);
    }

    // Given.

    /// The log goes on with this, whoever decided it.
    pub(crate) fn given(&mut self, payload: Payload) {
        let event = Event {
            seq: self.session.seq().next(),
            occurred_at: self.session.last_event_at(),
            turn_id: self.session.running_turn().cloned(),
            payload,
        };
        self.session.evolve(&event);
        self.take(&event);
        self.check();
    }

    /// The running attempt of `call` has shown `text` so far.
    pub(crate) fn shows(&mut self, call: &CallId, text: &str) {
        assert!(self.asked.contains_key(call), "{call} is not at work");
        self.shown.insert(call.clone(), text.to_owned());
    }

    /// The process ends and another reads the log from its stored bytes.
    pub(crate) fn restart(&mut self) {
        let key = self.session.key().clone();
        let events: Vec<Event> = self.stored.iter().map(|stored| decoded(stored)).collect();
        let session = Session::replay(key, &events);
        invariants::invariant_replay_equals_live(&session, &self.session);
        self.session = session;
        self.shown.clear();
    }

    // When.

    #[track_caller]
    pub(crate) fn accepts(&mut self, command: impl Into<Command>) -> Step {
        self.apply(command.into()).unwrap()
    }

    #[track_caller]
    pub(crate) fn refuses(&mut self, command: impl Into<Command>) -> Rejection {
        self.apply(command.into()).unwrap_err()
    }

    /// A command that is taken and records nothing.
    #[track_caller]
    pub(crate) fn ignores(&mut self, command: impl Into<Command>) -> Reply {
        let step = self.accepts(command);
        assert!(step.events.is_empty() && step.effects.is_empty(), "{:?}", kinds(&step.events));
        step.reply
    }

    /// The open attempt ends with `outcome`.
    #[track_caller]
    pub(crate) fn settles(&mut self, outcome: ModelOutcome) -> Step {
        let (id, attempt) = self.open();
        self.apply(settle(id, attempt, outcome)).unwrap()
    }

    #[track_caller]
    pub(crate) fn answers(&mut self, text: &str) -> Step {
        self.settles(answer(text))
    }

    /// The model calls these tools without arguments; the ids of the calls.
    #[track_caller]
    pub(crate) fn calls_tools(&mut self, tools: &[&str]) -> Vec<CallId> {
        let calls: Vec<_> = tools.iter().map(|name| (*name, "{}")).collect();
        let step = self.settles(tool_calls(&calls));
        step.events.iter().filter_map(tool_requested).map(|call| call.id.clone()).collect()
    }

    #[track_caller]
    pub(crate) fn fails(&mut self, failure: CallFailure) -> Step {
        self.settles(failed(failure, false))
    }

    #[track_caller]
    pub(crate) fn wakes(&mut self) -> Step {
        self.apply(Command::Wake).unwrap()
    }

    /// Time passes to the one timer, which fires.
    #[track_caller]
    pub(crate) fn wakes_at_its_timer(&mut self) -> Step {
        self.now = self.session.wake_at().expect("a timer is set");
        self.wakes()
    }

    /// The process ends; the next one reads the log and recovers.
    #[track_caller]
    pub(crate) fn recovers(&mut self) -> Step {
        self.restart();
        self.apply(Command::Recover).unwrap()
    }

    pub(crate) fn passes(&mut self, millis: u64) {
        self.now = self.now.plus(std::time::Duration::from_millis(millis));
    }

    // Then.

    /// The one attempt that an executor is at work on.
    #[track_caller]
    pub(crate) fn open(&self) -> (CallId, u32) {
        let outstanding = self.session.outstanding();
        match outstanding.as_slice() {
            [Effect::CallModel { id, attempt }] => (id.clone(), *attempt),
            other => panic!("one attempt is out, not {other:?}"),
        }
    }

    pub(crate) fn last_call_id(&self) -> CallId {
        let mut requests = self.log.iter().rev().filter_map(call_requested);
        requests.next().expect("a model call was requested").id.clone()
    }

    #[track_caller]
    pub(crate) fn view(&self) -> SessionView {
        self.session.view(&ViewRequest::default()).unwrap()
    }

    /// The texts of the active conversation.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.view().messages.iter().map(|message| text_of(message)).collect()
    }

    /// The ids of the active conversation.
    pub(crate) fn path(&self) -> Vec<String> {
        self.ledger.path().into_iter().map(ToString::to_string).collect()
    }

    pub(crate) fn head(&self) -> String {
        self.ledger.head.as_ref().expect("a head").to_string()
    }

    /// What an executor needs for the running attempt of `call`.
    pub(crate) fn work(&self, call: &CallId) -> Option<ModelCall> {
        let agent = Some(&self.agent).filter(|_| self.declared);
        self.session.model_call(call, agent)
    }

    /// What the model is given for the call at work.
    #[track_caller]
    pub(crate) fn prompt(&self) -> Vec<String> {
        let work = self.work(&self.open().0).expect("an open call");
        work.messages.iter().map(|message| text_of(message)).collect()
    }

    /// Where the first event of a kind stands, counted from the end.
    #[track_caller]
    pub(crate) fn seq_of_last(&self, kind: &str) -> Seq {
        let found = self.log.iter().rev().find(|event| event.payload.kind() == kind);
        found.unwrap_or_else(|| panic!("no {kind} in {:?}", kinds(&self.log))).seq
    }
}

/// The call whose attempt an event ends.
fn ended_call(event: &Event) -> Option<&CallId> {
    if let Payload::LlmCallCompleted(completed) = &event.payload {
        return Some(&completed.id);
    }
    let errored = call_errored(event).map(|errored| &errored.id);
    errored.or_else(|| call_voided(event).map(|voided| &voided.id))
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
