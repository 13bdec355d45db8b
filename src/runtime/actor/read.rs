//! Answers to questions, and the start of a stream.

use std::sync::Arc;

use super::super::feed::End;
use super::super::shared::{EngineError, WatchRequest};
use super::super::tail::Tail;
use super::Actor;
use super::mail::{Question, Read};
use crate::ids::Seq;
use crate::session::{Rejection, TurnRecord};

impl Actor {
    pub(super) fn read(&self, Read { caller, question }: Read) {
        if let Err(rejection) = self.session.check_reader(&caller) {
            return question.refuse(rejection.into());
        }
        // A caller that has gone away needs no answer.
        match question {
            Question::View { request, reply } => {
                drop(reply.send(self.session.view(&request).map_err(EngineError::from)));
            }
            Question::Summary { reply } => {
                let summary = self.session.summary().ok_or(Rejection::UnknownSession);
                drop(reply.send(summary.map_err(EngineError::from)));
            }
            Question::Blob { hash, reply } => {
                drop(reply.send(Ok(self.session.blob(&hash).cloned())));
            }
            Question::Watch { request, reply } => drop(reply.send(self.tail(request))),
        }
    }

    fn tail(&self, request: WatchRequest) -> Result<Tail, EngineError> {
        let WatchRequest { after, turn_id } = request;
        let watch = |after, turn_id| {
            let key = Arc::clone(&self.key_bytes);
            Tail::new(self.shared.store.clone(), key, self.feed.watch(), after, turn_id)
        };
        let Some(turn_id) = turn_id else { return Ok(watch(after, None)) };
        let (turn_id, record) = self.session.turn(&turn_id).ok_or(Rejection::UnknownTurn)?;
        let turn_id = turn_id.clone();
        match record {
            TurnRecord::Completed { completed, .. } if after >= completed => {
                Ok(watch(after, Some(turn_id)).ended(End::TurnCompleted))
            }
            TurnRecord::Queued { queued: first }
            | TurnRecord::Running { started: first }
            | TurnRecord::Completed { started: first, .. } => {
                Ok(watch(after.max(before(first)), Some(turn_id)))
            }
        }
    }
}

fn before(seq: Seq) -> Seq {
    Seq(seq.0.saturating_sub(1))
}
