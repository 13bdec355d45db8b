//! Views: pure functions of the state for one reader.

use std::sync::Arc;

use super::state::Session;
use super::turn::TurnRecord;
use crate::ids::{MessageId, TurnId};
use crate::protocol::message::Message;
use crate::protocol::view::{NodeView, SessionStatus, SessionView, TreeView};

impl Session {
    /// The session as its client reads it; none when it never received input.
    pub fn view(&self) -> Option<SessionView> {
        let origin = self.origin.as_ref()?;
        let node = |(parent, message): (Option<&MessageId>, &Arc<Message>)| NodeView {
            parent_id: parent.cloned(),
            message: Arc::clone(message),
        };
        Some(SessionView {
            session_id: self.key.session.clone(),
            agent_id: origin.agent_id.clone(),
            status: SessionStatus::Idle,
            interrupts: [],
            messages: self.tree.path_to_head(),
            message_tree: TreeView {
                head_id: self.tree.head().cloned(),
                nodes: self.tree.nodes().map(node).collect(),
            },
        })
    }

    /// How far a turn is, for a stream of that turn alone (S53); none for an unknown one.
    pub fn turn_record(&self, id: &TurnId) -> Option<TurnRecord> {
        self.turns.get(id).copied()
    }
}
