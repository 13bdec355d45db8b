//! The journal's writer: one thread that makes groups of appends durable.
//!
//! It takes what is queued, writes it in one transaction, syncs, and only then answers, in order.
//! While one sync runs the next group forms; there is no timer.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use redb::{Durability, WriteTransaction};
use tokio::sync::{mpsc, oneshot};

use crate::append::{Append, Entry, pack};
use crate::directory;
use crate::error::{Error, chain};
use crate::index::{At, Kept, KeyRuns, RunAt};
use crate::row;
use crate::shared::{Reply, Shared, guarded, panic_text};
use crate::tables::ROWS;

/// Appends in one group. With the queue's bound it caps what waits in memory.
const GROUP_APPENDS_MAX: usize = 1024;
/// Bytes after which a group takes no more appends, so that one commit stays a few milliseconds.
const GROUP_BYTES_MAX: u64 = 4 << 20;
/// How long a group waits for the archive when the journal is nearly full.
const SLOW_WAIT: Duration = Duration::from_millis(20);

/// What the writer is asked to do.
pub(crate) enum Job {
    Append {
        append: Append,
        reply: Reply,
    },
    Erase {
        key: Arc<[u8]>,
        reply: Reply,
    },
    /// Look again: rows were archived, or the store closes. Answered after the rows are gone.
    Wake {
        reply: Option<Reply>,
    },
}

/// Jobs that may wait: enough for a group to form while another is synced.
pub(crate) const QUEUE_JOBS_MAX: usize = 1024;

/// Runs the writer until the store closes or fails.
pub(crate) fn run(shared: Arc<Shared>, jobs: mpsc::Receiver<Job>) {
    let next_row = shared.index().last_row().map_or(1, |row| row + 1);
    let mut writer =
        Writer { shared, jobs, next_row: next_row.max(1), trimmed_through: 0, stalled_at: None };
    let outcome = catch_unwind(AssertUnwindSafe(|| writer.work()));
    if let Err(panic) = outcome {
        writer.shared.fail(&format!("the journal's writer panicked: {}", panic_text(&*panic)));
    }
    writer.refuse_the_rest();
}

struct Writer {
    shared: Arc<Shared>,
    jobs: mpsc::Receiver<Job>,
    next_row: u64,
    trimmed_through: u64,
    /// How far the archive was when an append last found no room: until it gets further, the next
    /// one need not wait.
    stalled_at: Option<u64>,
}

/// One group: what will be written, and who is told what afterwards.
#[derive(Default)]
struct Group {
    entries: Vec<Entry>,
    replies: Vec<(Reply, Result<(), Error>)>,
    bytes: u64,
    /// The last seq of each key the group appends to; `None` for one that it erases.
    last_seqs: BTreeMap<Arc<[u8]>, Option<u64>>,
}

/// How a group ended.
enum Outcome {
    Committed,
    /// The store had failed before.
    NotStarted(Arc<str>),
    /// Its commit failed: the group may or may not be there after the next open.
    Unknown(Arc<str>),
}

/// A row that was written, to be told to the index.
struct WrittenRow {
    row: u64,
    bytes: u64,
    runs: Vec<(Arc<[u8]>, RunAt, Kept)>,
}

impl Group {
    fn add(&mut self, entry: Entry) {
        self.bytes += entry.bytes();
        self.entries.push(entry);
    }
}

impl Writer {
    fn work(&mut self) {
        while let Some(jobs) = self.take_group() {
            let mut group = Group::default();
            let mut wakes = Vec::new();
            for job in jobs {
                match job {
                    Job::Append { append, reply } => self.check(append, reply, &mut group),
                    Job::Erase { key, reply } => self.check_erasure(key, reply, &mut group),
                    Job::Wake { reply } => wakes.extend(reply),
                }
            }
            self.make_room(&mut group);
            let outcome = self.commit(&group);
            group.replies.extend(wakes.into_iter().map(|reply| (reply, Ok(()))));
            release(group, &outcome);
            match outcome {
                Outcome::Committed => {}
                Outcome::NotStarted(_) | Outcome::Unknown(_) => return,
            }
            if self.shared.is_closing() {
                self.jobs.close();
            }
        }
    }

