//! Tests of the store through its public surface.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test stops at the first surprise and prints its seed"
)]

mod basics;
mod blobs;
mod compacting;
mod crash;
mod damage;
mod erasing;
mod failing;
mod images;
mod kit;
mod lists;
mod model;
mod moves;
