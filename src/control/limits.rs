//! Bounds that an operator may move (S56). Every one has a default; 0 turns a rate off.

use std::time::Duration;

/// `[limits]` of the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    pub body_bytes_max: usize,
    pub json_depth_max: usize,
    pub message_bytes_max: usize,
    pub header_count_max: usize,
    pub header_bytes_max: usize,
    /// From the first byte of a request to the end of its head.
    pub head_max: Duration,
    /// How long a connection may idle between requests.
    pub keep_alive: Duration,
    pub connections_max: usize,
    /// Loopback is exempt.
    pub connections_per_address_max: usize,
    pub streams_max: usize,
    pub queued_turns_max: usize,
    pub event_bytes_max: usize,
    /// Per owner or key.
    pub inputs_per_second: u32,
    pub mints_per_second: u32,
    pub reads_per_second: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes_max: 8 * 1024 * 1024,
            json_depth_max: 64,
            message_bytes_max: 1024 * 1024,
            header_count_max: 64,
            header_bytes_max: 32 * 1024,
            head_max: Duration::from_secs(10),
            keep_alive: Duration::from_secs(75),
            connections_max: 4096,
            connections_per_address_max: 256,
            streams_max: 2048,
            queued_turns_max: 100,
            event_bytes_max: 1024 * 1024,
            inputs_per_second: 50,
            mints_per_second: 20,
            reads_per_second: 200,
        }
    }
}