    /// Waits for a job, then takes what else is queued. `None` when the store has closed and the
    /// queue is drained.
    fn take_group(&mut self) -> Option<Vec<Job>> {
        let mut taken = vec![self.jobs.blocking_recv()?];
        let mut bytes = taken.iter().map(job_bytes).sum::<u64>();
        while taken.len() < GROUP_APPENDS_MAX && bytes < GROUP_BYTES_MAX {
            let Ok(job) = self.jobs.try_recv() else { break };
            bytes += job_bytes(&job);
            taken.push(job);
        }
        Some(taken)
    }

    /// Takes the append into the group, or notes why not. A refusal is answered after the commit
    /// too, because it may rest on an append of the same group.
    fn check(&self, append: Append, reply: Reply, group: &mut Group) {
        match self.expected_seq(&append.key, group) {
            Ok(expected) if expected == append.first_seq => {
                let last_seq = append.first_seq + append.events.len() as u64 - 1;
                group.last_seqs.insert(Arc::clone(&append.key), Some(last_seq));
                group.add(Entry::Append(append));
                group.replies.push((reply, Ok(())));
            }
            Ok(expected) => {
                let refusal = Error::Conflict { expected, got: append.first_seq };
                group.replies.push((reply, Err(refusal)));
            }
            Err(error) => group.replies.push((reply, Err(error))),
        }
    }

    fn expected_seq(&self, key: &[u8], group: &Group) -> Result<u64, Error> {
        if let Some(last_seq) = group.last_seqs.get(key) {
            return Ok(last_seq.unwrap_or(0) + 1);
        }
        {
            let index = self.shared.index();
            if index.is_damaged(key) {
                return Err(Error::damaged(key, "a part of its log in the journal"));
            }
            if let Some(last_seq) = index.get(key).and_then(KeyRuns::last_seq) {
                return Ok(last_seq + 1);
            }
        }
        let archived = guarded(key, || directory::head(&self.shared.archive, key))?;
        Ok(archived.map_or(1, |head| head.last_seq + 1))
    }

    /// Takes the erasure into the group. Where there is nothing to erase, nothing is written, and
    /// the answer waits for the commit all the same: an erasure of the same group may be why.
    fn check_erasure(&self, key: Arc<[u8]>, reply: Reply, group: &mut Group) {
        let answer = self.is_known(&key, group).map(|known| {
            if known {
                group.last_seqs.insert(Arc::clone(&key), None);
                group.add(Entry::Erase(key));
            }
        });
        group.replies.push((reply, answer));
    }

