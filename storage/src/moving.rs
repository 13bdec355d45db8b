//! One step of the move: rows of the journal, sorted by key, become segments and heads.

use std::collections::BTreeMap;

use redb::{ReadableTable, WriteTransaction};

use crate::blobs::{self, BlobId};
use crate::directory::{self, StoredHead};
use crate::error::Error;
use crate::index::{At, Index};
use crate::place::Place;
use crate::record::{self, RECORD_BYTES};
use crate::row::{self, Found, Run};
use crate::segment::{self, SEGMENT_BYTES_MAX};
use crate::tables::ArchiveTables;

/// A row copied out of the journal.
pub(crate) struct StoredRow {
    pub row: u64,
    pub bytes: Vec<u8>,
}

/// What one step moves.
#[derive(Default)]
pub(crate) struct Step<'a> {
    keys: BTreeMap<&'a [u8], Vec<(u64, Run<'a>)>>,
    /// The keys whose erasure the step carries out, and where it stands.
    pub erased: BTreeMap<&'a [u8], At>,
    /// What runs referred to that were erased before they moved.
    pub released: Vec<BlobId>,
    damaged: Vec<DamagedRun<'a>>,
}

/// A run that is kept aside as it was found: it must leave the journal, and must not be lost
/// either.
struct DamagedRun<'a> {
    at: At,
    key_hash: u32,
    bytes: &'a [u8],
    /// Whose it is and what it refers to, where that can be told.
    run: Option<(&'a [u8], Vec<BlobId>)>,
}

impl<'a> DamagedRun<'a> {
    fn of(row: u64, run: &Run<'a>) -> Self {
        Self {
            at: At { row, offset: run.offset },
            key_hash: record::key_hash(run.key),
            bytes: run.bytes,
            run: Some((run.key, run.blobs())),
        }
    }
}

impl<'a> Step<'a> {
    /// Gathers the runs of each key, in order, from its last erasure on.
    pub(crate) fn sort(rows: &'a [StoredRow], index: &Index) -> Result<Self, Error> {
        let mut step = Self::default();
        for StoredRow { row, bytes } in rows {
            for found in row::decode(*row, bytes)? {
                match found {
                    Found::Run(run) => step.add(*row, run, index),
                    Found::Damaged { offset, key_hash, bytes } => {
                        let at = At { row: *row, offset };
                        step.damaged.push(DamagedRun { at, key_hash, bytes, run: None });
                    }
                }
            }
        }
        Ok(step)
    }

    fn add(&mut self, row: u64, run: Run<'a>, index: &Index) {
        let at = At { row, offset: run.offset };
        let erased = index.erased(run.key);
        if erased > Some(at) {
            // The erasure may be a later step's. Until then nobody reads the key's archive.
            self.released.extend(run.blobs());
        } else if run.erases {
            self.erased.insert(run.key, at);
        } else if index.is_damaged(run.key) {
            self.damaged.push(DamagedRun::of(row, &run));
        } else {
            self.keys.entry(run.key).or_default().push((row, run));
        }
    }

    /// Writes the step, after the erased keys' rows are gone. Returns what is damaged: checksums of
    /// keys, and where.
    pub(crate) fn write(mut self, txn: &WriteTransaction) -> Result<Vec<(u32, At)>, redb::Error> {
        let mut tables = ArchiveTables::open(txn)?;
        // Damage that stands before an erasure is pardoned by it, and damage behind it is not.
        let erased = &self.erased;
        let before_erasure = |damaged: &mut DamagedRun| {
            let pardons = |(key, at): (&&[u8], &At)| {
                damaged.at < *at && damaged.key_hash == record::key_hash(key)
            };
            erased.iter().any(pardons)
        };
        let before: Vec<_> = self.damaged.extract_if(.., before_erasure).collect();
        tables.quarantine(&before)?;
        for key in self.erased.keys() {
            tables.pardon(key)?;
        }
        for (key, runs) in &self.keys {
            if let Some(damaged_from) = tables.move_key(key, runs)? {
                let runs = runs.iter().skip(damaged_from);
                self.damaged.extend(runs.map(|(row, run)| DamagedRun::of(*row, run)));
            }
        }
        tables.quarantine(&self.damaged)?;
        Ok(before.iter().chain(&self.damaged).map(|run| (run.key_hash, run.at)).collect())
    }
}

impl ArchiveTables<'_> {
    /// Keeps damaged runs aside. What they refer to is kept as well.
    fn quarantine(&mut self, damaged: &[DamagedRun]) -> Result<(), redb::Error> {
        for DamagedRun { at, key_hash, bytes, run } in damaged {
            self.quarantine.insert((*key_hash, at.row, at.offset), *bytes)?;
            self.pardoned.retain(|key, ()| record::key_hash(key) != *key_hash)?;
            if let Some((key, blobs)) = run {
                self.refer(key, blobs)?;
            }
        }
        Ok(())
    }

    fn refer(&mut self, key: &[u8], blobs: &[BlobId]) -> Result<(), redb::Error> {
        for id in blobs {
            self.blob_keys.insert((id, key), blobs::reference_checksum(id, key))?;
            self.key_blobs.insert((key, id), ())?;
        }
        Ok(())
    }

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
                head.places = run_head.places();
            }
            self.refer(key, &run.blobs())?;
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
        self.change_places(key, stored.map_or(&[], |head| &head.places), &head.places)?;
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

    fn change_places(
        &mut self,
        key: &[u8],
        stored: &[Place],
        places: &[Place],
    ) -> Result<(), redb::Error> {
        for Place { list, rank } in stored.iter().filter(|place| !places.contains(place)) {
            self.places.remove((list.as_ref(), !rank, key))?;
        }
        for Place { list, rank } in places.iter().filter(|place| !stored.contains(place)) {
            self.places.insert((list.as_ref(), !rank, key), ())?;
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
