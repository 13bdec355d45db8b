//! Power cuts at any moment, also during recovery: whatever was acknowledged is there, and nothing
//! that was not appended.
//!
//! `TURND_CRASH_IMAGES` sets how many images are opened, `TURND_SEED` where the random numbers
//! start.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use turnd_storage::fault::{Disk, Image};
use turnd_storage::{Options, Store};

use crate::images::Durable;
use crate::kit::{
    LISTS, Random, append_of, blob_files, blob_name, blob_path, blobs, event_of, expected_head_of,
    expected_list, key, list_all, number_from, owes, read_all, small,
};

const KEYS: u64 = 12;
const IMAGES_OF_ONE_RUN: usize = 40;
/// Of so many images one is looked at with its blobs.
const IMAGES_WITHOUT_BLOBS: u64 = 8;

/// A log: how often its key was erased before, and its last seq.
type Log = (u64, u64);

/// What was asked of one key.
#[derive(Clone, Debug)]
struct Expected {
    /// The log as it was at first, and after each append and erasure that was started.
    logs: Vec<Log>,
    /// When which of them was acknowledged: the count of operations of the disk, and its position.
    acknowledged: Vec<(usize, u64)>,
}

impl Default for Expected {
    fn default() -> Self {
        Self { logs: vec![(0, 0)], acknowledged: Vec::new() }
    }
}

impl Expected {
    /// The logs that may be there after a crash at operation `at`, with their positions. Nothing
    /// tells empty ones apart, so the latest comes first.
    fn possible(&self, at: usize) -> impl Iterator<Item = (usize, Log)> {
        let durable = usize::try_from(acknowledged(&self.acknowledged, at)).unwrap();
        self.logs.iter().copied().enumerate().skip(durable).rev()
    }

    /// Which of them the store has.
    fn found(&self, store: &Store, key: &[u8], at: usize) -> Result<(usize, Log), String> {
        let head = store.head(key).map_err(|error| error.to_string())?;
        let is_it =
            |(_, (life, last_seq)): &(usize, Log)| head == expected_head_of(key, *life, *last_seq);
        let found = self.possible(at).find(is_it);
        found.ok_or_else(|| format!("{}: {head:?} is none of its heads", key.escape_ascii()))
    }
}

/// What was asked of the store.
#[derive(Clone, Debug, Default)]
struct Oracle {
    keys: BTreeMap<Arc<[u8]>, Expected>,
    documents_started: u64,
    documents_acknowledged: Vec<(usize, u64)>,
}

impl Oracle {
    /// Everything acknowledged before operation `at` as if it had been so from the start, to go on
    /// from an image.
    fn at_crash(&self, at: usize) -> Self {
        let mut oracle = self.clone();
        for expected in oracle.keys.values_mut() {
            expected.acknowledged = vec![(0, acknowledged(&expected.acknowledged, at))];
        }
        oracle.documents_acknowledged = vec![(0, acknowledged(&self.documents_acknowledged, at))];
        oracle
    }
}

fn acknowledged(all: &[(usize, u64)], at: usize) -> u64 {
    let before = all.iter().filter(|(when, _)| *when <= at);
    before.map(|(_, seq)| *seq).max().unwrap_or(0)
}

fn options(two_phase: bool) -> Options {
    Options {
        journal_move_bytes: 6 << 10,
        journal_cache_bytes: 64 << 10,
        archive_cache_bytes: 64 << 10,
        idle: Duration::from_millis(3),
        journal_two_phase: two_phase,
        ..small()
    }
}

/// Appends to all keys at once, with moves and documents in between.
fn work(disk: &Disk, store: &Store, oracle: &mut Oracle, seed: u64, rounds: u64) {
    let mut tasks = Vec::new();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        for number in 0..KEYS {
            let expected = oracle.keys.remove(&key(number)).unwrap_or_default();
            let (disk, store) = (disk.clone(), store.clone());
            let random = Random(seed ^ (number << 32));
            tasks.push(tokio::spawn(append_to_one(disk, store, number, expected, random, rounds)));
        }
        for round in 0..rounds / 4 {
            oracle.documents_started += 1;
            let version = oracle.documents_started;
            let bytes = Bytes::from(version.to_le_bytes().to_vec());
            store.put_document("document", bytes).await.unwrap();
            oracle.documents_acknowledged.push((disk.ops_count(), version));
            if round % 3 == 2 {
                store.settle_archive().await.unwrap();
            }
        }
        for (number, task) in (0..).zip(tasks) {
            oracle.keys.insert(key(number), task.await.unwrap());
        }
    });
}

