//! The layouts that were weighed for the log, each against append and sync of a plain file in the
//! same run.
//!
//! One commit of 1, 16 and 128 sessions, each with six events of 400 bytes.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench stops at the first surprise, reads the clock and prints its findings"
)]

mod common;

use std::cell::RefCell;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::Path;

use criterion::Criterion;
use redb::{Database, Durability, ReadableTableMetadata, TableDefinition, WriteTransaction};

use common::{Candidate, Raw, compare, directory, event};

const ROWS: TableDefinition<u64, &[u8]> = TableDefinition::new("rows");
const BY_KEY: TableDefinition<(&[u8], u64), &[u8]> = TableDefinition::new("by key");
const SEGMENTS: TableDefinition<(&[u8], u64), &[u8]> = TableDefinition::new("segments");

const SIZES: [usize; 3] = [1, 16, 128];
const SESSIONS: u64 = 20_000;
const EVENTS: u64 = 6;
const ROW_BYTES_MAX: usize = (64 << 10) - 64;
/// What the journal holds before its rows go.
const JOURNAL_BYTES: u64 = 16 << 20;

/// One commit's events by session.
struct Batches {
    next: u64,
}

struct Batch {
    key: Vec<u8>,
    first_seq: u64,
    events: Vec<Vec<u8>>,
}

impl Batches {
    fn next(&mut self, sessions: usize) -> Vec<Batch> {
        let batch = |_| {
            self.next += 1;
            // Sessions take turns in an order that is not that of their keys.
            let session = self.next.wrapping_mul(7919) % SESSIONS;
            let first_seq = self.next / SESSIONS * EVENTS + 1;
            Batch {
                key: format!("tenant-1/session-{session:012}").into_bytes(),
                first_seq,
                events: (first_seq..first_seq + EVENTS).map(|seq| event(session, seq)).collect(),
            }
        };
        (0..sessions).map(batch).collect()
    }
}

fn database(dir: &Path, name: &str) -> Database {
    let path = dir.join(name);
    Database::builder().set_cache_size(64 << 20).create(path).unwrap()
}

/// A plain file whose blocks were all written before.
struct GrownAhead {
    file: File,
    bytes: u64,
}

impl GrownAhead {
    fn new(dir: &Path, bytes: u64) -> Self {
        let mut file = File::create(dir.join("grown")).unwrap();
        std::io::copy(&mut std::io::repeat(0).take(bytes), &mut file).unwrap();
        file.sync_all().unwrap();
        Self { file, bytes }
    }

    fn append(&mut self, bytes: &[u8]) {
        if self.file.stream_position().unwrap() + bytes.len() as u64 > self.bytes {
            self.file.rewind().unwrap();
        }
        self.file.write_all(bytes).unwrap();
        self.file.sync_data().unwrap();
    }
}

#[derive(Clone, Copy)]
enum Phases {
    One,
    Two,
    QuickRepair,
}

fn commit(database: &Database, phases: Phases, write: impl FnOnce(&WriteTransaction)) {
    let mut txn = database.begin_write().unwrap();
    txn.set_durability(Durability::Immediate).unwrap();
    match phases {
        Phases::One => {}
        Phases::Two => txn.set_two_phase_commit(true),
        Phases::QuickRepair => txn.set_quick_repair(true),
    }
    write(&txn);
    txn.commit().unwrap();
}

/// The journal's layout: rows of up to 64 KiB, bounded, the old ones removed with a commit.
struct Journal {
    database: Database,
    phases: Phases,
    next_row: u64,
    first_row: u64,
    bytes: u64,
    segments: bool,
}

impl Journal {
    fn new(dir: &Path, name: &str, phases: Phases) -> Self {
        let database = database(dir, name);
        Self { database, phases, next_row: 1, first_row: 1, bytes: 0, segments: false }
    }

    /// Grows the file by filling it once, and keeps one row near its end so that redb does not
    /// shrink it again.
    fn grown_ahead(dir: &Path, name: &str) -> Self {
        let mut journal = Self::new(dir, name, Phases::One);
        for _ in 0..4 * JOURNAL_BYTES / ROW_BYTES_MAX as u64 {
            commit(&journal.database, Phases::One, |txn| {
                let filler = vec![1; ROW_BYTES_MAX];
                txn.open_table(ROWS).unwrap().insert(journal.next_row, filler.as_slice()).unwrap();
            });
            journal.next_row += 1;
        }
        let last = journal.next_row - 1;
        commit(&journal.database, Phases::One, |txn| {
            txn.open_table(ROWS).unwrap().retain(|row, _| row == last).unwrap();
        });
        journal.first_row = journal.next_row;
        journal
    }

    fn append(&mut self, batches: &[Batch]) {
        let rows = pack(batches);
        let trim = self.bytes > JOURNAL_BYTES;
        commit(&self.database, self.phases, |txn| {
            let mut table = txn.open_table(ROWS).unwrap();
            if trim && self.segments {
                write_segments(txn, &table, self.first_row);
            }
            if trim {
                table.retain_in(self.first_row..self.next_row, |_, _| false).unwrap();
                self.first_row = self.next_row;
                self.bytes = 0;
            }
            for row in rows {
                self.bytes += row.len() as u64;
                table.insert(self.next_row, row.as_slice()).unwrap();
                self.next_row += 1;
            }
        });
    }
}

