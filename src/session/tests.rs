//! Tests of the core. One file per decide file holds its rules as sentences; `property` checks them all
//! on random conversations, against the plain model in `model`.
//!
//! `kit`, `model` and `random` use only what the crate publishes and name it by `crate::`, so that a
//! fuzz target can include them beside `use turnd::{ids, protocol, session, time};` with
//! `#[path = "../../src/session/tests"] mod tests { pub mod kit; pub mod model; pub mod random; }`.

mod deadline;
mod input;
mod kit;
mod model;
mod project;
mod property;
mod proposal;
mod random;
mod settle;
mod transcript;
mod tree;
