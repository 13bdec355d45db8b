//! Turns: the one that runs, those that wait, and what is remembered of all.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::call::{Call, ToolCall};
use crate::ids::{CallId, Seq, TurnId};
use crate::protocol::agent::AgentConfig;
use crate::protocol::event::Handler;
use crate::protocol::llm::{Cost, Usage};
use crate::protocol::tool::{AgentTool, ClientContext};

/// The turn that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) id: TurnId,
    pub(super) cost: Cost,
    pub(super) usage: Usage,
    /// Model calls that are not settled.
    pub(super) calls: BTreeMap<CallId, Call>,
    /// Tool calls that are not settled, in the order in which they were made.
    pub(super) tools: Vec<ToolCall>,
    pub(super) model_calls: u32,
    /// Whether the turn's model calls stream; decided by its first.
    pub(super) stream: Option<bool>,
    /// What its front end said of itself.
    pub(super) client: Option<ClientContext>,
}

impl Turn {
    pub(super) fn new(id: TurnId, client: Option<ClientContext>) -> Self {
        Self {
            id,
            cost: Cost::default(),
            usage: Usage::default(),
            calls: BTreeMap::new(),
            tools: Vec::new(),
            model_calls: 0,
            stream: None,
            client,
        }
    }

    /// Its only open work is what a client must do (S60).
    pub(super) fn waits_for_client(&self) -> bool {
        let of_client = |tool: &ToolCall| tool.handler == Handler::Client;
        self.calls.is_empty() && !self.tools.is_empty() && self.tools.iter().all(of_client)
    }

    /// The client-handled call of that id that is open.
    pub(super) fn client_call(&self, id: &CallId) -> Option<&ToolCall> {
        self.tools.iter().find(|tool| tool.id == *id && tool.handler == Handler::Client)
    }

    /// What the model is offered: the agent's tools, then those of the client under other names.
    pub(super) fn offered<'t>(
        &'t self,
        agent: &'t AgentConfig,
    ) -> impl Iterator<Item = &'t Arc<AgentTool>> {
        let of_client = self.client.iter().flat_map(|client| &client.tools);
        let new = |tool: &&Arc<AgentTool>| !agent.tools.iter().any(|own| own.name == tool.name);
        agent.tools.iter().chain(of_client.filter(new))
    }
}

/// What is remembered of a turn for the life of the session (S17, S53).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnRecord {
    Queued { queued: Seq },
    Running { started: Seq },
    Completed { started: Seq, completed: Seq },
}

impl TurnRecord {
    /// Where the turn was taken, or began.
    pub(super) fn seq(self) -> Seq {
        match self {
            Self::Queued { queued } => queued,
            Self::Running { started } | Self::Completed { started, .. } => started,
        }
    }
}
