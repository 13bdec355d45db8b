//! One page of a list: the places that the archive holds, with those of the journal's keys laid over
//! them.

use std::cmp::Reverse;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use redb::{ReadTransaction, ReadableTable};

use crate::directory::{self, StoredHead};
use crate::error::Error;
use crate::index::RunAt;
use crate::reading::{head_at, read_archive, read_journal};
use crate::record;
use crate::shared::Shared;
use crate::tables::{HEADS, PLACES};

/// Rows of the archive that are read between two looks at the index.
const BATCH_ROWS: usize = 512;

/// A key of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub key: Arc<[u8]>,
    /// Its rank in the list.
    pub rank: u64,
    /// The seq of its last event; 0 if it has none.
    pub last_seq: u64,
    /// The summary of its latest head.
    pub summary: Bytes,
}

/// A key's place in the order of a list.
type Row = (Reverse<u64>, Arc<[u8]>);

/// What a page is made of, as it stood at one moment.
struct Snapshot<'a> {
    shared: &'a Shared,
    list: &'a [u8],
    after: Option<(u64, &'a [u8])>,
    limit: usize,
    /// The first rows of the journal's keys, which are newer than those of the archive.
    in_journal: Vec<(u64, Arc<[u8]>, RunAt)>,
    /// The last row that the index knew, and how often it had let go of some.
    last_row: u64,
    removals: u64,
    journal: ReadTransaction,
    archive: ReadTransaction,
}

pub(crate) fn page(
    shared: &Shared,
    list: &[u8],
    after: Option<(u64, &[u8])>,
    limit: usize,
) -> Result<Vec<Listed>, Error> {
    if limit == 0 {
        return Ok(Vec::new());
    }
    loop {
        let snapshot = Snapshot::take(shared, list, after, limit)?;
        if let Some(page) = snapshot.page()? {
            return Ok(page);
        }
    }
}

