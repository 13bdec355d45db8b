//! An append-only log of opaque bytes with group commit, on redb.
//!
//! A [`Store`] keeps one log for each opaque key. Events have dense seqs from 1, an append is there
//! as a whole or not at all, and `Ok` means that it is synced to disk. A key can stand in lists,
//! refer to blobs, and be erased. `FORMAT.md` describes every byte on disk, the rules of recovery,
//! and what else was measured.
//!
//! ```text
//! append -> queue -> journal's thread: group, one transaction, one sync -> answers, in order
//!                      journal.redb (bounded, one row or a few for each group)
//!                        | archive's thread: small steps, each durable before the rows go
//!                        v
//!                      archive.redb (compressed segments, heads, what is owed, lists, documents)
//! read   -> segments of the key, then its part of the journal (found by an index in memory)
//! ```
//!
//! - `append` what is appended and how a group is packed; `writer` the journal's thread.
//! - `archiver` the archive's thread; `moving` one step of the move; `erasing` what an erasure takes
//!   out of the archive.
//! - `reading` pages and heads; `lists` pages of lists; `index` what the journal holds, in memory;
//!   `damage` which keys are refused.
//! - `blobs` their files and pins; `sweeping` removes those that nobody needs.
//! - `row`, `record`, `place`, `segment`, `directory`, `document` the bytes; `tables` where they are.
//! - `files` the data directory; `compacting` writes it anew; `store` the surface; `shared` what
//!   threads share.
//!
//! Measured against append and `fdatasync` of the same bytes to a plain file: a round of appends
//! takes 1.9 times as long for one session, 1.6 times for 16 and 1.1 times for 256 at once (medians,
//! where a sync is quick; where it is slow, the sync is all that counts). One row for each event
//! keyed by (key, seq) would take up to 9 times, and two-phase commits a second sync, which crash
//! images show to be needless in the journal.
//!
//! After the first failed write or sync nothing more is accepted ([`Store::failure`]): what a
//! failed sync left on disk is unknown until the next open.

mod append;
mod archiver;
mod blobs;
mod compacting;
mod damage;
mod directory;
mod document;
mod erasing;
mod error;
#[cfg(feature = "fault")]
pub mod fault;
mod files;
mod index;
mod lists;
mod moving;
mod options;
mod place;
mod reading;
mod record;
mod row;
mod segment;
mod shared;
mod store;
mod sweeping;
mod tables;
mod writer;

pub use append::{Append, BLOBS_MAX, Head, KEY_BYTES_MAX};
pub use blobs::{BlobId, BlobPin};
pub use compacting::{Compacted, compact};
pub use directory::StoredHead;
pub use document::DOCUMENT_BYTES_MAX;
pub use error::Error;
pub use lists::Listed;
pub use options::Options;
pub use place::{LIST_BYTES_MAX, PLACES_MAX, Place};
pub use reading::Page;
pub use store::Store;
