//! Disks that fail: the n-th operation of a fixed workload, for every n, by turns once and for
//! ever; with `TURND_FAULTS_BOTH=1` every one in both ways.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use turnd_storage::fault::{Disk, Failure, Image, Kind};
use turnd_storage::{Error, Options, Store};

use crate::images::Durable;
use crate::kit::{
    Random, append, append_of, assert_log, assert_log_of, expected_head_of, key, number_from,
    quiet, runtime, small,
};

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// For each key the log that was acknowledged and the one last asked for: how often the key was
/// erased, and the last seq.
type Asked = BTreeMap<Arc<[u8]>, ((u64, u64), (u64, u64))>;

fn options() -> Options {
    // Small caches, so that reads reach the disk.
    Options { journal_cache_bytes: 0, archive_cache_bytes: 0, idle: quiet().idle, ..small() }
}

/// Appends, erasures, moves, reads and documents in a fixed order, until the first error.
fn work(store: &Store, asked: &mut Asked) -> Result<(), Error> {
    let runtime = runtime();
    for round in 0..2 {
        for number in 0..2 {
            let key = key(number);
            let ((life, last_seq), _) = *asked.entry(Arc::clone(&key)).or_default();
            let count = (round + number) % 3 + 1;
            let append = append_of(&key, life, last_seq + 1, count);
            let result = runtime.block_on(store.append(append));
            note(asked, &key, (life, last_seq + count), result)?;
            store.read(&key, 0, 1 << 20)?;
            store.list(b"all", None, 10)?;
        }
        runtime.block_on(store.put_document("document", Bytes::from(vec![1; 900])))?;
        if round % 2 == 1 {
            runtime.block_on(store.settle_archive())?;
        }
        // One log of the journal, one of the archive.
        let result = runtime.block_on(store.erase(key(round)));
        let ((life, _), _) = asked.get(&key(round)).copied().unwrap_or_default();
        note(asked, &key(round), (life + 1, 0), result)?;
    }
    runtime.block_on(store.settle_archive())
}

/// Notes what came of asking for a log.
fn note(
    asked: &mut Asked,
    key: &Arc<[u8]>,
    log: (u64, u64),
    result: Result<(), Error>,
) -> Result<(), Error> {
    let (acknowledged, last) = asked.entry(Arc::clone(key)).or_default();
    match result {
        Ok(()) => (*acknowledged, *last) = (log, log),
        // Refused for certain.
        Err(Error::Poisoned { .. } | Error::Database { .. }) => {}
        Err(_) => *last = log,
    }
    result
}

/// What is there after the next open holds what was acknowledged, and at most what was asked for.
fn check(image: Image, asked: &Asked) {
    let store = Disk::new(image).open(options()).unwrap();
    for _ in 0..2 {
        for (key, (acknowledged, last)) in asked {
            let found = store.head(key).unwrap();
            let is_there =
                |(life, last_seq): &&(u64, u64)| found == expected_head_of(key, *life, *last_seq);
            let log = [acknowledged, last].into_iter().find(is_there);
            let (life, last_seq) = log.unwrap_or_else(|| panic!("{found:?} of {last:?}"));
            assert_log_of(&store, key, *life, *last_seq);
        }
        runtime().block_on(store.settle_archive()).unwrap();
    }
}

fn fail_at(failure: Failure) -> bool {
    let disk = Disk::default();
    disk.fail(Some(failure));
    let mut asked = Asked::new();
    let opened = disk.open(options());
    let created = opened.is_ok();
    let failed = match opened {
        Ok(store) => {
            let result = work(&store, &mut asked);
            if result.is_err() {
                assert_poisoned(&store, &result);
            }
            result.is_err()
        }
        Err(_) => true,
    };
    disk.fail(None);
    if created {
        // As the machine that stayed up sees it, and as a power cut leaves it.
        check(disk.image(), &asked);
        let ops = disk.ops();
        let end = ops.len();
        let mut durable = Durable::new(Image::default(), ops);
        durable.advance(end);
        check(durable.image(&mut Random(failure.nth)), &asked);
    }
    failed
}

/// After a failed write everything but reading is over.
fn assert_poisoned(store: &Store, result: &Result<(), Error>) {
    let wrote = matches!(result, Err(Error::Unknown { .. } | Error::Poisoned { .. }));
    let reason = store.failure().borrow().clone();
    assert_eq!(wrote, reason.is_some(), "{result:?}");
    if !wrote {
        return;
    }
    let runtime = runtime();
    let refused = runtime.block_on(store.append(append(&key(9), 1, 1)));
    assert!(matches!(refused, Err(Error::Poisoned { .. })), "{refused:?}");
    let refused = runtime.block_on(store.put_document("document", Bytes::new()));
    assert!(matches!(refused, Err(Error::Poisoned { .. })), "{refused:?}");
    let refused = runtime.block_on(store.settle_archive());
    assert!(matches!(refused, Err(Error::Poisoned { .. })), "{refused:?}");
    let refused = runtime.block_on(store.erase(key(0)));
    assert!(matches!(refused, Err(Error::Poisoned { .. })), "{refused:?}");
}

