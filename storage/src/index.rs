//! What the journal holds, in memory: where each key's runs are, and what its newest head says.
//! Bounded by the journal; cold keys are not in it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use redb::{Database, ReadableDatabase, ReadableTable};

use crate::blobs::BlobId;
use crate::damage::Damage;
use crate::error::Error;
use crate::place::Place;
use crate::record;
use crate::row::{self, Found, NewRun, Run};
use crate::tables::{PARDONED, QUARANTINE, ROWS};

/// A place in the journal. Later ones are greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct At {
    pub row: u64,
    pub offset: u32,
}

/// Where a run is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunAt {
    pub at: At,
    pub first_seq: u64,
    pub count: u32,
}

impl RunAt {
    /// The seq of the run's last event; one before its first where it only carries a head.
    pub(crate) fn last_seq(&self) -> u64 {
        self.first_seq + u64::from(self.count) - 1
    }
}

/// What the index keeps of a run beside where it is.
pub(crate) enum Kept {
    Erasure,
    Events,
    Head { owes: bool, places: Vec<Place>, blobs: Vec<BlobId> },
}

impl Kept {
    pub(crate) fn of_new(run: &NewRun) -> Self {
        match &run.head {
            None if run.erases => Self::Erasure,
            None => Self::Events,
            // Names are copied, for the caller's may be parts of something large.
            Some(head) => Self::Head {
                owes: head.owes,
                places: head.places.iter().map(Place::copied).collect(),
                blobs: head.blobs.to_vec(),
            },
        }
    }

    fn of_stored(run: &Run) -> Self {
        match &run.head {
            None if run.erases => Self::Erasure,
            None => Self::Events,
            Some(head) => {
                Self::Head { owes: head.owes, places: head.places(), blobs: head.blobs() }
            }
        }
    }
}

/// What the journal holds of one key.
#[derive(Debug, Default)]
pub(crate) struct KeyRuns {
    /// The row that brought the key into the index.
    since: u64,
    /// Where the key is erased, if the journal does so. Nothing before that counts, and nothing of
    /// the archive.
    pub erased: Option<At>,
    pub runs: VecDeque<RunAt>,
    owes: bool,
    places: Vec<Place>,
    blobs: VecDeque<(u64, BlobId)>,
}

impl KeyRuns {
    /// The last seq, if it can be told without the archive.
    pub(crate) fn last_seq(&self) -> Option<u64> {
        let last_seq = self.runs.back().map(RunAt::last_seq);
        last_seq.or_else(|| self.erased.map(|_| 0))
    }
}

struct Row {
    bytes: u64,
    keys: Vec<Arc<[u8]>>,
}

/// The index. Only the journal's writer adds rows, after their commit, and takes them out, before
/// the commit that removes them, so that a reader who looks here and begins its reads under the
/// same lock finds every run in the journal or in the archive.
#[derive(Default)]
pub(crate) struct Index {
    keys: BTreeMap<Arc<[u8]>, KeyRuns>,
    rows: BTreeMap<u64, Row>,
    bytes: u64,
    removals: u64,
    lists: BTreeSet<(Bytes, Reverse<u64>, Arc<[u8]>)>,
    /// How many times the runs name each blob.
    blobs: BTreeMap<BlobId, u64>,
    damage: Damage,
}

impl Index {
    /// Reads the whole journal once, and the list of what was damaged in it before.
    pub(crate) fn load(journal: &Database, archive: &Database) -> Result<Self, Error> {
        let mut index = Self::default();
        index.load_quarantine(archive)?;
        let scan = |source| Error::database("scan the journal", source);
        let txn = journal.begin_read().map_err(|error| scan(redb::Error::from(error)))?;
        let table = txn.open_table(ROWS).map_err(|error| scan(error.into()))?;
        for entry in table.iter().map_err(|error| scan(error.into()))? {
            let (row, bytes) = entry.map_err(|error| scan(error.into()))?;
            index.load_row(row.value(), bytes.value())?;
        }
        Ok(index)
    }

