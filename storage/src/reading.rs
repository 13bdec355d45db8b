//! Reading one key: its segments, then its part of the journal.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::Bytes;
use redb::{ReadTransaction, ReadableDatabase, ReadableTable};

use crate::directory::{self, StoredHead};
use crate::error::Error;
use crate::index::{Index, RunAt};
use crate::row;
use crate::segment::{self, Segment};
use crate::shared::Shared;
use crate::tables::{ROWS, SEGMENTS};

/// Consecutive events of one key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Each event with its seq, in order. They may share one buffer.
    pub events: Vec<(u64, Bytes)>,
    /// Whether the log goes on after them.
    pub more: bool,
}

/// Where a key's log is, with reads of both files that find all of it.
struct Parts {
    runs: VecDeque<RunAt>,
    /// `None` where nothing of the key is in the journal.
    journal: Option<ReadTransaction>,
    /// `None` where nothing of the archive counts or is asked for.
    archive: Option<ReadTransaction>,
}

pub(crate) fn head(shared: &Shared, key: &[u8]) -> Result<Option<StoredHead>, Error> {
    let parts = Parts::find(shared, key, u64::MAX)?;
    match (&parts.journal, parts.runs.back(), &parts.archive) {
        (Some(journal), Some(last), _) => head_at(journal, key, last).map(Some),
        (_, _, Some(archive)) => directory::head_in(archive, key),
        (_, _, None) => Ok(None),
    }
}

/// The head that the last run of a key carries.
pub(crate) fn head_at(
    journal: &ReadTransaction,
    key: &[u8],
    last: &RunAt,
) -> Result<StoredHead, Error> {
    with_row(journal, key, last, |bytes| {
        let run = row::decode_at(bytes, last.at.offset, key)?;
        let head = run.head.ok_or_else(|| Error::damaged(key, "its head is missing"))?;
        let summary = Bytes::copy_from_slice(head.summary);
        let (owes, places) = (head.owes, head.places());
        Ok(StoredHead { last_seq: last.last_seq(), summary, owes, places })
    })
}

pub(crate) fn read(
    shared: &Shared,
    key: &[u8],
    after_seq: u64,
    bytes_max: usize,
) -> Result<Page, Error> {
    let next_seq = after_seq.saturating_add(1);
    let parts = Parts::find(shared, key, next_seq)?;
    let mut page = Builder { key, next_seq, bytes_max, bytes: 0, events: Vec::new() };
    let mut last_seq = parts.runs.back().map_or(0, RunAt::last_seq);
    if let Some(archive) = &parts.archive {
        let archived = page.add_archived(archive)?;
        last_seq = last_seq.max(archived);
        if !page.is_full() && page.next_seq <= archived {
            return Err(Error::damaged(key, "a segment is missing"));
        }
    }
    if let Some(journal) = &parts.journal
        && !page.is_full()
    {
        page.add_journal(journal, &parts.runs)?;
    }
    if !page.is_full() && page.next_seq <= last_seq {
        return Err(Error::damaged(key, "its log has a gap"));
    }
    let more = page.next_seq <= last_seq;
    Ok(Page { events: page.events, more })
}

impl Parts {
    /// Looks the key up in the index and begins the reads under the same lock, so that no commit,
    /// removal or erasure can come between. The archive is read where `next_seq` may be there.
    fn find(shared: &Shared, key: &[u8], next_seq: u64) -> Result<Self, Error> {
        let index = shared.index();
        if index.is_damaged(key) {
            return Err(Error::damaged(key, "a part of its log in the journal"));
        }
        let known = index.get(key);
        let runs = known.map(|known| known.runs.clone()).unwrap_or_default();
        let erased = known.is_some_and(|known| known.erased.is_some());
        let in_journal = !runs.is_empty();
        let journal = in_journal.then(|| read_journal(shared, &index)).transpose()?;
        let in_archive = !erased && runs.front().is_none_or(|first| next_seq < first.first_seq);
        let archive = in_archive.then(|| read_archive(shared, &index)).transpose()?;
        Ok(Self { runs, journal, archive })
    }
}

/// Begins a read of the journal that agrees with the index.
pub(crate) fn read_journal(shared: &Shared, _: &Index) -> Result<ReadTransaction, Error> {
    shared.journal.begin_read().map_err(|error| Error::database("read the journal", error))
}

/// Begins a read of the archive that agrees with the index: it holds all that has left the journal.
pub(crate) fn read_archive(shared: &Shared, _: &Index) -> Result<ReadTransaction, Error> {
    shared.archive.begin_read().map_err(|error| Error::database("read the archive", error))
}

