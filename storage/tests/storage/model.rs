//! Random histories against a plain map, and many writers at once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use tempfile::TempDir;
use turnd_storage::fault::Disk;
use turnd_storage::{BlobId, Options, Store};

use crate::kit::{
    LISTS, Random, append, append_of, assert_log, blob_bytes, blob_files, blob_name, event,
    event_of, expected_list, key, list_all, number_from, owes, places, put_blobs, quiet, read_all,
    runtime, small, summary,
};

#[derive(Clone, Copy, Debug)]
enum Action {
    Append {
        key: u64,
        count: u64,
    },
    /// At a seq that is off by this.
    Conflict {
        key: u64,
        off: u64,
    },
    Erase {
        key: u64,
    },
    Settle,
    Reopen,
    Read {
        key: u64,
        after: u64,
        bytes_max: usize,
    },
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        8 => (0..6_u64, 0..20_u64).prop_map(|(key, count)| Action::Append { key, count }),
        1 => (0..6_u64, 1..9_u64).prop_map(|(key, off)| Action::Conflict { key, off }),
        2 => (0..6_u64).prop_map(|key| Action::Erase { key }),
        1 => Just(Action::Settle),
        1 => Just(Action::Reopen),
        4 => (0..6_u64, 0..60_u64, 0..4000_usize)
            .prop_map(|(key, after, bytes_max)| Action::Read { key, after, bytes_max }),
    ]
}

/// The plain model of a key.
#[derive(Clone, Debug, Default)]
struct Log {
    /// How often it was erased.
    life: u64,
    /// `None` before the first append.
    last_seq: Option<u64>,
    blobs: BTreeSet<BlobId>,
}

struct Tested {
    disk: Disk,
    blobs: TempDir,
    options: Options,
    store: Store,
    model: BTreeMap<u64, Log>,
}

impl Tested {
    fn act(&mut self, action: Action) {
        match action {
            Action::Append { key: number, count } => {
                let log = self.model.entry(number).or_default();
                let last = log.last_seq.unwrap_or(0);
                let append = append_of(&key(number), log.life, last + 1, count);
                log.last_seq = Some(last + count);
                log.blobs.extend(&append.blobs);
                let pins = put_blobs(&self.store, &append);
                runtime().block_on(self.store.append(append)).unwrap();
                drop(pins);
            }
            Action::Conflict { key: number, off } => {
                let log = self.model.get(&number).cloned().unwrap_or_default();
                let append = append(&key(number), log.last_seq.unwrap_or(0) + 1 + off, 1);
                runtime().block_on(self.store.append(append)).unwrap_err();
            }
            Action::Erase { key: number } => {
                runtime().block_on(self.store.erase(key(number))).unwrap();
                let log = self.model.entry(number).or_default();
                *log = Log { life: log.life + 1, ..Log::default() };
            }
            Action::Settle => {
                runtime().block_on(self.store.settle_archive()).unwrap();
                let referenced = self.model.values().flat_map(|log| &log.blobs);
                let referenced: BTreeSet<String> = referenced.map(blob_name).collect();
                assert_eq!(blob_files(self.blobs.path()), referenced);
            }
            Action::Reopen => {
                self.store.clone().close();
                let empty = Disk::default().open(quiet()).unwrap();
                drop(std::mem::replace(&mut self.store, empty));
                self.store = self.disk.open(self.options.clone()).unwrap();
            }
            Action::Read { key: number, after, bytes_max } => self.read(number, after, bytes_max),
        }
    }

    fn read(&self, number: u64, after: u64, bytes_max: usize) {
        let key = key(number);
        let log = self.model.get(&number).cloned().unwrap_or_default();
        let last = log.last_seq.unwrap_or(0);
        let page = self.store.read(&key, after, bytes_max).unwrap();
        let mut bytes = 0;
        for ((seq, found), place) in page.events.iter().zip(after + 1..) {
            assert_eq!((*seq, found), (place, &event_of(&key, log.life, place)));
            bytes += found.len();
        }
        let read = page.events.len() as u64;
        assert!(read <= 1 || bytes <= bytes_max);
        assert_eq!(page.more, after + read < last);
        assert!(read > 0 || after >= last);
    }

