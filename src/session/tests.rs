//! Tests of the core. Each subject has a file that holds its rules as sentences; `property` checks
//! them all on random conversations, against the plain model in `model`.
//!
//! `kit`, `model` and `random` use only what the crate publishes and name it by `crate::`, so that a
//! fuzz target can include them beside `use turnd::{ids, protocol, session, time};` with
//! `#[path = "../../src/session/tests"] mod tests { pub mod kit; pub mod model; pub mod random; }`.

mod anchored;
mod append;
mod blob;
mod cancel;
mod client_tool;
mod continuing;
mod deadline;
mod input;
mod interrupt;
mod kit;
mod length;
mod model;
mod project;
mod property;
mod proposal;
mod race;
mod random;
mod read;
mod regressions;
mod resume;
mod settle;
mod transcript;
mod tree;
mod update;
mod view;
