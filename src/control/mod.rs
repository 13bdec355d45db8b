//! The control plane's data: what the operator declares and what the server keeps beside sessions.

pub mod agents;
pub mod api_keys;
pub mod limits;
pub mod manifest;
pub mod secrets;
