//! One step of the move: rows of the journal, sorted by key, become segments and heads.

use std::collections::BTreeMap;

use redb::{ReadableTable, Table, WriteTransaction};

use crate::directory::{self, StoredHead};
use crate::error::Error;
use crate::index::Index;
use crate::record::{self, RECORD_BYTES};
use crate::row::{self, Found, Run};
use crate::segment::{self, SEGMENT_BYTES_MAX};
use crate::tables::{HEADS, OWING, QUARANTINE, SEGMENTS};

/// A row copied out of the journal.
pub(crate) struct StoredRow {
    pub row: u64,
    pub bytes: Vec<u8>,
}

/// What one step moves.
pub(crate) struct Step<'a> {
    keys: BTreeMap<&'a [u8], Vec<(u64, Run<'a>)>>,
    damaged: Vec<DamagedRun<'a>>,
}

/// A run that is kept aside as it was found: it must leave the journal, and must not be lost
/// either.
struct DamagedRun<'a> {
    row: u64,
    offset: u32,
    key_hash: u32,
    bytes: &'a [u8],
}

impl<'a> DamagedRun<'a> {
    fn of(row: u64, run: &Run<'a>) -> Self {
        Self { row, offset: run.offset, key_hash: record::key_hash(run.key), bytes: run.bytes }
    }
}

struct Tables<'txn> {
    segments: Table<'txn, (&'static [u8], u64), &'static [u8]>,
    heads: Table<'txn, &'static [u8], &'static [u8]>,
    owing: Table<'txn, &'static [u8], u32>,
}

impl<'a> Step<'a> {
    /// Gathers the runs of each key, in order.
    pub(crate) fn sort(rows: &'a [StoredRow], index: &Index) -> Result<Self, Error> {
        let mut step = Self { keys: BTreeMap::new(), damaged: Vec::new() };
        for StoredRow { row, bytes } in rows {
            for found in row::decode(*row, bytes)? {
                match found {
                    Found::Run(run) if index.is_damaged(run.key) => {
                        step.damaged.push(DamagedRun::of(*row, &run));
                    }
                    Found::Run(run) => step.keys.entry(run.key).or_default().push((*row, run)),
                    Found::Damaged { offset, key_hash, bytes } => {
                        step.damaged.push(DamagedRun { row: *row, offset, key_hash, bytes });
                    }
                }
            }
        }
        Ok(step)
    }

    /// Writes the step. Returns the hashes of the keys found damaged.
    pub(crate) fn write(mut self, txn: &WriteTransaction) -> Result<Vec<u32>, redb::Error> {
        let mut tables = Tables {
            segments: txn.open_table(SEGMENTS)?,
            heads: txn.open_table(HEADS)?,
            owing: txn.open_table(OWING)?,
        };
        for (key, runs) in &self.keys {
            if let Some(damaged_from) = tables.move_key(key, runs)? {
                let runs = runs.iter().skip(damaged_from);
                self.damaged.extend(runs.map(|(row, run)| DamagedRun::of(*row, run)));
            }
        }
        let mut quarantine = txn.open_table(QUARANTINE)?;
        for DamagedRun { row, offset, key_hash, bytes } in &self.damaged {
            quarantine.insert((*key_hash, *row, *offset), *bytes)?;
        }
        Ok(self.damaged.iter().map(|run| run.key_hash).collect())
    }
}