fn with_row<T>(
    txn: &ReadTransaction,
    key: &[u8],
    at: &RunAt,
    use_row: impl FnOnce(&[u8]) -> Result<T, Error>,
) -> Result<T, Error> {
    let failed = |source| Error::database("read the journal", source);
    let table = txn.open_table(ROWS).map_err(|error| failed(redb::Error::from(error)))?;
    match ReadableTable::get(&table, at.at.row).map_err(|error| failed(error.into()))? {
        Some(bytes) => use_row(bytes.value()),
        None => Err(Error::damaged(key, "a row of the journal is missing")),
    }
}

struct Builder<'a> {
    key: &'a [u8],
    next_seq: u64,
    bytes_max: usize,
    bytes: usize,
    events: Vec<(u64, Bytes)>,
}

impl Builder<'_> {
    fn is_full(&self) -> bool {
        self.bytes >= self.bytes_max && !self.events.is_empty()
    }

    /// Whether an event of this size still goes in; if not, the page is full.
    fn admits(&mut self, bytes: usize) -> bool {
        if !self.events.is_empty() && self.bytes + bytes > self.bytes_max {
            self.bytes = self.bytes_max;
            return false;
        }
        self.bytes += bytes;
        true
    }

    /// Adds what the archive has. Returns the last archived seq.
    fn add_archived(&mut self, txn: &ReadTransaction) -> Result<u64, Error> {
        let failed = |source| Error::database("read the archive", source);
        let Some(head) = directory::head_in(txn, self.key)? else {
            return Ok(0);
        };
        if self.next_seq > head.last_seq {
            return Ok(head.last_seq);
        }
        let segments =
            txn.open_table(SEGMENTS).map_err(|error| failed(redb::Error::from(error)))?;
        let upto = segments.range((self.key, 0)..=(self.key, self.next_seq));
        let first = upto.map_err(|error| failed(error.into()))?.next_back();
        let first = match first.transpose().map_err(|error| failed(error.into()))? {
            Some((id, _)) => id.value().1,
            None => return Err(Error::damaged(self.key, "its first segment is missing")),
        };
        let range = segments.range((self.key, first)..=(self.key, head.last_seq));
        for entry in range.map_err(|error| failed(error.into()))? {
            let (id, bytes) = entry.map_err(|error| failed(error.into()))?;
            self.add_segment(&segment::decode(self.key, id.value().1, bytes.value())?)?;
            if self.is_full() {
                break;
            }
        }
        Ok(head.last_seq)
    }

    fn add_segment(&mut self, segment: &Segment) -> Result<(), Error> {
        if segment.first_seq > self.next_seq {
            return Err(Error::damaged(self.key, "its segments leave a gap"));
        }
        for record in segment.events(self.key) {
            let record = record?;
            if record.seq < self.next_seq {
                continue;
            }
            if !self.admits(record.event.len()) {
                break;
            }
            let event = segment.records.slice_ref(record.event);
            self.events.push((record.seq, event));
            self.next_seq = record.seq + 1;
        }
        Ok(())
    }

    /// Adds what the journal has, copied into one buffer that all its events share.
    fn add_journal(
        &mut self,
        journal: &ReadTransaction,
        runs: &VecDeque<RunAt>,
    ) -> Result<(), Error> {
        let mut buffer = Vec::new();
        let mut places: Vec<(u64, Range<usize>)> = Vec::new();
        for at in runs {
            if at.last_seq() < self.next_seq {
                continue;
            }
            if at.first_seq > self.next_seq {
                return Err(Error::damaged(self.key, "its log has a gap"));
            }
            let full = with_row(journal, self.key, at, |bytes| {
                let run = row::decode_at(bytes, at.at.offset, self.key)?;
                for record in run.events() {
                    let record = record?;
                    if record.seq < self.next_seq {
                        continue;
                    }
                    if self.bytes + record.event.len() > self.bytes_max
                        && !(self.events.is_empty() && places.is_empty())
                    {
                        return Ok(true);
                    }
                    self.bytes += record.event.len();
                    let start = buffer.len();
                    buffer.extend_from_slice(record.event);
                    places.push((record.seq, start..buffer.len()));
                    self.next_seq = record.seq + 1;
                }
                Ok(false)
            })?;
            if full {
                self.bytes = self.bytes_max;
                break;
            }
        }
        let buffer = Bytes::from(buffer);
        self.events.extend(places.into_iter().map(|(seq, place)| (seq, buffer.slice(place))));
        Ok(())
    }
}