    fn invariant_store_agrees_with_model(&self) {
        for (number, Log { life, last_seq, blobs }) in &self.model {
            let key = key(*number);
            let head = self.store.head(&key).unwrap();
            assert_eq!(head.as_ref().map(|head| head.last_seq), *last_seq);
            if let Some(head) = head {
                assert_eq!(head.summary, summary(&key, *life, head.last_seq));
                assert_eq!(head.places, places(&key, *life, head.last_seq));
            }
            let events = read_all(&self.store, &key, 2000).unwrap();
            assert_eq!(events.len() as u64, last_seq.unwrap_or(0));
            for id in blobs {
                assert_eq!(self.store.blob(id).unwrap().unwrap(), blob_bytes(id));
            }
        }
        let logs = || {
            let logs = self.model.iter();
            logs.filter_map(|(number, log)| Some((key(*number), log.life, log.last_seq?)))
        };
        let owing = logs().filter(|(_, _, last_seq)| owes(*last_seq));
        let owing: Vec<_> = owing.map(|(key, _, _)| key).collect();
        assert_eq!(self.store.owing().unwrap(), owing);
        for list in LISTS {
            for limit in [1, 3, 100] {
                let rows = list_all(&self.store, list, limit).unwrap();
                assert_eq!(rows, expected_list(list, logs()));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn the_store_is_a_map_of_logs(
        actions in prop::collection::vec(action(), 1..40),
        moves_on_its_own in any::<bool>(),
    ) {
        let options = if moves_on_its_own {
            Options { journal_move_bytes: 4 << 10, idle: Duration::from_millis(1), ..small() }
        } else {
            quiet()
        };
        let disk = Disk::default();
        let blobs = tempfile::tempdir().unwrap();
        disk.keep_blobs_in(blobs.path());
        let store = disk.open(options.clone()).unwrap();
        let mut tested = Tested { disk, blobs, options, store, model: BTreeMap::new() };
        for action in actions {
            tested.act(action);
            tested.invariant_store_agrees_with_model();
        }
    }
}

#[test]
fn many_tasks_append_and_read_while_the_journal_moves() {
    let seed = number_from("TURND_SEED", 1);
    println!("TURND_SEED={seed}");
    let dir = tempfile::tempdir().unwrap();
    let options = Options { journal_bytes_max: 256 << 10, ..small() };
    let store = Store::open(dir.path(), options.clone()).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let last_seqs = runtime.block_on(async {
        let tasks: Vec<_> = (0..40)
            .map(|number| tokio::spawn(one_writer(store.clone(), number, Random(seed ^ number))))
            .collect();
        let mut last_seqs = Vec::new();
        for task in tasks {
            last_seqs.push(task.await.unwrap());
        }
        last_seqs
    });
    for (number, last_seq) in (0..).zip(&last_seqs) {
        assert_log(&store, &key(number), *last_seq);
    }
    store.close();
    let store = Store::open(dir.path(), options).unwrap();
    for (number, last_seq) in (0..).zip(last_seqs) {
        assert_log(&store, &key(number), last_seq);
    }
}

async fn one_writer(store: Store, number: u64, mut random: Random) -> u64 {
    let key = key(number);
    let mut last_seq = 0;
    for _ in 0..40 {
        let count = random.below(7) + 1;
        store.append(append(&key, last_seq + 1, count)).await.unwrap();
        last_seq += count;
        let after = random.below(last_seq);
        let page = store.read(&key, after, 1 << 20).unwrap();
        assert_eq!(page.events.len() as u64, last_seq - after);
        assert!(page.events.iter().all(|(seq, found)| *found == event(&key, *seq)));
        assert_eq!(store.head(&key).unwrap().unwrap().last_seq, last_seq);
    }
    last_seq
}
