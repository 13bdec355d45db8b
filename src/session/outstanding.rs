//! What a session still owes, so that a restart owes exactly what was owed.

use std::sync::Arc;

use super::call::{Call, Phase};
use super::effect::{Effect, ModelCall};
use super::state::Session;
use crate::ids::CallId;
use crate::protocol::agent::{AgentConfig, Seconds};
use crate::time::Timestamp;

impl Session {
    /// The effects that were asked for and have no answer yet.
    pub fn outstanding(&self) -> Vec<Effect> {
        self.calls()
            .filter(|call| matches!(call.phase, Phase::Running { .. }))
            .map(|call| Effect::CallModel { id: call.request.id.clone(), attempt: call.attempt })
            .collect()
    }

    /// The one timer: the next moment at which time alone moves the session on. A waiting turn that
    /// nothing holds up is due at once.
    pub fn wake_at(&self) -> Option<Timestamp> {
        let start = self.next_in_queue().map(|_| self.last_event_at);
        self.calls().filter_map(Call::wake_at).chain(start).min()
    }

    /// Whether the engine itself must do something: then the session stays in memory, and must be
    /// looked at after a restart. A pause and a call that a client handles wait for others.
    pub fn owes(&self) -> bool {
        !self.outstanding().is_empty() || self.wake_at().is_some()
    }

    /// What an executor needs for the running attempt of a call, with `agent` as the declared
    /// configuration of the session's agent.
    pub fn model_call(&self, id: &CallId, agent: Option<&AgentConfig>) -> Option<ModelCall> {
        let turn = self.turn.as_ref()?;
        let call = turn.calls.get(id)?;
        let agent = self.config(agent);
        let offered = agent.iter().flat_map(|agent| turn.offered(agent));
        let named = offered.filter(|tool| call.request.tools.contains(&tool.name));
        Some(ModelCall {
            id: id.clone(),
            attempt: call.attempt,
            reply_id: call.reply_id(),
            llm: call.request.llm.clone(),
            model: call.request.model.clone(),
            system: agent.and_then(|agent| agent.system.clone()),
            stream: call.request.stream,
            timeout: call.request.retry.timeout_secs.map(Seconds::duration),
            messages: self.tree.path_to(&call.request.head_id),
            tools: named.map(Arc::clone).collect(),
        })
    }

    /// The configuration at the head: what a decision wrote there, or the declared one.
    pub(super) fn config<'a>(
        &'a self,
        declared: Option<&'a AgentConfig>,
    ) -> Option<&'a AgentConfig> {
        self.tree.config().map(Arc::as_ref).or(declared)
    }

    pub(super) fn calls(&self) -> impl Iterator<Item = &Call> {
        self.turn.iter().flat_map(|turn| turn.calls.values())
    }
}
