//! Erased keys: gone at once, for good, and free to begin anew.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use turnd_storage::fault::{Disk, Image};
use turnd_storage::{Error, Options, Store};

use crate::kit::{
    LISTS, append, append_of, assert_log, assert_log_of, event, key, quiet, runtime, small,
};

fn assert_unknown(store: &Store, key: &Arc<[u8]>) {
    assert_eq!(store.head(key).unwrap(), None);
    assert!(store.read(key, 0, 1 << 20).unwrap().events.is_empty());
    assert!(!store.owing().unwrap().contains(key));
    for list in LISTS {
        assert!(store.list(list, None, 100).unwrap().iter().all(|row| row.key != *key));
    }
}

#[test]
fn an_erased_key_is_gone_at_once_and_stays_gone() {
    let runtime = runtime();
    for settled in [false, true] {
        let disk = Disk::default();
        let store = disk.open(quiet()).unwrap();
        runtime.block_on(store.append(append(&key(1), 1, 4))).unwrap();
        runtime.block_on(store.append(append(&key(2), 1, 4))).unwrap();
        if settled {
            runtime.block_on(store.settle_archive()).unwrap();
        }
        runtime.block_on(store.append(append(&key(1), 5, 3))).unwrap();
        runtime.block_on(store.erase(key(1))).unwrap();
        assert_unknown(&store, &key(1));
        store.close();
        let store = disk.open(quiet()).unwrap();
        assert_unknown(&store, &key(1));
        runtime.block_on(store.settle_archive()).unwrap();
        assert_unknown(&store, &key(1));
        store.close();
        let store = disk.open(quiet()).unwrap();
        assert_unknown(&store, &key(1));
        assert_log(&store, &key(2), 4);
    }
}

#[test]
fn a_new_log_under_an_erased_key_shares_nothing_with_the_old_one() {
    let runtime = runtime();
    // Where the archive is settled: before the erasure, behind it, behind the new log.
    for settled in 0..8 {
        let store = Disk::default().open(quiet()).unwrap();
        let settle = |bit| {
            if settled & bit > 0 {
                runtime.block_on(store.settle_archive()).unwrap();
            }
        };
        runtime.block_on(store.append(append(&key(1), 1, 9))).unwrap();
        settle(1);
        runtime.block_on(store.erase(key(1))).unwrap();
        settle(2);
        let refused = runtime.block_on(store.append(append(&key(1), 10, 1))).unwrap_err();
        assert!(matches!(refused, Error::Conflict { expected: 1, got: 10 }), "{refused}");
        runtime.block_on(store.append(append_of(&key(1), 1, 1, 2))).unwrap();
        settle(4);
        assert_log_of(&store, &key(1), 1, 2);
        runtime.block_on(store.append(append_of(&key(1), 1, 3, 4))).unwrap();
        assert_log_of(&store, &key(1), 1, 6);
        runtime.block_on(store.settle_archive()).unwrap();
        assert_log_of(&store, &key(1), 1, 6);
    }
}

#[test]
fn erasures_and_appends_of_one_group_count_in_their_order() {
    let disk = Disk::default();
    let store = disk.open(quiet()).unwrap();
    let runtime = runtime();
    runtime.block_on(store.append(append(&key(1), 1, 3))).unwrap();
    runtime.block_on(async {
        // Polled in this order before the writer gets to answer any of them.
        let (first, second, third, fourth, fifth) = tokio::join!(
            store.append(append(&key(1), 4, 2)),
            store.erase(key(1)),
            store.append(append_of(&key(1), 1, 1, 2)),
            store.erase(key(1)),
            store.append(append_of(&key(1), 2, 1, 5)),
        );
        first.and(second).and(third).and(fourth).and(fifth).unwrap();
        store.erase(key(2)).await.unwrap();
    });
    assert_log_of(&store, &key(1), 2, 5);
    store.close();
    let store = disk.open(quiet()).unwrap();
    assert_log_of(&store, &key(1), 2, 5);
    runtime.block_on(store.settle_archive()).unwrap();
    assert_log_of(&store, &key(1), 2, 5);
}

#[test]
fn erasing_an_unknown_key_writes_nothing() {
    let disk = Disk::default();
    let store = disk.open(quiet()).unwrap();
    let runtime = runtime();
    runtime.block_on(store.append(append(&key(1), 1, 3))).unwrap();
    runtime.block_on(store.erase(key(1))).unwrap();
    let before = disk.ops_count();
    for number in 0..3 {
        runtime.block_on(store.erase(key(number))).unwrap();
    }
    assert_eq!(disk.ops_count(), before);
    let long = Arc::from(vec![b'k'; 1025]);
    let refused = runtime.block_on(store.erase(long)).unwrap_err();
    assert!(matches!(refused, Error::TooLarge { .. }), "{refused}");
}

