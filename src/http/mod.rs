//! The edge: bytes from callers to commands, and replies back. The only user of hyper.

pub mod api;
pub mod body;
mod client;
pub mod connection;
pub mod cors;
pub mod error;
pub mod listener;
mod machine;
pub mod rate;
pub mod reply;
mod route;
pub mod service;
mod stream;
mod submit;
