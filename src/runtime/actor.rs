//! One session's actor: receive, decide, append, publish, reply, act. In that order, in one loop.

mod batch;
mod load;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use turnd_storage::{Append, Head};

use self::batch::{Batch, ReplyTo};
use super::dispatch::{Dispatcher, Settled};
use super::feed::{End, Feed};
use super::registry::Registry;
use super::shared::{EngineError, Reader, Shared, WatchRequest};
use super::tail::Tail;
use crate::ids::{Seq, SessionKey};
use crate::protocol::view::SessionView;
use crate::session::{Command, Effect, Session, TurnRecord};
use crate::time::Timestamp;

/// Commands decided before one append: bounds the size of a commit and the wait of the first.
const BATCH_MAX: usize = 64;
/// As [`BATCH_MAX`], in bytes of events; one step may go beyond it.
const BATCH_BYTES_MAX: usize = 1024 * 1024;
/// Wait before a session whose append was refused comes back.
const RELOAD_PAUSE: Duration = Duration::from_secs(1);
/// Wait before the log of a damaged session is read again.
const DAMAGED_PAUSE: Duration = Duration::from_mins(1);
/// How long a session stays in memory after its last mail.
const IDLE: Duration = Duration::from_secs(30);

/// What reaches an actor.
pub(super) enum Mail {
    Command { command: Command, reply: ReplyTo },
    Read(Read),
}

/// A question that changes nothing; answered from durable state.
pub(super) enum Read {
    View {
        reader: Reader,
        reply: oneshot::Sender<Result<SessionView, EngineError>>,
    },
    Watch {
        reader: Reader,
        request: WatchRequest,
        reply: oneshot::Sender<Result<Tail, EngineError>>,
    },
}

impl Mail {
    fn refuse(self, error: EngineError) {
        // A caller that has gone away needs no answer.
        match self {
            Self::Command { reply, .. } => drop(reply.send(Err(error))),
            Self::Read(Read::View { reply, .. }) => drop(reply.send(Err(error))),
            Self::Read(Read::Watch { reply, .. }) => drop(reply.send(Err(error))),
        }
    }
}

pub(super) struct Actor {
    shared: Arc<Shared>,
    key: SessionKey,
    key_bytes: Arc<[u8]>,
    session: Session,
    feed: Arc<Feed>,
    dispatcher: Dispatcher,
    /// How far the log was ahead of the clock when it was read.
    ahead: Duration,
}

/// A panic leaves the mailbox closed in the registry, so that the session answers 503 and everything
/// else goes on; its watchers are let go.
struct Quarantine(Arc<Feed>);

impl Drop for Quarantine {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.close(End::Failed);
        }
    }
}

/// What wakes the actor.
enum Wakeup {
    Mail(Option<Mail>),
    Settled(Settled),
    Timer,
    Idle,
}

impl Actor {
    /// Serves one session until it is idle and unwatched.
    pub(super) async fn run(shared: Arc<Shared>, key: SessionKey, mut mail: mpsc::Receiver<Mail>) {
        let error = match Self::load(Arc::clone(&shared), key.clone()).await {
            Ok(mut actor) => {
                let _quarantine = Quarantine(Arc::clone(&actor.feed));
                shared.registry.set_feed(&key, &actor.feed);
                let Err(error) = actor.serve(&mut mail).await else { return };
                actor.feed.close(End::Failed);
                error
            }
            Err(error) => error,
        };
        tracing::error!(session = %key.session, %error, "the session stops");
        refuse_all(mail, &error).await;
        // Until then the closed mailbox answers for it: nobody reads its log again and again.
        let pause = if error == EngineError::Damaged { DAMAGED_PAUSE } else { RELOAD_PAUSE };
        tokio::time::sleep(pause).await;
        shared.registry.remove(&key);
        if error != EngineError::Damaged {
            // What was decided is not in the log, so memory is forgotten and the log read again.
            drop(Registry::mailbox(&shared, &key));
        }
    }

