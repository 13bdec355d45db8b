//! A row of the journal: a small directory, then runs. A run is consecutive events of one key and,
//! at the end of an append, the key's new head and the blobs it refers to; or it erases the key.
//!
//! The directory repeats what a damaged run could hide (where it is, whose it is), and the runs can
//! be walked without the directory: one flipped bit costs one key, never its neighbours.

use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes};
use crc32fast::Hasher;

use crate::blobs::{BLOB_ID_BYTES, BlobId};
use crate::error::Error;
use crate::place::{self, Place};
use crate::record::{self, Checksum, RECORD_BYTES, Records};

/// Rows stay just under sixteen pages, because redb rounds a value up to a power of two of pages.
pub(crate) const ROW_BYTES_MAX: usize = (64 << 10) - 64;

const ROW_HEADER_BYTES: usize = 8;
const ENTRY_BYTES: usize = 8;
const RUN_HEADER_BYTES: usize = 32;
const FLAG_HEAD: u8 = 1;
const FLAG_OWES: u8 = 2;
const FLAG_ERASES: u8 = 4;

/// A run that is about to be written.
pub(crate) struct NewRun<'a> {
    pub key: &'a Arc<[u8]>,
    pub first_seq: u64,
    pub events: &'a [Bytes],
    pub head: Option<NewHead<'a>>,
    /// Whether the run erases all that the key had before it. It has nothing else then.
    pub erases: bool,
}

/// What the last run of an append carries beside events.
#[derive(Clone, Copy)]
pub(crate) struct NewHead<'a> {
    pub summary: &'a [u8],
    pub owes: bool,
    pub places: &'a [Place],
    pub blobs: &'a [BlobId],
}

impl NewHead<'_> {
    /// What the head adds to its run.
    pub(crate) fn bytes(&self) -> usize {
        self.summary.len() + place::bytes(self.places) + self.blobs.len() * BLOB_ID_BYTES
    }
}

impl NewRun<'_> {
    fn bytes(&self) -> usize {
        let events: usize = self.events.iter().map(|event| RECORD_BYTES + event.len()).sum();
        let head = self.head.map_or(0, |head| head.bytes());
        RUN_HEADER_BYTES + self.key.len() + head + events
    }

    fn flags(&self) -> u8 {
        match self.head {
            None if self.erases => FLAG_ERASES,
            None => 0,
            Some(NewHead { owes: false, .. }) => FLAG_HEAD,
            Some(NewHead { owes: true, .. }) => FLAG_HEAD | FLAG_OWES,
        }
    }
}

/// What a run of this key without head and events adds to a row.
pub(crate) fn run_overhead(key: &[u8]) -> usize {
    ENTRY_BYTES + RUN_HEADER_BYTES + key.len()
}

/// The length of the row that holds these runs.
pub(crate) fn row_bytes(runs: &[NewRun]) -> usize {
    ROW_HEADER_BYTES + runs.iter().map(|run| ENTRY_BYTES + run.bytes()).sum::<usize>()
}

/// Writes the row into `out`, which is exactly [`row_bytes`] long. Returns where each run starts.
pub(crate) fn encode(row: u64, runs: &[NewRun], mut out: &mut [u8]) -> Vec<u32> {
    let mut directory = Vec::with_capacity(runs.len() * ENTRY_BYTES);
    let mut offsets = Vec::with_capacity(runs.len());
    let mut offset = ROW_HEADER_BYTES + runs.len() * ENTRY_BYTES;
    for run in runs {
        offsets.push(record::length(offset));
        directory.put_u32_le(record::length(offset));
        directory.put_u32_le(record::key_hash(run.key));
        offset += run.bytes();
    }
    out.put_u32_le(record::length(runs.len()));
    out.put_u32_le(directory_checksum(row, &directory));
    out.put_slice(&directory);
    for run in runs {
        encode_run(run, &mut out);
    }
    offsets
}

