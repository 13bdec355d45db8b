//! Flipped bits, torn files, wrong versions, and files that are not there.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use turnd_storage::fault::{Disk, FileName, Image};
use turnd_storage::{Error, Options, Store};

use crate::kit::{
    Random, append, assert_log, event, expected_head, key, number_from, quiet, read_all, runtime,
};

const KEYS: u64 = 30;
const LAST_SEQ: u64 = 12;

/// A cleanly closed store of some keys, in the journal or in the archive.
fn closed_store(archived: bool) -> Image {
    let disk = Disk::default();
    let store = disk.open(quiet()).unwrap();
    let runtime = runtime();
    runtime.block_on(async {
        let appends = (0..KEYS).map(|number| {
            let store = store.clone();
            tokio::spawn(async move {
                store.append(append(&key(number), 1, 5)).await.unwrap();
                store.append(append(&key(number), 6, LAST_SEQ - 5)).await.unwrap();
            })
        });
        for append in appends.collect::<Vec<_>>() {
            append.await.unwrap();
        }
        if archived {
            store.settle_archive().await.unwrap();
        }
    });
    store.close();
    disk.image()
}

fn find(bytes: &[u8], text: &[u8]) -> usize {
    bytes.windows(text.len()).position(|window| window == text).unwrap()
}

/// Only `damaged` is damaged, also after everything has moved and after another open.
fn assert_only_damaged(image: Image, damaged: u64) {
    let disk = Disk::new(image);
    let runtime = runtime();
    for _ in 0..2 {
        let store = disk.open(quiet()).unwrap();
        for settled in [false, true] {
            if settled {
                runtime.block_on(store.settle_archive()).unwrap();
            }
            let read = store.read(&key(damaged), 0, 1 << 20);
            assert!(matches!(read, Err(Error::Damaged { .. })), "{read:?}");
            for number in (0..KEYS).filter(|number| *number != damaged) {
                assert_log(&store, &key(number), LAST_SEQ);
            }
        }
        store.close();
    }
}

#[test]
fn a_flipped_bit_in_an_event_of_the_journal_damages_one_key() {
    for (seq, within) in [(2, 0), (7, 3), (LAST_SEQ, 5)] {
        let mut image = closed_store(false);
        let place = find(&image.journal, &event(&key(4), seq)) + within;
        image.journal[place] ^= 0x10;
        assert_only_damaged(image, 4);
    }
}

#[test]
fn a_flipped_bit_in_a_runs_header_or_key_damages_one_key() {
    // From the end of the header into the key before the first event: sizes, flags, checksum, key.
    for back in [1, 3, 9, 12, 14, 20, 24, 28, 32] {
        let mut image = closed_store(false);
        let first_run = find(&image.journal, b"summary of key-0004 at 5") - b"key-0004".len();
        image.journal[first_run + 8 - back] ^= 0x04;
        assert_only_damaged(image, 4);
    }
}

#[test]
fn a_flipped_bit_in_a_rows_directory_damages_nothing() {
    let disk = Disk::new(closed_store(false));
    let store = disk.open(quiet()).unwrap();
    runtime().block_on(store.append(append(&key(99), 1, 3))).unwrap();
    store.close();
    let mut image = disk.image();
    // The row of one run: count, checksum, offset and key hash stand before the header of 32 bytes
    // and the key.
    let run = find(&image.journal, b"key-0099summary") - 32;
    for back in [16, 12, 8, 4] {
        let mut image = image.clone();
        image.journal[run - back] ^= 0x01;
        let store = Disk::new(image).open(quiet()).unwrap();
        for number in 0..KEYS {
            assert_log(&store, &key(number), LAST_SEQ);
        }
        assert_log(&store, &key(99), 3);
    }
    // With the run damaged as well nobody can tell whose it was: the store does not open.
    image.journal[run - 4] ^= 0x01;
    image.journal[run + 1] ^= 0x01;
    let refused = Disk::new(image).open(quiet()).map(|_| ()).unwrap_err();
    assert!(matches!(refused, Error::Damaged { .. }), "{refused}");
}

#[test]
fn a_damaged_key_takes_no_appends_and_the_others_do() {
    let mut image = closed_store(false);
    let place = find(&image.journal, &event(&key(4), 3));
    image.journal[place] ^= 1;
    let store = Disk::new(image).open(quiet()).unwrap();
    let runtime = runtime();
    runtime.block_on(store.settle_archive()).unwrap();
    let refused = runtime.block_on(store.append(append(&key(4), LAST_SEQ + 1, 1))).unwrap_err();
    assert!(matches!(refused, Error::Damaged { .. }), "{refused}");
    runtime.block_on(store.append(append(&key(5), LAST_SEQ + 1, 1))).unwrap();
    assert_log(&store, &key(5), LAST_SEQ + 1);
}

