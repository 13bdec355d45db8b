//! An append-only log of opaque bytes with group commit, on redb.

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
