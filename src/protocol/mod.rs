//! The published language: the shapes of the interface as types, without logic.
//!
//! One type serves the log, the API and the streams. What comes from outside is read by hand from a
//! [`json::Node`], so that an error names the field; what comes from our own log is read by serde.

pub mod agent;
pub mod blob;
pub mod content;
pub mod error;
pub mod event;
pub mod input;
pub mod json;
pub mod llm;
pub mod message;
mod tagged;
pub mod tool;
pub mod tool_result;
pub mod view;