/// Whatever bits flip in whichever file: the store does not open, or a key is damaged, or all of it
/// is there.
fn flip_anywhere(file: FileName, archived: bool) {
    let seed = number_from("TURND_SEED", 1);
    println!("TURND_SEED={seed}");
    let mut random = Random(seed);
    let image = closed_store(archived);
    let used: Vec<usize> = {
        let bytes = image.clone().file(file).clone();
        (0..bytes.len()).filter(|place| bytes[*place] != 0).collect()
    };
    let (mut refused, mut damaged) = (0, 0);
    for _ in 0..number_from("TURND_FLIPS", 150) {
        let mut image = image.clone();
        let place = used[random.index(used.len())];
        image.file(file)[place] ^= 1 << random.below(8);
        let store = match Disk::new(image).open(quiet()) {
            Ok(store) => store,
            Err(Error::Damaged { .. } | Error::Database { .. }) => {
                refused += 1;
                continue;
            }
            Err(other) => panic!("{other}"),
        };
        for number in 0..KEYS {
            let key = key(number);
            match read_all(&store, &key, 700) {
                Ok(events) => {
                    let expected: Vec<_> =
                        (1..=LAST_SEQ).map(|seq| (seq, event(&key, seq))).collect();
                    assert_eq!(events, expected, "flip at {place}");
                }
                Err(Error::Damaged { .. } | Error::Database { .. }) => damaged += 1,
                Err(other) => panic!("{other}"),
            }
            if let Ok(head) = store.head(&key) {
                assert_eq!(head, expected_head(&key, LAST_SEQ), "flip at {place}");
            }
        }
    }
    println!("{refused} refused, {damaged} keys damaged");
    assert!(damaged > 0);
}

#[test]
fn no_flipped_bit_of_the_journal_is_taken_for_data() {
    flip_anywhere(FileName::Journal, false);
}

#[test]
fn no_flipped_bit_of_the_archive_is_taken_for_data() {
    flip_anywhere(FileName::Archive, true);
}

#[test]
fn a_file_that_was_cut_short_is_refused() {
    for file in [FileName::Journal, FileName::Archive] {
        let mut image = closed_store(true);
        let half = image.file(file).len() / 2;
        image.file(file).truncate(half);
        assert!(Disk::new(image).open(quiet()).is_err());
    }
}

fn real_store(dir: &Path) {
    let store = Store::open(dir, quiet()).unwrap();
    runtime().block_on(store.append(append(&key(1), 1, 3))).unwrap();
    store.close();
}

#[test]
fn another_version_of_the_format_is_refused_and_left_alone() {
    let formats = [
        ("turnd-storage 1\n", "format 1"),
        ("turnd-storage 3\n", "format 3"),
        ("something else", "format something else"),
        ("", "format"),
    ];
    for (found, named) in formats {
        let dir = tempfile::tempdir().unwrap();
        real_store(dir.path());
        fs::write(dir.path().join("format"), found).unwrap();
        let contents = || {
            ["journal.redb", "archive.redb", "format"]
                .map(|name| fs::read(dir.path().join(name)).unwrap())
        };
        let before = contents();
        let refused = Store::open(dir.path(), quiet()).map(|_| ()).unwrap_err();
        assert!(matches!(refused, Error::Format { .. }), "{refused}");
        let message = refused.to_string();
        assert!(message.contains("reads format 2") && message.contains(named), "{message}");
        assert!(before == contents());
    }
}

#[test]
fn a_second_store_on_the_same_directory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), quiet()).unwrap();
    let refused = Store::open(dir.path(), quiet()).map(|_| ()).unwrap_err();
    assert!(matches!(refused, Error::Locked { .. }), "{refused}");
    runtime().block_on(store.append(append(&key(1), 1, 3))).unwrap();
    drop(store);
    assert_log(&Store::open(dir.path(), quiet()).unwrap(), &key(1), 3);
}

#[test]
fn a_missing_file_of_an_existing_store_is_not_created_anew() {
    for name in ["journal.redb", "archive.redb"] {
        let dir = tempfile::tempdir().unwrap();
        real_store(dir.path());
        fs::remove_file(dir.path().join(name)).unwrap();
        let refused = Store::open(dir.path(), quiet()).map(|_| ()).unwrap_err();
        assert!(matches!(refused, Error::Missing { .. }), "{refused}");
        assert!(!dir.path().join(name).exists());
    }
}

#[test]
fn a_creation_that_was_cut_short_is_finished_by_the_next_open() {
    let dir = tempfile::tempdir().unwrap();
    real_store(dir.path());
    // As if the power had failed while the archive was created.
    fs::remove_file(dir.path().join("format")).unwrap();
    fs::rename(dir.path().join("archive.redb"), dir.path().join("archive.redb.new")).unwrap();
    let torn = fs::File::options().write(true).open(dir.path().join("archive.redb.new")).unwrap();
    torn.write_all_at(&[0; 4096], 0).unwrap();
    let store = Store::open(dir.path(), quiet()).unwrap();
    assert_log(&store, &key(1), 3);
    assert!(dir.path().join("format").exists());
}

#[test]
fn a_store_without_room_for_its_directory_is_an_error_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let refused = Store::open(&file, Options::default()).map(|_| ()).unwrap_err();
    assert!(refused.to_string().contains("file"), "{refused}");
}
