//! A session as a response body that is written in pieces: a long conversation is never one text in
//! memory (L9).

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{BufMut as _, Bytes, BytesMut};
use http::StatusCode;
use http_body::{Body, Frame};
use serde::Serialize;

use super::reply::{self, Reply, ReplyBody};
use crate::ids::{AgentId, Seq, SessionId};
use crate::protocol::json::Json;
use crate::protocol::view::{SessionStatus, SessionView, TreeView};

/// Bytes written at a time.
const PIECE_BYTES_MAX: usize = 64 * 1024;

/// The answer that shows `view`.
pub(super) fn reply(view: SessionView) -> Reply {
    let mut pieces = Pieces::new(view);
    pieces.fill();
    let body = if pieces.next == Next::End && pieces.written.len() <= PIECE_BYTES_MAX {
        ReplyBody::Full(pieces.written.freeze())
    } else {
        ReplyBody::stream(pieces)
    };
    reply::with_type(StatusCode::OK, "application/json", body)
}

/// The JSON of a view, up to where it is written.
struct Pieces {
    view: SessionView,
    next: Next,
    written: BytesMut,
}

/// What is written next; the number counts the items of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Head,
    Interrupt(usize),
    Message(usize),
    Tree,
    Node(usize),
    End,
}

/// All that is small.
#[derive(Serialize)]
struct Head<'v> {
    session_id: &'v SessionId,
    agent_id: &'v AgentId,
    seq: Seq,
    status: SessionStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'v str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'v Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    has_more: Option<bool>,
}

impl Pieces {
    fn new(view: SessionView) -> Self {
        Self { view, next: Next::Head, written: BytesMut::new() }
    }

    /// Writes on until there is a piece to send, or nothing more.
    fn fill(&mut self) {
        while self.next != Next::End && self.written.len() < PIECE_BYTES_MAX {
            self.next = self.step();
        }
    }

    fn step(&mut self) -> Next {
        let SessionView { interrupts, messages, message_tree, .. } = &self.view;
        let out = &mut self.written;
        match self.next {
            Next::Head => {
                write(out, &head(&self.view));
                // Its closing brace comes last of all.
                out.truncate(out.len().saturating_sub(1));
                out.put_slice(b",\"interrupts\":[");
                Next::Interrupt(0)
            }
            Next::Interrupt(at) => {
                if write_item(out, interrupts, at) {
                    return Next::Interrupt(at + 1);
                }
                out.put_slice(b"],\"messages\":[");
                Next::Message(0)
            }
            Next::Message(at) => {
                if write_item(out, messages, at) {
                    return Next::Message(at + 1);
                }
                out.put_slice(b"]");
                Next::Tree
            }
            Next::Tree => {
                let Some(TreeView { head_id, .. }) = message_tree else {
                    out.put_slice(b"}");
                    return Next::End;
                };
                out.put_slice(b",\"message_tree\":{\"head_id\":");
                write(out, head_id);
                out.put_slice(b",\"nodes\":[");
                Next::Node(0)
            }
            Next::Node(at) => {
                let nodes = message_tree.as_ref().map_or(&[][..], |tree| &tree.nodes);
                if write_item(out, nodes, at) {
                    return Next::Node(at + 1);
                }
                out.put_slice(b"]}}");
                Next::End
            }
            Next::End => Next::End,
        }
    }
}

fn head(view: &SessionView) -> Head<'_> {
    let SessionView { session_id, agent_id, seq, status, title, metadata, has_more, .. } = view;
    Head {
        session_id,
        agent_id,
        seq: *seq,
        status: *status,
        title: title.as_deref(),
        metadata: metadata.as_ref(),
        has_more: *has_more,
    }
}

/// Writes the item at `at`; not, when there are no more.
fn write_item<T: Serialize>(out: &mut BytesMut, items: &[T], at: usize) -> bool {
    let Some(item) = items.get(at) else { return false };
    if at > 0 {
        out.put_slice(b",");
    }
    write(out, item);
    true
}

fn write<T: Serialize + ?Sized>(out: &mut BytesMut, value: &T) {
    // Every field is a string, a number or validated JSON, and a buffer takes any write.
    let written = serde_json::to_writer(out.writer(), value);
    debug_assert!(written.is_ok(), "a view always encodes: {written:?}");
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let pieces = self.get_mut();
        pieces.fill();
        let length = pieces.written.len().min(PIECE_BYTES_MAX);
        let piece = pieces.written.split_to(length).freeze();
        Poll::Ready((!piece.is_empty()).then(|| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.next == Next::End && self.written.is_empty()
    }
}

#[cfg(test)]
mod tests;
