//! What the tests share: keys, events that can be told from their place, and short ways to use a
//! store.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use turnd_storage::{
    Append, BlobId, BlobPin, Error, Head, Listed, Options, Place, Store, StoredHead,
};

/// Options under which every part of the store is used by a few kilobytes.
pub fn small() -> Options {
    Options {
        journal_bytes_max: 1 << 20,
        journal_move_bytes: 16 << 10,
        journal_cache_bytes: 1 << 20,
        archive_cache_bytes: 1 << 20,
        idle: Duration::from_millis(20),
        full_wait: Duration::from_millis(200),
        ..Options::default()
    }
}

/// Options under which nothing moves unless it is asked for.
pub fn quiet() -> Options {
    Options { idle: Duration::from_hours(1), ..Options::default() }
}

pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

pub fn key(number: u64) -> Arc<[u8]> {
    Arc::from(format!("key-{number:04}").as_bytes())
}

/// The event at a place: bytes that no other place has, of a size that varies.
pub fn event(key: &[u8], seq: u64) -> Bytes {
    event_of(key, 0, seq)
}

/// The same in the log that a key has after so many erasures.
pub fn event_of(key: &[u8], life: u64, seq: u64) -> Bytes {
    let place = (seq + (life << 20)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let place = place ^ u64::from(*key.last().unwrap());
    let padding = "-padding-".repeat(usize::try_from(place >> 58).unwrap());
    Bytes::from(format!("{}:{seq}:{place:x}{padding}", key.escape_ascii()))
}

pub fn summary(key: &[u8], life: u64, last_seq: u64) -> Bytes {
    Bytes::from(format!("summary of {} at {last_seq} of {life}", key.escape_ascii()))
}

/// Every key stands in one list, some stand in a second one, with ranks that move and meet.
pub fn places(key: &[u8], life: u64, last_seq: u64) -> Vec<Place> {
    let number = u64::from(*key.last().unwrap());
    let place = |list: &'static [u8], rank| Place { list: Bytes::from_static(list), rank };
    let mut places = vec![place(b"all", (last_seq + life) % 5)];
    if !(number + last_seq).is_multiple_of(3) {
        places.push(place(b"some", u64::MAX - number % 2));
    }
    places
}

pub const LISTS: [&[u8]; 3] = [b"all", b"some", b"none"];

/// Two blobs: one that other keys refer to as well, and one of its own.
pub fn blobs(key: &[u8], life: u64, last_seq: u64) -> Vec<BlobId> {
    let mut own = [0xb0; 32];
    own[1..9].copy_from_slice(&last_seq.to_le_bytes());
    own[9..17].copy_from_slice(&life.to_le_bytes());
    own[17..25].copy_from_slice(&key[key.len() - 8..]);
    vec![[u8::try_from(last_seq % 4).unwrap(); 32], own]
}

pub fn owes(last_seq: u64) -> bool {
    last_seq % 3 == 1
}

/// The append of `count` events from `first_seq`.
pub fn append(key: &Arc<[u8]>, first_seq: u64, count: u64) -> Append {
    append_of(key, 0, first_seq, count)
}

pub fn append_of(key: &Arc<[u8]>, life: u64, first_seq: u64, count: u64) -> Append {
    let last_seq = first_seq + count - 1;
    Append {
        key: Arc::clone(key),
        first_seq,
        events: (first_seq..=last_seq).map(|seq| event_of(key, life, seq)).collect(),
        head: Head {
            summary: summary(key, life, last_seq),
            owes: owes(last_seq),
            places: places(key, life, last_seq),
        },
        blobs: blobs(key, life, last_seq),
    }
}

/// What a blob holds.
pub fn blob_bytes(id: &BlobId) -> Vec<u8> {
    id.repeat(3)
}

/// Stores the blobs of an append. The pins are to be held until it is done.
pub fn put_blobs(store: &Store, append: &Append) -> Vec<BlobPin> {
    let put = append.blobs.iter().map(|id| store.put_blob(*id, &blob_bytes(id)).unwrap());
    put.collect()
}

/// The names of all files below a directory of blobs.
pub fn blob_files(dir: &Path) -> BTreeSet<String> {
    let folders = std::fs::read_dir(dir).unwrap().map(|folder| folder.unwrap().path());
    let files = folders.flat_map(|folder| std::fs::read_dir(folder).unwrap());
    files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
}

pub fn blob_name(id: &BlobId) -> String {
    id.iter().fold(String::new(), |name, byte| format!("{name}{byte:02x}"))
}

/// Where a blob is in a directory of blobs.
pub fn blob_path(dir: &Path, id: &BlobId) -> PathBuf {
    dir.join(format!("{:02x}", id[0])).join(blob_name(id))
}

/// Reads the whole log in pages of `bytes_max`.
pub fn read_all(store: &Store, key: &[u8], bytes_max: usize) -> Result<Vec<(u64, Bytes)>, Error> {
    let mut events: Vec<(u64, Bytes)> = Vec::new();
    loop {
        let after = events.last().map_or(0, |(seq, _)| *seq);
        let page = store.read(key, after, bytes_max)?;
        assert!(!(page.events.is_empty() && page.more), "an empty page with more to come");
        events.extend(page.events);
        if !page.more {
            return Ok(events);
        }
    }
}

/// Asserts that the key's log is exactly `last_seq` events and its head agrees.
pub fn assert_log(store: &Store, key: &[u8], last_seq: u64) {
    assert_log_of(store, key, 0, last_seq);
}

pub fn assert_log_of(store: &Store, key: &[u8], life: u64, last_seq: u64) {
    for bytes_max in [1, 500, 1 << 20] {
        let events = read_all(store, key, bytes_max).unwrap();
        let expected: Vec<_> = (1..=last_seq).map(|seq| (seq, event_of(key, life, seq))).collect();
        assert_eq!(events, expected, "{}", key.escape_ascii());
    }
    assert_eq!(store.head(key).unwrap(), expected_head_of(key, life, last_seq));
}

pub fn expected_head(key: &[u8], last_seq: u64) -> Option<StoredHead> {
    expected_head_of(key, 0, last_seq)
}

pub fn expected_head_of(key: &[u8], life: u64, last_seq: u64) -> Option<StoredHead> {
    (last_seq > 0).then(|| StoredHead {
        last_seq,
        summary: summary(key, life, last_seq),
        owes: owes(last_seq),
        places: places(key, life, last_seq),
    })
}

/// Reads a whole list in pages of `limit`.
pub fn list_all(store: &Store, list: &[u8], limit: usize) -> Result<Vec<Listed>, Error> {
    let mut rows: Vec<Listed> = Vec::new();
    loop {
        let after = rows.last().map(|last| (last.rank, last.key.as_ref()));
        let page = store.list(list, after, limit)?;
        let is_last = page.len() < limit;
        rows.extend(page);
        if is_last {
            return Ok(rows);
        }
    }
}

/// What a list holds when each of these keys has had so many erasures and has so many events.
pub fn expected_list(
    list: &[u8],
    keys: impl IntoIterator<Item = (Arc<[u8]>, u64, u64)>,
) -> Vec<Listed> {
    let mut rows: Vec<Listed> = Vec::new();
    for (key, life, last_seq) in keys {
        let places = places(&key, life, last_seq);
        let ranks = places.iter().filter(|place| place.list == list).map(|place| place.rank);
        let summary = summary(&key, life, last_seq);
        rows.extend(ranks.map(|rank| Listed {
            key: Arc::clone(&key),
            rank,
            last_seq,
            summary: summary.clone(),
        }));
    }
    rows.sort_by(|one, other| other.rank.cmp(&one.rank).then_with(|| one.key.cmp(&other.key)));
    rows
}

/// Random numbers from a seed (splitmix64), for tests that print it.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn index(&mut self, bound: usize) -> usize {
        usize::try_from(self.below(bound as u64)).unwrap()
    }
}

/// A number from the environment, for what a longer run changes.
pub fn number_from(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}
