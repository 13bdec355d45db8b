//! One session's actor: receive, decide, append, publish, reply, act. In that order, in one loop.

mod batch;
mod erase;
mod load;
mod mail;
mod read;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use turnd_storage::{Append, BlobId};

use self::batch::{Batch, ReplyTo};
pub(super) use self::mail::{Answer, Erase, Mail, Question, Read};
use super::blobs::Kept;
use super::dispatch::{Dispatcher, Settled};
use super::feed::{End, Feed};
use super::lists;
use super::registry::Registry;
use super::shared::{EngineError, Shared};
use crate::ids::{Seq, SessionKey};
use crate::protocol::agent::AgentConfig;
use crate::protocol::content::UPLOADS_MAX;
use crate::session::{Command, Context, Effect, Session};
use crate::time::Timestamp;

/// Commands decided before one append: bounds the size of a commit and the wait of the first.
const BATCH_MAX: usize = 64;
/// As [`BATCH_MAX`], in bytes of events; one step may go beyond it.
const BATCH_BYTES_MAX: usize = 1024 * 1024;
/// Wait before a session whose append was refused comes back.
const RELOAD_PAUSE: Duration = Duration::from_secs(1);
/// How long a session stays in memory after its last mail.
const IDLE: Duration = Duration::from_secs(30);

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

/// Why an actor has nothing more to do.
enum Served {
    Left,
    Erased,
}

impl Actor {
    /// Serves one session until it is idle and unwatched, or erased.
    pub(super) async fn run(shared: Arc<Shared>, key: SessionKey, mut mail: mpsc::Receiver<Mail>) {
        let error = match Self::load(Arc::clone(&shared), key.clone()).await {
            Ok(mut actor) => {
                let _quarantine = Quarantine(Arc::clone(&actor.feed));
                shared.registry.set_feed(&key, &actor.feed);
                match actor.serve(&mut mail).await {
                    Ok(Served::Left) => return,
                    Ok(Served::Erased) => return hand_over(&shared, &key, mail).await,
                    Err(error) => {
                        actor.feed.close(End::Failed);
                        error
                    }
                }
            }
            Err(EngineError::Damaged) => return erase::serve_damaged(&shared, &key, mail).await,
            Err(error) => error,
        };
        tracing::error!(session = %key.session, %error, "the session stops");
        refuse_all(mail, |mail| mail.refuse(error.clone())).await;
        // Until then the closed mailbox answers for it: nobody reads its log again and again.
        tokio::time::sleep(RELOAD_PAUSE).await;
        shared.registry.remove(&key);
        // What was decided is not in the log, so memory is forgotten and the log read again.
        drop(Registry::mailbox(&shared, &key));
    }

