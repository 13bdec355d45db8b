//! Lists: pages in order, whatever is in the journal and whatever in the archive.

use std::sync::Arc;

use bytes::Bytes;
use turnd_storage::fault::{Disk, Kind};
use turnd_storage::{Append, Error, Head, Options, Place, Store};

use crate::kit::{key, list_all, quiet, runtime};

/// A head-only append that puts the key at these places.
fn standing(key: &Arc<[u8]>, places: &[(&'static [u8], u64)]) -> Append {
    let place =
        |(list, rank): &(&'static [u8], u64)| Place { list: Bytes::from_static(list), rank: *rank };
    Append {
        key: Arc::clone(key),
        first_seq: 1,
        events: Vec::new(),
        head: Head {
            summary: Bytes::from(format!("{places:?}")),
            owes: false,
            places: places.iter().map(place).collect(),
        },
        blobs: Vec::new(),
    }
}

fn keys_of(store: &Store, list: &[u8]) -> Vec<(u64, Arc<[u8]>)> {
    let rows = list_all(store, list, 2).unwrap();
    rows.into_iter().map(|row| (row.rank, row.key)).collect()
}

#[test]
fn a_key_stands_where_its_latest_head_says() {
    let disk = Disk::default();
    let mut store = disk.open(quiet()).unwrap();
    let runtime = runtime();
    let put = |store: &Store, number, places: &[(&'static [u8], u64)]| {
        runtime.block_on(store.append(standing(&key(number), places))).unwrap();
    };
    for settled in 0..4 {
        let end_step = |store: Store, step| {
            match settled {
                1 => runtime.block_on(store.settle_archive()).unwrap(),
                2 if step == 1 => runtime.block_on(store.settle_archive()).unwrap(),
                3 => {
                    store.close();
                    return disk.open(quiet()).unwrap();
                }
                _ => {}
            }
            store
        };
        put(&store, 1, &[(b"a", 5), (b"b", 1)]);
        put(&store, 2, &[(b"a", 5)]);
        put(&store, 3, &[(b"a", u64::MAX), (b"ab", 0)]);
        put(&store, 4, &[(b"a", 0)]);
        store = end_step(store, 1);
        let all = [(u64::MAX, key(3)), (5, key(1)), (5, key(2)), (0, key(4))];
        assert_eq!(keys_of(&store, b"a"), all);
        assert_eq!(keys_of(&store, b"b"), [(1, key(1))]);
        assert_eq!(keys_of(&store, b"ab"), [(0, key(3))]);
        assert_eq!(keys_of(&store, b""), []);

        put(&store, 1, &[(b"a", 6)]);
        put(&store, 3, &[]);
        put(&store, 4, &[(b"a", 0), (b"b", 9)]);
        store = end_step(store, 2);
        assert_eq!(keys_of(&store, b"a"), [(6, key(1)), (5, key(2)), (0, key(4))]);
        assert_eq!(keys_of(&store, b"b"), [(9, key(4))]);
        assert_eq!(keys_of(&store, b"ab"), []);
        let summaries = store.list(b"a", Some((6, &key(1))), 1).unwrap();
        assert_eq!(summaries[0].summary, format!("{:?}", [(b"a", 5)]).as_bytes());
        for number in 1..5 {
            runtime.block_on(store.erase(key(number))).unwrap();
        }
        assert_eq!(keys_of(&store, b"a"), []);
    }
}

#[test]
fn a_page_does_not_read_the_whole_list() {
    const KEYS: u64 = 4_000;
    let disk = Disk::default();
    // No caches, so that reads reach the disk.
    let options = Options { journal_cache_bytes: 0, archive_cache_bytes: 0, ..quiet() };
    let store = disk.open(options).unwrap();
    let runtime = runtime();
    let put = |numbers: Vec<u64>, rank: u64| {
        runtime.block_on(async {
            let appends = numbers.into_iter().map(|number| {
                let store = store.clone();
                let append = standing(&key(number), &[(b"list", rank + number)]);
                tokio::spawn(async move { store.append(append).await.unwrap() })
            });
            for append in appends.collect::<Vec<_>>() {
                append.await.unwrap();
            }
        });
    };
    put((0..KEYS).collect(), 0);
    runtime.block_on(store.settle_archive()).unwrap();
    put((0..KEYS / 100).map(|number| number * 100).collect(), 1);
    let before = disk.count(Kind::Read);
    let page = store.list(b"list", Some((2_000, &key(2_000))), 20).unwrap();
    let ranks: Vec<u64> = page.iter().map(|row| row.rank).collect();
    assert_eq!(ranks, (1_980..2_000).rev().map(|rank| rank.max(1_901)).collect::<Vec<_>>());
    let reads = disk.count(Kind::Read) - before;
    assert!(reads < 150, "{reads} reads");
}

#[test]
fn a_damaged_row_that_a_page_meets_is_made_up_for_by_the_heads() {
    let disk = Disk::default();
    let store = disk.open(quiet()).unwrap();
    let runtime = runtime();
    for number in 0..20 {
        runtime
            .block_on(store.append(standing(&key(number), &[(b"list-of-all", number)])))
            .unwrap();
    }
    runtime.block_on(store.settle_archive()).unwrap();
    store.close();
    let image = disk.image();
    let name = b"list-of-all";
    let rows = image.archive.windows(name.len()).enumerate().filter(|(_, text)| text == name);
    let expected: Vec<_> = (0..20).rev().map(|rank| (rank, key(rank))).collect();
    let mut flips = 0;
    for (place, _) in rows {
        // The rank behind the name of the list, then the key.
        for (within, bit) in [(11, 1), (14, 4), (22, 1)] {
            let mut image = image.clone();
            let Some(byte) = image.archive.get_mut(place + within) else { continue };
            *byte ^= bit;
            let store = Disk::new(image).open(quiet()).unwrap();
            let Ok(rows) = store.list(name, None, 100) else { continue };
            let rows: Vec<_> = rows.into_iter().map(|row| (row.rank, row.key)).collect();
            // A key with a damaged head is left out.
            let sound =
                |row: &(u64, Arc<[u8]>)| store.head(&row.1).is_ok_and(|head| head.is_some());
            let expected: Vec<_> = expected.iter().filter(|row| sound(row)).cloned().collect();
            assert_eq!(rows, expected);
            flips += 1;
        }
    }
    assert!(flips > 60, "{flips}");
}

#[test]
fn too_many_places_and_too_long_names_are_refused() {
    const LONGEST: &[u8] = &[b'l'; 512];
    const TOO_LONG: &[u8] = &[b'l'; 513];
    let store = Disk::default().open(quiet()).unwrap();
    let runtime = runtime();
    let refused = standing(&key(1), &[(b"a".as_slice(), 1); 9]);
    let refused = runtime.block_on(store.append(refused)).unwrap_err();
    assert!(matches!(refused, Error::TooMany { count: 9, count_max: 8, .. }), "{refused}");
    let refused = standing(&key(1), &[(TOO_LONG, 1)]);
    let refused = runtime.block_on(store.append(refused)).unwrap_err();
    assert!(matches!(refused, Error::TooLarge { .. }), "{refused}");
    let mut refused = standing(&key(1), &[]);
    refused.blobs = vec![[1; 32]; 1025];
    let refused = runtime.block_on(store.append(refused)).unwrap_err();
    assert!(matches!(refused, Error::TooMany { .. }), "{refused}");
    let largest = standing(&key(1), &[(LONGEST, 1); 8]);
    runtime.block_on(store.append(largest)).unwrap();
    assert_eq!(keys_of(&store, LONGEST), [(1, key(1))]);
    assert!(store.list(LONGEST, None, 0).unwrap().is_empty());
}
