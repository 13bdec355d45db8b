//! Turns: the one that runs, those that wait, and what is remembered of all.

use std::collections::BTreeMap;

use super::call::Call;
use crate::ids::{CallId, Seq, TurnId};
use crate::protocol::llm::{Cost, Usage};

/// The turn that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) id: TurnId,
    pub(super) cost: Cost,
    pub(super) usage: Usage,
    /// Calls that are not settled.
    pub(super) calls: BTreeMap<CallId, Call>,
    /// Tool calls that are not settled. In this version each settles in the step that asks for it.
    pub(super) tool_calls: Vec<CallId>,
    pub(super) model_calls: u32,
    /// Whether the turn's model calls stream; decided by its first.
    pub(super) stream: Option<bool>,
}

impl Turn {
    pub(super) fn new(id: TurnId) -> Self {
        Self {
            id,
            cost: Cost::default(),
            usage: Usage::default(),
            calls: BTreeMap::new(),
            tool_calls: Vec::new(),
            model_calls: 0,
            stream: None,
        }
    }
}

/// What is remembered of a turn for the life of the session (S17, S53).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnRecord {
    Queued,
    Running { started: Seq },
    Completed { started: Seq, completed: Seq },
}
