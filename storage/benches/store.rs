//! The store itself: rounds in which every session appends six events of 400 bytes and waits,
//! against append and sync of the same bytes in the same run; and reads of a log that is in the
//! page caches.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench stops at the first surprise, reads the clock and prints its findings"
)]

mod common;

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use criterion::Criterion;
use tokio::runtime::Runtime;
use turnd_storage::{Append, Head, Options, Place, Store};

use common::{Candidate, Raw, compare, directory, event};

const SIZES: [usize; 3] = [1, 16, 256];
const EVENTS: u64 = 6;

fn append(session: u64, first_seq: u64) -> Append {
    Append {
        key: Arc::from(format!("tenant-1/session-{session:012}").as_bytes()),
        first_seq,
        events: (first_seq..first_seq + EVENTS)
            .map(|seq| Bytes::from(event(session, seq)))
            .collect(),
        head: Head {
            summary: Bytes::from_static(&[b's'; 100]),
            owes: first_seq % 2 == 1,
            places: Vec::new(),
        },
        blobs: Vec::new(),
    }
}

/// Every session appends once, at the same time; returns when all are durable.
fn round(runtime: &Runtime, store: &Store, appends: Vec<Append>) {
    runtime.block_on(async {
        let tasks = appends.into_iter().map(|append| {
            let store = store.clone();
            tokio::spawn(async move { store.append(append).await.unwrap() })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
    });
}

/// A store whose sessions append in rounds.
struct Rounds<'a> {
    runtime: &'a Runtime,
    store: Store,
    next_seq: Cell<u64>,
}

impl<'a> Rounds<'a> {
    fn new(runtime: &'a Runtime, dir: &Path, two_phase: bool) -> Self {
        let options = Options { journal_two_phase: two_phase, ..Options::default() };
        Self { runtime, store: Store::open(dir, options).unwrap(), next_seq: Cell::new(1) }
    }

    fn candidate(&self, name: &'static str, size: usize) -> Candidate<'_> {
        let prepare = move || -> Vec<Append> {
            let first_seq = self.next_seq.replace(self.next_seq.get() + EVENTS);
            (0..size as u64).map(|session| append(session, first_seq)).collect()
        };
        let work = |appends| round(self.runtime, &self.store, appends);
        let rest = || self.runtime.block_on(self.store.settle_archive()).unwrap();
        let mut candidate = Candidate::new(name, prepare, work);
        candidate.rest = Box::new(rest);
        candidate
    }
}

fn measure_appends(criterion: &mut Criterion, size: usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let dir = directory();
    let bytes: Vec<u8> =
        (0..size as u64).flat_map(|session| append(session, 1).events).flatten().collect();
    let mut raw = Raw::new(dir.path());
    let one_phase = Rounds::new(&runtime, &dir.path().join("one phase"), false);
    let two_phase = Rounds::new(&runtime, &dir.path().join("two phases"), true);
    let candidates = vec![
        Candidate::new("raw append + fdatasync", || (), |()| raw.append(&bytes)),
        one_phase.candidate("append, one-phase", size),
        two_phase.candidate("append, two-phase", size),
    ];
    compare(criterion, &format!("One round of {size} sessions"), candidates);
}

fn measure_reads(criterion: &mut Criterion) {
    const READ_EVENTS: u64 = 600;
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let dir = directory();
    let options = Options { idle: Duration::from_hours(1), ..Options::default() };
    let store = Store::open(&dir.path().join("store"), options).unwrap();
    let write = |session, written: &mut Vec<u8>| {
        for first_seq in (1..READ_EVENTS).step_by(6) {
            let append = append(session, first_seq);
            written.extend(append.events.iter().flatten());
            runtime.block_on(store.append(append)).unwrap();
        }
    };
    let mut written = Vec::new();
    write(1, &mut written);
    runtime.block_on(store.settle_archive()).unwrap();
    write(2, &mut Vec::new());
    let file = dir.path().join("plain");
    std::fs::write(&file, &written).unwrap();
    let read = |session| {
        let page = store.read(&append(session, 1).key, 0, usize::MAX).unwrap();
        assert_eq!(page.events.len() as u64, READ_EVENTS);
    };
    let candidates = vec![
        Candidate::new(
            "read of a plain file",
            || (),
            |()| {
                assert_eq!(std::fs::read(&file).unwrap().len(), written.len());
            },
        ),
        Candidate::new("read from the journal", || 2, read),
        Candidate::new("read from the archive", || 1, read),
    ];
    compare(criterion, "Read of a log of 600 events", candidates);
}

/// Pages of a list of 100,000 keys, against the heads of as many keys one by one.
fn measure_lists(criterion: &mut Criterion) {
    const KEYS: u64 = 100_000;
    const PAGE_KEYS: usize = 50;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let dir = directory();
    let options = Options { idle: Duration::from_hours(1), ..Options::default() };
    let store = Store::open(&dir.path().join("store"), options).unwrap();
    let put = |sessions: &mut dyn Iterator<Item = u64>, first_seq| {
        let appends = sessions.map(|session| {
            let mut append = append(session, first_seq);
            append.head.places = vec![Place { list: Bytes::from_static(b"list"), rank: session }];
            append
        });
        let appends: Vec<Append> = appends.collect();
        for chunk in appends.chunks(1_000) {
            round(&runtime, &store, chunk.to_vec());
        }
    };
    put(&mut (0..KEYS), 1);
    runtime.block_on(store.settle_archive()).unwrap();
    let key = |session: u64| append(session, 1).key;
    let page = |after: u64| {
        let page = store.list(b"list", Some((after, &key(after))), PAGE_KEYS).unwrap();
        assert_eq!(page.len(), PAGE_KEYS);
    };
    let middle = Candidate::new("page of 50 keys, in the archive", || KEYS / 2, page);
    let heads = Candidate::new(
        "50 heads, in the archive",
        || (0..PAGE_KEYS as u64).map(|session| key(session * 1_000)).collect::<Vec<_>>(),
        |keys| keys.iter().for_each(|key| assert!(store.head(key).unwrap().is_some())),
    );
    compare(criterion, "Page of a list of 100,000 keys", vec![heads, middle]);

    // Every tenth key is in the journal, and all of the first ones.
    put(&mut (0..KEYS - 1_000).step_by(10), 1 + EVENTS);
    put(&mut (KEYS - 1_000..KEYS), 1 + EVENTS);
    let heads = Candidate::new(
        "50 heads, in the journal",
        || (0..PAGE_KEYS as u64).map(|session| key(session * 1_000)).collect::<Vec<_>>(),
        |keys| keys.iter().for_each(|key| assert!(store.head(key).unwrap().is_some())),
    );
    let middle = Candidate::new("page of 50 keys, every tenth in the journal", || KEYS / 2, page);
    let first = Candidate::new("page of 50 keys, all in the journal", || KEYS - 1, page);
    compare(criterion, "The same with 11,000 keys in the journal", vec![heads, middle, first]);
}

fn main() {
    let mut criterion = common::criterion();
    for size in SIZES {
        measure_appends(&mut criterion, size);
    }
    measure_reads(&mut criterion);
    measure_lists(&mut criterion);
    criterion.final_summary();
}
