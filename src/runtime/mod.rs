//! The shell around the core: one actor per session that makes events durable before it shows them,
//! answers, and acts.

mod actor;
mod dispatch;
mod engine;
mod feed;
mod recovery;
mod registry;
mod shared;
mod tail;

pub use engine::{Accepted, Engine};
pub use feed::End;
pub use shared::{EngineError, Reader, WatchRequest};
pub use tail::Tail;
