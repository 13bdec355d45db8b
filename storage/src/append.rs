//! What a caller appends, and how a group of appends is packed into rows.

use std::sync::Arc;

use bytes::Bytes;

use crate::blobs::BlobId;
use crate::error::Error;
use crate::place::{LIST_BYTES_MAX, PLACES_MAX, Place};
use crate::record::RECORD_BYTES;
use crate::row::{NewHead, NewRun, ROW_BYTES_MAX, run_overhead};

/// The longest key. Keys are repeated in every run, segment and index row.
pub const KEY_BYTES_MAX: usize = 1024;

/// Blobs that one append can name: their ids share the append's last row.
pub const BLOBS_MAX: usize = 1024;

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
    /// Blobs that the key refers to from here on, at most [`BLOBS_MAX`]. One that it refers to
    /// already may be named again. Hold the [`crate::BlobPin`] of each until the append is done.
    pub blobs: Vec<BlobId>,
}

/// What the store keeps at hand about a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Opaque; replaces the previous one.
    pub summary: Bytes,
    /// Whether [`crate::Store::owing`] names the key.
    pub owes: bool,
    /// The lists that the key stands in, at most [`PLACES_MAX`]; replaces the previous ones. A list
    /// that is named with two ranks has the key twice.
    pub places: Vec<Place>,
}

impl Append {
    fn new_head(&self) -> NewHead<'_> {
        let Head { summary, owes, places } = &self.head;
        NewHead { summary, owes: *owes, places, blobs: &self.blobs }
    }

    /// Bytes of the append, near enough to bound queues and the journal by.
    pub(crate) fn bytes(&self) -> u64 {
        let events: usize = self.events.iter().map(|event| event.len() + RECORD_BYTES).sum();
        (run_overhead(&self.key) + self.new_head().bytes() + events) as u64
    }

    /// Refuses what could never be written.
    pub(crate) fn check(&self, bytes_max: u64) -> Result<(), Error> {
        check_key(&self.key)?;
        check_count("places of a head", self.head.places.len(), PLACES_MAX)?;
        for place in &self.head.places {
            check_size("the name of a list", place.list.len() as u64, LIST_BYTES_MAX as u64)?;
        }
        check_count("blobs of an append", self.blobs.len(), BLOBS_MAX)?;
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

pub(crate) fn check_key(key: &[u8]) -> Result<(), Error> {
    check_size("a key", key.len() as u64, KEY_BYTES_MAX as u64)
}

fn check_count(what: &'static str, count: usize, count_max: usize) -> Result<(), Error> {
    if count > count_max {
        return Err(Error::TooMany { what, count, count_max });
    }
    Ok(())
}

/// One entry of a group, in the order in which they count.
pub(crate) enum Entry {
    Append(Append),
    Erase(Arc<[u8]>),
}

impl Entry {
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Append(append) => append.bytes(),
            Self::Erase(key) => run_overhead(key) as u64,
        }
    }
}

/// Packs entries into rows of at most [`ROW_BYTES_MAX`]; an event larger than that has a row of its
/// own. The last run of each append carries its head.
pub(crate) fn pack(entries: &[Entry]) -> Vec<Vec<NewRun<'_>>> {
    let mut packer = Packer::default();
    for entry in entries {
        match entry {
            Entry::Append(append) => packer.add(append),
            Entry::Erase(key) => packer.add_erasure(key),
        }
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
        let new_head = append.new_head();
        let overhead = run_overhead(&append.key) + new_head.bytes();
        loop {
            let fitting = self.fitting(overhead, events);
            let (taken, rest) = events.split_at(fitting);
            let head = rest.is_empty().then_some(new_head);
            let taken_bytes: usize = taken.iter().map(|event| RECORD_BYTES + event.len()).sum();
            self.bytes += overhead + taken_bytes;
            let key = &append.key;
            self.row.push(NewRun { key, first_seq, events: taken, head, erases: false });
            if rest.is_empty() {
                return;
            }
            first_seq += taken.len() as u64;
            events = rest;
            self.end_row();
        }
    }

    /// The log begins anew after it, at seq 1.
    fn add_erasure(&mut self, key: &'a Arc<[u8]>) {
        self.fitting(run_overhead(key), &[]);
        self.bytes += run_overhead(key);
        self.row.push(NewRun { key, first_seq: 1, events: &[], head: None, erases: true });
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