fn encode_run(run: &NewRun, out: &mut impl BufMut) {
    let no_head = NewHead { summary: &[], owes: false, places: &[], blobs: &[] };
    let head = run.head.unwrap_or(no_head);
    let mut body = Vec::with_capacity(run.key.len() + head.bytes());
    body.put_slice(run.key);
    body.put_slice(head.summary);
    place::put(&mut body, head.places);
    head.blobs.iter().for_each(|id| body.put_slice(id));
    let mut header = [0; RUN_HEADER_BYTES - 4];
    let mut fields = header.as_mut_slice();
    fields.put_u64_le(run.first_seq);
    fields.put_u32_le(record::length(run.events.len()));
    fields.put_u32_le(record::length(run.bytes()));
    fields.put_u32_le(record::length(head.summary.len()));
    fields.put_u16_le(record::short_length(run.key.len()));
    fields.put_u16_le(record::short_length(place::bytes(head.places)));
    fields.put_u16_le(record::short_length(head.blobs.len()));
    fields.put_u8(run.flags());
    out.put_slice(&header);
    out.put_u32_le(run_checksum(&header, &body));
    out.put_slice(&body);
    let checksum = Checksum::of(run.key);
    for (seq, event) in (run.first_seq..).zip(run.events) {
        record::put(out, &checksum, seq, event);
    }
}

fn directory_checksum(row: u64, directory: &[u8]) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(&row.to_le_bytes());
    hasher.update(directory);
    hasher.finalize()
}

/// The checksum of everything before the records.
fn run_checksum(header: &[u8], body: &[u8]) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(header);
    hasher.update(body);
    hasher.finalize()
}

/// A run as it was found in a row. Its header is checked; its events are checked as they are read.
pub(crate) struct Run<'a> {
    pub offset: u32,
    pub key: &'a [u8],
    pub first_seq: u64,
    pub count: u32,
    pub head: Option<StoredRunHead<'a>>,
    pub erases: bool,
    pub records: &'a [u8],
    /// The whole run, header included.
    pub bytes: &'a [u8],
}

pub(crate) struct StoredRunHead<'a> {
    pub summary: &'a [u8],
    pub owes: bool,
    places: &'a [u8],
    blobs: &'a [u8],
}

impl StoredRunHead<'_> {
    pub(crate) fn places(&self) -> Vec<Place> {
        place::decode(self.places)
    }

    pub(crate) fn blobs(&self) -> Vec<BlobId> {
        self.blobs.as_chunks().0.to_vec()
    }
}

impl<'a> Run<'a> {
    pub(crate) fn events(&self) -> Records<'a> {
        Records::new(self.key, self.first_seq, self.count, self.records)
    }

    /// The blobs that the key refers to from here on.
    pub(crate) fn blobs(&self) -> Vec<BlobId> {
        self.head.as_ref().map(StoredRunHead::blobs).unwrap_or_default()
    }
}

/// Whose the run in `bytes` is, if its header is sound.
pub(crate) fn owner(bytes: &[u8]) -> Option<&[u8]> {
    decode_run(bytes, 0).map(|run| run.key)
}

/// What stands at one place of a row.
pub(crate) enum Found<'a> {
    Run(Run<'a>),
    /// The run cannot be read. `bytes` are those between its neighbours.
    Damaged {
        offset: u32,
        key_hash: u32,
        bytes: &'a [u8],
    },
}

/// Reads a whole row. Fails only where not even the owners of the damaged runs can be told.
pub(crate) fn decode(row: u64, bytes: &[u8]) -> Result<Vec<Found<'_>>, Error> {
    match directory(row, bytes) {
        Some(entries) => Ok(decode_by_directory(bytes, &entries)),
        None => decode_by_walk(bytes),
    }
}

/// Reads the run at `offset`, which the caller knows to be `key`'s.
pub(crate) fn decode_at<'a>(bytes: &'a [u8], offset: u32, key: &[u8]) -> Result<Run<'a>, Error> {
    decode_run(bytes, offset)
        .filter(|run| run.key == key)
        .ok_or_else(|| Error::damaged(key, "a run of the journal does not match its checksum"))
}

struct Entry {
    offset: u32,
    key_hash: u32,
}

