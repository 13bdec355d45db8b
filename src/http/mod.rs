//! The edge: bytes from callers to commands, and replies back. The only user of hyper.

pub mod api;
mod asker;
mod blob;
pub mod body;
mod client;
pub mod connection;
pub mod cors;
pub mod error;
mod list;
pub mod listener;
mod machine;
mod range;
pub mod rate;
pub mod reply;
mod route;
pub mod service;
mod session;
mod stream;
mod submit;
mod view;
