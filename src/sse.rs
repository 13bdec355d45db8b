//! Event streams as bytes (WHATWG server-sent events; interface 6.1, S51).

use std::io::Write as _;
use std::ops::Range;

use serde::Serialize;

use crate::ids::{Seq, SessionId};
use crate::protocol::event::Event;
use crate::protocol::llm::StreamDelta;

/// Comments that a stream may carry; a client never sees an event for them.
pub const PING: &[u8] = b": ping\n\n";
pub const TOKEN_EXPIRED: &[u8] = b": token expired\n\n";
pub const SHUTDOWN: &[u8] = b": server shutting down\n\n";
pub const ERASED: &[u8] = b": session erased\n\n";

/// Where an event's frame and its stored JSON lie in the buffer they were written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    pub frame: Range<usize>,
    pub json: Range<usize>,
}

/// Writes the frame of `event` once; its middle is the form that the log stores (S13).
pub fn encode_event(event: &Event, session_id: &SessionId, out: &mut Vec<u8>) -> Encoded {
    let start = out.len();
    write_head(event.seq, event.payload.kind(), out);
    let json = out.len();
    event.encode_into(session_id, out);
    let json = json..out.len();
    out.extend_from_slice(b"\n\n");
    Encoded { frame: start..out.len(), json }
}

/// Writes the frame of an event that was stored earlier.
pub fn stored_event(seq: Seq, kind: &str, json: &[u8], out: &mut Vec<u8>) {
    write_head(seq, kind, out);
    out.extend_from_slice(json);
    out.extend_from_slice(b"\n\n");
}

fn write_head(seq: Seq, kind: &str, out: &mut Vec<u8>) {
    let written = write!(out, "id: {seq}\nevent: {kind}\ndata: ");
    debug_assert!(written.is_ok(), "a Vec takes any write");
}

/// The frame of a delta: without `id`, for it is not recorded.
pub fn delta_frame(delta: &StreamDelta<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    out.extend_from_slice(b"event: llm.token.delta\ndata: ");
    let written = delta.serialize(&mut serde_json::Serializer::new(&mut out));
    debug_assert!(written.is_ok(), "a delta always encodes: {written:?}");
    out.extend_from_slice(b"\n\n");
    out
}

/// Where a stream resumes: `Last-Event-ID` wins over `after_seq`; neither means from the start.
/// Anything but an unsigned decimal is an error that says so (S51).
pub fn resume_after(
    last_event_id: Option<&str>,
    after_seq: Option<&str>,
) -> Result<Seq, &'static str> {
    let parse = |text: &str, problem| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| digits).map(Seq).ok_or(problem)
    };
    match (last_event_id, after_seq) {
        (Some(id), _) => parse(id, "`Last-Event-ID` must be the seq of an event"),
        (None, Some(seq)) => parse(seq, "`after_seq` must be the seq of an event"),
        (None, None) => Ok(Seq::default()),
    }
}

#[cfg(test)]
mod tests;
