//! Which keys are refused because a run of theirs was damaged.
//!
//! A damaged run may hide whose it is: all that stands for its key then is a checksum, which another
//! key may share. So damage marks a checksum, and an erasure of a key pardons that key alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::index::At;
use crate::record::key_hash;

#[derive(Default)]
pub(crate) struct Damage {
    hashes: BTreeSet<u32>,
    /// Keys of a marked checksum that were erased after the damage, and where.
    pardoned: BTreeMap<Arc<[u8]>, At>,
}

impl Damage {
    pub(crate) fn covers(&self, key: &[u8]) -> bool {
        !self.hashes.is_empty()
            && self.hashes.contains(&key_hash(key))
            && !self.pardoned.contains_key(key)
    }

    /// Marks damage that was found at a place of the journal. A key that was erased behind it stays
    /// pardoned.
    pub(crate) fn mark(&mut self, hash: u32, at: At) {
        self.hashes.insert(hash);
        self.pardoned.retain(|key, erased| *erased > at || key_hash(key) != hash);
    }

    /// The key was erased: what was damaged before is not its any more.
    pub(crate) fn pardon(&mut self, key: &Arc<[u8]>, erased: At) {
        if self.hashes.contains(&key_hash(key)) {
            self.pardoned.insert(Arc::clone(key), erased);
        }
    }
}
