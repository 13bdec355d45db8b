//! The archive's writer: one thread that moves the journal into segments, in small steps, carries
//! out erasures, writes documents, and removes the files of blobs that nobody needs.
//!
//! A step is one transaction of the archive. Only after it is durable is the journal's writer told,
//! which takes the rows out with one of its next commits. A crash between the two repeats the step,
//! and a repeated step changes nothing: it goes on after the last archived seq of each key.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use redb::{Durability, ReadableDatabase, WriteTransaction};
use tokio::sync::mpsc;

use crate::blobs::BlobId;
use crate::document;
use crate::erasing;
use crate::error::{Error, chain};
use crate::moving::{Step, StoredRow};
use crate::shared::{DocumentJob, Reply, Shared, Work, panic_text};
use crate::sweeping::Sweep;
use crate::tables::{ArchiveTables, ROWS};
use crate::writer::Job;

/// Bytes of rows in one step: enough that a busy key's runs are gathered, small enough for a few
/// ten milliseconds.
const STEP_BYTES: usize = 4 << 20;
/// Keys erased in one transaction, each with few rows.
const ERASED_KEYS_MAX: usize = 64;

/// Runs the archiver until the store closes or fails.
pub(crate) fn run(shared: Arc<Shared>, journal_jobs: mpsc::Sender<Job>) {
    let mut archiver = Archiver {
        shared,
        journal_jobs,
        moved_through: 0,
        target: 0,
        documents: VecDeque::new(),
        settles: Vec::new(),
        // A crash may have left files behind.
        sweep: Sweep::default(),
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
    sweep: Sweep,
}

impl Archiver {
    fn work(&mut self) -> Result<(), Error> {
        loop {
            let work = if self.moved_through < self.target || !self.sweep.is_done() {
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
            self.sweep.go_on(&self.shared);
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
        if !self.sweep.is_done() {
            return;
        }
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
        let mut step = Step::sort(&rows, &self.shared.index())?;
        let keys: Vec<&[u8]> = step.erased.keys().copied().collect();
        self.erase(&keys)?;
        let released = std::mem::take(&mut step.released);
        let mut damaged = Vec::new();
        self.write(|txn| {
            damaged = step.write(txn)?;
            Ok(())
        })?;
        {
            let mut index = self.shared.index();
            for (key_hash, at) in damaged {
                index.mark_damaged(key_hash, at);
            }
        }
        self.shared.blobs.release(released);
        self.moved_through = last_row;
        self.shared.progress.set(last_row);
        // A full queue wakes the writer as well.
        let _ = self.journal_jobs.try_send(Job::Wake { reply: None });
        Ok(())
    }

    /// Carries out erasures, in transactions of a bounded size. A crash between two of them leaves
    /// a part of a log that nobody reads: the journal still erases it.
    fn erase(&self, keys: &[&[u8]]) -> Result<(), Error> {
        for key in keys {
            while erasing::is_long(&self.shared.archive, key)? {
                self.write_erasure(|tables| tables.erase_some(key))?;
            }
        }
        for keys in keys.chunks(ERASED_KEYS_MAX) {
            self.write_erasure(|tables| {
                let mut released = Vec::new();
                for key in keys {
                    released.extend(tables.erase(key)?);
                }
                Ok(released)
            })?;
        }
        Ok(())
    }

    fn write_erasure(
        &self,
        erase: impl FnOnce(&mut ArchiveTables) -> Result<Vec<BlobId>, redb::Error>,
    ) -> Result<(), Error> {
        let mut released = Vec::new();
        self.write(|txn| {
            released = erase(&mut ArchiveTables::open(txn)?)?;
            Ok(())
        })?;
        self.shared.blobs.release(released);
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
