//! turnd: a single-node server for durable conversations between people and AI agents.
//!
//! `ARCHITECTURE.md` is the map. The core (`session`) is pure; `runtime` makes its events durable,
//! shows them and performs its effects; `http` and `cli` are the edges.

pub mod auth;
pub mod cli;
pub mod clock;
pub mod config;
pub mod control;
pub mod effects;
pub mod http;
pub mod ids;
pub mod protocol;
pub mod runtime;
pub mod server;
pub mod session;
pub mod sse;
pub mod telemetry;
pub mod time;
