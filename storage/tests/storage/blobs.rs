//! Blobs: stored once, kept while somebody needs them, removed when nobody does.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use turnd_storage::{Append, BlobId, Error, Store};

use crate::kit::{append, append_of, blob_files, blob_name, blob_path, key, quiet, runtime, small};

const ID: BlobId = [0xab; 32];

fn referring(number: u64, life: u64, ids: &[BlobId]) -> Append {
    Append { blobs: ids.to_vec(), ..append_of(&key(number), life, 1, 2) }
}

/// Carries out what was asked for, the removal of files included.
fn settle(store: &Store) {
    runtime().block_on(store.settle_archive()).unwrap();
}

#[test]
fn a_blob_is_stored_once_in_a_private_file() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), quiet()).unwrap();
    assert_eq!(store.blob(&ID).unwrap(), None);
    let pin = store.put_blob(ID, b"the bytes").unwrap();
    let file = blob_path(&dir.path().join("blobs"), &ID);
    let inode = file.metadata().unwrap().ino();
    let again = store.put_blob(ID, b"the bytes").unwrap();
    assert_eq!(file.metadata().unwrap().ino(), inode);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    assert_eq!(store.blob(&ID).unwrap().unwrap(), "the bytes");
    let empty = store.put_blob([0; 32], b"").unwrap();
    assert_eq!(store.blob(&[0; 32]).unwrap().unwrap(), "");
    drop((pin, again, empty));
    settle(&store);
    assert!(blob_files(&dir.path().join("blobs")).is_empty());
}

#[test]
fn a_blob_stays_while_it_is_pinned_or_referred_to() {
    let dir = tempfile::tempdir().unwrap();
    let runtime = runtime();
    let mut store = Store::open(dir.path(), quiet()).unwrap();
    let check = |store: &Store, is_there: bool| {
        settle(store);
        assert_eq!(store.blob(&ID).unwrap().is_some(), is_there);
    };
    let pin = store.put_blob(ID, b"bytes").unwrap();
    check(&store, true);
    let second = store.put_blob(ID, b"bytes").unwrap();
    drop(pin);
    check(&store, true);
    runtime.block_on(store.append(referring(1, 0, &[ID, ID]))).unwrap();
    runtime.block_on(store.append(referring(2, 0, &[ID]))).unwrap();
    drop(second);
    check(&store, true);
    runtime.block_on(store.erase(key(1))).unwrap();
    check(&store, true);
    store.close();
    store = Store::open(dir.path(), quiet()).unwrap();
    check(&store, true);
    let pin = store.put_blob(ID, b"bytes").unwrap();
    runtime.block_on(store.erase(key(2))).unwrap();
    check(&store, true);
    // The next log under the key may refer to it while it is pinned.
    runtime.block_on(store.append(referring(2, 1, &[ID]))).unwrap();
    drop(pin);
    check(&store, true);
    runtime.block_on(store.erase(key(2))).unwrap();
    check(&store, false);
}

#[test]
fn erasing_a_log_that_has_not_moved_removes_its_blobs() {
    let dir = tempfile::tempdir().unwrap();
    let runtime = runtime();
    let store = Store::open(dir.path(), quiet()).unwrap();
    let pins: Vec<_> = (0..3).map(|first| store.put_blob([first; 32], b"").unwrap()).collect();
    runtime.block_on(store.append(referring(1, 0, &[[0; 32], [1; 32]]))).unwrap();
    runtime.block_on(store.append(referring(2, 0, &[[1; 32]]))).unwrap();
    drop(pins);
    runtime.block_on(store.erase(key(1))).unwrap();
    settle(&store);
    let left = blob_files(&dir.path().join("blobs"));
    assert_eq!(left.into_iter().collect::<Vec<_>>(), [blob_name(&[1; 32])]);
}

#[test]
fn what_a_crash_left_is_removed_after_the_next_open() {
    let dir = tempfile::tempdir().unwrap();
    let runtime = runtime();
    let blobs = dir.path().join("blobs");
    let store = Store::open(dir.path(), quiet()).unwrap();
    let (kept, in_journal, left) = ([1; 32], [2; 32], [3; 32]);
    for (number, id) in [(1, kept), (2, in_journal)] {
        let pin = store.put_blob(id, b"kept").unwrap();
        runtime.block_on(store.append(referring(number, 0, &[id]))).unwrap();
        drop(pin);
        if number == 1 {
            settle(&store);
        }
    }
    let pin = store.put_blob(left, b"left").unwrap();
    store.close();
    drop(pin);
    let temporary = blobs.join("01").join(format!("{}.7.new", blob_name(&kept)));
    fs::write(temporary, b"half of it").unwrap();
    fs::write(blobs.join("01").join("not ours"), b"").unwrap();
    fs::write(blobs.join("note"), b"").unwrap();
    let store = Store::open(dir.path(), quiet()).unwrap();
    settle(&store);
    fs::remove_file(blobs.join("note")).unwrap();
    let names = blob_files(&blobs).into_iter().collect::<Vec<_>>();
    assert_eq!(names, [blob_name(&kept), blob_name(&in_journal), "not ours".to_owned()]);
}

#[test]
fn a_blob_that_cannot_be_written_is_an_error_and_the_store_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), quiet()).unwrap();
    fs::write(dir.path().join("blobs/ab"), b"in the way").unwrap();
    let refused = store.put_blob(ID, b"bytes").unwrap_err();
    assert!(matches!(refused, Error::File { .. }), "{refused}");
    assert_eq!(store.blob(&ID).unwrap(), None);
    runtime().block_on(store.append(append(&key(1), 1, 2))).unwrap();
    drop(store.put_blob([0; 32], b"bytes").unwrap());
    settle(&store);
    assert!(store.failure().borrow().is_none());
}

/// One side puts, refers and erases, the others put and look: whoever holds a pin finds the bytes.
#[test]
fn a_blob_that_is_put_while_it_is_removed_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), small()).unwrap();
    let done = AtomicBool::new(false);
    let runtime = runtime();
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for _ in 0..2 {
            threads.push(scope.spawn(|| {
                let mut found = 0;
                while !done.load(Ordering::Relaxed) {
                    let pin = store.put_blob(ID, b"the bytes").unwrap();
                    assert_eq!(store.blob(&ID).unwrap().unwrap(), "the bytes");
                    found += 1;
                    drop(pin);
                    std::thread::yield_now();
                }
                found
            }));
        }
        for life in 0..60 {
            let pin = store.put_blob(ID, b"the bytes").unwrap();
            runtime.block_on(store.append(referring(1, life, &[ID]))).unwrap();
            drop(pin);
            if life % 3 == 0 {
                settle(&store);
            }
            assert!(store.blob(&ID).unwrap().is_some());
            runtime.block_on(store.erase(key(1))).unwrap();
            settle(&store);
        }
        done.store(true, Ordering::Relaxed);
        for thread in threads {
            assert!(thread.join().unwrap() > 0);
        }
    });
    settle(&store);
    assert!(blob_files(&dir.path().join("blobs")).is_empty());
}

#[test]
fn a_store_without_its_directory_of_blobs_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    Store::open(dir.path(), quiet()).unwrap().close();
    fs::remove_dir(dir.path().join("blobs")).unwrap();
    let refused = Store::open(dir.path(), quiet()).map(|_| ()).unwrap_err();
    assert!(matches!(refused, Error::Missing { .. }), "{refused}");
}