    async fn serve(&mut self, mail: &mut mpsc::Receiver<Mail>) -> Result<(), EngineError> {
        if self.session.owes() {
            let mut batch = Batch::default();
            self.decide(Command::Recover, None, &mut batch);
            self.commit(batch).await?;
        }
        loop {
            match self.next(mail).await {
                Wakeup::Mail(Some(first)) => self.handle(first, mail).await?,
                Wakeup::Settled(settled) => self.settle(settled).await?,
                Wakeup::Timer => {
                    let mut batch = Batch::default();
                    // The gate closes before the decision, so no delta follows it (S20, S50).
                    let streamed = self.feed.close_calls(&self.session.overdue(self.now()));
                    self.decide(Command::Wake { streamed }, None, &mut batch);
                    self.commit(batch).await?;
                }
                Wakeup::Mail(None) => return Ok(()),
                Wakeup::Idle => {
                    let free = self.dispatcher.is_idle() && !self.session.owes();
                    if free && self.shared.registry.leave(&self.key, mail) {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// An answer that is there counts before a deadline that has passed meanwhile, and a timer that is
    /// due before what is asked, so that no number of questions holds it up.
    async fn next(&mut self, mail: &mut mpsc::Receiver<Mail>) -> Wakeup {
        let wake_at = self.session.wake_at();
        let wait = wake_at.map_or(IDLE, |at| at.since(self.now()));
        let timer = async {
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
        };
        tokio::select! {
            biased;
            settled = self.dispatcher.next() => Wakeup::Settled(settled),
            () = timer => if wake_at.is_some() { Wakeup::Timer } else { Wakeup::Idle },
            mail = mail.recv() => Wakeup::Mail(mail),
        }
    }

    /// Decides a bounded batch of what waits, makes it durable in one append, then answers.
    async fn handle(
        &mut self,
        first: Mail,
        mail: &mut mpsc::Receiver<Mail>,
    ) -> Result<(), EngineError> {
        let mut batch = Batch::default();
        let mut reads = Vec::new();
        let mut next = Some(first);
        let mut taken = 0;
        while let Some(one) = next {
            match one {
                Mail::Command { command, reply } => self.decide(command, Some(reply), &mut batch),
                Mail::Read(read) => reads.push(read),
            }
            taken += 1;
            let more = taken < BATCH_MAX && batch.bytes() < BATCH_BYTES_MAX;
            next = if more { mail.try_recv().ok() } else { None };
        }
        self.commit(batch).await?;
        for read in reads {
            self.read(read);
        }
        Ok(())
    }

    fn decide(&mut self, command: Command, reply_to: Option<ReplyTo>, batch: &mut Batch) {
        let agent_id = match &command {
            Command::Submit(submission) => Some(&submission.agent_id),
            Command::SettleModelCall { .. } | Command::Wake { .. } | Command::Recover => None,
        };
        let agent = self
            .session
            .agent_id()
            .or(agent_id)
            .and_then(|id| self.shared.catalogue.agents.get(id))
            .map(|agent| Arc::clone(&agent.config));
        let now = self.now();
        let decided = self.session.decide(command, agent.as_deref(), now);
        batch.add(&self.key.session, decided, reply_to);
    }

    /// The session's own time: the clock, moved on by as much as it was behind the log when the
    /// session came to memory. So a wall clock that was set back stalls no timer.
    fn now(&self) -> Timestamp {
        self.shared.clock.now().plus(self.ahead)
    }

    /// Makes a batch durable, shows it, answers it and performs what it asks for. A refusal, too,
    /// may rest on an earlier event of its batch, so it waits as well (S11).
    async fn commit(&mut self, mut batch: Batch) -> Result<(), EngineError> {
        if let Some(first_seq) = batch.first_seq() {
            let (frames, events) = batch.take_events();
            if let Err(error) = self.append(first_seq, events).await {
                for (reply_to, _) in batch.answers {
                    drop(reply_to.send(Err(error.clone())));
                }
                return Err(error);
            }
            self.feed.publish(frames, &batch.settled);
        }
        for (reply_to, answer) in batch.answers {
            drop(reply_to.send(answer));
        }
        for effect in batch.effects {
            self.perform(effect);
        }
        Ok(())
    }

    /// A full journal is waited out: what was decided stands in memory already, and a model's
    /// answer may be part of it.
    async fn append(&self, first_seq: Seq, events: Vec<Bytes>) -> Result<(), EngineError> {
        loop {
            let append = Append {
                key: Arc::clone(&self.key_bytes),
                first_seq: first_seq.0,
                events: events.clone(),
                head: Head { owes: self.session.owes(), ..Head::default() },
                blobs: Vec::new(),
            };
            match self.shared.store.append(append).await {
                Ok(()) => return Ok(()),
                Err(turnd_storage::Error::Full) => {
                    tracing::warn!(session = %self.key.session, "waiting for room in the journal");
                }
                Err(error) => {
                    tracing::error!(session = %self.key.session, %error, "an append failed");
                    return Err(EngineError::Unavailable);
                }
            }
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::CallModel { id, attempt } => {
                // A later command of the same batch may have ended the attempt already.
                let Some(call) = self.session.model_call(&id) else { return };
                if call.attempt == attempt {
                    let agent = self.session.agent_id().cloned();
                    let turn = self.session.running_turn().cloned();
                    self.dispatcher.call_model(&self.shared, &self.feed, agent, turn, call);
                }
            }
            Effect::StopCall { id, attempt } => self.dispatcher.stop(&id, attempt),
        }
    }

    async fn settle(&mut self, settled: Settled) -> Result<(), EngineError> {
        let Settled { id, attempt, outcome, open } = settled;
        let mut batch = Batch::default();
        self.decide(Command::SettleModelCall { id, attempt, outcome }, None, &mut batch);
        let committed = self.commit(batch).await;
        drop(open);
        committed
    }

    fn read(&self, read: Read) {
        match read {
            Read::View { reader, reply } => {
                let view = self.check_reader(&reader);
                let view =
                    view.and_then(|()| self.session.view().ok_or(EngineError::UnknownSession));
                drop(reply.send(view));
            }
            Read::Watch { reader, request, reply } => {
                let tail = self.check_reader(&reader).and_then(|()| self.tail(request));
                drop(reply.send(tail));
            }
        }
    }

    fn check_reader(&self, reader: &Reader) -> Result<(), EngineError> {
        match reader {
            _ if !self.session.exists() => Err(EngineError::UnknownSession),
            Reader::Machine => Ok(()),
            Reader::Owner(owner) if self.session.is_owned_by(owner) => Ok(()),
            Reader::Owner(_) => Err(EngineError::NotOwner),
        }
    }

    fn tail(&self, request: WatchRequest) -> Result<Tail, EngineError> {
        let WatchRequest { after, turn_id } = request;
        let watch = |after, turn_id| {
            let key = Arc::clone(&self.key_bytes);
            Tail::new(self.shared.store.clone(), key, self.feed.watch(), after, turn_id)
        };
        let Some(turn_id) = turn_id else { return Ok(watch(after, None)) };
        match self.session.turn_record(&turn_id).ok_or(EngineError::UnknownTurn)? {
            TurnRecord::Queued => Ok(watch(after.max(self.session.seq()), Some(turn_id))),
            TurnRecord::Running { started } => Ok(watch(after.max(before(started)), Some(turn_id))),
            TurnRecord::Completed { completed, .. } if after >= completed => {
                Ok(watch(after, Some(turn_id)).ended(End::TurnCompleted))
            }
            TurnRecord::Completed { started, .. } => {
                Ok(watch(after.max(before(started)), Some(turn_id)))
            }
        }
    }
}

fn before(seq: Seq) -> Seq {
    Seq(seq.0.saturating_sub(1))
}

/// Answers what is in the mailbox and what still comes while senders hold it.
async fn refuse_all(mut mail: mpsc::Receiver<Mail>, error: &EngineError) {
    mail.close();
    while let Some(mail) = mail.recv().await {
        mail.refuse(error.clone());
    }
}