#[test]
fn a_move_that_is_repeated_erases_the_old_log_only() {
    let runtime = runtime();
    // Each part in a step of its own, or all in one: a step takes about four megabytes.
    for filler in [1_u64, 90] {
        let disk = Disk::default();
        let store = disk.open(quiet()).unwrap();
        let fill = |number| {
            let mut append = append(&key(number), 1, filler);
            for event in &mut append.events {
                *event = Bytes::from(vec![1; 50_000]);
            }
            runtime.block_on(store.append(append)).unwrap();
        };
        runtime.block_on(store.append(append(&key(1), 1, 9))).unwrap();
        runtime.block_on(store.settle_archive()).unwrap();
        runtime.block_on(store.append(append(&key(1), 10, 3))).unwrap();
        fill(10);
        runtime.block_on(store.erase(key(1))).unwrap();
        runtime.block_on(store.append(append_of(&key(1), 1, 1, 2))).unwrap();
        fill(11);
        runtime.block_on(store.append(append_of(&key(1), 1, 3, 2))).unwrap();
        runtime.block_on(store.append(append(&key(2), 1, 3))).unwrap();
        runtime.block_on(store.erase(key(2))).unwrap();
        let journal = disk.image().journal;
        runtime.block_on(store.settle_archive()).unwrap();
        drop(store);

        // All is archived, and the journal still has it.
        let disk = Disk::new(Image { journal, archive: disk.image().archive });
        let store = disk.open(quiet()).unwrap();
        for _ in 0..2 {
            assert_log_of(&store, &key(1), 1, 4);
            assert_unknown(&store, &key(2));
            runtime.block_on(store.settle_archive()).unwrap();
        }
        runtime.block_on(store.append(append_of(&key(1), 1, 5, 1))).unwrap();
        assert_log_of(&store, &key(1), 1, 5);
    }
}

#[test]
fn a_log_of_many_segments_is_erased_in_steps() {
    let disk = Disk::default();
    let options = Options { journal_bytes_max: 32 << 20, journal_move_bytes: 4 << 20, ..quiet() };
    let store = disk.open(options).unwrap();
    let runtime = runtime();
    let mut last = 0;
    for _ in 0..30 {
        let mut append = append(&key(1), last + 1, 40);
        for event in &mut append.events {
            *event = Bytes::from(vec![7; 40_000]);
        }
        runtime.block_on(store.append(append)).unwrap();
        last += 40;
    }
    runtime.block_on(store.append(append(&key(2), 1, 3))).unwrap();
    runtime.block_on(store.settle_archive()).unwrap();
    runtime.block_on(store.erase(key(1))).unwrap();
    runtime.block_on(store.append(append_of(&key(1), 1, 1, 3))).unwrap();
    runtime.block_on(store.settle_archive()).unwrap();
    assert_log_of(&store, &key(1), 1, 3);
    runtime.block_on(store.erase(key(1))).unwrap();
    runtime.block_on(store.settle_archive()).unwrap();
    assert_unknown(&store, &key(1));
    assert_log(&store, &key(2), 3);
}

#[test]
fn a_reader_sees_one_log_or_the_other_while_keys_are_erased_and_begin_anew() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { journal_move_bytes: 2 << 10, ..small() };
    let store = Store::open(dir.path(), options).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(async {
        let writer = tokio::spawn({
            let store = store.clone();
            async move {
                for life in 0..150 {
                    for first_seq in [1, 4, 7] {
                        store.append(append_of(&key(1), life, first_seq, 3)).await.unwrap();
                    }
                    store.append(append(&key(2), life + 1, 1)).await.unwrap();
                    store.erase(key(1)).await.unwrap();
                }
            }
        });
        let mut lives = BTreeMap::<String, u64>::new();
        while !writer.is_finished() {
            let events = store.read(&key(1), 0, 1 << 20).unwrap().events;
            if let Some(first) = events.first() {
                // The first event tells whose life all of them are of.
                let life = (0..150).find(|life| crate::kit::event_of(&key(1), *life, 1) == first.1);
                let expected =
                    (1..).map(|seq| (seq, crate::kit::event_of(&key(1), life.unwrap(), seq)));
                assert!(events.iter().cloned().eq(expected.take(events.len())));
                *lives.entry(format!("{life:?}")).or_default() += 1;
            }
            let rows = store.list(b"all", None, 10).unwrap();
            assert!(rows.iter().filter(|row| row.key == key(1)).count() <= 1);
            assert!(rows.iter().filter(|row| row.key == key(2)).count() <= 1);
            tokio::task::yield_now().await;
        }
        writer.await.unwrap();
        println!("{} lives were read", lives.len());
    });
    assert_unknown(&store, &key(1));
    assert_log(&store, &key(2), 150);
}