    fn load_quarantine(&mut self, archive: &Database) -> Result<(), Error> {
        let mut load = || -> Result<(), redb::Error> {
            let txn = archive.begin_read()?;
            for entry in txn.open_table(QUARANTINE)?.iter()? {
                let (id, _) = entry?;
                let (key_hash, _, _) = id.value();
                self.damage.mark(key_hash, At::default());
            }
            for entry in txn.open_table(PARDONED)?.iter()? {
                let (key, ()) = entry.map(|(key, value)| (key, value.value()))?;
                self.damage.pardon(&Arc::from(key.value()), At::default());
            }
            Ok(())
        };
        load().map_err(|source| Error::database("read the list of damaged keys", source))
    }

    fn load_row(&mut self, row: u64, bytes: &[u8]) -> Result<(), Error> {
        self.begin_row(row, bytes.len() as u64);
        for found in row::decode(row, bytes)? {
            match found {
                Found::Run(run) => {
                    let at = At { row, offset: run.offset };
                    let at = RunAt { at, first_seq: run.first_seq, count: run.count };
                    self.add_run(run.key, at, Kept::of_stored(&run));
                }
                Found::Damaged { offset, key_hash, .. } => {
                    tracing::error!(row, offset, key_hash, "a run of the journal is damaged");
                    self.mark_damaged(key_hash, At { row, offset });
                }
            }
        }
        Ok(())
    }

    pub(crate) fn begin_row(&mut self, row: u64, bytes: u64) {
        self.bytes += bytes;
        self.rows.insert(row, Row { bytes, keys: Vec::new() });
    }

    /// Adds a run to the row begun last. A run that leaves a gap marks its key as damaged.
    pub(crate) fn add_run(&mut self, key: &[u8], at: RunAt, kept: Kept) {
        let key = match self.keys.get_key_value(key) {
            Some((key, _)) => Arc::clone(key),
            None => Arc::from(key),
        };
        if let Some(mut row) = self.rows.last_entry() {
            row.get_mut().keys.push(Arc::clone(&key));
        }
        let mut runs = self
            .keys
            .remove(&key)
            .unwrap_or_else(|| KeyRuns { since: at.at.row, ..KeyRuns::default() });
        match kept {
            Kept::Erasure => {
                self.forget_places(&key, &runs);
                self.forget_blobs(&mut runs, u64::MAX);
                self.damage.pardon(&key, at.at);
                runs = KeyRuns { since: runs.since, erased: Some(at.at), ..KeyRuns::default() };
            }
            Kept::Events | Kept::Head { .. } => {
                if runs.last_seq().is_some_and(|last| last + 1 != at.first_seq) {
                    self.damage.mark(record::key_hash(&key), at.at);
                }
                runs.runs.push_back(at);
            }
        }
        if let Kept::Head { owes, places, blobs } = kept {
            self.forget_places(&key, &runs);
            let rows = places.iter().map(|place| list_row(place, &key));
            self.lists.extend(rows);
            for id in blobs {
                *self.blobs.entry(id).or_default() += 1;
                runs.blobs.push_back((at.at.row, id));
            }
            (runs.owes, runs.places) = (owes, places);
        }
        self.keys.insert(key, runs);
    }

    /// Forgets every row up to `through`.
    pub(crate) fn remove_rows(&mut self, through: u64) {
        self.removals += 1;
        while let Some(first) = self.rows.first_entry() {
            if *first.key() > through {
                break;
            }
            let row = first.remove();
            self.bytes -= row.bytes;
            for key in row.keys {
                self.remove_runs(&key, through);
            }
        }
    }

    fn remove_runs(&mut self, key: &Arc<[u8]>, through: u64) {
        let Some(mut runs) = self.keys.remove(key) else {
            return;
        };
        while runs.runs.front().is_some_and(|run| run.at.row <= through) {
            runs.runs.pop_front();
        }
        self.forget_blobs(&mut runs, through);
        runs.erased = runs.erased.filter(|erased| erased.row > through);
        if runs.runs.is_empty() && runs.erased.is_none() {
            self.forget_places(key, &runs);
        } else {
            self.keys.insert(Arc::clone(key), runs);
        }
    }

