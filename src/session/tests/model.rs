//! A plain reference model of one conversation: what a reader of the rules would write down, without
//! a log or a reducer. It predicts every event of a step in order, with all its fields, and what
//! every view answers. It learns from the events only what the engine may choose: minted ids and
//! the jitter of a wait. Nothing of it is shared with the core but the words of the protocol.

mod agree;
mod calls;
mod compose;
mod content;
mod known;
mod news;
mod pause;
mod submit;
mod tools;
mod tree;
mod view;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use self::calls::ModelCall;
use self::news::News;
use self::pause::Pause;
use self::tools::ToolCall;
use self::tree::{Node, Place, Tree};
use crate::ids::{AgentId, CallId, InterruptId, MessageId, OwnerId, Seq, TurnId};
use crate::protocol::agent::AgentConfig;
use crate::protocol::blob::BlobHash;
use crate::protocol::content::{BlobInfo, Blobs};
use crate::protocol::error::ErrorInfo;
use crate::protocol::event::{Event, MessageNew, Payload, SessionUpdated, TurnCompleted};
use crate::protocol::input::{Conditions, Identity, Input, SessionPatch};
use crate::protocol::json::Json;
use crate::protocol::llm::{Cost, Usage};
use crate::protocol::message::{Message, Role};
use crate::protocol::tool::ClientContext;
use crate::session::{Caller, Command, Context, Effect, Rejection, Reply, Shown, Step, TurnRecord};
use crate::time::Timestamp;

#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    seq: u64,
    first_at: Timestamp,
    last_at: Timestamp,
    made_for: Option<(AgentId, Identity)>,
    /// Made of a text, and given, which counts before it.
    title_made: Option<String>,
    title_given: Option<String>,
    metadata: Option<Json>,
    tree: Tree,
    turns: BTreeMap<TurnId, TurnRecord>,
    /// Turn ids that came with an answer, and the turns that went on with it.
    labels: BTreeMap<TurnId, TurnId>,
    /// The turn that started last.
    latest: Option<TurnId>,
    running: Option<Turn>,
    queue: VecDeque<(TurnId, Input)>,
    /// Open interrupts, in the order in which they were raised.
    pauses: Vec<Pause>,
    answered: BTreeMap<InterruptId, (Seq, Seq)>,
    /// Calls that are not open any more, and where they ended.
    ended: BTreeMap<CallId, Seq>,
    blobs: Blobs,
    done: Option<Seq>,
    /// The rarer things that have happened, for whoever asks whether they did.
    notes: BTreeSet<&'static str>,
}

/// The turn that runs.
#[derive(Debug, Clone)]
struct Turn {
    id: TurnId,
    client: Option<ClientContext>,
    /// Whether its model calls stream, once one was made or somebody said so.
    stream: Option<bool>,
    cost: Cost,
    usage: Usage,
    call: Option<ModelCall>,
    tools: Vec<ToolCall>,
    model_calls: u32,
}

/// One command, as the model thinks it through.
struct Forecast<'a> {
    model: &'a mut Model,
    now: Timestamp,
    agent: Option<&'a AgentConfig>,
    queued_turns_max: usize,
    shown: &'a Shown,
    news: News<'a>,
}

impl Model {
    /// What `command` should come to, held against what it came to.
    pub(crate) fn follow(
        &mut self,
        command: Command,
        context: &Context<'_>,
        now: Timestamp,
        actual: &Result<Step, Rejection>,
    ) {
        let before = self.clone();
        let mut forecast = Forecast {
            now: now.max(self.last_at),
            agent: context.agent,
            queued_turns_max: context.bounds.queued_turns_max,
            shown: context.shown,
            news: News::of(actual),
            model: self,
        };
        match forecast.command(command) {
            Ok(reply) => {
                forecast.go_on_with_the_queue();
                forecast.news.nothing_more();
                assert_eq!(actual.as_ref().map(|step| &step.reply), Ok(&reply));
            }
            Err(rejection) => {
                *self = before;
                assert_eq!(actual.as_ref(), Err(&rejection));
            }
        }
    }

    fn head(&self) -> Option<MessageId> {
        self.tree.id(self.tree.head)
    }

    fn note(&mut self, what: &'static str) {
        self.notes.insert(what);
    }

    /// What is known of bytes stays as it was first said.
    fn keep(&mut self, blobs: impl Iterator<Item = (BlobHash, BlobInfo)>) {
        for (hash, info) in blobs {
            self.blobs.entry(hash).or_insert(info);
        }
    }

    fn turn_called(&self, id: &TurnId) -> Option<(TurnId, TurnRecord)> {
        let id = self.labels.get(id).unwrap_or(id);
        self.turns.get(id).map(|record| (id.clone(), *record))
    }

    fn check_reader(&self, caller: &Caller) -> Result<(), Rejection> {
        let (_, identity) = self.made_for.as_ref().ok_or(Rejection::UnknownSession)?;
        match caller {
            Caller::System | Caller::Machine => Ok(()),
            Caller::Frontend(owner) => is_owner(identity, owner),
        }
    }

    fn check_conditions(&self, conditions: &Conditions) -> Result<(), Rejection> {
        let head_id = self.head();
        let wrong_head = conditions.if_head.is_some() && conditions.if_head != head_id;
        let wrong_seq = conditions.if_seq.is_some_and(|seq| seq.0 != self.seq);
        if wrong_head || wrong_seq {
            return Err(Rejection::ConditionFailed { head_id, seq: Seq(self.seq) });
        }
        Ok(())
    }
}

