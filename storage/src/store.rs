//! The store's surface: everything the rest of the program can ask of it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use bytes::Bytes;
use redb::Database;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use crate::append::{Append, check_key, check_size};
use crate::blobs::{BlobId, BlobPin, Blobs};
use crate::directory::{self, StoredHead};
use crate::document::{self, DOCUMENT_BYTES_MAX};
use crate::error::Error;
use crate::files::{self, Files};
use crate::index::Index;
use crate::lists::{self, Listed};
use crate::options::Options;
use crate::reading::{self, Page};
use crate::shared::{DocumentJob, Inbox, Progress, Shared, guarded, lock};
use crate::writer::{Job, QUEUE_JOBS_MAX, reply};
use crate::{archiver, tables, writer};

/// Changes of documents that may wait.
const DOCUMENT_JOBS_MAX: usize = 64;

/// An open store. Clones share it; the last one to go closes it.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    jobs: mpsc::Sender<Job>,
    documents: Arc<Semaphore>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Kept for its lock. Declared after what holds the databases, so that they close first.
    _directory_lock: Option<File>,
}

impl Store {
    /// Opens the store in `dir`, creating both where they are new. Blocks: a store that was not
    /// closed is recovered first, and the journal is read once.
    pub fn open(dir: &Path, options: Options) -> Result<Self, Error> {
        let Files { journal, archive, blobs, lock } = files::open(dir, &options)?;
        Self::start(journal, archive, blobs, Some(lock), options)
    }

    /// Opens a store on two databases and a directory of blobs.
    pub(crate) fn start(
        journal: Database,
        archive: Database,
        blobs: PathBuf,
        directory_lock: Option<File>,
        options: Options,
    ) -> Result<Self, Error> {
        let index = guarded(b"the data directory", || {
            tables::create_in_journal(&journal, options.journal_grow_bytes())?;
            tables::create_in_archive(&archive)?;
            Index::load(&journal, &archive)
        })?;
        let shared = Arc::new(Shared {
            options,
            journal,
            archive,
            blobs: Arc::new(Blobs::new(blobs)),
            index: Mutex::new(index),
            progress: Progress::default(),
            inbox: Inbox::default(),
            closing: AtomicBool::new(false),
            failure: watch::Sender::new(None),
        });
        let (jobs, queue) = mpsc::channel(QUEUE_JOBS_MAX);
        let inner = Inner {
            shared: Arc::clone(&shared),
            jobs: jobs.clone(),
            documents: Arc::new(Semaphore::new(DOCUMENT_JOBS_MAX)),
            threads: Mutex::new(Vec::new()),
            _directory_lock: directory_lock,
        };
        let for_writer = Arc::clone(&shared);
        inner.spawn("storage-journal", move || writer::run(for_writer, queue))?;
        inner.spawn("storage-archive", move || archiver::run(shared, jobs))?;
        Ok(Self(Arc::new(inner)))
    }

    /// Appends events to a key's log. `Ok` only after they are synced to disk.
    ///
    /// The append may happen even if the future is dropped.
    pub async fn append(&self, append: Append) -> Result<(), Error> {
        self.0.shared.check_open()?;
        append.check(self.0.shared.options.append_bytes_max())?;
        let (reply, answer) = reply();
        self.0.send(Job::Append { append, reply }).await?;
        self.0.wait(answer).await
    }

    /// Erases a key: its log, its head, its places and its references to blobs. From `Ok` on, which
    /// comes after that is synced to disk, the key is as if it had never been, and an append may
    /// begin anew. Erasing an unknown key is `Ok` as well; a damaged one becomes usable again.
    ///
    /// The bytes leave the disk later, with [`crate::compact`] at the latest. The erasure may happen
    /// even if the future is dropped.
    pub async fn erase(&self, key: Arc<[u8]>) -> Result<(), Error> {
        self.0.shared.check_open()?;
        check_key(&key)?;
        let (reply, answer) = reply();
        self.0.send(Job::Erase { key, reply }).await?;
        self.0.wait(answer).await
    }

    /// Reads events after `after_seq`, of about `bytes_max` bytes but at least one if there is any.
    /// Blocks.
    pub fn read(&self, key: &[u8], after_seq: u64, bytes_max: usize) -> Result<Page, Error> {
        guarded(key, || reading::read(&self.0.shared, key, after_seq, bytes_max))
    }

    /// The latest head of a key, `None` if it has no log. Blocks.
    pub fn head(&self, key: &[u8]) -> Result<Option<StoredHead>, Error> {
        guarded(key, || reading::head(&self.0.shared, key))
    }

    /// The keys whose latest head owes something, in order. Reads no logs. Blocks.
    pub fn owing(&self) -> Result<Vec<Arc<[u8]>>, Error> {
        let latest = self.0.shared.index().owing();
        guarded(b"the index of what is owed", || directory::owing(&self.0.shared.archive, latest))
    }