impl<'a> Snapshot<'a> {
    fn take(
        shared: &'a Shared,
        list: &'a [u8],
        after: Option<(u64, &'a [u8])>,
        limit: usize,
    ) -> Result<Self, Error> {
        let index = shared.index();
        Ok(Self {
            shared,
            list,
            after,
            limit,
            in_journal: index.list(list, after, limit),
            last_row: index.last_row().unwrap_or(0),
            removals: index.removals(),
            journal: read_journal(shared, &index)?,
            archive: read_archive(shared, &index)?,
        })
    }

    /// The page, or `None` where the snapshot is of no use any more.
    fn page(&self) -> Result<Option<Vec<Listed>>, Error> {
        let Some(archived) = self.archived_rows()? else {
            return Ok(None);
        };
        match self.merge(archived)? {
            Merged::Page(page) => Ok(Some(page)),
            Merged::DamagedKey => Ok(None),
            Merged::DamagedRow => {
                tracing::error!("a list is damaged: reading every head");
                let Some(archived) = self.rows_of_heads()? else {
                    return Ok(None);
                };
                match self.merge(archived)? {
                    Merged::Page(page) => Ok(Some(page)),
                    Merged::DamagedKey => Ok(None),
                    Merged::DamagedRow => {
                        Err(Error::damaged(self.list, "its keys are not found by their heads"))
                    }
                }
            }
        }
    }

    /// The first rows of the archive for keys that the journal has nothing newer of.
    fn archived_rows(&self) -> Result<Option<Vec<Row>>, Error> {
        let failed = |source| Error::database("read a list", source);
        let table = self.archive.open_table(PLACES);
        let table = table.map_err(|error| failed(redb::Error::from(error)))?;
        let start = match self.after {
            Some((rank, key)) => Bound::Excluded((self.list, !rank, key)),
            None => Bound::Included((self.list, 0, [].as_slice())),
        };
        let range = table.range::<(&[u8], u64, &[u8])>((start, Bound::Unbounded));
        let mut range = range.map_err(|error| failed(error.into()))?;
        let mut found = Vec::new();
        while found.len() < self.limit {
            let mut batch = Vec::new();
            for entry in range.by_ref().take(BATCH_ROWS.min(self.limit)) {
                let (id, ()) = entry
                    .map(|(id, value)| (id, value.value()))
                    .map_err(|error| failed(error.into()))?;
                let (list, rank, key) = id.value();
                if list != self.list {
                    break;
                }
                batch.push((Reverse(!rank), Arc::from(key)));
            }
            let is_last = batch.len() < BATCH_ROWS.min(self.limit) || self.is_beyond(batch.last());
            let Some(batch) = self.without_newer(batch) else {
                return Ok(None);
            };
            found.extend(batch);
            if is_last {
                break;
            }
        }
        Ok(Some(found))
    }

    /// Whether the journal's keys fill the page before this row.
    fn is_beyond(&self, row: Option<&Row>) -> bool {
        let last = self.in_journal.get(self.limit - 1);
        last.zip(row).is_some_and(|((rank, key, _), row)| *row >= (Reverse(*rank), Arc::clone(key)))
    }

    /// Takes out the rows that the journal replaced when the snapshot was taken. `None` where the
    /// index has forgotten what it knew then.
    fn without_newer(&self, mut rows: Vec<Row>) -> Option<Vec<Row>> {
        let index = self.shared.index();
        if index.removals() != self.removals {
            return None;
        }
        rows.retain(|(_, key)| !index.knew(key, self.last_row) && !index.is_damaged(key));
        Some(rows)
    }

    /// What the archive's rows of the list are made from.
    fn rows_of_heads(&self) -> Result<Option<Vec<Row>>, Error> {
        let after = self.after.map(|(rank, key)| (Reverse(rank), Arc::from(key)));
        let read = || -> Result<Vec<Row>, redb::Error> {
            let mut rows = Vec::new();
            for entry in self.archive.open_table(HEADS)?.iter()? {
                let (key, bytes) = entry?;
                // A damaged head answers for itself when it is asked for.
                let Ok(head) = directory::decode(key.value(), bytes.value()) else { continue };
                let of_list = head.places.iter().filter(|place| place.list == self.list);
                rows.extend(of_list.map(|place| (Reverse(place.rank), Arc::from(key.value()))));
            }
            Ok(rows)
        };
        let mut rows = read().map_err(|source| Error::database("read every head", source))?;
        rows.retain(|row| after.as_ref().is_none_or(|after| row > after));
        rows.sort_unstable();
        Ok(self.without_newer(rows))
    }

    /// Puts the rows of both files in order and reads the heads of the first ones.
    fn merge(&self, archived: Vec<Row>) -> Result<Merged, Error> {
        let in_journal = self.in_journal.iter();
        let in_journal =
            in_journal.map(|(rank, key, last)| ((Reverse(*rank), Arc::clone(key)), Some(*last)));
        let mut rows: Vec<(Row, Option<RunAt>)> = in_journal.collect();
        rows.extend(archived.into_iter().map(|row| (row, None)));
        rows.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        rows.truncate(self.limit);
        let mut page = Vec::with_capacity(rows.len());
        for ((Reverse(rank), key), last) in rows {
            let head = match last {
                Some(last) => match head_at(&self.journal, &key, &last) {
                    Ok(head) => head,
                    Err(Error::Damaged { .. }) => {
                        self.shared.index().mark_damaged(record::key_hash(&key), last.at);
                        return Ok(Merged::DamagedKey);
                    }
                    Err(error) => return Err(error),
                },
                None => match self.archived_head(rank, &key)? {
                    Some(head) => head,
                    None => return Ok(Merged::DamagedRow),
                },
            };
            page.push(Listed { key, rank, last_seq: head.last_seq, summary: head.summary });
        }
        Ok(Merged::Page(page))
    }

    /// The head of an archived row, unless one of the two is damaged: a row has no checksum, but the
    /// head repeats it.
    fn archived_head(&self, rank: u64, key: &[u8]) -> Result<Option<StoredHead>, Error> {
        match directory::head_in(&self.archive, key) {
            Ok(head) => Ok(head.filter(|head| {
                head.places.iter().any(|place| place.list == self.list && place.rank == rank)
            })),
            Err(Error::Damaged { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// What came of putting rows together.
enum Merged {
    Page(Vec<Listed>),
    /// A run of the journal turned out to be damaged: its key is marked now.
    DamagedKey,
    /// A row of the list does not agree with its head.
    DamagedRow,
}
