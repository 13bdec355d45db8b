//! Views: pure functions of the state for one reader.

use std::sync::Arc;

use super::rejection::Rejection;
use super::state::Session;
use super::turn::TurnRecord;
use crate::ids::{MessageId, TurnId};
use crate::protocol::blob::BlobHash;
use crate::protocol::content::BlobInfo;
use crate::protocol::json::Json;
use crate::protocol::message::Message;
use crate::protocol::view::{
    NodeView, SessionStatus, SessionSummary, SessionView, TreeView, ViewRequest,
};

impl Session {
    /// The session as its client reads it.
    pub fn view(&self, request: &ViewRequest) -> Result<SessionView, Rejection> {
        let origin = self.origin.as_ref().ok_or(Rejection::UnknownSession)?;
        let limit = request.limit.unwrap_or(usize::MAX);
        let page = self.tree.page(limit, request.before.as_ref());
        let (messages, more) = page.ok_or_else(|| Rejection::Invalid {
            path: "before".to_owned(),
            problem: "is not a message of the active conversation",
        })?;
        let paged = request.limit.is_some() || request.before.is_some();
        Ok(SessionView {
            session_id: self.key.session.clone(),
            agent_id: origin.agent_id.clone(),
            seq: self.seq,
            status: self.status(),
            title: self.title(),
            metadata: self.metadata.clone(),
            interrupts: self.interrupts.iter().map(|open| open.raised.clone()).collect(),
            messages,
            has_more: paged.then_some(more),
            message_tree: (!request.without_tree).then(|| self.tree_view()),
        })
    }

    fn tree_view(&self) -> TreeView {
        let node = |(parent, message): (Option<&MessageId>, &Arc<Message>)| NodeView {
            parent_id: parent.cloned(),
            message: Arc::clone(message),
        };
        TreeView {
            head_id: self.tree.head().cloned(),
            nodes: self.tree.nodes().map(node).collect(),
        }
    }

    /// The session as a row of a list; none when it never received input.
    pub fn summary(&self) -> Option<SessionSummary> {
        let origin = self.origin.as_ref()?;
        Some(SessionSummary {
            session_id: self.key.session.clone(),
            agent_id: origin.agent_id.clone(),
            owner_id: origin.identity.id.clone(),
            status: self.status(),
            title: self.title(),
            metadata: self.metadata.clone(),
            turn_id: self.running_turn().cloned(),
            first_event_at: self.first_event_at,
            last_event_at: self.last_event_at,
        })
    }

    /// Read at the active branch (S42).
    pub fn status(&self) -> SessionStatus {
        match (self.done, self.pause()) {
            (Some(_), _) => SessionStatus::Done,
            (None, Some(_)) => SessionStatus::Interrupted,
            (None, None) => SessionStatus::Idle,
        }
    }

    fn title(&self) -> Option<String> {
        self.title.given.as_ref().or(self.title.derived.as_ref()).cloned()
    }

    /// What is known of a blob that an event of this session names (S15).
    pub fn blob(&self, hash: &BlobHash) -> Option<&BlobInfo> {
        self.blobs.get(hash)
    }

    /// The agent's state at the head; none where no decision wrote one.
    pub fn agent_state(&self) -> Option<&Json> {
        self.tree.state()
    }

    /// The turn of that id, or the one that an answer under that id continued (S58), and how far it
    /// is; none for an unknown one.
    pub fn turn(&self, id: &TurnId) -> Option<(&TurnId, TurnRecord)> {
        let (id, record) = self.turns.get_key_value(self.labels.get(id).unwrap_or(id))?;
        Some((id, *record))
    }
}
