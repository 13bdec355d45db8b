//! Compaction: files that hold live data and nothing else.
//!
//! redb keeps freed pages with their old bytes, and its own compaction keeps some as well. So what is
//! live is copied into new files, which then take the place of the old ones: the archive's first,
//! since the journal is empty by then. A crash at any point leaves the old file or the new one of
//! each, and a half-written one that the next open removes.

use std::fs;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use redb::{
    Database, Durability, Key, ReadTransaction, ReadableDatabase, ReadableTable,
    ReadableTableMetadata, TableDefinition, Value, WriteTransaction,
};

use crate::blobs::Blobs;
use crate::error::Error;
use crate::files::{self, ARCHIVE_FILE, Files, JOURNAL_FILE, failed};
use crate::options::Options;
use crate::shared::guarded;
use crate::store::Store;
use crate::tables::{
    BLOB_KEYS, DOCUMENTS, HEADS, KEY_BLOBS, OWING, PARDONED, PLACES, QUARANTINE, ROWS, SEGMENTS,
};

/// Bytes that are copied in one transaction: what waits in memory to be written.
const COPY_BYTES: usize = 32 << 20;

/// What a compaction did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compacted {
    /// Bytes of all files of the directory before it.
    pub bytes_before: u64,
    /// And afterwards.
    pub bytes_after: u64,
}

/// Carries out every move and erasure of the store in `dir`, which nobody may have open, and writes
/// its files anew: what was erased is in none of them afterwards. Needs room for a second archive
/// meanwhile. Blocks, for as long as a copy of the archive takes; `progress` is told from time to time
/// how many bytes are copied, which come to the size of `archive.redb` at most.
///
/// What the file system keeps of removed files is out of its reach.
pub fn compact(
    dir: &Path,
    options: &Options,
    progress: &mut dyn FnMut(u64),
) -> Result<Compacted, Error> {
    let Files { journal, archive, blobs, lock } = files::open_existing(dir, options)?;
    let bytes_before = bytes_below(dir)?;
    let blobs_directory = blobs.clone();
    let store = Store::start(journal, archive, blobs, None, options.clone())?;
    block_on(store.settle_archive())?;
    store.close();
    Blobs::sync(&blobs_directory)?;
    guarded(b"the archive", || {
        let old = files::open_database(dir, ARCHIVE_FILE, options.archive_cache_bytes)?;
        files::replace(dir, ARCHIVE_FILE, options.archive_cache_bytes, |new| {
            copy(&old, new, progress)
        })
    })?;
    guarded(b"the journal", || {
        let old = files::open_database(dir, JOURNAL_FILE, options.journal_cache_bytes)?;
        check_empty(&old)?;
        // The next open makes its tables and grows it.
        files::replace(dir, JOURNAL_FILE, options.journal_cache_bytes, |_| Ok(()))
    })?;
    let compacted = Compacted { bytes_before, bytes_after: bytes_below(dir)? };
    drop(lock);
    Ok(compacted)
}

fn copy(old: &Database, new: &mut Database, progress: &mut dyn FnMut(u64)) -> Result<(), Error> {
    let mut copy = || -> Result<(), redb::Error> {
        let mut copier = Copier { from: old.begin_read()?, to: new, copied: 0, progress };
        copier.copy(SEGMENTS)?;
        copier.copy(HEADS)?;
        copier.copy(OWING)?;
        copier.copy(PLACES)?;
        copier.copy(BLOB_KEYS)?;
        copier.copy(KEY_BLOBS)?;
        copier.copy(DOCUMENTS)?;
        copier.copy(QUARANTINE)?;
        copier.copy(PARDONED)?;
        copier.finish()
    };
    copy().map_err(|source| Error::database("copy the archive", source))?;
    // Nothing in the new file is old, so redb may give back what it grew too far.
    let given_back = new.compact();
    given_back.map_err(|source| Error::database("shrink the archive", source)).map(|_| ())
}

struct Copier<'a> {
    from: ReadTransaction,
    to: &'a Database,
    copied: u64,
    progress: &'a mut dyn FnMut(u64),
}

impl Copier<'_> {
    /// Copies a table in order, so that its pages are full.
    fn copy<K: Key + 'static, V: Value + 'static>(
        &mut self,
        table: TableDefinition<K, V>,
    ) -> Result<(), redb::Error> {
        let from = self.from.open_table(table)?;
        let mut entries = from.iter()?.peekable();
        loop {
            let txn = self.begin()?;
            let mut to = txn.open_table(table)?;
            let mut bytes = 0;
            for entry in entries.by_ref() {
                let (key, value) = entry?;
                bytes += V::as_bytes(&value.value()).as_ref().len();
                to.insert(key.value(), value.value())?;
                if bytes >= COPY_BYTES {
                    break;
                }
            }
            drop(to);
            txn.commit()?;
            self.copied += bytes as u64;
            (self.progress)(self.copied);
            if entries.peek().is_none() {
                return Ok(());
            }
        }
    }

    /// The file counts only when it is finished, so nothing before that need be durable.
    fn begin(&self) -> Result<WriteTransaction, redb::Error> {
        let mut txn = self.to.begin_write()?;
        txn.set_durability(Durability::None)?;
        Ok(txn)
    }

    fn finish(self) -> Result<(), redb::Error> {
        let mut txn = self.to.begin_write()?;
        txn.set_durability(Durability::Immediate)?;
        txn.set_quick_repair(true);
        txn.commit()?;
        Ok(())
    }
}

/// The old journal is about to go: what it held must have moved.
fn check_empty(journal: &Database) -> Result<(), Error> {
    let read =
        || -> Result<bool, redb::Error> { Ok(journal.begin_read()?.open_table(ROWS)?.is_empty()?) };
    let is_empty = read().map_err(|source| Error::database("read the journal", source))?;
    if !is_empty {
        return Err(Error::damaged(b"the journal", "it holds rows that did not move"));
    }
    Ok(())
}

fn bytes_below(dir: &Path) -> Result<u64, Error> {
    let mut bytes = 0;
    for entry in fs::read_dir(dir).map_err(failed("list", dir))? {
        let path = entry.map_err(failed("list", dir))?.path();
        let metadata = fs::symlink_metadata(&path).map_err(failed("look at", &path))?;
        bytes += if metadata.is_dir() { bytes_below(&path)? } else { metadata.len() };
    }
    Ok(bytes)
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for the store on this thread, which may or may not be one of an async runtime.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
