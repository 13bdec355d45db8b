//! What a caller chooses when it opens a store.

use std::time::Duration;

/// Sizes and waits of a [`crate::Store`].
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of rows the journal may hold before appends get [`crate::Error::Full`]. A quarter of
    /// it is the largest append.
    pub journal_bytes_max: u64,
    /// Bytes of rows in the journal at which they start to move to the archive.
    pub journal_move_bytes: u64,
    /// Page cache of the journal file.
    pub journal_cache_bytes: usize,
    /// Page cache of the archive file.
    pub archive_cache_bytes: usize,
    /// How long the log must be quiet before what the journal holds moves to the archive all the
    /// same.
    pub idle: Duration,
    /// How long an append may wait for room in a full journal.
    pub full_wait: Duration,
    /// Two syncs for each commit of the journal. redb advises it where an attacker chooses the
    /// stored values and also the moment of a power cut and the order in which pages reach the
    /// disk; `FORMAT.md` says why one is the default. The archive always commits in two phases.
    pub journal_two_phase: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            journal_bytes_max: 64 << 20,
            journal_move_bytes: 16 << 20,
            journal_cache_bytes: 16 << 20,
            archive_cache_bytes: 64 << 20,
            idle: Duration::from_secs(2),
            full_wait: Duration::from_secs(2),
            journal_two_phase: false,
        }
    }
}

impl Options {
    /// The largest append: a few of them fit into the journal at a time.
    pub(crate) fn append_bytes_max(&self) -> u64 {
        self.journal_bytes_max / 4
    }

    /// How far a new journal's file is grown ahead: what is in use while rows move, and their
    /// pages' rounding.
    pub(crate) fn journal_grow_bytes(&self) -> u64 {
        self.journal_move_bytes.saturating_mul(2).min(self.journal_bytes_max)
    }

    /// Above this the writer waits a moment for the archive before each group.
    pub(crate) fn journal_slow_bytes(&self) -> u64 {
        self.journal_bytes_max - self.journal_bytes_max / 8
    }
}