/// Moves within the same file and the same transaction, as a store of one file would have to: one
/// segment for each row is fewer than the real number.
fn write_segments(
    txn: &WriteTransaction,
    table: &impl redb::ReadableTable<u64, &'static [u8]>,
    first_row: u64,
) {
    let mut segments = txn.open_table(SEGMENTS).unwrap();
    for row in table.range(first_row..).unwrap() {
        let (row, bytes) = row.unwrap();
        let key = bytes.value()[..29].to_vec();
        let compressed = zstd::bulk::compress(bytes.value(), 1).unwrap();
        segments.insert((key.as_slice(), row.value()), compressed.as_slice()).unwrap();
    }
}

fn pack(batches: &[Batch]) -> Vec<Vec<u8>> {
    let mut rows = vec![Vec::with_capacity(ROW_BYTES_MAX)];
    for batch in batches {
        let bytes = 32 + batch.key.len() + batch.events.iter().map(Vec::len).sum::<usize>();
        if rows.last().unwrap().len() + bytes > ROW_BYTES_MAX {
            rows.push(Vec::with_capacity(ROW_BYTES_MAX));
        }
        let row = rows.last_mut().unwrap();
        row.extend_from_slice(&batch.key);
        row.extend_from_slice(&[0; 32]);
        for event in &batch.events {
            row.extend_from_slice(&crc32fast::hash(event).to_le_bytes());
            row.extend_from_slice(event);
        }
    }
    rows
}

fn by_position(database: &Database, position: &mut u64, batches: &[Batch]) {
    commit(database, Phases::One, |txn| {
        let mut table = txn.open_table(ROWS).unwrap();
        for event in batches.iter().flat_map(|batch| &batch.events) {
            *position += 1;
            table.insert(*position, event.as_slice()).unwrap();
        }
    });
}

fn by_key(database: &Database, batches: &[Batch]) {
    commit(database, Phases::One, |txn| {
        let mut table = txn.open_table(BY_KEY).unwrap();
        for batch in batches {
            for (seq, event) in (batch.first_seq..).zip(&batch.events) {
                table.insert((batch.key.as_slice(), seq), event.as_slice()).unwrap();
            }
        }
    });
}

/// Some history, because a tree is slower by key the more of it there is.
fn fill_by_key(database: &Database) {
    let mut batches = Batches { next: 0 };
    for _ in 0..10 {
        by_key(database, &batches.next(2000));
    }
    let rows = database.begin_write().unwrap().open_table(BY_KEY).unwrap().len().unwrap();
    assert_eq!(rows, 10 * 2000 * EVENTS);
}

fn flat(batches: &[Batch]) -> Vec<u8> {
    batches.iter().flat_map(|batch| &batch.events).flatten().copied().collect()
}

fn measure(criterion: &mut Criterion, size: usize) {
    let dir = directory();
    let dir = dir.path();
    let batches = RefCell::new(Batches { next: 10 * 2000 });
    let next = || batches.borrow_mut().next(size);
    let next_flat = || flat(&next());
    let mut raw = Raw::new(dir);
    let mut raw_grown = GrownAhead::new(dir, 64 << 20);
    let mut one_phase = Journal::new(dir, "one phase", Phases::One);
    let mut two_phase = Journal::new(dir, "two phases", Phases::Two);
    let mut quick_repair = Journal::new(dir, "quick repair", Phases::QuickRepair);
    let mut grown = Journal::grown_ahead(dir, "journal, grown");
    let mut one_file = Journal::new(dir, "one file", Phases::One);
    one_file.segments = true;
    let positions = database(dir, "positions");
    let mut position = 0;
    let keys = database(dir, "keys");
    fill_by_key(&keys);
    let candidates = vec![
        Candidate::new("raw append + fdatasync", next_flat, |bytes| raw.append(&bytes)),
        Candidate::new("raw, file grown ahead", next_flat, |bytes| raw_grown.append(&bytes)),
        Candidate::new("journal, one-phase", next, |batch| one_phase.append(&batch)),
        Candidate::new("journal, two-phase", next, |batch| two_phase.append(&batch)),
        Candidate::new("journal, quick-repair", next, |batch| quick_repair.append(&batch)),
        Candidate::new("journal, one-phase, file grown ahead", next, |batch| grown.append(&batch)),
        Candidate::new("one file: rows and segments", next, |batch| one_file.append(&batch)),
        Candidate::new("one row per event, by position", next, |batch| {
            by_position(&positions, &mut position, &batch);
        }),
        Candidate::new("one row per event, by (key, seq)", next, |batch| by_key(&keys, &batch)),
    ];
    compare(criterion, &format!("One commit of {size} sessions"), candidates);
}

fn main() {
    let mut criterion = common::criterion();
    for size in SIZES {
        measure(&mut criterion, size);
    }
    criterion.final_summary();
}
