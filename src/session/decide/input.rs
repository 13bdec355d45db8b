//! Submits that ask for a turn: idempotency, then what they bring, then whether they may (S17 to
//! S19, S22, S60).

use super::admit::Entry;
use super::{Decider, Reply};
use crate::protocol::event::{Payload, SessionCreated, TurnQueued};
use crate::protocol::input::Input;
use crate::session::command::Submission;
use crate::session::rejection::Rejection;

impl Decider<'_> {
    pub(super) fn submit(&mut self, submission: Submission) -> Result<Reply, Rejection> {
        if let Some(reply) = self.known_turn(&submission)? {
            return Ok(reply);
        }
        let Submission { caller, identity, agent_id, turn_id, queue, conditions, input, blobs } =
            submission;
        let input = self.trusted(&caller, input, &blobs)?;
        if let Some(origin) = &self.session.origin
            && origin.agent_id != agent_id
        {
            return Err(Rejection::AgentMismatch(origin.agent_id.clone()));
        }
        let plan = self.plan(&caller, input)?;
        plan.check_size(queue, self.context.bounds.event_bytes_max)?;
        if self.agent().is_none() {
            return Err(Rejection::UnknownAgent(agent_id));
        }
        self.check_conditions(&conditions)?;
        self.check_not_done()?;
        let entry = self.admit(&plan, queue)?;

        if self.session.origin.is_none() {
            let ancestry = Vec::new();
            let created = SessionCreated { agent_id, identity, ancestry };
            self.emit(Payload::SessionCreated(created));
        }
        match entry {
            Entry::Continue(running) => {
                let seq = self.next_seq();
                for (id, answer) in plan.answers {
                    self.take_answer(id, answer, turn_id.clone());
                }
                self.go_on_after_results();
                Ok(Reply::Accepted { turn_id: running, queued: false, seq })
            }
            Entry::Queue => {
                let mut plan = plan;
                for (id, answer) in std::mem::take(&mut plan.answers) {
                    self.take_answer(id, answer, None);
                }
                let turn_id = turn_id.unwrap_or_else(|| self.mint_turn_id());
                let input = self.with_ids(plan.into_input());
                let queued = TurnQueued { turn_id: turn_id.clone(), input };
                let seq = self.emit(Payload::TurnQueued(queued));
                Ok(Reply::Accepted { turn_id, queued: true, seq })
            }
            Entry::Start => {
                let turn_id = turn_id.unwrap_or_else(|| self.mint_turn_id());
                let plan = self.make_way(plan);
                let seq = self.next_seq();
                self.start_turn(turn_id.clone(), plan);
                Ok(Reply::Accepted { turn_id, queued: false, seq })
            }
        }
    }

    /// Refuses a caller who is not the owner, and answers a turn id that is already known (S17).
    fn known_turn(&self, submission: &Submission) -> Result<Option<Reply>, Rejection> {
        let session = &*self.session;
        let Some(origin) = &session.origin else { return Ok(None) };
        if origin.identity.id != submission.identity.id {
            return Err(Rejection::NotOwner);
        }
        Ok(submission.turn_id.as_ref().and_then(|id| session.known_turn(id)))
    }

    /// A queued input names its messages, so that a retry under their ids finds them.
    fn with_ids(&self, mut input: Input) -> Input {
        for (index, message) in input.messages_mut().iter_mut().enumerate() {
            message.id.get_or_insert_with(|| self.mint_message_id(index));
        }
        input
    }
}