fn fail_every(kind: Kind) {
    let disk = Disk::default();
    let store = disk.open(options()).unwrap();
    work(&store, &mut Asked::new()).unwrap();
    let operations = disk.count(kind);
    drop(store);
    assert!(operations > 0);
    let mut failures = 0;
    let both = number_from("TURND_FAULTS_BOTH", 0) == 1;
    for nth in 1..=operations {
        for (for_ever, errno) in [(false, EIO), (true, ENOSPC)] {
            if both || for_ever == (nth % 2 == 0) {
                failures += usize::from(fail_at(Failure { kind, nth, for_ever, errno }));
            }
        }
    }
    assert!(failures > 0, "no failure was seen");
    println!("{failures} failures of {operations} operations");
}

#[test]
fn a_failed_write_loses_nothing_acknowledged() {
    fail_every(Kind::Write);
}

#[test]
fn a_failed_sync_loses_nothing_acknowledged() {
    fail_every(Kind::Sync);
}

#[test]
fn a_failed_change_of_length_loses_nothing_acknowledged() {
    fail_every(Kind::SetLen);
}

#[test]
fn a_failed_read_loses_nothing_acknowledged() {
    fail_every(Kind::Read);
}

#[test]
fn appends_that_wait_when_a_sync_fails_are_never_told_that_they_were_refused() {
    let disk = Disk::default();
    let store = disk.open(options()).unwrap();
    let nth = disk.count(Kind::Sync) + 1;
    disk.fail(Some(Failure { kind: Kind::Sync, nth, for_ever: true, errno: EIO }));
    let mut failure = store.failure();
    runtime().block_on(async {
        let appends: Vec<_> = (0..20)
            .map(|number| {
                let store = store.clone();
                tokio::spawn(async move { store.append(append(&key(number), 1, 2)).await })
            })
            .collect();
        for append in appends {
            let answer = append.await.unwrap();
            let open = matches!(answer, Err(Error::Unknown { .. } | Error::Poisoned { .. }));
            assert!(open, "{answer:?}");
        }
        failure.changed().await.unwrap();
    });
    let reason = store.failure().borrow().clone().unwrap();
    assert!(reason.contains("journal"), "{reason}");
}

#[test]
fn reads_of_what_is_committed_go_on_after_a_failure() {
    let disk = Disk::default();
    let large_caches = Options { idle: quiet().idle, ..Options::default() };
    let store = disk.open(large_caches).unwrap();
    let runtime = runtime();
    runtime.block_on(store.append(append(&key(1), 1, 3))).unwrap();
    runtime.block_on(store.settle_archive()).unwrap();
    runtime.block_on(store.append(append(&key(1), 4, 3))).unwrap();
    let nth = disk.count(Kind::Write) + 1;
    disk.fail(Some(Failure { kind: Kind::Write, nth, for_ever: true, errno: EIO }));
    runtime.block_on(store.append(append(&key(2), 1, 3))).unwrap_err();
    assert_log(&store, &key(1), 6);
    assert_eq!(store.head(&key(2)).unwrap(), None);
}

#[test]
fn a_journal_that_the_archive_does_not_empty_becomes_full_and_recovers() {
    // The archive's thread moves nothing on its own here.
    let options = Options {
        journal_bytes_max: 64 << 10,
        journal_move_bytes: u64::MAX,
        full_wait: Duration::from_millis(50),
        ..quiet()
    };
    let store = Disk::default().open(options).unwrap();
    let runtime = runtime();
    let large = |number, first_seq| {
        let mut append = append(&key(number), first_seq, 1);
        append.events[0] = Bytes::from(vec![1; 10_000]);
        append
    };
    let full = (1..100).find_map(|number| {
        runtime.block_on(store.append(large(number, 1))).err().map(|error| (number, error))
    });
    let (number, error) = full.unwrap();
    assert!(matches!(error, Error::Full), "{error}");
    assert!(number > 4);
    assert_eq!(store.head(&key(number)).unwrap(), None);
    runtime.block_on(store.settle_archive()).unwrap();
    runtime.block_on(store.append(large(number, 1))).unwrap();
    assert_eq!(store.head(&key(number)).unwrap().unwrap().last_seq, 1);
}
