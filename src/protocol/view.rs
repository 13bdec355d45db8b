//! The session as its readers see it (interface 2.1).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::event::SessionInterrupted;
use super::json::Json;
use super::message::Message;
use crate::ids::{AgentId, MessageId, OwnerId, Seq, SessionId, TurnId};
use crate::time::Timestamp;

/// Read at the active branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    Idle,
    /// An open interrupt pauses the head (S42).
    Interrupted,
    /// It takes no more input (S21).
    Done,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionView {
    pub session_id: SessionId,
    pub agent_id: AgentId,
    /// The last event that the view takes in: a stream goes on after it.
    pub seq: Seq,
    pub status: SessionStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
    /// Every open one, on any branch.
    pub interrupts: Vec<SessionInterrupted>,
    /// Root to head, or a page of it.
    pub messages: Vec<Arc<Message>>,
    /// Only on a page: whether messages stand before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_more: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_tree: Option<TreeView>,
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

/// Which part of a session a reader asks for (S25); the default is all of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ViewRequest {
    /// Most messages, counted from the head or from `before`.
    pub limit: Option<usize>,
    /// Only messages above this one on the active branch.
    pub before: Option<MessageId>,
    pub without_tree: bool,
}

/// A row of a list of sessions: what is kept at hand about each, small.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSummary {
    pub session_id: SessionId,
    pub agent_id: AgentId,
    pub owner_id: OwnerId,
    pub status: SessionStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
    /// The turn that runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    pub first_event_at: Timestamp,
    pub last_event_at: Timestamp,
}
