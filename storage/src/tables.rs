//! Every table of the two files. `FORMAT.md` says what their rows hold.

use redb::{Database, Durability, ReadableDatabase, Table, TableDefinition, WriteTransaction};

use crate::blobs::BlobId;
use crate::error::Error;
use crate::row::ROW_BYTES_MAX;

/// Journal: row number -> the runs of one group commit, or a part of them.
pub(crate) const ROWS: TableDefinition<u64, &[u8]> = TableDefinition::new("rows");

/// Archive: (key, first seq) -> many events of one key.
pub(crate) const SEGMENTS: TableDefinition<(&[u8], u64), &[u8]> = TableDefinition::new("segments");

/// Archive: key -> its head.
pub(crate) const HEADS: TableDefinition<&[u8], &[u8]> = TableDefinition::new("heads");

/// Archive: the keys whose head owes something -> checksum of the key.
pub(crate) const OWING: TableDefinition<&[u8], u32> = TableDefinition::new("owing");

/// Archive: (list, rank from the highest to the lowest, key) of every place of every head.
pub(crate) const PLACES: TableDefinition<(&[u8], u64, &[u8]), ()> = TableDefinition::new("places");

/// Archive: (blob, key that refers to it) -> checksum of both.
pub(crate) const BLOB_KEYS: TableDefinition<(&BlobId, &[u8]), u32> =
    TableDefinition::new("blob_keys");

/// Archive: (key, blob that it refers to): the same the other way around.
pub(crate) const KEY_BLOBS: TableDefinition<(&[u8], &BlobId), ()> =
    TableDefinition::new("key_blobs");

/// Archive: name -> document.
pub(crate) const DOCUMENTS: TableDefinition<&str, &[u8]> = TableDefinition::new("documents");

/// Archive: (checksum of its key, row, offset) of a damaged run of the journal -> the run as it was
/// found.
pub(crate) const QUARANTINE: TableDefinition<(u32, u64, u32), &[u8]> =
    TableDefinition::new("quarantine");

/// Archive: the keys that were erased since a run in quarantine took their checksum.
pub(crate) const PARDONED: TableDefinition<&[u8], ()> = TableDefinition::new("pardoned");

/// Journal: one row that is written once, behind everything else, and never touched again.
const END: TableDefinition<(), ()> = TableDefinition::new("end");

/// The tables of the archive that a log has rows in, opened for writing.
pub(crate) struct ArchiveTables<'txn> {
    pub segments: Table<'txn, (&'static [u8], u64), &'static [u8]>,
    pub heads: Table<'txn, &'static [u8], &'static [u8]>,
    pub owing: Table<'txn, &'static [u8], u32>,
    pub places: Table<'txn, (&'static [u8], u64, &'static [u8]), ()>,
    pub blob_keys: Table<'txn, (&'static BlobId, &'static [u8]), u32>,
    pub key_blobs: Table<'txn, (&'static [u8], &'static BlobId), ()>,
    pub quarantine: Table<'txn, (u32, u64, u32), &'static [u8]>,
    pub pardoned: Table<'txn, &'static [u8], ()>,
}

impl<'txn> ArchiveTables<'txn> {
    pub(crate) fn open(txn: &'txn WriteTransaction) -> Result<Self, redb::Error> {
        Ok(Self {
            segments: txn.open_table(SEGMENTS)?,
            heads: txn.open_table(HEADS)?,
            owing: txn.open_table(OWING)?,
            places: txn.open_table(PLACES)?,
            blob_keys: txn.open_table(BLOB_KEYS)?,
            key_blobs: txn.open_table(KEY_BLOBS)?,
            quarantine: txn.open_table(QUARANTINE)?,
            pardoned: txn.open_table(PARDONED)?,
        })
    }
}

const JOURNAL_TABLES: usize = 2;
const ARCHIVE_TABLES: usize = 9;

/// Creates the journal's tables where the file is new, so that no later reader meets a missing one,
/// and grows the file ahead of its use: a sync is cheaper where the file system has no blocks to
/// allocate. redb gives free pages at the end of a file back with every commit, so the one page of
/// [`END`] stays behind them.
pub(crate) fn create_in_journal(journal: &Database, grow_bytes: u64) -> Result<(), Error> {
    if count(journal)? == JOURNAL_TABLES {
        return Ok(());
    }
    let create = || -> Result<(), redb::Error> {
        let filler = vec![0; ROW_BYTES_MAX];
        let mut txn = journal.begin_write()?;
        txn.set_durability(Durability::None)?;
        {
            let mut rows = txn.open_table(ROWS)?;
            for row in 0..grow_bytes / filler.len() as u64 {
                rows.insert(row, filler.as_slice())?;
            }
        }
        txn.commit()?;
        let mut txn = journal.begin_write()?;
        txn.set_quick_repair(true);
        txn.open_table(END)?.insert((), ())?;
        txn.open_table(ROWS)?.retain(|_, _| false)?;
        txn.commit()?;
        Ok(())
    };
    create().map_err(|source| Error::database("create the journal", source))
}

/// Creates the archive's tables where the file is new.
pub(crate) fn create_in_archive(archive: &Database) -> Result<(), Error> {
    if count(archive)? == ARCHIVE_TABLES {
        return Ok(());
    }
    let create = || -> Result<(), redb::Error> {
        let mut txn = archive.begin_write()?;
        txn.set_quick_repair(true);
        txn.open_table(SEGMENTS)?;
        txn.open_table(HEADS)?;
        txn.open_table(OWING)?;
        txn.open_table(PLACES)?;
        txn.open_table(BLOB_KEYS)?;
        txn.open_table(KEY_BLOBS)?;
        txn.open_table(DOCUMENTS)?;
        txn.open_table(QUARANTINE)?;
        txn.open_table(PARDONED)?;
        txn.commit()?;
        Ok(())
    };
    create().map_err(|source| Error::database("create the archive", source))
}

fn count(database: &Database) -> Result<usize, Error> {
    let count =
        || -> Result<usize, redb::Error> { Ok(database.begin_read()?.list_tables()?.count()) };
    count().map_err(|source| Error::database("list the tables", source))
}
