//! The shell around the core: one actor per session that makes events durable before it shows them,
//! answers, and acts.

mod actor;
mod blobs;
mod dispatch;
mod engine;
mod feed;
#[cfg(test)]
mod kit;
mod lists;
mod recovery;
mod registry;
mod shared;
mod tail;

pub use engine::Engine;
pub use feed::End;
pub use lists::{ListCursor, ListPage};
pub use shared::{EngineError, WatchRequest};
pub use tail::Tail;
