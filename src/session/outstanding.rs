//! What a session still owes, so that a restart owes exactly what was owed.

use super::call::{Call, Phase};
use super::effect::{Effect, ModelCall};
use super::state::Session;
use crate::ids::CallId;
use crate::protocol::agent::Seconds;
use crate::time::Timestamp;

impl Session {
    /// The effects that were asked for and have no answer yet.
    pub fn outstanding(&self) -> Vec<Effect> {
        self.calls()
            .filter(|call| matches!(call.phase, Phase::Running { .. }))
            .map(|call| Effect::CallModel { id: call.request.id.clone(), attempt: call.attempt })
            .collect()
    }

    /// The one timer: the next moment at which time alone moves the session on. A turn that waits
    /// with none running is due at once.
    pub fn wake_at(&self) -> Option<Timestamp> {
        let queue = self.turn.is_none() && !self.queue.is_empty();
        let start = queue.then_some(self.last_event_at);
        self.calls().filter_map(Call::wake_at).chain(start).min()
    }

    /// The calls whose running attempt is past its deadline.
    pub fn overdue(&self, now: Timestamp) -> Vec<CallId> {
        let running = self.calls().filter(|call| matches!(call.phase, Phase::Running { .. }));
        let overdue = running.filter(|call| call.wake_at().is_some_and(|at| at <= now));
        overdue.map(|call| call.request.id.clone()).collect()
    }

    /// A running or waiting turn: the session must be looked at after a restart.
    pub fn owes(&self) -> bool {
        self.turn.is_some() || !self.queue.is_empty()
    }

    /// What an executor needs for the running attempt of a call.
    pub fn model_call(&self, id: &CallId) -> Option<ModelCall> {
        let call = self.turn.as_ref()?.calls.get(id)?;
        Some(ModelCall {
            id: id.clone(),
            attempt: call.attempt,
            reply_id: call.reply_id(),
            llm: call.request.llm.clone(),
            model: call.request.model.clone(),
            stream: call.request.stream,
            timeout: call.request.retry.timeout_secs.map(Seconds::duration),
            messages: self.tree.path_to(&call.request.head_id),
        })
    }

    fn calls(&self) -> impl Iterator<Item = &Call> {
        self.turn.iter().flat_map(|turn| turn.calls.values())
    }
}