    /// The keys that stand in a list, the highest rank first, and of one rank in order of the keys:
    /// up to `limit`, after the rank and key where the page before ended. A page that is shorter is
    /// the last one. Damaged keys are left out. Blocks.
    pub fn list(
        &self,
        list: &[u8],
        after: Option<(u64, &[u8])>,
        limit: usize,
    ) -> Result<Vec<Listed>, Error> {
        guarded(list, || lists::page(&self.0.shared, list, after, limit))
    }

    /// Stores a blob under its name, unless it is there. It is synced to disk afterwards, and stays
    /// while the pin is held or a key refers to it: hold the pin until the append that does is done.
    /// An [`Error::File`] is of this blob alone: the store goes on. Blocks.
    pub fn put_blob(&self, id: BlobId, bytes: &[u8]) -> Result<BlobPin, Error> {
        self.0.shared.check_open()?;
        self.0.shared.blobs.put(id, bytes)
    }

    /// A blob's bytes, `None` if there is no such blob. Blocks.
    pub fn blob(&self, id: &BlobId) -> Result<Option<Bytes>, Error> {
        self.0.shared.blobs.get(id)
    }

    /// A document's bytes. Blocks.
    pub fn document(&self, name: &str) -> Result<Option<Bytes>, Error> {
        guarded(name.as_bytes(), || document::get(&self.0.shared.archive, name))
    }

    /// The documents whose names start with `prefix`, in order of their names. Blocks.
    pub fn documents(&self, prefix: &str) -> Result<Vec<(String, Bytes)>, Error> {
        guarded(prefix.as_bytes(), || document::list(&self.0.shared.archive, prefix))
    }

    /// Writes a document. `Ok` only after it is synced to disk.
    pub async fn put_document(&self, name: &str, bytes: Bytes) -> Result<(), Error> {
        check_size("a document", (name.len() + bytes.len()) as u64, DOCUMENT_BYTES_MAX as u64)?;
        self.change_document(name, Some(bytes)).await
    }

    /// Removes a document, if it is there. `Ok` only after that is synced to disk.
    pub async fn remove_document(&self, name: &str) -> Result<(), Error> {
        self.change_document(name, None).await
    }

    async fn change_document(&self, name: &str, bytes: Option<Bytes>) -> Result<(), Error> {
        self.0.shared.check_open()?;
        let permit = Arc::clone(&self.0.documents).acquire_owned().await;
        let Ok(permit) = permit else {
            return Err(Error::Closed);
        };
        let (reply, answer) = reply();
        let job = DocumentJob { name: name.to_owned(), bytes, reply, _permit: permit };
        self.0.shared.inbox.put(|work| work.documents.push_back(job));
        self.0.wait(answer).await
    }

    /// Becomes `Some(reason)` when a write or a sync has failed. The process must exit then: what
    /// was written is decided by the next open.
    pub fn failure(&self) -> watch::Receiver<Option<String>> {
        self.0.shared.failure.subscribe()
    }

    /// Moves everything that is in the journal to the archive, carries out its erasures and removes
    /// the files of blobs that nobody needs. `Ok` when it is moved and the journal has let go of it.
    pub async fn settle_archive(&self) -> Result<(), Error> {
        self.0.shared.check_open()?;
        let (moved, answer) = reply();
        self.0.shared.inbox.put(|work| work.settles.push(moved));
        self.0.wait(answer).await?;
        let (removed, answer) = reply();
        self.0.send(Job::Wake { reply: Some(removed) }).await?;
        self.0.wait(answer).await
    }

    /// Closes the store: finishes what is queued and ends the threads. The files are closed when
    /// the last clone is gone. Dropping the last clone does the same. Blocks.
    pub fn close(self) {
        self.0.stop();
    }
}

impl Inner {
    fn spawn(&self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        let thread = thread::Builder::new().name(name.to_owned()).spawn(work);
        let thread = thread.map_err(|source| Error::File {
            action: "start a thread for",
            path: name.into(),
            source,
        })?;
        lock(&self.threads).push(thread);
        Ok(())
    }

    async fn send(&self, job: Job) -> Result<(), Error> {
        let sent = self.jobs.send(job).await;
        sent.map_err(|_| self.shared.check_open().err().unwrap_or(Error::Closed))
    }

    /// Waits for an answer. Without one, the thread that owed it has ended.
    async fn wait(&self, answer: oneshot::Receiver<Result<(), Error>>) -> Result<(), Error> {
        match answer.await {
            Ok(answer) => answer,
            Err(_) => match self.shared.failed() {
                Some(reason) => Err(Error::Unknown { reason }),
                None => Err(Error::Closed),
            },
        }
    }

    fn stop(&self) {
        self.shared.closing.store(true, Ordering::Release);
        // A full queue wakes the writer as well.
        let _ = self.jobs.try_send(Job::Wake { reply: None });
        let mut threads = std::mem::take(&mut *lock(&self.threads)).into_iter();
        let (writer, archiver) = (threads.next(), threads.next());
        join(writer);
        self.shared.inbox.put(|work| work.close = true);
        join(archiver);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop();
    }
}

fn join(thread: Option<JoinHandle<()>>) {
    // The threads catch their own panics and report them as failures.
    let _ = thread.map(JoinHandle::join);
}
