//! What the store's threads and its readers share.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use redb::Database;
use tokio::sync::{OwnedSemaphorePermit, oneshot, watch};

use crate::blobs::Blobs;
use crate::error::Error;
use crate::index::Index;
use crate::options::Options;

pub(crate) type Reply = oneshot::Sender<Result<(), Error>>;

/// The two files and everything around them that more than one thread needs.
pub(crate) struct Shared {
    pub options: Options,
    pub journal: Database,
    pub archive: Database,
    pub blobs: Arc<Blobs>,
    pub index: Mutex<Index>,
    pub progress: Progress,
    pub inbox: Inbox,
    pub closing: AtomicBool,
    pub failure: watch::Sender<Option<String>>,
}

impl Shared {
    pub(crate) fn index(&self) -> MutexGuard<'_, Index> {
        lock(&self.index)
    }

    /// Why the store takes no more writes, if so.
    pub(crate) fn failed(&self) -> Option<Arc<str>> {
        self.failure.borrow().as_deref().map(Arc::from)
    }

    /// Ends the store's promises: the first reason stays.
    pub(crate) fn fail(&self, reason: &str) {
        tracing::error!(reason, "storage has failed");
        self.failure.send_if_modified(|failure| {
            let first = failure.is_none();
            if first {
                *failure = Some(reason.to_owned());
            }
            first
        });
        self.progress.fail();
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Refuses a write that cannot be started.
    pub(crate) fn check_open(&self) -> Result<(), Error> {
        match self.failed() {
            Some(reason) => Err(Error::Poisoned { reason }),
            None if self.is_closing() => Err(Error::Closed),
            None => Ok(()),
        }
    }
}

/// A lock that a panicked thread held is taken over: such a panic fails the store, and reads of
/// what is committed go on.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `read`, taking a panic inside the database library for damage: it does not check pages as
/// it reads them.
pub(crate) fn guarded<T>(name: &[u8], read: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(Error::damaged(name, "the file's structure is broken")))
}

/// What a caught panic said.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("panic")
}

/// How far the journal is archived: the archive's thread moves it on, the journal's writer waits
/// for it.
#[derive(Default)]
pub(crate) struct Progress {
    state: Mutex<Reached>,
    moved: Condvar,
}

#[derive(Default)]
struct Reached {
    archived_through: u64,
    failed: bool,
}

impl Progress {
    /// The last row that is archived.
    pub(crate) fn get(&self) -> u64 {
        lock(&self.state).archived_through
    }

    pub(crate) fn set(&self, row: u64) {
        lock(&self.state).archived_through = row;
        self.moved.notify_all();
    }

    /// Nothing will be archived any more.
    pub(crate) fn fail(&self) {
        lock(&self.state).failed = true;
        self.moved.notify_all();
    }

    /// Waits until more than `seen` is archived, or the store fails, for at most `timeout`.
    pub(crate) fn wait_past(&self, seen: u64, timeout: Duration) -> u64 {
        let waiting = |reached: &mut Reached| reached.archived_through <= seen && !reached.failed;
        let state = lock(&self.state);
        let (state, _) = self
            .moved
            .wait_timeout_while(state, timeout, waiting)
            .unwrap_or_else(PoisonError::into_inner);
        state.archived_through
    }
}

/// A change of a document.
pub(crate) struct DocumentJob {
    pub name: String,
    /// `None` removes it.
    pub bytes: Option<Bytes>,
    pub reply: Reply,
    /// Held until the job is done: the semaphore is the bound of the inbox.
    pub _permit: OwnedSemaphorePermit,
}

/// What the archive's thread has been asked to do.
#[derive(Default)]
pub(crate) struct Work {
    pub documents: VecDeque<DocumentJob>,
    pub settles: Vec<Reply>,
    /// Move what the journal holds.
    pub move_all: bool,
    pub close: bool,
    /// The thread is gone: what is put here is dropped, and with it the replies.
    ended: bool,
}

impl Work {
    fn is_empty(&self) -> bool {
        self.documents.is_empty() && self.settles.is_empty() && !self.move_all && !self.close
    }
}

/// The archive thread's queue.
#[derive(Default)]
pub(crate) struct Inbox {
    work: Mutex<Work>,
    arrived: Condvar,
    commits: AtomicU64,
}

impl Inbox {
    pub(crate) fn put(&self, change: impl FnOnce(&mut Work)) {
        let mut work = lock(&self.work);
        if !work.ended {
            change(&mut work);
            self.arrived.notify_one();
        } else {
            change(&mut Work::default());
        }
    }

    /// The thread ends: drops what waits and whatever comes.
    pub(crate) fn end(&self) {
        *lock(&self.work) = Work { ended: true, ..Work::default() };
    }

    /// Tells of a commit of the journal, without waking anybody.
    pub(crate) fn note_commit(&self) {
        self.commits.fetch_add(1, Ordering::Relaxed);
    }

    /// What has arrived, without waiting.
    pub(crate) fn take(&self) -> Work {
        std::mem::take(&mut *lock(&self.work))
    }

    /// Waits for work. A stretch of `idle` without a commit of the journal is work too: to move
    /// what it holds.
    pub(crate) fn wait(&self, idle: Duration) -> Work {
        let mut work = lock(&self.work);
        loop {
            if !work.is_empty() {
                return std::mem::take(&mut *work);
            }
            let commits = self.commits.load(Ordering::Relaxed);
            let (guard, timeout) =
                self.arrived.wait_timeout(work, idle).unwrap_or_else(PoisonError::into_inner);
            work = guard;
            if timeout.timed_out() && commits == self.commits.load(Ordering::Relaxed) {
                work.move_all = true;
            }
        }
    }
}
