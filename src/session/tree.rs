//! The tree of messages with one movable head.

use std::collections::HashMap;
use std::sync::Arc;

use crate::ids::MessageId;
use crate::protocol::message::Message;

/// Nodes stand in the order of their recording; a parent stands before its children.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    index: HashMap<MessageId, usize>,
    head: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Node {
    id: MessageId,
    message: Arc<Message>,
    parent: Option<usize>,
}

impl Tree {
    pub(super) fn contains(&self, id: &MessageId) -> bool {
        self.index.contains_key(id)
    }

    pub(super) fn head(&self) -> Option<&MessageId> {
        self.head.and_then(|at| self.nodes.get(at)).map(|node| &node.id)
    }

    /// Records `message` below `parent` and moves the head to it.
    pub(super) fn add(&mut self, id: MessageId, parent: Option<&MessageId>, message: Arc<Message>) {
        let parent = parent.and_then(|id| self.index.get(id)).copied();
        self.head = Some(self.nodes.len());
        self.index.insert(id.clone(), self.nodes.len());
        self.nodes.push(Node { id, message, parent });
    }

    /// The messages from the root to `id`.
    pub(super) fn path_to(&self, id: &MessageId) -> Vec<Arc<Message>> {
        self.path(self.index.get(id).copied())
    }

    /// The messages from the root to the head.
    pub(super) fn path_to_head(&self) -> Vec<Arc<Message>> {
        self.path(self.head)
    }

    fn path(&self, mut at: Option<usize>) -> Vec<Arc<Message>> {
        let mut path = Vec::new();
        while let Some(node) = at.and_then(|at| self.nodes.get(at)) {
            path.push(Arc::clone(&node.message));
            at = node.parent;
        }
        path.reverse();
        path
    }

    /// Every node with the id of its parent, in the order of recording.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (Option<&MessageId>, &Arc<Message>)> {
        self.nodes.iter().map(|node| {
            let parent = node.parent.and_then(|at| self.nodes.get(at)).map(|node| &node.id);
            (parent, &node.message)
        })
    }
}
