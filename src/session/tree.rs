//! The tree of messages with one movable head, and what is anchored to its nodes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::ids::MessageId;
use crate::protocol::agent::AgentConfig;
use crate::protocol::json::Json;
use crate::protocol::message::{Message, Role};

/// Most results of tools between two messages that a reader may have left out: several times what one
/// message calls.
const RESULTS_MAX: usize = 1024;

/// Nodes stand in the order of their recording; a parent stands before its children.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    index: HashMap<MessageId, usize>,
    head: Option<usize>,
    /// The last message that begins a conversation.
    last_root: Option<usize>,
    /// What was written last at a node, or before any; it holds for every node below.
    states: BTreeMap<Option<usize>, Json>,
    configs: BTreeMap<Option<usize>, Arc<AgentConfig>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Node {
    id: MessageId,
    message: Arc<Message>,
    parent: Option<usize>,
    /// The tool message that was recorded below it last.
    tool_child: Option<usize>,
    /// An assistant message stands below it.
    replied: bool,
    /// The message that was recorded below it last, and the one below the same parent before this.
    last_child: Option<usize>,
    sibling: Option<usize>,
}

impl Tree {
    pub(super) fn contains(&self, id: &MessageId) -> bool {
        self.index.contains_key(id)
    }

    /// Whether a message would be recorded: one whose id is known is not.
    pub(super) fn is_new(&self, message: &Message) -> bool {
        message.id.as_ref().is_none_or(|id| !self.contains(id))
    }

    pub(super) fn get(&self, id: &MessageId) -> Option<&Arc<Message>> {
        self.node(self.at(id)?).map(|node| &node.message)
    }

    pub(super) fn head(&self) -> Option<&MessageId> {
        self.head.and_then(|at| self.node(at)).map(|node| &node.id)
    }

    pub(super) fn head_message(&self) -> Option<&Arc<Message>> {
        self.head.and_then(|at| self.node(at)).map(|node| &node.message)
    }

    /// Whether the head is a message that waits for an answer: of a user or of a tool, with none.
    pub(super) fn head_is_unanswered(&self) -> bool {
        let head = self.head.and_then(|at| self.node(at));
        head.is_some_and(|head| head.message.role != Role::Assistant && !head.replied)
    }

    fn at(&self, id: &MessageId) -> Option<usize> {
        self.index.get(id).copied()
    }

    fn node(&self, at: usize) -> Option<&Node> {
        self.nodes.get(at)
    }

    /// Records `message` below `parent` and moves the head to it.
    pub(super) fn add(&mut self, id: MessageId, parent: Option<&MessageId>, message: Arc<Message>) {
        let parent = parent.and_then(|id| self.at(id));
        let at = self.nodes.len();
        let sibling = match parent.and_then(|parent| self.nodes.get_mut(parent)) {
            None => self.last_root.replace(at),
            Some(above) => {
                match message.role {
                    Role::Tool => above.tool_child = Some(at),
                    Role::Assistant => above.replied = true,
                    Role::System | Role::User => {}
                }
                above.last_child.replace(at)
            }
        };
        self.head = Some(at);
        self.index.insert(id.clone(), at);
        let (tool_child, last_child, replied) = (None, None, false);
        self.nodes.push(Node { id, message, parent, tool_child, replied, last_child, sibling });
    }

    pub(super) fn move_head(&mut self, id: &MessageId) {
        self.head = self.at(id).or(self.head);
    }

    /// Where the parent of a recorded message stands; none for one that begins a conversation.
    pub(super) fn parent(&self, at: usize) -> Option<usize> {
        self.node(at)?.parent
    }

    /// Where a recorded message stands, and what it is.
    pub(super) fn find(&self, id: &MessageId) -> Option<(usize, &Message)> {
        let at = self.at(id)?;
        self.node(at).map(|node| (at, &*node.message))
    }

    /// The message that [`Tree::find`] found.
    pub(super) fn id_at(&self, at: usize) -> Option<&MessageId> {
        self.node(at).map(|node| &node.id)
    }

    /// Whether the message at `at` comes right after `before` in a conversation, where the reader may
    /// have left out the results of tools between them.
    pub(super) fn follows(&self, at: usize, before: Option<usize>) -> bool {
        let Some(node) = self.node(at) else { return false };
        let mut parent = node.parent;
        for _ in 0..RESULTS_MAX {
            if parent == before {
                return true;
            }
            let Some(between) = parent.and_then(|at| self.node(at)) else { return false };
            if between.message.role != Role::Tool {
                return false;
            }
            parent = between.parent;
        }
        false
    }

