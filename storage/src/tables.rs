//! Every table of the two files. `FORMAT.md` says what their rows hold.

use redb::{Database, ReadableDatabase, TableDefinition};

use crate::error::Error;

/// Journal: row number -> the runs of one group commit, or a part of them.
pub(crate) const ROWS: TableDefinition<u64, &[u8]> = TableDefinition::new("rows");

/// Archive: (key, first seq) -> many events of one key.
pub(crate) const SEGMENTS: TableDefinition<(&[u8], u64), &[u8]> = TableDefinition::new("segments");

/// Archive: key -> its head.
pub(crate) const HEADS: TableDefinition<&[u8], &[u8]> = TableDefinition::new("heads");

/// Archive: the keys whose head owes something -> checksum of the key.
pub(crate) const OWING: TableDefinition<&[u8], u32> = TableDefinition::new("owing");

/// Archive: name -> document.
pub(crate) const DOCUMENTS: TableDefinition<&str, &[u8]> = TableDefinition::new("documents");

/// Archive: (row, offset) of a damaged run of the journal -> checksum of its key, then the bytes as they were found.
pub(crate) const QUARANTINE: TableDefinition<(u64, u32), &[u8]> =
    TableDefinition::new("quarantine");

const JOURNAL_TABLES: usize = 1;
const ARCHIVE_TABLES: usize = 5;

/// Creates the journal's table where the file is new, so that no later reader meets a missing one.
pub(crate) fn create_in_journal(journal: &Database) -> Result<(), Error> {
    if count(journal)? == JOURNAL_TABLES {
        return Ok(());
    }
    let create = || -> Result<(), redb::Error> {
        let mut txn = journal.begin_write()?;
        txn.set_quick_repair(true);
        txn.open_table(ROWS)?;
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
        txn.open_table(DOCUMENTS)?;
        txn.open_table(QUARANTINE)?;
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
