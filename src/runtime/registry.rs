//! Which sessions are in memory. A lock here guards a map of handles and nothing else.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;

use super::actor::{Actor, Mail};
use super::feed::{End, Feed};
use super::shared::Shared;
use crate::ids::SessionKey;

/// Maps, so that sessions seldom meet at a lock.
const SHARDS: usize = 64;
/// Commands that may wait for one session; more wait with their senders.
const MAILBOX_MAX: usize = 256;

pub(super) struct Registry {
    shards: [Mutex<BTreeMap<SessionKey, Entry>>; SHARDS],
    hasher: RandomState,
    /// The server stops: nobody waits for events any more.
    closed: AtomicBool,
}

struct Entry {
    mailbox: mpsc::Sender<Mail>,
    /// Known once the log is read.
    feed: Option<Arc<Feed>>,
}

impl Default for Registry {
    fn default() -> Self {
        let shards = std::array::from_fn(|_| Mutex::default());
        Self { shards, hasher: RandomState::new(), closed: AtomicBool::new(false) }
    }
}

impl Registry {
    /// The mailbox of a session's actor, which is started if need be.
    pub(super) fn mailbox(shared: &Arc<Shared>, key: &SessionKey) -> mpsc::Sender<Mail> {
        let mut sessions = shared.registry.shard(key);
        if let Some(entry) = sessions.get(key) {
            return entry.mailbox.clone();
        }
        let (mailbox, mail) = mpsc::channel(MAILBOX_MAX);
        sessions.insert(key.clone(), Entry { mailbox: mailbox.clone(), feed: None });
        drop(sessions);
        tokio::spawn(Actor::run(Arc::clone(shared), key.clone(), mail));
        mailbox
    }

    /// Makes the feed of a session known. One that comes after the others were closed is closed.
    pub(super) fn set_feed(&self, key: &SessionKey, feed: &Arc<Feed>) {
        if let Some(entry) = self.shard(key).get_mut(key) {
            entry.feed = Some(Arc::clone(feed));
        }
        // `close_feeds` sets this before it takes any lock, so a feed that it missed sees it.
        if self.closed.load(Ordering::Acquire) {
            feed.close(End::Stopped);
        }
    }

    /// Takes a session out of memory unless somebody holds its mailbox, has written to it, or
    /// watches. Handles are given out under the same lock, so nothing can come in after.
    pub(super) fn leave(&self, key: &SessionKey, mail: &mpsc::Receiver<Mail>) -> bool {
        let mut shard = self.shard(key);
        let wanted = shard.get(key).is_some_and(|entry| {
            entry.mailbox.strong_count() > 1
                || !mail.is_empty()
                || entry.feed.as_ref().is_some_and(|feed| feed.is_watched())
        });
        if !wanted {
            shard.remove(key);
        }
        !wanted
    }

    /// Forgets a session whatever is under way: its actor cannot go on.
    pub(super) fn remove(&self, key: &SessionKey) {
        self.shard(key).remove(key);
    }

    /// Ends every watcher, now and from now on.
    pub(super) fn close_feeds(&self) {
        self.closed.store(true, Ordering::Release);
        for shard in &self.shards {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            for feed in shard.values().filter_map(|entry| entry.feed.as_ref()) {
                feed.close(End::Stopped);
            }
        }
    }

    #[expect(clippy::indexing_slicing, reason = "the index is taken modulo the length")]
    fn shard(&self, key: &SessionKey) -> MutexGuard<'_, BTreeMap<SessionKey, Entry>> {
        let hash = self.hasher.hash_one(key);
        let index = usize::try_from(hash % SHARDS as u64).unwrap_or(0);
        self.shards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