fn directory(row: u64, bytes: &[u8]) -> Option<Vec<Entry>> {
    let mut header = bytes;
    let count = header.try_get_u32_le().ok()? as usize;
    let checksum = header.try_get_u32_le().ok()?;
    let mut directory = header.get(..count.checked_mul(ENTRY_BYTES)?)?;
    if directory_checksum(row, directory) != checksum {
        return None;
    }
    let mut entries = Vec::with_capacity(count);
    while directory.has_remaining() {
        let offset = directory.try_get_u32_le().ok()?;
        let key_hash = directory.try_get_u32_le().ok()?;
        entries.push(Entry { offset, key_hash });
    }
    Some(entries)
}

fn decode_by_directory<'a>(bytes: &'a [u8], entries: &[Entry]) -> Vec<Found<'a>> {
    let ends = entries.iter().skip(1).map(|entry| entry.offset as usize);
    let ends = ends.chain([bytes.len()]);
    let found =
        entries.iter().zip(ends).map(|(&Entry { offset, key_hash }, end)| {
            match decode_run(bytes, offset) {
                Some(run) if record::key_hash(run.key) == key_hash => Found::Run(run),
                Some(_) | None => {
                    let bytes = bytes.get(offset as usize..end).unwrap_or_default();
                    Found::Damaged { offset, key_hash, bytes }
                }
            }
        });
    found.collect()
}

/// The directory is damaged: finds the runs by their own lengths. Without the directory a damaged
/// run cannot be told from the damage of another key, so every run must be sound.
fn decode_by_walk(bytes: &[u8]) -> Result<Vec<Found<'_>>, Error> {
    let lost = || Error::damaged(b"the journal", "a row's directory and a run of it are damaged");
    // The count may be what is damaged, so each length of the directory is tried.
    let starts = (ROW_HEADER_BYTES..bytes.len()).step_by(ENTRY_BYTES);
    for (runs, start) in starts.enumerate() {
        if let Some(found) = walk(bytes, start)
            && found.len() == runs
        {
            return Ok(found);
        }
    }
    Err(lost())
}

fn walk(bytes: &[u8], start: usize) -> Option<Vec<Found<'_>>> {
    let mut found = Vec::new();
    let mut offset = start;
    while offset < bytes.len() {
        let run = decode_run(bytes, u32::try_from(offset).ok()?)?;
        offset += run.bytes.len();
        found.push(Found::Run(run));
    }
    Some(found)
}

fn decode_run(bytes: &[u8], offset: u32) -> Option<Run<'_>> {
    let from_here = bytes.get(offset as usize..)?;
    let (header, mut rest) = from_here.split_at_checked(RUN_HEADER_BYTES - 4)?;
    let mut fields = header;
    let first_seq = fields.try_get_u64_le().ok()?;
    let count = fields.try_get_u32_le().ok()?;
    let run_bytes = fields.try_get_u32_le().ok()? as usize;
    let summary_bytes = fields.try_get_u32_le().ok()? as usize;
    let key_bytes = usize::from(fields.try_get_u16_le().ok()?);
    let places_bytes = usize::from(fields.try_get_u16_le().ok()?);
    let blobs_bytes = usize::from(fields.try_get_u16_le().ok()?) * BLOB_ID_BYTES;
    let flags = fields.try_get_u8().ok()?;
    let checksum = rest.try_get_u32_le().ok()?;
    let rest = rest.get(..run_bytes.checked_sub(RUN_HEADER_BYTES)?)?;
    let body_bytes = [key_bytes, summary_bytes, places_bytes, blobs_bytes];
    let (body, records) = rest.split_at_checked(body_bytes.iter().sum())?;
    if run_checksum(header, body) != checksum {
        return None;
    }
    let (key, rest) = body.split_at_checked(key_bytes)?;
    let (summary, rest) = rest.split_at_checked(summary_bytes)?;
    let (places, blobs) = rest.split_at_checked(places_bytes)?;
    let owes = flags & FLAG_OWES != 0;
    let head = (flags & FLAG_HEAD != 0).then_some(StoredRunHead { summary, owes, places, blobs });
    let erases = flags & FLAG_ERASES != 0;
    let bytes = from_here.get(..run_bytes)?;
    Some(Run { offset, key, first_seq, count, head, erases, records, bytes })
}
