//! Where the messages of an input belong (S22).

use super::Model;
use super::content::{SAYS_NOTHING, invalid};
use super::tree::Place;
use crate::protocol::input::Input;
use crate::protocol::message::{Message, Role};
use crate::session::{Caller, Rejection};

/// What an input comes to.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// Of open calls, the first for each.
    pub(super) answers: Vec<Message>,
    pub(super) fresh: Vec<Message>,
    /// All but the answers, what is known included.
    pub(super) rest: Vec<Message>,
    pub(super) below: Below,
    /// Where it lands: what pauses this place holds the input up.
    pub(super) place: Place,
    pub(super) end: End,
}

/// Where new messages begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Below {
    Head,
    /// The last match, or what stands above an edited message; and below the results of tools that
    /// are recorded there.
    Match(Place),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// With messages that nobody knows.
    New,
    Nothing,
    /// At a recorded reply.
    Move(usize),
    /// At a recorded message that is answered again.
    Again(usize),
}

impl Plan {
    fn at_head(model: &Model) -> Self {
        Self {
            answers: vec![],
            fresh: vec![],
            rest: vec![],
            below: Below::Head,
            place: model.tree.head,
            end: End::Nothing,
        }
    }

    fn add(&mut self, model: &Model, message: &Message) {
        let same = |other: &&Message| other.tool_call_id == message.tool_call_id;
        if model.answers(message) {
            if self.answers.iter().find(same).is_none() {
                self.answers.push(message.clone());
            }
        } else {
            self.fresh.push(message.clone());
            self.rest.push(message.clone());
            self.end = End::New;
        }
    }

    pub(super) fn only_answers(&self) -> bool {
        self.fresh.is_empty() && !self.answers.is_empty()
    }
}

impl Model {
    pub(super) fn plan(&self, input: &Input, caller: &Caller) -> Result<Plan, Rejection> {
        match input {
            Input::Messages(input) => self.plan_view(&input.messages, caller),
            Input::Message(_) | Input::Append(_) | Input::Action(_) => {
                Ok(self.plan_append(input.messages(), caller))
            }
        }
    }

    fn plan_append(&self, messages: &[Message], caller: &Caller) -> Plan {
        let mut plan = Plan::at_head(self);
        for message in messages.iter().filter(|message| self.counts(message, caller)) {
            if self.tree.knows(message) {
                plan.rest.push(message.clone());
            } else {
                plan.add(self, message);
            }
        }
        plan
    }

    fn plan_view(&self, view: &[Message], caller: &Caller) -> Result<Plan, Rejection> {
        let mut plan = Plan::at_head(self);
        // The last match, and the last that is no result of a tool.
        let (mut last, mut follows): (Place, Place) = (None, None);
        let mut new: Vec<&Message> = Vec::new();
        let mut edited = None;
        for (index, message) in view.iter().enumerate() {
            if !self.counts(message, caller) {
                continue;
            }
            let Some(known) = message.id.as_ref().and_then(|id| self.tree.find(id)) else {
                check_new(&new, message, index)?;
                new.push(message);
                plan.add(self, message);
                continue;
            };
            let misplaced = !new.is_empty() || self.tree.above_results(known) != follows;
            if misplaced || edited.is_some() {
                return Err(invalid(format!("messages[{index}].id"), MISPLACED));
            }
            if self.is_edit(known, message) {
                if !message.says_something() {
                    return Err(invalid(format!("messages[{index}].content"), SAYS_NOTHING));
                }
                if let Some(same) = self.same_edit(known, message) {
                    (last, follows) = (Some(same), Some(same));
                    continue;
                }
                edited = Some(self.tree.nodes[known].parent);
                plan.add(self, &Message { id: None, ..message.clone() });
                continue;
            }
            last = Some(known);
            if self.tree.role(last) != Some(Role::Tool) {
                follows = last;
            }
        }
        let after = edited.unwrap_or(last);
        match last {
            _ if !plan.answers.is_empty() => {}
            Some(last) if plan.fresh.is_empty() => (plan.place, plan.end) = self.end_of(last),
            None if plan.fresh.is_empty() => {}
            Some(_) | None => {
                plan.below = Below::Match(after);
                plan.place = if after.is_none() { None } else { self.tree.below_results(after) };
            }
        }
        Ok(plan)
    }

    /// What a view comes to that ends at a recorded message.
    fn end_of(&self, last: usize) -> (Place, End) {
        let end = match self.tree.nodes[last].message.role {
            Role::Assistant => return (Some(last), End::Move(last)),
            Role::System | Role::User => last,
            Role::Tool => self.tree.below_results(Some(last)).unwrap_or(last),
        };
        (Some(end), End::Again(end))
    }

    /// The last message of a user beside `known` that says what the edited message says.
    fn same_edit(&self, known: usize, message: &Message) -> Option<usize> {
        let mut beside = self.tree.children(self.tree.nodes[known].parent);
        beside.rfind(|index| {
            let node = &self.tree.nodes[*index].message;
            matches!(node.role, Role::User | Role::System) && node.says_the_same(message)
        })
    }

    /// A user's message that is recorded with other content.
    fn is_edit(&self, known: usize, message: &Message) -> bool {
        let recorded = &self.tree.nodes[known].message;
        let of_user = |role| matches!(role, Role::User | Role::System);
        of_user(recorded.role) && of_user(message.role) && !recorded.says_the_same(message)
    }
}

fn check_new(new: &[&Message], message: &Message, index: usize) -> Result<(), Rejection> {
    if message.id.is_some() && new.iter().any(|other| other.id == message.id) {
        return Err(invalid(format!("messages[{index}].id"), TWICE));
    }
    Ok(())
}

const MISPLACED: &str = "is recorded at another place of the conversation";
const TWICE: &str = "stands twice";
