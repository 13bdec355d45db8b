//! Tests of the program from outside: the real binary, its command line, its sockets and its signals.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test stops at the first surprise and prints its seed"
)]

mod bad_input;
mod blobs;
mod cancel;
mod client_tools;
mod commands;
mod conversations;
mod corpus;
mod cors;
mod erase;
mod greeting;
mod interrupts;
mod kit;
mod lists;
mod long_waits;
mod rates;
mod restart;
mod secrets;
mod streams;
mod tokens;
mod torture;
mod turns;

// The fuzz targets include tests of the core, which say `crate::` of what it publishes.
use turnd::{ids, protocol, session, time};
