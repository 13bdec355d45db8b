//! What the journal holds, in memory: where each key's runs are. Bounded by the journal; cold keys
//! are not in it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use redb::{Database, ReadableDatabase, ReadableTable};

use crate::error::Error;
use crate::record;
use crate::row::{self, Found};
use crate::tables::{QUARANTINE, ROWS};

/// Where a run is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunAt {
    pub row: u64,
    pub offset: u32,
    pub first_seq: u64,
    pub count: u32,
}

impl RunAt {
    /// The seq of the run's last event; one before its first where it only carries a head.
    pub(crate) fn last_seq(&self) -> u64 {
        self.first_seq + u64::from(self.count) - 1
    }
}

/// What the journal holds of one key.
#[derive(Clone, Debug)]
pub(crate) struct KeyRuns {
    pub runs: VecDeque<RunAt>,
    pub owes: bool,
}

impl KeyRuns {
    pub(crate) fn last_seq(&self) -> Option<u64> {
        self.runs.back().map(RunAt::last_seq)
    }
}

struct Row {
    bytes: u64,
    keys: Vec<Arc<[u8]>>,
}

/// The index. Only the journal's writer changes it: it adds rows after their commit, and takes them
/// out before the commit that removes them, so that a reader who looks here and then begins a read
/// of the journal under the same lock finds every run.
#[derive(Default)]
pub(crate) struct Index {
    keys: BTreeMap<Arc<[u8]>, KeyRuns>,
    rows: BTreeMap<u64, Row>,
    bytes: u64,
    damaged: BTreeSet<u32>,
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
            for entry in archive.begin_read()?.open_table(QUARANTINE)?.iter()? {
                let (id, _) = entry?;
                let (key_hash, _, _) = id.value();
                self.damaged.insert(key_hash);
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
                    let at = RunAt {
                        row,
                        offset: run.offset,
                        first_seq: run.first_seq,
                        count: run.count,
                    };
                    self.add_run(run.key, at, run.head.map(|head| head.owes));
                }
                Found::Damaged { offset, key_hash, .. } => {
                    tracing::error!(row, offset, key_hash, "a run of the journal is damaged");
                    self.damaged.insert(key_hash);
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
    pub(crate) fn add_run(&mut self, key: &[u8], at: RunAt, owes: Option<bool>) {
        let key = match self.keys.get_key_value(key) {
            Some((key, _)) => Arc::clone(key),
            None => Arc::from(key),
        };
        if let Some(mut row) = self.rows.last_entry() {
            row.get_mut().keys.push(Arc::clone(&key));
        }
        let hash = record::key_hash(&key);
        let entry =
            self.keys.entry(key).or_insert_with(|| KeyRuns { runs: VecDeque::new(), owes: false });
        if entry.last_seq().is_some_and(|last| last + 1 != at.first_seq) {
            self.damaged.insert(hash);
        }
        entry.runs.push_back(at);
        entry.owes = owes.unwrap_or(entry.owes);
    }

    /// Forgets every row up to `through`.
    pub(crate) fn remove_rows(&mut self, through: u64) {
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

    fn remove_runs(&mut self, key: &[u8], through: u64) {
        let Some(entry) = self.keys.get_mut(key) else {
            return;
        };
        while entry.runs.front().is_some_and(|run| run.row <= through) {
            entry.runs.pop_front();
        }
        if entry.runs.is_empty() {
            self.keys.remove(key);
        }
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<&KeyRuns> {
        self.keys.get(key)
    }

    /// Keys of the journal with what their latest head owes.
    pub(crate) fn owing(&self) -> BTreeMap<Arc<[u8]>, bool> {
        self.keys.iter().map(|(key, runs)| (Arc::clone(key), runs.owes)).collect()
    }

    pub(crate) fn is_damaged(&self, key: &[u8]) -> bool {
        !self.damaged.is_empty() && self.damaged.contains(&record::key_hash(key))
    }

    pub(crate) fn mark_damaged(&mut self, key_hash: u32) {
        self.damaged.insert(key_hash);
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
