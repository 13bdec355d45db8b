//! The messages of a conversation: a list in which each names the place of the one above it.

use crate::ids::MessageId;
use crate::protocol::message::{Message, Role};

#[derive(Debug, Clone, Default)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    pub(super) head: Place,
}

#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) parent: Place,
    pub(super) message: Message,
}

/// A message by its index, or the place above all of them.
pub(super) type Place = Option<usize>;

impl Tree {
    pub(super) fn find(&self, id: &MessageId) -> Place {
        self.nodes.iter().position(|node| node.message.id.as_ref() == Some(id))
    }

    pub(super) fn knows(&self, message: &Message) -> bool {
        message.id.as_ref().is_some_and(|id| self.find(id).is_some())
    }

    pub(super) fn id(&self, place: Place) -> Option<MessageId> {
        place.and_then(|index| self.nodes[index].message.id.clone())
    }

    pub(super) fn role(&self, place: Place) -> Option<Role> {
        place.map(|index| self.nodes[index].message.role)
    }

    /// From the root down to `place`.
    pub(super) fn path(&self, place: Place) -> Vec<usize> {
        let mut path: Vec<usize> =
            std::iter::successors(place, |index| self.nodes[*index].parent).collect();
        path.reverse();
        path
    }

    pub(super) fn messages(&self, place: Place) -> Vec<&Message> {
        self.path(place).into_iter().map(|index| &self.nodes[index].message).collect()
    }

    pub(super) fn children(&self, place: Place) -> impl DoubleEndedIterator<Item = usize> {
        (0..self.nodes.len()).filter(move |index| self.nodes[*index].parent == place)
    }

    /// The message that `index` follows when the results of tools between them are left out.
    pub(super) fn above_results(&self, index: usize) -> Place {
        let mut place = self.nodes[index].parent;
        while self.role(place) == Some(Role::Tool) {
            place = place.and_then(|index| self.nodes[index].parent);
        }
        place
    }

    /// The last of the results of tools that are recorded below `place`, or itself.
    pub(super) fn below_results(&self, mut place: Place) -> Place {
        while let Some(result) =
            self.children(place).rfind(|child| self.role(Some(*child)) == Some(Role::Tool))
        {
            place = Some(result);
        }
        place
    }
}
