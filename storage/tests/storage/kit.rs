//! What the tests share: keys, events that can be told from their place, and short ways to use a
//! store.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use turnd_storage::{Append, Error, Head, Options, Store, StoredHead};

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
    let place = seq.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(*key.last().unwrap());
    let padding = "-padding-".repeat(usize::try_from(place >> 58).unwrap());
    Bytes::from(format!("{}:{seq}:{place:x}{padding}", key.escape_ascii()))
}

pub fn summary(key: &[u8], last_seq: u64) -> Bytes {
    Bytes::from(format!("summary of {} at {last_seq}", key.escape_ascii()))
}

pub fn owes(last_seq: u64) -> bool {
    last_seq % 3 == 1
}

/// The append of `count` events from `first_seq`.
pub fn append(key: &Arc<[u8]>, first_seq: u64, count: u64) -> Append {
    let last_seq = first_seq + count - 1;
    Append {
        key: Arc::clone(key),
        first_seq,
        events: (first_seq..=last_seq).map(|seq| event(key, seq)).collect(),
        head: Head { summary: summary(key, last_seq), owes: owes(last_seq) },
    }
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
    for bytes_max in [1, 500, 1 << 20] {
        let events = read_all(store, key, bytes_max).unwrap();
        let expected: Vec<_> = (1..=last_seq).map(|seq| (seq, event(key, seq))).collect();
        assert_eq!(events, expected, "{}", key.escape_ascii());
    }
    assert_eq!(store.head(key).unwrap(), expected_head(key, last_seq));
}

pub fn expected_head(key: &[u8], last_seq: u64) -> Option<StoredHead> {
    (last_seq > 0).then(|| StoredHead {
        last_seq,
        summary: summary(key, last_seq),
        owes: owes(last_seq),
    })
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
