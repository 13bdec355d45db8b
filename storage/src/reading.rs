//! Reading one key: its segments, then its part of the journal.

use std::ops::Range;

use bytes::Bytes;
use redb::{Database, ReadTransaction, ReadableDatabase, ReadableTable};

use crate::directory::{self, StoredHead};
use crate::error::Error;
use crate::index::{KeyRuns, RunAt};
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

/// The journal's part of a key, with a read of the journal that finds all of it.
struct JournalPart {
    runs: KeyRuns,
    txn: ReadTransaction,
}

pub(crate) fn head(shared: &Shared, key: &[u8]) -> Result<Option<StoredHead>, Error> {
    let Some(part) = journal_part(shared, key)? else {
        return directory::head(&shared.archive, key);
    };
    let Some(last) = part.runs.runs.back() else {
        return Ok(None);
    };
    with_row(&part.txn, key, last, |bytes| {
        let run = row::decode_at(bytes, last.offset, key)?;
        let head = run.head.ok_or_else(|| Error::damaged(key, "its head is missing"))?;
        let summary = Bytes::copy_from_slice(head.summary);
        Ok(Some(StoredHead { last_seq: last.last_seq(), summary, owes: head.owes }))
    })
}

pub(crate) fn read(
    shared: &Shared,
    key: &[u8],
    after_seq: u64,
    bytes_max: usize,
) -> Result<Page, Error> {
    let part = journal_part(shared, key)?;
    let mut page =
        Builder { key, next_seq: after_seq + 1, bytes_max, bytes: 0, events: Vec::new() };
    let in_journal = part.as_ref().and_then(|part| part.runs.runs.front().copied());
    let mut last_seq = part.as_ref().and_then(|part| part.runs.last_seq()).unwrap_or(0);
    if in_journal.is_none_or(|first| page.next_seq < first.first_seq) {
        // Begun after the look at the index: what has left the index is archived.
        let archived = page.add_archived(&shared.archive)?;
        last_seq = last_seq.max(archived);
        if !page.is_full() && page.next_seq <= archived {
            return Err(Error::damaged(key, "a segment is missing"));
        }
    }
    if let Some(part) = &part
        && !page.is_full()
    {
        page.add_journal(part)?;
    }
    if !page.is_full() && page.next_seq <= last_seq {
        return Err(Error::damaged(key, "its log has a gap"));
    }
    let more = page.next_seq <= last_seq;
    Ok(Page { events: page.events, more })
}

/// Looks the key up in the index and begins the read of the journal under the same lock, so that
/// neither a commit nor a removal can come between.
fn journal_part(shared: &Shared, key: &[u8]) -> Result<Option<JournalPart>, Error> {
    let index = shared.index();
    if index.is_damaged(key) {
        return Err(Error::damaged(key, "a part of its log in the journal"));
    }
    let Some(runs) = index.get(key) else {
        return Ok(None);
    };
    let txn = shared.journal.begin_read();
    let txn = txn.map_err(|error| Error::database("read the journal", error))?;
    Ok(Some(JournalPart { runs: runs.clone(), txn }))
}

fn with_row<T>(
    txn: &ReadTransaction,
    key: &[u8],
    at: &RunAt,
    use_row: impl FnOnce(&[u8]) -> Result<T, Error>,
) -> Result<T, Error> {
    let failed = |source| Error::database("read the journal", source);
    let table = txn.open_table(ROWS).map_err(|error| failed(redb::Error::from(error)))?;
    match ReadableTable::get(&table, at.row).map_err(|error| failed(error.into()))? {
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
    fn add_archived(&mut self, archive: &Database) -> Result<u64, Error> {
        let failed = |source| Error::database("read the archive", source);
        let txn = archive.begin_read().map_err(|error| failed(redb::Error::from(error)))?;
        let Some(head) = directory::head_in(&txn, self.key)? else {
            return Ok(0);
        };
        if self.next_seq > head.last_seq {
            return Ok(head.last_seq);
        }
        let segments = txn.open_table(SEGMENTS).map_err(|error| failed(error.into()))?;
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
    fn add_journal(&mut self, part: &JournalPart) -> Result<(), Error> {
        let mut buffer = Vec::new();
        let mut places: Vec<(u64, Range<usize>)> = Vec::new();
        for at in &part.runs.runs {
            if at.last_seq() < self.next_seq {
                continue;
            }
            if at.first_seq > self.next_seq {
                return Err(Error::damaged(self.key, "its log has a gap"));
            }
            let full = with_row(&part.txn, self.key, at, |bytes| {
                let run = row::decode_at(bytes, at.offset, self.key)?;
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