/// A journal with a run of this key whose event is flipped, and its neighbours.
fn damaged_store(damaged: &Arc<[u8]>) -> Image {
    let disk = Disk::default();
    let store = disk.open(quiet()).unwrap();
    let runtime = runtime();
    for key in [&key(1), damaged, &key(2)] {
        runtime.block_on(store.append(append(key, 1, 3))).unwrap();
    }
    store.close();
    disk.image()
}

fn flip(image: &mut Image, text: &[u8], within: usize) {
    let journal = &mut image.journal;
    let place = journal.windows(text.len()).position(|window| window == text).unwrap();
    journal[place + within] ^= 0x10;
}

#[test]
fn an_erased_key_that_was_damaged_is_usable_again() {
    let runtime = runtime();
    for header in [false, true] {
        // When the damage has left the journal: before the erasure, after it, after the new log.
        for settled in 0..3 {
            let damaged = key(7);
            let mut image = damaged_store(&damaged);
            if header {
                flip(&mut image, b"key-0007summary", 0);
            } else {
                flip(&mut image, &event(&damaged, 2), 4);
            }
            let disk = Disk::new(image);
            let store = disk.open(quiet()).unwrap();
            let settle = |step| {
                if settled == step {
                    runtime.block_on(store.settle_archive()).unwrap();
                }
            };
            settle(0);
            if header || settled == 0 {
                store.head(&damaged).unwrap_err();
            }
            runtime.block_on(store.erase(Arc::clone(&damaged))).unwrap();
            assert_unknown(&store, &damaged);
            settle(1);
            runtime.block_on(store.append(append_of(&damaged, 1, 1, 2))).unwrap();
            assert_log_of(&store, &damaged, 1, 2);
            settle(2);
            store.close();
            for _ in 0..2 {
                let store = disk.open(quiet()).unwrap();
                assert_log_of(&store, &damaged, 1, 2);
                runtime.block_on(store.settle_archive()).unwrap();
                assert_log_of(&store, &damaged, 1, 2);
                assert_log(&store, &key(1), 3);
                assert_log(&store, &key(2), 3);
                store.close();
            }
        }
    }
}

#[test]
fn damage_of_a_new_log_is_not_pardoned_by_the_erasure_of_the_old_one() {
    let runtime = runtime();
    let disk = Disk::default();
    let store = disk.open(quiet()).unwrap();
    runtime.block_on(store.append(append(&key(7), 1, 3))).unwrap();
    runtime.block_on(store.erase(key(7))).unwrap();
    runtime.block_on(store.append(append_of(&key(7), 1, 1, 3))).unwrap();
    store.close();
    let mut image = disk.image();
    flip(&mut image, b"summary of key-0007 at 3 of 1", 2);
    let disk = Disk::new(image);
    for _ in 0..2 {
        let store = disk.open(quiet()).unwrap();
        for _ in 0..2 {
            let refused = store.head(&key(7)).unwrap_err();
            assert!(matches!(refused, Error::Damaged { .. }), "{refused}");
            runtime.block_on(store.settle_archive()).unwrap();
        }
        store.close();
    }
}

/// Two keys of one length and one CRC-32.
fn keys_of_one_checksum() -> (Arc<[u8]>, Arc<[u8]>) {
    let mut seen = BTreeMap::new();
    for number in 0_u64.. {
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let key: Arc<[u8]> = Arc::from(format!("key-{mixed:016x}").as_bytes());
        if let Some(other) = seen.insert(crc32fast::hash(&key), Arc::clone(&key)) {
            return (other, key);
        }
    }
    unreachable!("there are more keys than checksums");
}

#[test]
fn erasing_a_key_does_not_hide_the_damage_of_another_one_with_its_checksum() {
    let runtime = runtime();
    let (damaged, other) = keys_of_one_checksum();
    let mut image = damaged_store(&damaged);
    // The key itself: nothing but the checksum says whose the run was.
    flip(&mut image, &[damaged.as_ref(), b"summary"].concat(), 5);
    let disk = Disk::new(image);
    for _ in 0..2 {
        let store = disk.open(quiet()).unwrap();
        for _ in 0..2 {
            runtime.block_on(store.erase(Arc::clone(&other))).unwrap();
            runtime.block_on(store.append(append(&other, 1, 2))).unwrap();
            assert_log(&store, &other, 2);
            store.head(&damaged).unwrap_err();
            runtime.block_on(store.settle_archive()).unwrap();
            assert_log(&store, &other, 2);
            store.head(&damaged).unwrap_err();
        }
        store.close();
    }
    let store = disk.open(quiet()).unwrap();
    runtime.block_on(store.erase(Arc::clone(&damaged))).unwrap();
    runtime.block_on(store.settle_archive()).unwrap();
    assert_unknown(&store, &damaged);
    assert_log(&store, &other, 2);
}
