//! Tests of the core. One file per decide file holds its rules as sentences; `random` checks them all
//! against the plain model in `model`.
//!
//! `kit`, `model` and `random` use only what the crate publishes and name it by `crate::`, so that a
//! fuzz target can include them by path beside `use turnd::{ids, protocol, session, time};`.

mod deadline;
mod input;
mod kit;
mod model;
mod project;
mod proposal;
mod random;
mod settle;
mod transcript;
mod tree;
