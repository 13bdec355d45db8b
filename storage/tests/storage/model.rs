//! Random histories against a plain map, and many writers at once.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use turnd_storage::fault::Disk;
use turnd_storage::{Options, Store};

use crate::kit::{
    Random, append, assert_log, event, key, number_from, owes, quiet, read_all, runtime, small,
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
        1 => Just(Action::Settle),
        1 => Just(Action::Reopen),
        4 => (0..6_u64, 0..60_u64, 0..4000_usize)
            .prop_map(|(key, after, bytes_max)| Action::Read { key, after, bytes_max }),
    ]
}

struct Tested {
    disk: Disk,
    options: Options,
    store: Store,
    /// The plain model: the last seq of each key.
    model: BTreeMap<u64, u64>,
}

impl Tested {
    fn act(&mut self, action: Action) {
        match action {
            Action::Append { key: number, count } => {
                let last = self.model.entry(number).or_default();
                let append = append(&key(number), *last + 1, count);
                runtime().block_on(self.store.append(append)).unwrap();
                *last += count;
            }
            Action::Conflict { key: number, off } => {
                let last = self.model.get(&number).copied().unwrap_or(0);
                let append = append(&key(number), last + 1 + off, 1);
                runtime().block_on(self.store.append(append)).unwrap_err();
            }
            Action::Settle => runtime().block_on(self.store.settle_archive()).unwrap(),
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
        let last = self.model.get(&number).copied().unwrap_or(0);
        let page = self.store.read(&key, after, bytes_max).unwrap();
        let mut bytes = 0;
        for ((seq, found), place) in page.events.iter().zip(after + 1..) {
            assert_eq!((*seq, found), (place, &event(&key, place)));
            bytes += found.len();
        }
        let read = page.events.len() as u64;
        assert!(read <= 1 || bytes <= bytes_max);
        assert_eq!(page.more, after + read < last);
        assert!(read > 0 || after >= last);
    }

    fn invariant_store_agrees_with_model(&self) {
        for (number, last_seq) in &self.model {
            let key = key(*number);
            let head = self.store.head(&key).unwrap();
            assert_eq!(head.map(|head| head.last_seq), Some(*last_seq));
            assert_eq!(read_all(&self.store, &key, 2000).unwrap().len() as u64, *last_seq);
        }
        let owing = self.model.iter().filter(|(_, last_seq)| owes(**last_seq));
        let owing: Vec<_> = owing.map(|(number, _)| key(*number)).collect();
        assert_eq!(self.store.owing().unwrap(), owing);
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
        let store = disk.open(options.clone()).unwrap();
        let mut tested = Tested { disk, options, store, model: BTreeMap::new() };
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
