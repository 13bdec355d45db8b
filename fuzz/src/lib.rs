//! The fuzz targets: see `bodies`.

// The tests of the core, which a target drives, say `crate::` of what it publishes.
pub use turnd::{ids, protocol, session, time};

// By path, so that both who include it find the tests of the core from here.
#[path = "bodies.rs"]
mod bodies;

pub use bodies::*;
