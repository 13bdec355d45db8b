//! Compaction: what is erased is in no file afterwards, everything else is, and a crash at any
//! point of it loses nothing.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use tempfile::TempDir;
use turnd_storage::{BlobId, Error, Options, Place, Store, compact};

use crate::kit::{
    LISTS, Random, append, append_of, assert_log, assert_log_of, blob_bytes, blobs, expected_list,
    key, list_all, quiet, runtime,
};

const KEYS: u64 = 12;
const MARKED_BLOB: BlobId = [0xee; 32];

fn options() -> Options {
    Options { journal_move_bytes: 64 << 10, journal_bytes_max: 1 << 20, ..quiet() }
}

/// Bytes that nothing makes shorter and that stand nowhere else.
fn marker() -> Vec<u8> {
    let mut random = Random(7);
    (0..64).flat_map(|_| random.next().to_le_bytes()).collect()
}

/// How many files below the directory hold a part of the marker.
fn files_with_marker(dir: &Path) -> usize {
    let marker = marker();
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let counts = entries.map(|path| {
        if path.is_dir() {
            return files_with_marker(&path);
        }
        let bytes = fs::read(&path).unwrap();
        usize::from(bytes.windows(16).any(|window| window == &marker[..16]))
    });
    counts.sum()
}

/// A store in which a marked key is erased, part of it before a move and part of it after, and a
/// document is replaced. Key 1 was erased and begins anew.
fn erased_store() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), options()).unwrap();
    let runtime = runtime();
    let marked = |first_seq| {
        let mut marked = append(&key(99), first_seq, 3);
        marked.events[1] = Bytes::from(marker());
        marked.head.summary = Bytes::from(marker());
        marked.head.places.push(Place { list: Bytes::from(marker()), rank: 5 });
        marked.blobs.push(MARKED_BLOB);
        marked
    };
    runtime.block_on(async {
        for number in 0..KEYS {
            let append = append(&key(number), 1, 4);
            let pins = crate::kit::put_blobs(&store, &append);
            store.append(append).await.unwrap();
            drop(pins);
        }
        let pin = store.put_blob(MARKED_BLOB, &marker()).unwrap();
        store.append(marked(1)).await.unwrap();
        drop(pin);
        store.settle_archive().await.unwrap();
        store.put_document("document", Bytes::from(marker())).await.unwrap();
        store.put_document("document", Bytes::from_static(b"plain")).await.unwrap();
        store.append(marked(4)).await.unwrap();
        store.erase(key(99)).await.unwrap();
        store.erase(key(1)).await.unwrap();
        store.append(append_of(&key(1), 1, 1, 2)).await.unwrap();
    });
    store.close();
    dir
}

fn assert_whole(dir: &Path) {
    let store = Store::open(dir, options()).unwrap();
    for number in (0..KEYS).filter(|number| *number != 1) {
        assert_log(&store, &key(number), 4);
        for id in blobs(&key(number), 0, 4) {
            assert_eq!(store.blob(&id).unwrap().unwrap(), blob_bytes(&id));
        }
    }
    assert_log_of(&store, &key(1), 1, 2);
    assert_eq!(store.head(&key(99)).unwrap(), None);
    assert_eq!(store.document("document").unwrap().unwrap(), "plain");
    let log = |number| if number == 1 { (key(1), 1, 2) } else { (key(number), 0, 4) };
    for list in LISTS {
        let expected = expected_list(list, (0..KEYS).map(log));
        assert_eq!(list_all(&store, list, 5).unwrap(), expected);
    }
    store.close();
    for name in ["journal.redb.new", "archive.redb.new"] {
        assert!(!dir.join(name).exists());
    }
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let (from, to) = {
            let entry = entry.unwrap();
            (entry.path(), to.join(entry.file_name()))
        };
        if from.is_dir() {
            fs::create_dir_all(&to).unwrap();
            copy(&from, &to);
        } else {
            fs::copy(&from, &to).unwrap();
        }
    }
}

#[test]
fn what_was_erased_is_in_no_file_after_a_compaction() {
    let dir = erased_store();
    assert!(files_with_marker(dir.path()) >= 3);
    let compacted = compact(dir.path(), &options(), &mut |_| {}).unwrap();
    assert_eq!(files_with_marker(dir.path()), 0);
    assert!(compacted.bytes_after <= compacted.bytes_before, "{compacted:?}");
    assert_whole(dir.path());
    compact(dir.path(), &options(), &mut |_| {}).unwrap();
    assert_whole(dir.path());
}