fn is_owner(identity: &Identity, owner: &OwnerId) -> Result<(), Rejection> {
    if identity.id == *owner { Ok(()) } else { Err(Rejection::NotOwner) }
}

impl Forecast<'_> {
    fn command(&mut self, command: Command) -> Result<Reply, Rejection> {
        match command {
            Command::Submit(submission) => self.submit(*submission),
            Command::Resume { caller, conditions, turn_id, resume } => {
                self.resume(&caller, &conditions, turn_id, resume)
            }
            Command::SettleToolCall { caller, conditions, settlement } => {
                self.settle_tool(&caller, &conditions, settlement)
            }
            Command::Interrupt { caller, request } => self.interrupt(&caller, request),
            Command::Cancel { caller, request } => self.cancel(&caller, request),
            Command::Update { caller, patch } => self.update(&caller, patch),
            Command::SettleModelCall { id, attempt, outcome } => {
                self.settle_model(&id, attempt, outcome)
            }
            Command::Wake => {
                self.wake();
                Ok(Reply::Done)
            }
            Command::Recover => {
                self.recover();
                Ok(Reply::Done)
            }
        }
    }

    /// The next event should be this; its position.
    #[track_caller]
    fn emit(&mut self, payload: Payload) -> Seq {
        self.model.seq += 1;
        self.model.last_at = self.now;
        let seq = Seq(self.model.seq);
        let turn_id = match &payload {
            Payload::TurnStarted(started) => Some(started.turn_id.clone()),
            Payload::TurnCompleted(completed) => Some(completed.turn_id.clone()),
            Payload::SessionCreated(_)
            | Payload::SessionUpdated(_)
            | Payload::SessionCancelled(_)
            | Payload::MessageNew(_)
            | Payload::HeadMoved(_)
            | Payload::TurnQueued(_)
            | Payload::SessionInterrupted(_)
            | Payload::InterruptResumed(_)
            | Payload::LlmCallRequested(_)
            | Payload::LlmCallDispatched(_)
            | Payload::LlmCallCompleted(_)
            | Payload::LlmCallErrored(_)
            | Payload::ToolCallRequested(_)
            | Payload::ToolCallDispatched(_)
            | Payload::ToolCallCompleted(_)
            | Payload::ToolCallErrored(_)
            | Payload::CallVoided(_)
            | Payload::WorkerStateUpdated(_)
            | Payload::AgentUpdated(_) => self.model.running.as_ref().map(|turn| turn.id.clone()),
        };
        self.news.event(&Event { seq, occurred_at: self.now, turn_id, payload });
        seq
    }

    /// A message is recorded, and the conversation goes on below it.
    #[track_caller]
    fn hear(&mut self, parent: Place, mut message: Message) {
        if message.id.is_none() {
            message.id = Some(self.news.message_id());
        }
        assert!(!self.model.tree.knows(&message), "{:?} is recorded twice", message.id);
        let parent_id = self.model.tree.id(parent);
        self.emit(Payload::MessageNew(MessageNew {
            message: Arc::new(message.clone()),
            parent_id,
        }));
        if message.role == Role::User && self.model.title_made.is_none() {
            self.model.title_made = content::title_of(&message);
        }
        self.model.keep(message.blobs());
        self.model.tree.nodes.push(Node { parent, message });
        self.model.tree.head = Some(self.model.tree.nodes.len() - 1);
    }

    fn hear_below_the_head(&mut self, message: Message) {
        self.hear(self.model.tree.head, message);
    }

    /// The running turn ends. Nothing of it is open.
    fn complete(&mut self, data: Option<Json>, error: Option<ErrorInfo>) -> Seq {
        self.end_turn(data, error, false, None)
    }

    fn end_turn(
        &mut self,
        data: Option<Json>,
        error: Option<ErrorInfo>,
        cancelled: bool,
        reason: Option<String>,
    ) -> Seq {
        let Turn { id, cost, usage, call, tools, .. } =
            self.model.running.clone().expect("a turn runs");
        assert!(call.is_none() && tools.is_empty(), "something of {id} is open");
        let completed = self.emit(Payload::TurnCompleted(TurnCompleted {
            turn_id: id.clone(),
            data,
            cost,
            usage,
            error,
            cancelled,
            reason,
        }));
        self.model.running = None;
        let Some(TurnRecord::Running { started }) = self.model.turns.get(&id).copied() else {
            panic!("{id} runs");
        };
        self.model.turns.insert(id, TurnRecord::Completed { started, completed });
        completed
    }

    fn turn(&mut self) -> &mut Turn {
        self.model.running.as_mut().expect("a turn runs")
    }

    fn stops(&mut self, id: &CallId, attempt: u32) {
        self.news.effect(&Effect::StopCall { id: id.clone(), attempt });
    }

    /// What stays as it is is not recorded.
    fn update(&mut self, caller: &Caller, patch: SessionPatch) -> Result<Reply, Rejection> {
        self.model.check_reader(caller)?;
        let given = self.model.title_given.clone().unwrap_or_default();
        let title = patch.title.filter(|title| *title != given);
        let metadata = patch.metadata.filter(|new| self.model.metadata.as_ref() != Some(new));
        if title.is_none() && metadata.is_none() {
            return Ok(Reply::Done);
        }
        self.emit(Payload::SessionUpdated(SessionUpdated {
            title: title.clone(),
            metadata: metadata.clone(),
        }));
        if title.is_some() {
            self.model.title_given = title.filter(|title| !title.is_empty());
        }
        self.model.metadata = metadata.or_else(|| self.model.metadata.take());
        Ok(Reply::Done)
    }
}