impl Tables<'_> {
    /// Moves what is not archived yet of one key. Returns the first run that is damaged or leaves a
    /// gap, if any: it and all later ones are not moved.
    fn move_key(&mut self, key: &[u8], runs: &[(u64, Run)]) -> Result<Option<usize>, redb::Error> {
        let stored = match self.heads.get(key)?.map(|bytes| directory::decode(key, bytes.value())) {
            None => None,
            Some(Ok(head)) => Some(head),
            Some(Err(_)) => return Ok(Some(0)),
        };
        let archived = stored.as_ref().map_or(0, |head| head.last_seq);
        let mut head = stored.clone().unwrap_or_default();
        let mut moved = Moved { segment: self.last_segment(key, archived)?, full: Vec::new() };
        let mut damaged_from = None;
        for (position, (_, run)) in runs.iter().enumerate() {
            let Some(records) = sound_records(run, head.last_seq) else {
                damaged_from = Some(position);
                break;
            };
            for (seq, record) in records {
                moved.push(seq, record);
                head.last_seq = seq;
            }
            // A run that was moved before has had its say, unless it is the last one there was.
            if let Some(run_head) = &run.head
                && run.first_seq + u64::from(run.count) > archived
            {
                head.summary = bytes::Bytes::copy_from_slice(run_head.summary);
                head.owes = run_head.owes;
            }
        }
        if head.last_seq > archived {
            self.write_segments(key, &moved)?;
        }
        self.write_head(key, stored.as_ref(), &head)?;
        Ok(damaged_from)
    }

    /// The key's last segment, where it is sound and has room left.
    fn last_segment(&self, key: &[u8], archived: u64) -> Result<Open, redb::Error> {
        let mut open = Open { first_seq: archived + 1, count: 0, records: Vec::new() };
        let mut of_key = self.segments.range((key, 0)..=(key, u64::MAX))?;
        let Some(last) = of_key.next_back() else {
            return Ok(open);
        };
        let (id, bytes) = last?;
        let (_, first_seq) = id.value();
        let has_room = segment::size(key, bytes.value())
            .is_ok_and(|size| size.records_bytes < SEGMENT_BYTES_MAX / 2 && size.count > 0);
        if has_room
            && let Ok(segment) = segment::decode(key, first_seq, bytes.value())
            && segment.last_seq() == archived
        {
            open = Open { first_seq, count: segment.count, records: segment.records.to_vec() };
        }
        Ok(open)
    }

    fn write_segments(&mut self, key: &[u8], moved: &Moved) -> Result<(), redb::Error> {
        for segment in moved.full.iter().chain([&moved.segment]) {
            if segment.count > 0 {
                let Open { first_seq, count, records } = segment;
                let bytes = segment::encode(key, *first_seq, *count, records)?;
                self.segments.insert((key, *first_seq), bytes.as_slice())?;
            }
        }
        Ok(())
    }

    fn write_head(
        &mut self,
        key: &[u8],
        stored: Option<&StoredHead>,
        head: &StoredHead,
    ) -> Result<(), redb::Error> {
        if stored == Some(head) {
            return Ok(());
        }
        self.heads.insert(key, directory::encode(key, head).as_slice())?;
        match (stored.is_some_and(|head| head.owes), head.owes) {
            (false, true) => {
                self.owing.insert(key, record::key_hash(key))?;
            }
            (true, false) => {
                self.owing.remove(key)?;
            }
            (false, false) | (true, true) => {}
        }
        Ok(())
    }
}

/// The records of the run after `last_seq`, as they are stored, or `None` if the run is damaged or
/// leaves a gap.
fn sound_records<'a>(run: &Run<'a>, last_seq: u64) -> Option<Vec<(u64, &'a [u8])>> {
    if run.first_seq > last_seq + 1 {
        return None;
    }
    let mut records = Vec::with_capacity(run.count as usize);
    for record in run.events() {
        let record = record.ok()?;
        if record.seq > last_seq {
            let end = record.offset + record.event.len();
            records.push((record.seq, run.records.get(record.offset - RECORD_BYTES..end)?));
        }
    }
    Some(records)
}

/// A segment that grows.
struct Open {
    first_seq: u64,
    count: u32,
    records: Vec<u8>,
}

/// The segments that one key gets: full ones, and the one at hand.
struct Moved {
    full: Vec<Open>,
    segment: Open,
}

impl Moved {
    fn push(&mut self, seq: u64, record: &[u8]) {
        if self.segment.count > 0 && self.segment.records.len() + record.len() > SEGMENT_BYTES_MAX {
            let next = Open { first_seq: seq, count: 0, records: Vec::new() };
            self.full.push(std::mem::replace(&mut self.segment, next));
        }
        self.segment.records.extend_from_slice(record);
        self.segment.count += 1;
    }
}
