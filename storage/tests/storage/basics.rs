//! Appends, reads, heads and documents, with and without the archive.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use bytes::Bytes;
use turnd_storage::{Append, Error, Head, Options, Store};

use crate::kit::{append, assert_log, event, key, owes, quiet, runtime, small};

#[test]
fn what_is_appended_is_read_back_before_and_after_the_move_and_a_reopen() {
    let dir = tempfile::tempdir().unwrap();
    let runtime = runtime();
    let key = key(1);
    let store = Store::open(dir.path(), quiet()).unwrap();
    runtime.block_on(store.append(append(&key, 1, 5))).unwrap();
    runtime.block_on(store.append(append(&key, 6, 1))).unwrap();
    assert_log(&store, &key, 6);
    runtime.block_on(store.settle_archive()).unwrap();
    assert_log(&store, &key, 6);
    runtime.block_on(store.append(append(&key, 7, 3))).unwrap();
    assert_log(&store, &key, 9);
    store.close();

    let store = Store::open(dir.path(), quiet()).unwrap();
    assert_log(&store, &key, 9);
    runtime.block_on(store.append(append(&key, 10, 2))).unwrap();
    runtime.block_on(store.settle_archive()).unwrap();
    assert_log(&store, &key, 11);
}

#[test]
fn an_append_that_does_not_continue_the_log_is_a_conflict_and_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let runtime = runtime();
    let key = key(1);
    let store = Store::open(dir.path(), quiet()).unwrap();
    runtime.block_on(store.append(append(&key, 1, 2))).unwrap();
    for settled in [false, true] {
        if settled {
            runtime.block_on(store.settle_archive()).unwrap();
        }
        for got in [0, 1, 2, 4, u64::MAX - 1] {
            let mut wrong = append(&key, 3, 1);
            wrong.first_seq = got;
            let refused = runtime.block_on(store.append(wrong)).unwrap_err();
            assert!(matches!(refused, Error::Conflict { .. }), "{refused}");
        }
        assert_log(&store, &key, 2);
    }
}

#[test]
fn of_two_appends_that_race_for_a_seq_one_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let key = key(1);
    let store = Store::open(dir.path(), quiet()).unwrap();
    let (first, second) = runtime().block_on(async {
        let first = tokio::spawn({
            let (store, append) = (store.clone(), append(&key, 1, 2));
            async move { store.append(append).await }
        });
        let second = store.append(append(&key, 1, 2)).await;
        (first.await.unwrap(), second)
    });
    assert!(first.is_ok() != second.is_ok());
    let refused = first.and(second).unwrap_err();
    assert!(matches!(refused, Error::Conflict { expected: 3, got: 1 }), "{refused}");
    assert_log(&store, &key, 2);
}

#[test]
fn events_of_every_size_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let runtime = runtime();
    let key = key(1);
    let store = Store::open(dir.path(), quiet()).unwrap();
    let sizes = [0, 1, 4_096, 65_000, 65_463, 65_464, 65_465, 70_000, 1 << 20, 3, 200_000, 0];
    let events: Vec<Bytes> =
        (0_u8..).zip(sizes).map(|(fill, size)| Bytes::from(vec![fill; size])).collect();
    let head = Head { summary: Bytes::from(vec![7; 100_000]), owes: false, places: Vec::new() };
    let whole = Append {
        key: Arc::clone(&key),
        first_seq: 1,
        events: events.clone(),
        head: head.clone(),
        blobs: Vec::new(),
    };
    runtime.block_on(store.append(whole)).unwrap();
    for settled in [false, true] {
        if settled {
            runtime.block_on(store.settle_archive()).unwrap();
        }
        let read = crate::kit::read_all(&store, &key, 100_000).unwrap();
        let read: Vec<Bytes> = read.into_iter().map(|(_, event)| event).collect();
        assert!(read == events);
        assert_eq!(store.head(&key).unwrap().unwrap().summary, head.summary);
    }
}

#[test]
fn an_append_without_events_changes_the_head_only() {
    let dir = tempfile::tempdir().unwrap();
    let runtime = runtime();
    let key = key(1);
    let store = Store::open(dir.path(), quiet()).unwrap();
    let only_head = |first_seq, summary: &'static str| Append {
        key: Arc::clone(&key),
        first_seq,
        events: Vec::new(),
        head: Head {
            summary: Bytes::from_static(summary.as_bytes()),
            owes: true,
            places: Vec::new(),
        },
        blobs: Vec::new(),
    };
    runtime.block_on(store.append(only_head(1, "empty"))).unwrap();
    assert_eq!(store.head(&key).unwrap().unwrap().last_seq, 0);
    runtime.block_on(store.settle_archive()).unwrap();
    assert_eq!(store.head(&key).unwrap().unwrap().summary, "empty");
    runtime.block_on(store.append(append(&key, 1, 2))).unwrap();
    runtime.block_on(store.append(only_head(3, "later"))).unwrap();
    runtime.block_on(store.settle_archive()).unwrap();
    let head = store.head(&key).unwrap().unwrap();
    assert_eq!((head.last_seq, head.summary), (2, Bytes::from_static(b"later")));
    assert_eq!(store.read(&key, 0, 1 << 20).unwrap().events.len(), 2);
}