    /// Whether anything is stored under the key, sound or not.
    fn is_known(&self, key: &[u8], group: &Group) -> Result<bool, Error> {
        if let Some(last_seq) = group.last_seqs.get(key) {
            return Ok(last_seq.is_some());
        }
        {
            let index = self.shared.index();
            if index.is_damaged(key) {
                return Ok(true);
            }
            if let Some(runs) = index.get(key) {
                return Ok(!runs.runs.is_empty());
            }
        }
        match guarded(key, || directory::head(&self.shared.archive, key)) {
            Ok(head) => Ok(head.is_some()),
            Err(Error::Damaged { .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Waits for the archive where the journal is nearly full; turns the group away where it stays
    /// full.
    fn make_room(&mut self, group: &mut Group) {
        if group.entries.is_empty() {
            return;
        }
        let mut archived = self.shared.progress.get();
        let mut bytes = self.bytes_after(group, archived);
        if bytes > self.shared.options.journal_slow_bytes() && self.stalled_at != Some(archived) {
            archived = self.shared.progress.wait_past(archived, SLOW_WAIT);
            bytes = self.bytes_after(group, archived);
        }
        while bytes > self.shared.options.journal_bytes_max {
            if self.stalled_at == Some(archived) || self.shared.failed().is_some() {
                return turn_away(group);
            }
            let seen = archived;
            archived = self.shared.progress.wait_past(seen, self.shared.options.full_wait);
            if archived == seen {
                self.stalled_at = Some(archived);
            }
            bytes = self.bytes_after(group, archived);
        }
        self.stalled_at = None;
    }

    fn bytes_after(&self, group: &Group, archived: u64) -> u64 {
        let index = self.shared.index();
        index.bytes() - index.bytes_through(archived) + group.bytes
    }

    /// Writes the group and takes out what is archived, in one transaction.
    fn commit(&mut self, group: &Group) -> Outcome {
        if let Some(reason) = self.shared.failed() {
            return Outcome::NotStarted(reason);
        }
        let archived = self.shared.progress.get();
        let trim = archived > self.trimmed_through;
        if group.entries.is_empty() && !trim {
            return Outcome::Committed;
        }
        if trim {
            self.shared.index().remove_rows(archived);
        }
        match self.write(group, trim.then_some(archived)) {
            Ok(written) => {
                self.trimmed_through = self.trimmed_through.max(archived);
                self.note_written(written);
                Outcome::Committed
            }
            Err(error) => {
                let reason = format!("a commit of the journal failed: {}", chain(&error));
                self.shared.fail(&reason);
                Outcome::Unknown(Arc::from(reason))
            }
        }
    }

    fn write(&mut self, group: &Group, trim: Option<u64>) -> Result<Vec<WrittenRow>, redb::Error> {
        let mut txn = self.shared.journal.begin_write()?;
        txn.set_durability(Durability::Immediate)?;
        txn.set_two_phase_commit(self.shared.options.journal_two_phase);
        if let Some(through) = trim {
            txn.open_table(ROWS)?.retain_in(..=through, |_, _| false)?;
        }
        let written = self.write_rows(&txn, group)?;
        txn.commit()?;
        Ok(written)
    }

    fn write_rows(
        &mut self,
        txn: &WriteTransaction,
        group: &Group,
    ) -> Result<Vec<WrittenRow>, redb::Error> {
        let mut table = txn.open_table(ROWS)?;
        let mut written = Vec::new();
        for runs in pack(&group.entries) {
            let row = self.next_row;
            self.next_row += 1;
            let bytes = row::row_bytes(&runs);
            let mut value = table.insert_reserve(row, bytes)?;
            let offsets = row::encode(row, &runs, value.as_mut());
            let runs = runs.iter().zip(offsets).map(|(run, offset)| {
                let count = crate::record::length(run.events.len());
                let at = RunAt { at: At { row, offset }, first_seq: run.first_seq, count };
                (Arc::clone(run.key), at, Kept::of_new(run))
            });
            written.push(WrittenRow { row, bytes: bytes as u64, runs: runs.collect() });
        }
        Ok(written)
    }

    fn note_written(&self, written: Vec<WrittenRow>) {
        let mut index = self.shared.index();
        let any = !written.is_empty();
        for row in written {
            index.begin_row(row.row, row.bytes);
            for (key, at, kept) in row.runs {
                index.add_run(&key, at, kept);
            }
        }
        let bytes = index.bytes();
        drop(index);
        if any {
            self.shared.inbox.note_commit();
        }
        if bytes >= self.shared.options.journal_move_bytes {
            self.shared.inbox.put(|work| work.move_all = true);
        }
    }

    /// Answers what is queued when the store has failed or closed. Nothing of it was started.
    fn refuse_the_rest(&mut self) {
        self.jobs.close();
        while let Some(job) = self.jobs.blocking_recv() {
            let refusal = self.shared.check_open().err().unwrap_or(Error::Closed);
            match job {
                Job::Append { reply, .. }
                | Job::Erase { reply, .. }
                | Job::Wake { reply: Some(reply) } => {
                    // A caller that no longer waits has no use for the answer.
                    let _ = reply.send(Err(refusal));
                }
                Job::Wake { reply: None } => {}
            }
        }
    }
}

fn job_bytes(job: &Job) -> u64 {
    match job {
        Job::Append { append, .. } => append.bytes(),
        Job::Erase { key, .. } => key.len() as u64,
        Job::Wake { .. } => 0,
    }
}

fn turn_away(group: &mut Group) {
    group.entries.clear();
    group.bytes = 0;
    for (_, answer) in &mut group.replies {
        if answer.is_ok() {
            *answer = Err(Error::Full);
        }
    }
}

fn release(group: Group, outcome: &Outcome) {
    for (reply, answer) in group.replies {
        let answer = match outcome {
            Outcome::Committed => answer,
            Outcome::NotStarted(reason) => Err(Error::Poisoned { reason: Arc::clone(reason) }),
            Outcome::Unknown(reason) => Err(Error::Unknown { reason: Arc::clone(reason) }),
        };
        // A caller that no longer waits has no use for the answer.
        let _ = reply.send(answer);
    }
}

/// A pair of ends for one answer.
pub(crate) fn reply() -> (Reply, oneshot::Receiver<Result<(), Error>>) {
    oneshot::channel()
}