    fn forget_places(&mut self, key: &Arc<[u8]>, runs: &KeyRuns) {
        for place in &runs.places {
            self.lists.remove(&list_row(place, key));
        }
    }

    /// Takes back what the rows up to `through` refer to.
    fn forget_blobs(&mut self, runs: &mut KeyRuns, through: u64) {
        while let Some((_, id)) = runs.blobs.pop_front_if(|(row, _)| *row <= through) {
            let left = self.blobs.get(&id).map_or(0, |count| count - 1);
            if left == 0 {
                self.blobs.remove(&id);
            } else {
                self.blobs.insert(id, left);
            }
        }
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<&KeyRuns> {
        self.keys.get(key)
    }

    /// Where the journal erases the key. What stands before that is nobody's.
    pub(crate) fn erased(&self, key: &[u8]) -> Option<At> {
        self.keys.get(key).and_then(|runs| runs.erased)
    }

    /// Whether the key was in the index when `row` was the last one, if no row was removed since.
    pub(crate) fn knew(&self, key: &[u8], row: u64) -> bool {
        self.keys.get(key).is_some_and(|runs| runs.since <= row)
    }

    /// How often rows were removed.
    pub(crate) fn removals(&self) -> u64 {
        self.removals
    }

    /// Up to `limit` sound keys of the journal that stand in the list behind `after`, each with its
    /// rank and its last run.
    pub(crate) fn list(
        &self,
        list: &[u8],
        after: Option<(u64, &[u8])>,
        limit: usize,
    ) -> Vec<(u64, Arc<[u8]>, RunAt)> {
        let row = |rank, key| (Bytes::copy_from_slice(list), Reverse(rank), Arc::from(key));
        let start = match after {
            Some((rank, key)) => Bound::Excluded(row(rank, key)),
            None => Bound::Included(row(u64::MAX, &[])),
        };
        let rows = self.lists.range((start, Bound::Unbounded));
        let of_list = rows.take_while(|(name, _, _)| name == list);
        let sound = of_list.filter_map(|(_, Reverse(rank), key)| {
            let newest = self.keys.get(key).and_then(|runs| runs.runs.back().copied())?;
            (!self.is_damaged(key)).then(|| (*rank, Arc::clone(key), newest))
        });
        sound.take(limit).collect()
    }

    /// Whether a run in the journal refers to the blob.
    pub(crate) fn refers_to(&self, id: &BlobId) -> bool {
        self.blobs.contains_key(id)
    }

    /// Keys of the journal with what their latest head owes.
    pub(crate) fn owing(&self) -> BTreeMap<Arc<[u8]>, bool> {
        self.keys.iter().map(|(key, runs)| (Arc::clone(key), runs.owes)).collect()
    }

    pub(crate) fn is_damaged(&self, key: &[u8]) -> bool {
        self.damage.covers(key)
    }

    /// Marks damage that was found at a place of the journal.
    pub(crate) fn mark_damaged(&mut self, key_hash: u32, at: At) {
        self.damage.mark(key_hash, at);
        for (key, runs) in &self.keys {
            if let Some(erased) = runs.erased
                && erased > at
                && record::key_hash(key) == key_hash
            {
                self.damage.pardon(key, erased);
            }
        }
    }

    pub(crate) fn last_row(&self) -> Option<u64> {
        self.rows.keys().next_back().copied()
    }

    /// Bytes of all rows.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of the rows up to `through`, which are archived and about to go.
    pub(crate) fn bytes_through(&self, through: u64) -> u64 {
        self.rows.range(..=through).map(|(_, row)| row.bytes).sum()
    }
}

fn list_row(place: &Place, key: &Arc<[u8]>) -> (Bytes, Reverse<u64>, Arc<[u8]>) {
    (place.list.clone(), Reverse(place.rank), Arc::clone(key))
}