    /// The latest message of a person that stands where the one at `at` does and says what `message`
    /// says.
    pub(super) fn same_beside(&self, at: usize, message: &Message) -> Option<usize> {
        let last = match self.node(at)?.parent {
            None => self.last_root,
            Some(parent) => self.node(parent)?.last_child,
        };
        let earlier = |at: &usize| self.node(*at).and_then(|node| node.sibling);
        let mut siblings = std::iter::successors(last, earlier);
        siblings.find(|at| {
            self.node(*at).is_some_and(|node| {
                matches!(node.message.role, Role::System | Role::User)
                    && node.message.says_the_same(message)
            })
        })
    }

    /// `id`, or the last of the tool results that were recorded below it.
    pub(super) fn below_its_results<'t>(&'t self, id: &'t MessageId) -> &'t MessageId {
        let mut node = self.at(id).and_then(|at| self.node(at));
        let mut last = id;
        while let Some(child) = node.and_then(|node| node.tool_child).and_then(|at| self.node(at)) {
            last = &child.id;
            node = Some(child);
        }
        last
    }

    /// Whether `id` is `of` or stands above it.
    pub(super) fn is_on_path(&self, id: &MessageId, of: Option<&MessageId>) -> bool {
        let Some(wanted) = self.at(id) else { return false };
        let mut at = of.and_then(|of| self.at(of));
        // Parents stand before their children.
        while let Some(here) = at.filter(|here| *here > wanted) {
            at = self.node(here).and_then(|node| node.parent);
        }
        at == Some(wanted)
    }

    pub(super) fn anchor_state(&mut self, anchor: Option<&MessageId>, state: Json) {
        self.states.insert(anchor.and_then(|id| self.at(id)), state);
    }

    pub(super) fn anchor_config(&mut self, anchor: Option<&MessageId>, config: Arc<AgentConfig>) {
        self.configs.insert(anchor.and_then(|id| self.at(id)), config);
    }

    /// The agent's state at the head; none where no decision wrote one.
    pub(super) fn state(&self) -> Option<&Json> {
        self.anchored(&self.states)
    }

    /// The agent's configuration at the head; none where no decision wrote one.
    pub(super) fn config(&self) -> Option<&Arc<AgentConfig>> {
        self.anchored(&self.configs)
    }

    fn anchored<'t, T>(&'t self, anchored: &'t BTreeMap<Option<usize>, T>) -> Option<&'t T> {
        if anchored.is_empty() {
            return None;
        }
        let mut at = self.head;
        loop {
            if let Some(value) = anchored.get(&at) {
                return Some(value);
            }
            at = self.node(at?).and_then(|node| node.parent);
        }
    }

    /// The messages from the root to `id`.
    pub(super) fn path_to(&self, id: &MessageId) -> Vec<Arc<Message>> {
        let up = self.up_from(self.at(id)).map(|node| Arc::clone(&node.message));
        let mut path: Vec<_> = up.collect();
        path.reverse();
        path
    }

    /// At most `limit` messages of the active conversation that end above `before`, or at the head,
    /// and whether more stand above them; none where `before` is not in it.
    pub(super) fn page(
        &self,
        limit: usize,
        before: Option<&MessageId>,
    ) -> Option<(Vec<Arc<Message>>, bool)> {
        let end = match before {
            None => self.head,
            Some(before) if self.is_on_path(before, self.head()) => {
                self.node(self.at(before)?)?.parent
            }
            Some(_) => return None,
        };
        let mut up = self.up_from(end);
        let page = up.by_ref().take(limit).map(|node| Arc::clone(&node.message));
        let mut page: Vec<_> = page.collect();
        page.reverse();
        Some((page, up.next().is_some()))
    }

    fn up_from(&self, at: Option<usize>) -> impl Iterator<Item = &Node> {
        let first = at.and_then(|at| self.node(at));
        std::iter::successors(first, |node| node.parent.and_then(|at| self.node(at)))
    }

    /// Every node with the id of its parent, in the order of recording.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (Option<&MessageId>, &Arc<Message>)> {
        self.nodes.iter().map(|node| {
            let parent = node.parent.and_then(|at| self.node(at)).map(|node| &node.id);
            (parent, &node.message)
        })
    }
}
