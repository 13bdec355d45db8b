//! What a batch of decisions has come to, before it is durable.

use std::collections::BTreeSet;

use bytes::Bytes;
use turnd_storage::{BlobId, BlobPin};

use super::super::blobs::Kept;
use super::super::feed::Frame;
use super::super::shared::EngineError;
use super::mail::Answer;
use crate::ids::{CallId, Seq, SessionId, TurnId};
use crate::protocol::event::{Event, Payload};
use crate::session::{Effect, Rejection, Reply, Step};
use crate::sse;

/// Where an answer goes.
pub(super) type ReplyTo = Answer<Reply>;

/// Events of one append, written as frames into one buffer: the feed gets the frames, the log the
/// JSON inside them (S13).
#[derive(Default)]
pub(super) struct Batch {
    buffer: Vec<u8>,
    written: Vec<Written>,
    pub(super) settled: Vec<CallId>,
    pub(super) effects: Vec<Effect>,
    pub(super) answers: Vec<(ReplyTo, Result<Reply, EngineError>)>,
    /// What the events name and no earlier event did.
    pub(super) blobs: BTreeSet<BlobId>,
    /// Held until the events that name the blobs are durable.
    pins: Vec<BlobPin>,
}

struct Written {
    at: sse::Encoded,
    seq: Seq,
    turn_id: Option<TurnId>,
    ends_turn: bool,
}

impl Batch {
    /// Takes what one command came to.
    pub(super) fn add(
        &mut self,
        session_id: &SessionId,
        decided: Result<Step, Rejection>,
        kept: Kept,
        reply_to: Option<ReplyTo>,
    ) {
        let answer = match decided {
            Ok(Step { events, effects, reply }) => {
                for event in events {
                    let named = event.payload.blobs().into_iter();
                    self.blobs.extend(named.filter_map(|hash| kept.id(&hash)));
                    self.write(session_id, event);
                }
                self.pins.extend(kept.into_pins());
                self.effects.extend(effects);
                Ok(reply)
            }
            Err(rejection) => Err(rejection.into()),
        };
        self.answers.extend(reply_to.map(|reply_to| (reply_to, answer)));
    }

    fn write(&mut self, session_id: &SessionId, event: Event) {
        let at = sse::encode_event(&event, session_id, &mut self.buffer);
        self.settled.extend(settled_call(&event));
        self.written.push(Written {
            at,
            seq: event.seq,
            ends_turn: matches!(event.payload, Payload::TurnCompleted(_)),
            turn_id: event.turn_id,
        });
    }

    pub(super) fn bytes(&self) -> usize {
        self.buffer.len()
    }

    pub(super) fn first_seq(&self) -> Option<Seq> {
        self.written.first().map(|written| written.seq)
    }

    /// The frames to show and the events to store, in one allocation.
    pub(super) fn take_events(&mut self) -> (Vec<Frame>, Vec<Bytes>) {
        let buffer = Bytes::from(std::mem::take(&mut self.buffer));
        let written = std::mem::take(&mut self.written);
        let stored = written.iter().map(|written| buffer.slice(written.at.json.clone())).collect();
        let frame = |written: Written| Frame {
            bytes: buffer.slice(written.at.frame),
            seq: Some(written.seq),
            turn_id: written.turn_id,
            ends_turn: written.ends_turn,
        };
        (written.into_iter().map(frame).collect(), stored)
    }
}

/// The call whose attempt ended with `event`.
fn settled_call(event: &Event) -> Option<CallId> {
    match &event.payload {
        Payload::LlmCallCompleted(completed) => Some(completed.id.clone()),
        Payload::LlmCallErrored(errored) => Some(errored.id.clone()),
        Payload::CallVoided(voided) => Some(voided.id.clone()),
        Payload::SessionCreated(_)
        | Payload::SessionUpdated(_)
        | Payload::SessionCancelled(_)
        | Payload::MessageNew(_)
        | Payload::HeadMoved(_)
        | Payload::TurnQueued(_)
        | Payload::TurnStarted(_)
        | Payload::TurnCompleted(_)
        | Payload::SessionInterrupted(_)
        | Payload::InterruptResumed(_)
        | Payload::LlmCallRequested(_)
        | Payload::LlmCallDispatched(_)
        | Payload::ToolCallRequested(_)
        | Payload::ToolCallDispatched(_)
        | Payload::ToolCallCompleted(_)
        | Payload::ToolCallErrored(_)
        | Payload::WorkerStateUpdated(_)
        | Payload::AgentUpdated(_) => None,
    }
}
