//! The session as a client reads it (interface 2.1).

use std::sync::Arc;

use serde::Serialize;

use super::message::Message;
use crate::ids::{AgentId, MessageId, SessionId};

/// Read at the active branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    Idle,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionView {
    pub session_id: SessionId,
    pub agent_id: AgentId,
    pub status: SessionStatus,
    /// Always empty: nothing in this version raises one.
    pub interrupts: [(); 0],
    /// Root to head.
    pub messages: Vec<Arc<Message>>,
    pub message_tree: TreeView,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TreeView {
    pub head_id: Option<MessageId>,
    pub nodes: Vec<NodeView>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeView {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<MessageId>,
    pub message: Arc<Message>,
}
