//! What a caller appends, and how a group of appends is packed into rows.

use std::sync::Arc;

use bytes::Bytes;

use crate::error::Error;
use crate::record::RECORD_BYTES;
use crate::row::{NewHead, NewRun, ROW_BYTES_MAX, run_overhead};

/// The longest key. Keys are repeated in every run, segment and index row.
pub const KEY_BYTES_MAX: usize = 1024;

/// Consecutive events of one key, written together or not at all.
#[derive(Clone, Debug)]
pub struct Append {
    /// The log's key, of at most [`KEY_BYTES_MAX`] bytes.
    pub key: Arc<[u8]>,
    /// The seq of the first event: the key's last seq + 1, so 1 for a new key.
    pub first_seq: u64,
    /// May be empty: then only the head changes.
    pub events: Vec<Bytes>,
    /// The key's head from here on.
    pub head: Head,
}

/// What the store keeps at hand about a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Opaque; replaces the previous one.
    pub summary: Bytes,
    /// Whether [`crate::Store::owing`] names the key.
    pub owes: bool,
}

impl Append {
    /// Bytes of the append, near enough to bound queues and the journal by.
    pub(crate) fn bytes(&self) -> u64 {
        let events: usize = self.events.iter().map(|event| event.len() + RECORD_BYTES).sum();
        (run_overhead(&self.key, &self.head.summary) + events) as u64
    }

    /// Refuses what could never be written.
    pub(crate) fn check(&self, bytes_max: u64) -> Result<(), Error> {
        check_size("a key", self.key.len() as u64, KEY_BYTES_MAX as u64)?;
        check_size("an append", self.bytes(), bytes_max)?;
        if self.first_seq == 0 {
            return Err(Error::Conflict { expected: 1, got: 0 });
        }
        Ok(())
    }
}

pub(crate) fn check_size(what: &'static str, bytes: u64, bytes_max: u64) -> Result<(), Error> {
    if bytes > bytes_max {
        return Err(Error::TooLarge { what, bytes, bytes_max });
    }
    Ok(())
}

/// Packs appends into rows of at most [`ROW_BYTES_MAX`]; an event larger than that has a row of its
/// own. The last run of each append carries its head.
pub(crate) fn pack(appends: &[Append]) -> Vec<Vec<NewRun<'_>>> {
    let mut packer = Packer::default();
    for append in appends {
        packer.add(append);
    }
    packer.finish()
}

#[derive(Default)]
struct Packer<'a> {
    rows: Vec<Vec<NewRun<'a>>>,
    row: Vec<NewRun<'a>>,
    bytes: usize,
}

impl<'a> Packer<'a> {
    fn add(&mut self, append: &'a Append) {
        let mut first_seq = append.first_seq;
        let mut events = append.events.as_slice();
        let overhead = run_overhead(&append.key, &append.head.summary);
        loop {
            let fitting = self.fitting(overhead, events);
            let (taken, rest) = events.split_at(fitting);
            let head = rest
                .is_empty()
                .then_some(NewHead { summary: &append.head.summary, owes: append.head.owes });
            let taken_bytes: usize = taken.iter().map(|event| RECORD_BYTES + event.len()).sum();
            self.bytes += overhead + taken_bytes;
            self.row.push(NewRun { key: &append.key, first_seq, events: taken, head });
            if rest.is_empty() {
                return;
            }
            first_seq += taken.len() as u64;
            events = rest;
            self.end_row();
        }
    }

    /// How many of `events` go into the row at hand, after ending it if it has no room for the
    /// first.
    fn fitting(&mut self, overhead: usize, events: &[Bytes]) -> usize {
        let first = events.first().map_or(0, |event| RECORD_BYTES + event.len());
        if self.bytes + overhead + first > ROW_BYTES_MAX {
            self.end_row();
        }
        let mut bytes = self.bytes + overhead;
        let fitting = events.iter().take_while(|event| {
            bytes += RECORD_BYTES + event.len();
            bytes <= ROW_BYTES_MAX
        });
        fitting.count().max(1).min(events.len())
    }

    fn end_row(&mut self) {
        if !self.row.is_empty() {
            self.rows.push(std::mem::take(&mut self.row));
        }
        self.bytes = 0;
    }

    fn finish(mut self) -> Vec<Vec<NewRun<'a>>> {
        self.end_row();
        self.rows
    }
}
