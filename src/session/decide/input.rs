//! Submits: idempotency, one turn at a time, the queue (S17 to S19).

use std::sync::Arc;

use super::{Decider, Reply};
use crate::ids::TurnId;
use crate::protocol::event::{MessageNew, Payload, SessionCreated, TurnQueued};
use crate::protocol::input::Input;
use crate::protocol::message::{Message, Role};
use crate::session::command::{Caller, Submission};
use crate::session::rejection::Rejection;
use crate::session::turn::TurnRecord;

impl Decider<'_> {
    pub(super) fn submit(&mut self, mut submission: Submission) -> Result<Reply, Rejection> {
        if let Some(reply) = self.check_submit(&submission)? {
            return Ok(reply);
        }
        distrust(&mut submission);
        let turn_id = submission.turn_id.unwrap_or_else(|| self.mint_turn_id());
        if self.session.origin.is_none() {
            self.emit(Payload::SessionCreated(SessionCreated {
                agent_id: submission.agent_id,
                identity: submission.identity,
                ancestry: Vec::new(),
            }));
        }
        let queued = self.session.busy_with().is_some();
        if queued {
            let mut input = submission.input;
            let Input::Message { message, .. } = &mut input;
            message.id.get_or_insert_with(|| self.mint_message_id());
            self.emit(Payload::TurnQueued(TurnQueued { turn_id: turn_id.clone(), input }));
        } else {
            self.start_turn(turn_id.clone(), submission.input);
        }
        Ok(Reply::Accepted { turn_id, queued })
    }

    /// Refuses, or answers a turn id that is already known.
    fn check_submit(&self, submission: &Submission) -> Result<Option<Reply>, Rejection> {
        let session = &*self.session;
        if let Some(origin) = &session.origin {
            if origin.identity.id != submission.identity.id {
                return Err(Rejection::NotOwner);
            }
            if let Some((turn_id, record)) =
                submission.turn_id.as_ref().and_then(|id| session.turns.get_key_value(id))
            {
                let queued = matches!(record, TurnRecord::Queued);
                return Ok(Some(Reply::Accepted { turn_id: turn_id.clone(), queued }));
            }
        }
        let Input::Message { message, .. } = &submission.input;
        if message.role == Role::Tool {
            return Err(Rejection::Invalid {
                path: "message.role",
                problem: "is `tool`, but no client-handled call is open",
            });
        }
        if !says_something(message) {
            return Err(Rejection::Invalid {
                path: "message.content",
                problem: "says nothing, and no model answers that",
            });
        }
        if let Some(origin) = &session.origin
            && origin.agent_id != submission.agent_id
        {
            return Err(Rejection::AgentMismatch(origin.agent_id.clone()));
        }
        if self.agent.is_none() {
            return Err(Rejection::UnknownAgent(submission.agent_id.clone()));
        }
        let Some(turn_id) = session.busy_with() else { return Ok(None) };
        if !submission.queue {
            return Err(Rejection::TurnAlreadyActive { turn_id: turn_id.clone() });
        }
        if session.queue.len() >= submission.queued_turns_max {
            return Err(Rejection::QueueFull);
        }
        Ok(None)
    }

    /// Records a submitted message under the head; false when the turn owes nothing for it: its id
    /// is known, or it speaks for the assistant (S18).
    pub(super) fn record_input(&mut self, mut message: Message) -> bool {
        let known = message.id.as_ref().is_some_and(|id| self.session.tree.contains(id));
        if known {
            return false;
        }
        message.id.get_or_insert_with(|| self.mint_message_id());
        let owed = message.role != Role::Assistant;
        self.record(message);
        owed
    }

    /// Records a message that has an id under the head.
    pub(super) fn record(&mut self, message: Message) {
        let parent_id = self.session.tree.head().cloned();
        self.emit(Payload::MessageNew(MessageNew { message: Arc::new(message), parent_id }));
    }

    fn mint_turn_id(&self) -> TurnId {
        let mint =
            |index| crate::ids::derive_turn_id(&self.session.key, self.next_seq(), index, self.now);
        let mut id = mint(0);
        let mut index = 0;
        while self.session.turns.contains_key(&id) {
            index += 1;
            id = mint(index);
        }
        id
    }
}

fn says_something(message: &Message) -> bool {
    message.content.as_ref().is_some_and(|content| !content.text().trim().is_empty())
}

/// The system text of a frontend counts as user text (S22).
fn distrust(submission: &mut Submission) {
    let Input::Message { message, .. } = &mut submission.input;
    match (submission.caller, message.role) {
        (Caller::Frontend, Role::System) => message.role = Role::User,
        (Caller::Frontend | Caller::Machine, _) => {}
    }
}
