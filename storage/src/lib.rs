//! An append-only log of opaque bytes with group commit, on redb.
//!
//! A [`Store`] keeps one log for each opaque key. Events have dense seqs from 1, an append is there
//! as a whole or not at all, and `Ok` means that it is synced to disk. `FORMAT.md` describes every
//! byte on disk, the rules of recovery, and what else was measured.
//!
//! ```text
//! append -> queue -> journal's thread: group, one transaction, one sync -> answers, in order
//!                      journal.redb (bounded, one row or a few for each group)
//!                        | archive's thread: small steps, each durable before the rows go
//!                        v
//!                      archive.redb (compressed segments, heads, what is owed, documents)
//! read   -> segments of the key, then its part of the journal (found by an index in memory)
//! ```
//!
//! - `append` what is appended and how a group is packed; `writer` the journal's thread.
//! - `archiver` the archive's thread; `moving` one step of the move.
//! - `reading` pages and heads; `index` what the journal holds, in memory.
//! - `row`, `record`, `segment`, `directory`, `document` the bytes; `tables` where they are.
//! - `files` the data directory; `store` the surface; `shared` what threads share.
//!
//! After the first failed write or sync nothing more is accepted ([`Store::failure`]): what a
//! failed sync left on disk is unknown until the next open.
//!

mod append;
mod archiver;
mod directory;
mod document;
mod error;
#[cfg(feature = "fault")]
pub mod fault;
mod files;
mod index;
mod moving;
mod options;
mod reading;
mod record;
mod row;
mod segment;
mod shared;
mod store;
mod tables;
mod writer;

pub use append::{Append, Head, KEY_BYTES_MAX};
pub use directory::StoredHead;
pub use document::DOCUMENT_BYTES_MAX;
pub use error::Error;
pub use options::Options;
pub use reading::Page;
pub use store::Store;
