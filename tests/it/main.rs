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
mod corpus;
mod cors;
mod kit;
mod rates;
mod tokens;
mod turns;
