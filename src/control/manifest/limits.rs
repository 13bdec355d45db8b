//! `[limits]` (S56). The ranges keep slips out: a bound too small to serve anybody, or too large to
//! be one.

use std::time::Duration;

use super::reader::Section;
use crate::control::limits::Limits;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

pub(super) fn read(mut section: Section<'_, '_>) -> Limits {
    let mut limits = Limits::default();
    let mut head_secs = limits.head_max.as_secs();
    let mut keep_alive_secs = limits.keep_alive.as_secs();
    section.number("body_bytes_max", 4 * KIB..=256 * MIB, &mut limits.body_bytes_max);
    // Our own readers stop at 128, and an event wraps what a caller sent.
    section.number("json_depth_max", 8..=100, &mut limits.json_depth_max);
    section.number("message_bytes_max", KIB..=64 * MIB, &mut limits.message_bytes_max);
    section.number("header_count_max", 16..=1024, &mut limits.header_count_max);
    // The HTTP library refuses a buffer below 8 KiB.
    section.number("header_bytes_max", 8 * KIB..=MIB, &mut limits.header_bytes_max);
    section.number("head_secs_max", 1..=300, &mut head_secs);
    section.number("keep_alive_secs", 1..=3600, &mut keep_alive_secs);
    section.number("connections_max", 1..=1_000_000, &mut limits.connections_max);
    section.number(
        "connections_per_address_max",
        1..=1_000_000,
        &mut limits.connections_per_address_max,
    );
    section.number("streams_max", 1..=1_000_000, &mut limits.streams_max);
    section.number("queued_turns_max", 1..=10_000, &mut limits.queued_turns_max);
    section.number("event_bytes_max", 16 * KIB..=2 * MIB, &mut limits.event_bytes_max);
    section.number("inputs_per_second", 0..=1_000_000, &mut limits.inputs_per_second);
    section.number("mints_per_second", 0..=1_000_000, &mut limits.mints_per_second);
    section.number("reads_per_second", 0..=1_000_000, &mut limits.reads_per_second);
    section.finish();
    limits.head_max = Duration::from_secs(head_secs);
    limits.keep_alive = Duration::from_secs(keep_alive_secs);
    limits
}
