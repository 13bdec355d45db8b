//! Bytes to the whole conversation as a client may have it: right, old, edited or wrong.

use super::super::kit::*;
use super::super::model::Model;
use super::draw::Draw;
use crate::protocol::content::{Content, ContentPart};
use crate::protocol::message::{Message, Role};

impl Draw<'_> {
    pub(super) fn view(&mut self, model: &Model) -> Vec<Message> {
        let mut view = self.branch(model);
        if self.one_in(3) {
            view.truncate(view.len().saturating_sub(usize::from(self.below(4))));
        }
        match self.below(16) {
            0..2 => self.edit(&mut view),
            2 => view.retain(|message| message.role != Role::Tool),
            3 => self.leave_one_tool_out(&mut view),
            4 => reorder_tools(&mut view),
            5 => self.swap(&mut view),
            6 => self.insert_known(&mut view, model),
            7 => spell_otherwise(&mut view),
            8 => self.other_role(&mut view),
            _ => {}
        }
        for _ in 0..self.of(&[0, 0, 1, 1, 1, 2]) {
            let message = match self.below(8) {
                0..2 => self.tool_message(model),
                2 => view.last().cloned().unwrap_or_else(|| user("m0", "again")),
                _ => self.new_message(model),
            };
            view.push(message);
        }
        view
    }

    /// Mostly to the head, else to any message.
    fn branch(&mut self, model: &Model) -> Vec<Message> {
        let count = model.recorded().len();
        let end = match self.below(3) {
            0 if count > 0 => Some(usize::from(self.byte()) % count),
            _ => model.head_index(),
        };
        end.map(|index| model.path_to(index)).unwrap_or_default()
    }

    fn edit(&mut self, view: &mut [Message]) {
        let users: Vec<usize> =
            (0..view.len()).filter(|index| view[*index].role == Role::User).collect();
        if let Some(index) = self.recent(&users) {
            view[index].content = Some(Content::Text(self.of(&["edited", "hello", ""]).to_owned()));
        }
    }

    fn leave_one_tool_out(&mut self, view: &mut Vec<Message>) {
        let tools: Vec<usize> =
            (0..view.len()).filter(|index| view[*index].role == Role::Tool).collect();
        if let Some(index) = self.recent(&tools) {
            view.remove(index);
        }
    }

    fn swap(&mut self, view: &mut [Message]) {
        if view.len() > 1 {
            let index = usize::from(self.byte()) % (view.len() - 1);
            view.swap(index, index + 1);
        }
    }

    fn insert_known(&mut self, view: &mut Vec<Message>, model: &Model) {
        let known: Vec<Message> = model.recorded().cloned().collect();
        if let Some(message) = self.recent(&known) {
            let index = usize::from(self.byte()) % (view.len() + 1);
            view.insert(index, message);
        }
    }

    fn other_role(&mut self, view: &mut [Message]) {
        if let Some(last) = view.last_mut() {
            last.role = self.of(&[Role::User, Role::System, Role::Assistant, Role::Tool]);
        }
    }
}

/// The results of each batch, the last first.
fn reorder_tools(view: &mut [Message]) {
    for batch in view.chunk_by_mut(|a, b| a.role == Role::Tool && b.role == Role::Tool) {
        batch.reverse();
    }
}

/// Texts as parts and parts as texts.
fn spell_otherwise(view: &mut [Message]) {
    for content in view.iter_mut().filter_map(|message| message.content.as_mut()) {
        if let Content::Text(text) = content {
            *content = Content::Parts(vec![ContentPart::Text { text: text.clone() }]);
        }
    }
}