/// Appends to a key, and erases it at times.
async fn append_to_one(
    disk: Disk,
    store: Store,
    number: u64,
    mut expected: Expected,
    mut random: Random,
    rounds: u64,
) -> Expected {
    let key = key(number);
    let (position, mut log) = expected.found(&store, &key, 0).unwrap();
    // What a crash took is not awaited any more.
    expected.logs.truncate(position + 1);
    for _ in 0..rounds {
        let (life, last_seq) = log;
        if random.below(7) == 0 {
            log = (life + 1, 0);
            expected.logs.push(log);
            store.erase(Arc::clone(&key)).await.unwrap();
        } else {
            let count = random.below(5) + 1;
            log = (life, last_seq + count);
            expected.logs.push(log);
            store.append(append_of(&key, life, last_seq + 1, count)).await.unwrap();
        }
        expected.acknowledged.push((disk.ops_count(), expected.logs.len() as u64 - 1));
    }
    expected
}

/// Says what is wrong with a store opened after a power cut at operation `at`.
fn check(store: &Store, oracle: &Oracle, at: usize) -> Result<(), String> {
    let owing = store.owing().map_err(|error| error.to_string())?;
    let mut logs = Vec::new();
    for (key, expected) in &oracle.keys {
        let name = key.escape_ascii();
        let events = read_all(store, key, 700).map_err(|error| format!("{name}: {error}"))?;
        let (_, (life, last_seq)) = expected.found(store, key, at)?;
        if events.len() as u64 != last_seq {
            return Err(format!("{name}: {} events of {last_seq}", events.len()));
        }
        for ((seq, found), place) in events.iter().zip(1..) {
            if *seq != place || *found != event_of(key, life, place) {
                return Err(format!("{name}: wrong event at {place}"));
            }
        }
        if owing.contains(key) != (last_seq > 0 && owes(last_seq)) {
            return Err(format!("{name}: the index of what is owed is wrong at {last_seq}"));
        }
        if last_seq > 0 {
            logs.push((Arc::clone(key), life, last_seq));
        }
    }
    for list in LISTS {
        let rows = list_all(store, list, 5).map_err(|error| error.to_string())?;
        if rows != expected_list(list, logs.iter().cloned()) {
            return Err(format!("list {}: {rows:?} for {logs:?}", list.escape_ascii()));
        }
    }
    check_document(store, oracle, at)
}

fn check_document(store: &Store, oracle: &Oracle, at: usize) -> Result<(), String> {
    let document = store.document("document").map_err(|error| error.to_string())?;
    let version = document.map_or(0, |bytes| u64::from_le_bytes(bytes[..].try_into().unwrap()));
    let durable = acknowledged(&oracle.documents_acknowledged, at);
    if version < durable || version > oracle.documents_started {
        return Err(format!("document {version}, acknowledged {durable}"));
    }
    Ok(())
}

/// Opens the image with every blob that was ever referred to: those of the logs that are found must
/// stay, and all others must go.
fn check_blobs(image: Image, oracle: &Oracle, at: usize, options: &Options) -> Result<(), String> {
    let dir = tempfile::tempdir().unwrap();
    let put = |id| {
        let path = blob_path(dir.path(), &id);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, b"").unwrap();
    };
    for (key, expected) in &oracle.keys {
        let all = expected.logs.iter();
        all.flat_map(|(life, last_seq)| blobs(key, *life, *last_seq)).for_each(put);
    }
    let disk = Disk::new(image);
    disk.keep_blobs_in(dir.path());
    let store = disk.open(options.clone()).map_err(|error| format!("{error:?}"))?;
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(store.settle_archive()).map_err(|error| error.to_string())?;
    check(&store, oracle, at)?;
    let mut referred = BTreeSet::new();
    for (key, expected) in &oracle.keys {
        let (_, (life, last_seq)) = expected.found(&store, key, at)?;
        let ends =
            expected.logs.iter().filter(|log| log.0 == life && (1..=last_seq).contains(&log.1));
        let ids = ends.flat_map(|(life, last_seq)| blobs(key, *life, *last_seq));
        referred.extend(ids.map(|id| blob_name(&id)));
    }
    let files = blob_files(dir.path());
    if files != referred {
        let lost: Vec<_> = referred.difference(&files).collect();
        return Err(format!("blobs: {lost:?} lost, {} of {} there", files.len(), referred.len()));
    }
    Ok(())
}