    async fn serve(&mut self, mail: &mut mpsc::Receiver<Mail>) -> Result<Served, EngineError> {
        if self.session.owes() {
            self.take(Command::Recover).await?;
        }
        loop {
            match self.next(mail).await {
                Wakeup::Mail(Some(first)) => {
                    if let Some(erase) = self.handle(first, mail).await?
                        && self.erase(erase).await?
                    {
                        return Ok(Served::Erased);
                    }
                }
                Wakeup::Settled(settled) => self.settle(settled).await?,
                Wakeup::Timer => self.take(Command::Wake).await?,
                Wakeup::Mail(None) => return Ok(Served::Left),
                Wakeup::Idle => {
                    let free = self.dispatcher.is_idle() && !self.session.owes();
                    if free && self.shared.registry.leave(&self.key, mail) {
                        return Ok(Served::Left);
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

    /// Decides a bounded batch of what waits, makes it durable in one append, then answers. A wish to
    /// erase ends the batch, and is left to the caller.
    async fn handle(
        &mut self,
        first: Mail,
        mail: &mut mpsc::Receiver<Mail>,
    ) -> Result<Option<Erase>, EngineError> {
        let mut batch = Batch::default();
        let mut reads = Vec::new();
        let mut erase = None;
        let mut next = Some(first);
        let mut taken = 0;
        while let Some(one) = next {
            match one {
                Mail::Command { command, kept, reply } => {
                    self.decide(command, kept, Some(reply), &mut batch);
                }
                Mail::Read(read) => reads.push(read),
                Mail::Erase(wish) => erase = Some(wish),
            }
            taken += 1;
            let more = erase.is_none()
                && taken < BATCH_MAX
                && batch.bytes() < BATCH_BYTES_MAX
                && batch.blobs.len() < UPLOADS_MAX;
            next = if more { mail.try_recv().ok() } else { None };
        }
        self.commit(batch).await?;
        for read in reads {
            self.read(read);
        }
        Ok(erase)
    }

    /// Does what the engine itself asks for.
    async fn take(&mut self, command: Command) -> Result<(), EngineError> {
        let mut batch = Batch::default();
        self.decide(command, Kept::default(), None, &mut batch);
        self.commit(batch).await
    }

    fn decide(
        &mut self,
        command: Command,
        kept: Kept,
        reply_to: Option<ReplyTo>,
        batch: &mut Batch,
    ) {
        let now = self.now();
        let agent = self.agent(&command);
        // Gates close before the decision, so no delta follows it (S20, S50).
        let shown = self.feed.close_calls(&self.session.cut_by(&command, now));
        let context =
            Context { agent: agent.as_deref(), bounds: self.shared.bounds, shown: &shown };
        let decided = self.session.decide(command, &context, now);
        batch.add(&self.key.session, decided, kept, reply_to);
    }

    /// The configuration of the session's agent, or of the one that a submit would give it.
    fn agent(&self, command: &Command) -> Option<Arc<AgentConfig>> {
        let named = match command {
            Command::Submit(submission) => Some(&submission.agent_id),
            Command::Resume { .. }
            | Command::SettleToolCall { .. }
            | Command::Interrupt { .. }
            | Command::Cancel { .. }
            | Command::Update { .. }
            | Command::SettleModelCall { .. }
            | Command::Wake
            | Command::Recover => None,
        };
        self.shared.agent(self.session.agent_id().or(named)?)
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
            let blobs = batch.blobs.into_iter().collect();
            if let Err(error) = self.append(first_seq, events, blobs).await {
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
    async fn append(
        &self,
        first_seq: Seq,
        events: Vec<Bytes>,
        blobs: Vec<BlobId>,
    ) -> Result<(), EngineError> {
        let head = lists::head(&self.session);
        loop {
            let append = Append {
                key: Arc::clone(&self.key_bytes),
                first_seq: first_seq.0,
                events: events.clone(),
                head: head.clone(),
                blobs: blobs.clone(),
            };
            if is_written(&self.key, self.shared.store.append(append).await)? {
                return Ok(());
            }
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::CallModel { id, attempt } => {
                let agent = self.session.agent_id().and_then(|id| self.shared.agent(id));
                // A later command of the same batch may have ended the attempt already.
                let Some(call) = self.session.model_call(&id, agent.as_deref()) else { return };
                if call.attempt == attempt {
                    let turn = self.session.running_turn().cloned();
                    let tenant = self.key.tenant.clone();
                    self.dispatcher.call_model(&self.shared, &self.feed, tenant, turn, call);
                }
            }
            Effect::StopCall { id, attempt } => self.dispatcher.stop(&id, attempt),
        }
    }

    async fn settle(&mut self, settled: Settled) -> Result<(), EngineError> {
        let Settled { id, attempt, outcome, open } = settled;
        let command = Command::SettleModelCall { id, attempt, outcome };
        let committed = self.take(command).await;
        drop(open);
        committed
    }
}

/// Whether a write is done; not, where it is to be repeated.
fn is_written(
    key: &SessionKey,
    written: Result<(), turnd_storage::Error>,
) -> Result<bool, EngineError> {
    match written {
        Ok(()) => Ok(true),
        Err(turnd_storage::Error::Full) => {
            tracing::warn!(session = %key.session, "waiting for room in the journal");
            Ok(false)
        }
        Err(error) => {
            tracing::error!(session = %key.session, %error, "a write failed");
            Err(EngineError::Unavailable)
        }
    }
}

/// What is in the mailbox of an erased session is for the one that begins anew under its id.
async fn hand_over(shared: &Arc<Shared>, key: &SessionKey, mut mail: mpsc::Receiver<Mail>) {
    mail.close();
    while let Some(one) = mail.recv().await {
        if let Err(refused) = Registry::mailbox(shared, key).send(one).await {
            refused.0.refuse(EngineError::Unavailable);
        }
    }
}

/// Answers what is in the mailbox and what still comes while senders hold it.
async fn refuse_all(mut mail: mpsc::Receiver<Mail>, refuse: impl Fn(Mail)) {
    mail.close();
    while let Some(mail) = mail.recv().await {
        refuse(mail);
    }
}
