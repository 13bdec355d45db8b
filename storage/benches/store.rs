//! The store itself: rounds in which every session appends six events of 400 bytes and waits, against append and sync
//! of the same bytes in the same run; and reads of a log that is in the page caches.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench stops at the first surprise, reads the clock and prints its findings"
)]

mod common;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use criterion::Criterion;
use tokio::runtime::Runtime;
use turnd_storage::{Append, Head, Options, Store};

use common::{Ratios, Raw, directory, event};

const SIZES: [usize; 3] = [1, 16, 256];
const EVENTS: u64 = 6;

fn append(session: u64, first_seq: u64) -> Append {
    Append {
        key: Arc::from(format!("tenant-1/session-{session:012}").as_bytes()),
        first_seq,
        events: (first_seq..first_seq + EVENTS)
            .map(|seq| Bytes::from(event(session, seq)))
            .collect(),
        head: Head { summary: Bytes::from_static(&[b's'; 100]), owes: first_seq % 2 == 1 },
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

fn measure_appends(criterion: &mut Criterion, ratios: &mut Ratios, size: usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let mut group = criterion.benchmark_group(format!("store, {size} sessions at once"));
    let dir = directory();
    let bytes: Vec<u8> =
        (0..size as u64).flat_map(|session| append(session, 1).events).flatten().collect();
    let mut raw = Raw::new(dir.path());
    ratios.measure(&mut group, "raw append + fdatasync", size, || (), |()| raw.append(&bytes));
    for (name, two_phase) in [("append, one-phase", false), ("append, two-phase", true)] {
        let options = Options { journal_two_phase: two_phase, ..Options::default() };
        let store = Store::open(&dir.path().join(name), options).unwrap();
        let mut first_seq = 1;
        let prepare = || {
            let appends: Vec<_> =
                (0..size as u64).map(|session| append(session, first_seq)).collect();
            first_seq += EVENTS;
            appends
        };
        ratios.measure(&mut group, name, size, prepare, |appends| {
            round(&runtime, &store, appends);
        });
        store.close();
    }
    group.finish();
}

fn measure_reads(criterion: &mut Criterion, ratios: &mut Ratios) {
    const READ_EVENTS: usize = 600;
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut group = criterion.benchmark_group("read of a log of 600 events");
    let dir = directory();
    let options = Options { idle: Duration::from_hours(1), ..Options::default() };
    let store = Store::open(&dir.path().join("store"), options).unwrap();
    let mut written = Vec::new();
    for first_seq in (1..READ_EVENTS as u64).step_by(6) {
        let append = append(1, first_seq);
        written.extend(append.events.iter().flatten().copied());
        runtime.block_on(store.append(append)).unwrap();
    }
    let file = dir.path().join("plain");
    std::fs::write(&file, &written).unwrap();
    let read_all = || {
        let page = store.read(b"tenant-1/session-000000000001", 0, usize::MAX).unwrap();
        assert_eq!(page.events.len(), READ_EVENTS);
    };
    ratios.measure(
        &mut group,
        "read of a plain file",
        READ_EVENTS,
        || (),
        |()| {
            assert_eq!(std::fs::read(&file).unwrap().len(), written.len());
        },
    );
    ratios.measure(&mut group, "read from the journal", READ_EVENTS, || (), |()| read_all());
    runtime.block_on(store.settle_archive()).unwrap();
    ratios.measure(&mut group, "read from the archive", READ_EVENTS, || (), |()| read_all());
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3))
        .configure_from_args();
    let mut ratios = Ratios::default();
    for size in SIZES {
        measure_appends(&mut criterion, &mut ratios, size);
    }
    ratios.print("One round of appends", "raw append + fdatasync", &SIZES);
    let mut ratios = Ratios::default();
    measure_reads(&mut criterion, &mut ratios);
    ratios.print("One read", "read of a plain file", &[600]);
    criterion.final_summary();
}