/// One run of the store on one disk, and the images of power cuts during it.
fn run(seed: u64, base: Image, oracle: &mut Oracle, options: &Options) -> (Disk, Vec<usize>) {
    let disk = Disk::new(base);
    let store = disk.open(options.clone()).unwrap();
    let created = disk.ops_count();
    work(&disk, &store, oracle, seed, 24);
    drop(store);
    let mut random = Random(seed);
    let end = disk.ops_count();
    let mut cuts: Vec<usize> =
        (0..IMAGES_OF_ONE_RUN).map(|_| created + random.index(end - created + 1)).collect();
    cuts.sort_unstable();
    (disk, cuts)
}

/// Opens the image, checks it, works on it, and cuts the power a second time at any point of that,
/// recovery included.
fn crash_twice(
    image: Image,
    oracle: &Oracle,
    at: usize,
    seed: u64,
    options: &Options,
) -> Result<(), String> {
    let mut random = Random(seed);
    if random.below(IMAGES_WITHOUT_BLOBS) == 0 {
        check_blobs(image.clone(), oracle, at, options)?;
    }
    let disk = Disk::new(image.clone());
    let store = disk.open(options.clone()).map_err(|error| format!("first: {error:?}"))?;
    let recovered = disk.ops_count();
    check(&store, oracle, at).map_err(|error| format!("first: {error}"))?;
    let mut oracle = oracle.at_crash(at);
    work(&disk, &store, &mut oracle, seed, 2);
    drop(store);
    // As often within the recovery as after it.
    let ops = disk.ops();
    let second = match random.below(2) {
        0 => random.index(recovered + 1),
        _ => random.index(ops.len() + 1),
    };
    let mut durable = Durable::new(image, ops);
    durable.advance(second);
    let disk = Disk::new(durable.image(&mut random));
    let store = disk.open(options.clone()).map_err(|error| format!("second: {error:?}"))?;
    check(&store, &oracle, second).map_err(|error| format!("second at {second}: {error}"))
}

fn crash(images: usize, two_phase: bool) {
    let seed = number_from("TURND_SEED", 1);
    println!("TURND_SEED={seed} TURND_CRASH_IMAGES={images} two-phase {two_phase}");
    let options = options(two_phase);
    let mut opened = 0;
    for run_seed in seed.. {
        let mut oracle = Oracle::default();
        let (disk, cuts) = run(run_seed, Image::default(), &mut oracle, &options);
        let mut durable = Durable::new(Image::default(), disk.ops());
        let mut random = Random(!run_seed);
        for at in cuts {
            durable.advance(at);
            let image = durable.image(&mut random);
            if let Err(wrong) = crash_twice(image, &oracle, at, random.next(), &options) {
                panic!("run {run_seed}, cut at {at}: {wrong}");
            }
            opened += 1;
            if opened == images {
                return;
            }
        }
    }
}

#[test]
fn a_power_cut_loses_nothing_acknowledged_with_two_phase_commits() {
    crash(usize::try_from(number_from("TURND_CRASH_IMAGES", 100)).unwrap(), true);
}

#[test]
fn a_power_cut_loses_nothing_acknowledged_with_one_phase_commits() {
    crash(usize::try_from(number_from("TURND_CRASH_IMAGES", 100)).unwrap(), false);
}

#[test]
fn the_checker_sees_what_a_disk_loses_that_lies_about_syncs() {
    let options = options(true);
    let mut oracle = Oracle::default();
    let disk = Disk::default();
    let store = disk.open(options.clone()).unwrap();
    disk.lie_about_syncs();
    work(&disk, &store, &mut oracle, 1, 24);
    let end = disk.ops_count();
    drop(store);
    let mut durable = Durable::new(Image::default(), disk.ops());
    durable.advance(end);
    let mut random = Random(1);
    let mut seen = 0;
    for _ in 0..20 {
        let found = match Disk::new(durable.image(&mut random)).open(options.clone()) {
            Ok(store) => check(&store, &oracle, end),
            Err(error) => Err(error.to_string()),
        };
        seen += usize::from(found.is_err());
    }
    // An image may hold everything by chance.
    assert!(seen > 10, "{seen} of 20 losses seen");
}
