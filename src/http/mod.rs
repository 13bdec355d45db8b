//! The edge: bytes from callers to commands, and replies back. The only user of hyper.

pub mod body;
pub mod connection;
pub mod cors;
pub mod error;
pub mod listener;
pub mod rate;
pub mod reply;
