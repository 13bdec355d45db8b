//! What can go wrong, as one type.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// A failure of the store.
///
/// Only [`Error::Unknown`] and [`Error::Poisoned`] leave the outcome of a write open; every other
/// error of a write means that nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process (or another [`crate::Store`] of this one) holds the directory.
    #[error("the data directory {} is in use by another process", dir.display())]
    Locked { dir: PathBuf },

    /// The directory was written by another version of the format. Nothing was changed.
    #[error(
        "the data directory {} has storage format {found}, this program reads format {supported}",
        dir.display()
    )]
    Format { dir: PathBuf, found: String, supported: String },

    /// A file that belongs to an existing store is not there. Nothing was changed.
    #[error("the file {} is missing from an existing data directory", path.display())]
    Missing { path: PathBuf },

    /// A file or directory could not be created, read, or synced.
    #[error("cannot {action} {}", path.display())]
    File { action: &'static str, path: PathBuf, source: io::Error },

    /// The database library could not open or read a file.
    #[error("cannot {action}")]
    Database { action: &'static str, source: Box<redb::Error> },

    /// The append does not continue its key's log. Nothing was written.
    #[error("an append must start at seq {expected}, not {got}")]
    Conflict { expected: u64, got: u64 },

    /// A key, an append or a document is larger than the store takes. Nothing was written.
    #[error("{what} of {bytes} bytes is larger than the {bytes_max} bytes allowed")]
    TooLarge { what: &'static str, bytes: u64, bytes_max: u64 },

    /// More of something than the store takes. Nothing was written.
    #[error("{count} {what} are more than the {count_max} allowed")]
    TooMany { what: &'static str, count: usize, count_max: usize },

    /// The journal is full and the archive has not caught up in time. Nothing was written; try
    /// again later.
    #[error("the journal is full")]
    Full,

    /// Stored bytes of this key (or document, or file) do not match their checksum or leave a gap.
    /// Other keys are not affected.
    #[error("stored data of {} is damaged: {what}", name.escape_ascii())]
    Damaged { name: Arc<[u8]>, what: &'static str },

    /// The write was in flight when storage failed: it may or may not be there after the next open.
    #[error("the outcome of the write is unknown: {reason}")]
    Unknown { reason: Arc<str> },

    /// An earlier write failed: this store takes no more writes, and the process must exit. Nothing
    /// of this write was started.
    #[error("storage has failed: {reason}")]
    Poisoned { reason: Arc<str> },

    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

impl Error {
    pub(crate) fn database(action: &'static str, source: impl Into<redb::Error>) -> Self {
        Self::Database { action, source: Box::new(source.into()) }
    }

    pub(crate) fn damaged(name: &[u8], what: &'static str) -> Self {
        Self::Damaged { name: name.into(), what }
    }
}

/// The error with its causes on one line, for the reason a failed store gives.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