#[test]
fn a_compaction_gives_the_room_of_erased_logs_back() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), options()).unwrap();
    let runtime = runtime();
    let mut random = Random(1);
    for number in 0..40 {
        let mut append = append(&key(number), 1, 2);
        append.events[0] = (0..25_000).flat_map(|_| random.next().to_le_bytes()).collect();
        runtime.block_on(store.append(append)).unwrap();
    }
    runtime.block_on(store.settle_archive()).unwrap();
    for number in 1..40 {
        runtime.block_on(store.erase(key(number))).unwrap();
    }
    store.close();
    let compacted = compact(dir.path(), &options(), &mut |_| {}).unwrap();
    assert!(compacted.bytes_before > 8 << 20, "{compacted:?}");
    assert!(compacted.bytes_after < 3 << 20, "{compacted:?}");
}

/// The store as a crash leaves it at each step: with the archive's copy half or fully written, with
/// the archive replaced and the journal not, with the journal's copy half written, and at the end.
#[test]
fn a_compaction_that_is_cut_short_loses_nothing_and_is_finished_by_the_next() {
    let before = erased_store();
    let moved = tempfile::tempdir().unwrap();
    copy(before.path(), moved.path());
    let store = Store::open(moved.path(), options()).unwrap();
    runtime().block_on(store.settle_archive()).unwrap();
    store.close();
    let after = tempfile::tempdir().unwrap();
    copy(before.path(), after.path());
    compact(after.path(), &options(), &mut |_| {}).unwrap();

    // The journal is empty in `moved` and still holds its rows in `before`: a rename may become
    // durable before the journal lets go of them.
    for base in [before.path(), moved.path()] {
        for (archive_new, archive, journal_new, journal) in [
            (Some(0), false, None, false),
            (Some(2), false, None, false),
            (Some(1), false, None, false),
            (None, true, None, false),
            (None, true, Some(2), false),
            (None, true, Some(1), false),
            (None, true, None, true),
        ] {
            let cut = tempfile::tempdir().unwrap();
            copy(base, cut.path());
            for (name, new, replaced) in
                [("archive.redb", archive_new, archive), ("journal.redb", journal_new, journal)]
            {
                let mut bytes = fs::read(after.path().join(name)).unwrap();
                if replaced {
                    fs::write(cut.path().join(name), &bytes).unwrap();
                }
                if let Some(part) = new {
                    bytes.truncate(bytes.len().checked_div(part).unwrap_or(0));
                    fs::write(cut.path().join(name).with_added_extension("new"), bytes).unwrap();
                }
            }
            assert_whole(cut.path());
            compact(cut.path(), &options(), &mut |_| {}).unwrap();
            assert_eq!(files_with_marker(cut.path()), 0);
            assert_whole(cut.path());
        }
    }
}

#[test]
fn a_store_that_is_open_or_not_there_is_not_compacted() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), options()).unwrap();
    let refused = compact(dir.path(), &options(), &mut |_| {}).unwrap_err();
    assert!(matches!(refused, Error::Locked { .. }), "{refused}");
    store.close();
    let absent = dir.path().join("absent");
    let refused = compact(&absent, &options(), &mut |_| {}).unwrap_err();
    assert!(matches!(refused, Error::Missing { .. }), "{refused}");
    assert!(!absent.exists());
}

#[test]
fn a_large_archive_is_copied_in_several_transactions() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { journal_bytes_max: 64 << 20, ..options() };
    let store = Store::open(dir.path(), options.clone()).unwrap();
    let runtime = runtime();
    let mut random = Random(3);
    let mut large = |number| {
        let mut append = append(&key(number), 1, 2);
        append.events[0] = (0..50_000).flat_map(|_| random.next().to_le_bytes()).collect();
        append
    };
    let written: Vec<_> = (0..100).map(&mut large).collect();
    for append in &written {
        runtime.block_on(store.append(append.clone())).unwrap();
    }
    store.close();
    compact(dir.path(), &options, &mut |_| {}).unwrap();
    let store = Store::open(dir.path(), options).unwrap();
    for append in &written {
        let page = store.read(&append.key, 0, usize::MAX).unwrap();
        let events: Vec<Bytes> = page.events.into_iter().map(|(_, event)| event).collect();
        assert!(events == append.events);
    }
}