#[test]
fn owing_names_the_keys_whose_latest_head_owes() {
    let dir = tempfile::tempdir().unwrap();
    let runtime = runtime();
    let store = Store::open(dir.path(), quiet()).unwrap();
    let mut last_seqs = [0; 12];
    for round in 0..6 {
        for (number, last_seq) in (0_u64..).zip(&mut last_seqs) {
            let count = (number + round) % 4 + 1;
            runtime.block_on(store.append(append(&key(number), *last_seq + 1, count))).unwrap();
            *last_seq += count;
        }
        if round % 2 == 1 {
            runtime.block_on(store.settle_archive()).unwrap();
        }
        let expected: Vec<_> = (0..)
            .zip(last_seqs)
            .filter(|(_, seq)| owes(*seq))
            .map(|(number, _)| key(number))
            .collect();
        assert_eq!(store.owing().unwrap(), expected);
    }
}

#[test]
fn a_page_ends_at_its_size_and_says_whether_there_is_more() {
    let dir = tempfile::tempdir().unwrap();
    let runtime = runtime();
    let key = key(1);
    let store = Store::open(dir.path(), quiet()).unwrap();
    runtime.block_on(store.append(append(&key, 1, 4))).unwrap();
    runtime.block_on(store.settle_archive()).unwrap();
    runtime.block_on(store.append(append(&key, 5, 4))).unwrap();
    let size = |seqs: std::ops::RangeInclusive<u64>| -> usize {
        seqs.map(|seq| event(&key, seq).len()).sum()
    };
    for (after, last) in [(0, 2), (0, 4), (1, 5), (3, 8), (4, 6), (6, 8)] {
        let page = store.read(&key, after, size(after + 1..=last)).unwrap();
        let seqs: Vec<u64> = page.events.iter().map(|(seq, _)| *seq).collect();
        assert_eq!(seqs, (after + 1..=last).collect::<Vec<_>>());
        assert_eq!(page.more, last < 8);
    }
    let at_the_end = store.read(&key, 8, 1 << 20).unwrap();
    assert!(at_the_end.events.is_empty() && !at_the_end.more);
    assert!(store.read(&key, 100, 1 << 20).unwrap().events.is_empty());
    assert_eq!(store.head(b"nobody").unwrap(), None);
    assert!(store.read(b"nobody", 0, 1 << 20).unwrap().events.is_empty());
}

#[test]
fn documents_are_put_replaced_listed_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    let runtime = runtime();
    let store = Store::open(dir.path(), quiet()).unwrap();
    for (name, bytes) in [("a/1", "one"), ("a/2", ""), ("b/1", "two"), ("a/1", "one again")] {
        runtime.block_on(store.put_document(name, Bytes::from_static(bytes.as_bytes()))).unwrap();
    }
    store.close();
    let store = Store::open(dir.path(), quiet()).unwrap();
    assert_eq!(store.document("a/1").unwrap().unwrap(), "one again");
    assert_eq!(store.document("a/2").unwrap().unwrap(), "");
    let listed = store.documents("a/").unwrap();
    assert_eq!(listed, [("a/1".into(), Bytes::from("one again")), ("a/2".into(), Bytes::new())]);
    runtime.block_on(store.remove_document("a/1")).unwrap();
    runtime.block_on(store.remove_document("not there")).unwrap();
    assert_eq!(store.document("a/1").unwrap(), None);
    assert_eq!(store.documents("").unwrap().len(), 2);
}

#[test]
fn what_is_too_large_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let runtime = runtime();
    let options = Options { journal_bytes_max: 1 << 20, ..small() };
    let store = Store::open(dir.path(), options).unwrap();
    let long_key: Arc<[u8]> = Arc::from(vec![b'k'; 1025]);
    let mut large = append(&key(1), 1, 1);
    large.events.push(Bytes::from(vec![0; 1 << 20]));
    for refused in [append(&long_key, 1, 1), large] {
        let refused = runtime.block_on(store.append(refused)).unwrap_err();
        assert!(matches!(refused, Error::TooLarge { .. }), "{refused}");
    }
    let document = Bytes::from(vec![0; 2 << 20]);
    let refused = runtime.block_on(store.put_document("name", document)).unwrap_err();
    assert!(matches!(refused, Error::TooLarge { .. }), "{refused}");
}

#[test]
fn files_are_private() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("new/data");
    let store = Store::open(&data, quiet()).unwrap();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&data), 0o700);
    for entry in std::fs::read_dir(&data).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), if path.is_dir() { 0o700 } else { 0o600 });
    }
    store.close();
}
