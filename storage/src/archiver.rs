//! The archive's writer: one thread that moves the journal into segments, in small steps, and
//! writes documents.
//!
//! A step is one transaction of the archive. Only after it is durable is the journal's writer told,
//! which takes the rows out with one of its next commits. A crash between the two repeats the step,
//! and a repeated step changes nothing: it goes on after the last archived seq of each key.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use redb::{Durability, ReadableDatabase, WriteTransaction};
use tokio::sync::mpsc;

use crate::document;
use crate::error::{Error, chain};
use crate::moving::{Step, StoredRow};
use crate::shared::{DocumentJob, Reply, Shared, Work, panic_text};
use crate::tables::ROWS;
use crate::writer::Job;

/// Bytes of rows in one step: enough that a busy key's runs are gathered, small enough for a few
/// ten milliseconds.
const STEP_BYTES: usize = 4 << 20;

/// Runs the archiver until the store closes or fails.
pub(crate) fn run(shared: Arc<Shared>, journal_jobs: mpsc::Sender<Job>) {
    let mut archiver = Archiver {
        shared,
        journal_jobs,
        moved_through: 0,
        target: 0,
        documents: VecDeque::new(),
        settles: Vec::new(),
    };
    let outcome = catch_unwind(AssertUnwindSafe(|| archiver.work()));
    let failure = match outcome {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(format!("a commit of the archive failed: {}", chain(&error))),
        Err(panic) => Some(format!("the archive's writer panicked: {}", panic_text(&*panic))),
    };
    if let Some(reason) = failure {
        archiver.shared.fail(&reason);
    }
    archiver.shared.inbox.end();
}

struct Archiver {
    shared: Arc<Shared>,
    journal_jobs: mpsc::Sender<Job>,
    /// The last row that is in the archive.
    moved_through: u64,
    /// The row to move through; nothing is to be moved while it is not past `moved_through`.
    target: u64,
    documents: VecDeque<DocumentJob>,
    /// Who waits for everything up to a row to be moved.
    settles: Vec<(u64, Reply)>,
}

impl Archiver {
    fn work(&mut self) -> Result<(), Error> {
        loop {
            let work = if self.moved_through < self.target {
                self.shared.inbox.take()
            } else {
                self.shared.inbox.wait(self.shared.options.idle)
            };
            let close = work.close;
            self.take_in(work);
            self.write_documents()?;
            if close || self.shared.failed().is_some() {
                return Ok(());
            }
            if self.moved_through < self.target {
                self.step()?;
            }
            self.answer_settles();
        }
    }

    fn take_in(&mut self, work: Work) {
        self.documents.extend(work.documents);
        if work.move_all || !work.settles.is_empty() {
            let last_row = self.shared.index().last_row().unwrap_or(0);
            self.target = self.target.max(last_row);
        }
        let target = self.target;
        self.settles.extend(work.settles.into_iter().map(|reply| (target, reply)));
    }

    fn answer_settles(&mut self) {
        let moved = self.moved_through;
        for (_, reply) in self.settles.extract_if(.., |(target, _)| *target <= moved) {
            // A caller that no longer waits has no use for the answer.
            let _ = reply.send(Ok(()));
        }
    }

    /// Writes the waiting documents in one transaction.
    fn write_documents(&mut self) -> Result<(), Error> {
        if self.documents.is_empty() {
            return Ok(());
        }
        if let Some(reason) = self.shared.failed() {
            for job in self.documents.drain(..) {
                let _ = job.reply.send(Err(Error::Poisoned { reason: Arc::clone(&reason) }));
            }
            return Ok(());
        }
        self.write(|txn| {
            for job in &self.documents {
                document::change(txn, &job.name, job.bytes.as_ref())?;
            }
            Ok(())
        })?;
        for job in self.documents.drain(..) {
            let _ = job.reply.send(Ok(()));
        }
        Ok(())
    }

    /// Moves the next rows. Rows that are gone from the journal were moved before.
    fn step(&mut self) -> Result<(), Error> {
        let rows = self.read_rows()?;
        let Some(last_row) = rows.last().map(|row| row.row) else {
            self.moved_through = self.target;
            return Ok(());
        };
        let step = Step::sort(&rows, &self.shared.index())?;
        let mut damaged = Vec::new();
        self.write(|txn| {
            damaged = step.write(txn)?;
            Ok(())
        })?;
        {
            let mut index = self.shared.index();
            for key_hash in damaged {
                index.mark_damaged(key_hash);
            }
        }
        self.moved_through = last_row;
        self.shared.progress.set(last_row);
        // A full queue wakes the writer as well.
        let _ = self.journal_jobs.try_send(Job::Wake { reply: None });
        Ok(())
    }

    /// Copies the next rows out of the journal: its read transaction must not last, or its file
    /// grows.
    fn read_rows(&self) -> Result<Vec<StoredRow>, Error> {
        let read = || -> Result<_, redb::Error> {
            let mut rows = Vec::new();
            let mut bytes = 0;
            let table = self.shared.journal.begin_read()?.open_table(ROWS)?;
            for entry in table.range_owned(self.moved_through + 1..=self.target)? {
                let (row, value) = entry?;
                bytes += value.value().len();
                if bytes > STEP_BYTES && !rows.is_empty() {
                    break;
                }
                rows.push(StoredRow { row: row.value(), bytes: value.value().to_vec() });
            }
            Ok(rows)
        };
        read().map_err(|source| Error::database("read the journal", source))
    }

    /// One durable transaction of the archive. Quick repair, because the file is too large to be
    /// walked after a crash.
    fn write(
        &self,
        change: impl FnOnce(&WriteTransaction) -> Result<(), redb::Error>,
    ) -> Result<(), Error> {
        let write = || -> Result<(), redb::Error> {
            let mut txn = self.shared.archive.begin_write()?;
            txn.set_durability(Durability::Immediate)?;
            txn.set_quick_repair(true);
            change(&txn)?;
            txn.commit()?;
            Ok(())
        };
        write().map_err(|source| Error::database("write the archive", source))
    }
}
