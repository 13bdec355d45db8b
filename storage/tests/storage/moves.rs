//! The border between journal and archive.

use std::time::Duration;

use turnd_storage::Options;
use turnd_storage::fault::{Disk, FileName, Image, Op};

use crate::kit::{append, assert_log, key, quiet, runtime};

/// A move whose archive commit is durable while the journal still has the rows: what a crash
/// between the two leaves.
fn moved_but_not_removed() -> Image {
    let disk = Disk::default();
    let store = disk.open(quiet()).unwrap();
    let runtime = runtime();
    runtime.block_on(store.append(append(&key(1), 1, 4))).unwrap();
    runtime.block_on(store.append(append(&key(2), 1, 2))).unwrap();
    runtime.block_on(store.settle_archive()).unwrap();
    runtime.block_on(store.append(append(&key(1), 5, 3))).unwrap();
    let journal = disk.image().journal;
    runtime.block_on(store.settle_archive()).unwrap();
    drop(store);
    Image { journal, archive: disk.image().archive }
}

#[test]
fn rows_that_are_moved_twice_are_there_once() {
    let runtime = runtime();
    let disk = Disk::new(moved_but_not_removed());
    let store = disk.open(quiet()).unwrap();
    assert_log(&store, &key(1), 7);
    assert_log(&store, &key(2), 2);
    runtime.block_on(store.append(append(&key(1), 8, 1))).unwrap();
    assert_log(&store, &key(1), 8);
    runtime.block_on(store.settle_archive()).unwrap();
    assert_log(&store, &key(1), 8);
    assert_log(&store, &key(2), 2);
    store.close();
    let store = disk.open(quiet()).unwrap();
    assert_log(&store, &key(1), 8);
    assert_log(&store, &key(2), 2);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "what is tested happens after a while")]
fn a_journal_that_is_quiet_moves_on_its_own() {
    let disk = Disk::default();
    let options = Options { idle: Duration::from_millis(10), ..Options::default() };
    let store = disk.open(options).unwrap();
    let archive_writes = || {
        let is_of_archive = |op: &&Op| matches!(op, Op::Write { file: FileName::Archive, .. });
        disk.ops().iter().filter(is_of_archive).count()
    };
    let before = archive_writes();
    runtime().block_on(store.append(append(&key(1), 1, 4))).unwrap();
    for _ in 0..500 {
        if archive_writes() > before {
            return assert_log(&store, &key(1), 4);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("nothing moved");
}

#[test]
fn long_logs_span_many_segments_and_are_read_from_any_seq() {
    let disk = Disk::default();
    let store = disk.open(quiet()).unwrap();
    let runtime = runtime();
    let mut last = 0;
    for round in 0..30 {
        let count = 40 + round;
        runtime.block_on(store.append(append(&key(1), last + 1, count))).unwrap();
        last += count;
        if round % 3 == 0 {
            runtime.block_on(store.settle_archive()).unwrap();
        }
    }
    assert_log(&store, &key(1), last);
    for after in (0..last).step_by(97) {
        let page = store.read(&key(1), after, 1).unwrap();
        assert_eq!(page.events.first().map(|(seq, _)| *seq), Some(after + 1));
    }
}

#[test]
fn the_journals_file_stays_small_while_much_goes_through_it() {
    let disk = Disk::default();
    let options = Options { journal_bytes_max: 256 << 10, journal_move_bytes: 64 << 10, ..quiet() };
    let store = disk.open(options).unwrap();
    let runtime = runtime();
    for round in 0..100 {
        for number in 0..4 {
            runtime.block_on(store.append(append(&key(number), round * 20 + 1, 20))).unwrap();
        }
    }
    for number in 0..4 {
        assert_log(&store, &key(number), 2000);
    }
    let bytes = disk.image().journal.len();
    assert!(bytes <= 4 << 20, "{bytes}");
}
