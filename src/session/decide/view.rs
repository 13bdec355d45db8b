//! What an input brings, held against the tree (S22, S23).

use std::collections::BTreeSet;

use super::Decider;
use super::admit::{Place, Plan, Waits};
use crate::ids::{CallId, MessageId};
use crate::protocol::content::Blobs;
use crate::protocol::input::{Input, MessageInput, MessagesInput};
use crate::protocol::message::{Message, Role};
use crate::session::command::Caller;
use crate::session::rejection::Rejection;

const SAYS_NOTHING: &str = "says nothing, and no model answers that";

fn invalid(path: String, problem: &'static str) -> Rejection {
    Rejection::Invalid { path, problem }
}

/// The path of the `index`-th message of an input.
fn path_of(input: &Input, index: usize) -> String {
    match input {
        Input::Message(_) => "message".to_owned(),
        Input::Messages(_) | Input::Append(_) | Input::Action(_) => format!("messages[{index}]"),
    }
}

impl Decider<'_> {
    /// The input with only what the caller may say in it (S22), its blobs described by the engine
    /// (S15). Refuses what no model could answer.
    pub(super) fn trusted(
        &self,
        caller: &Caller,
        mut input: Input,
        uploads: &Blobs,
    ) -> Result<Input, Rejection> {
        let lone = matches!(input, Input::Message(_));
        for index in 0..input.messages().len() {
            let path = path_of(&input, index);
            let Some(message) = input.messages_mut().get_mut(index) else { continue };
            if let Caller::Frontend(_) = caller {
                distrust(message);
            }
            let speaks = match message.role {
                Role::System | Role::User => true,
                Role::Assistant => lone,
                Role::Tool => false,
            };
            if speaks && !message.says_something() && !self.knows(message) {
                return Err(invalid(format!("{path}.content"), SAYS_NOTHING));
            }
            if let Some(content) = &mut message.content {
                let info = |hash: &_| uploads.get(hash).or_else(|| self.session.blobs.get(hash));
                content.describe_blobs(|hash| info(hash).cloned()).map_err(|_| {
                    let problem = "names a blob that this session does not have";
                    invalid(format!("{path}.content"), problem)
                })?;
            }
        }
        if let Input::Message(MessageInput { message, .. }) = &input
            && message.role == Role::Tool
            && !self.knows(message)
            && self.answered_call(message).is_none()
        {
            let problem = "is `tool`, but answers no open client-handled call";
            return Err(invalid("message.role".to_owned(), problem));
        }
        Ok(input)
    }

    fn knows(&self, message: &Message) -> bool {
        message.id.as_ref().is_some_and(|id| self.session.tree.contains(id))
    }

    /// Whether a message of a list is looked at: a front end's tool messages are only where they are
    /// recorded or answer a call, assistant messages only where they say something.
    fn counts(&self, message: &Message, caller: &Caller) -> bool {
        let trusted = matches!(caller, Caller::System | Caller::Machine);
        match message.role {
            Role::System | Role::User => true,
            Role::Tool => trusted || self.knows(message) || self.answered_call(message).is_some(),
            Role::Assistant => {
                !message.tool_calls.is_empty() || message.says_something() || self.knows(message)
            }
        }
    }

    /// The open client-handled call that a new tool message answers.
    fn answered_call(&self, message: &Message) -> Option<CallId> {
        let answers = message.role == Role::Tool && !self.knows(message);
        let id = message.tool_call_id.as_ref().filter(|_| answers)?;
        let turn = self.session.turn.as_ref()?;
        turn.client_call(id).map(|call| call.id.clone())
    }

    pub(super) fn plan(&self, caller: &Caller, input: Input) -> Result<Plan, Rejection> {
        match input {
            Input::Message(MessageInput { message, stream }) => {
                let plan = Plan { stream, waits: Some(Waits::Message), ..Plan::default() };
                Ok(self.below_the_head(plan, caller, vec![message]))
            }
            Input::Append(MessagesInput { messages, stream, client }) => {
                let waits = Some(Waits::Append);
                let plan = Plan { stream, client, waits, ..Plan::default() };
                Ok(self.below_the_head(plan, caller, messages))
            }
            Input::Messages(MessagesInput { messages, stream, client }) => {
                self.view(Plan { stream, client, ..Plan::default() }, caller, messages)
            }
            Input::Action(action) => Ok(Plan { action: Some(action), ..Plan::default() }),
        }
    }

    fn below_the_head(&self, mut plan: Plan, caller: &Caller, messages: Vec<Message>) -> Plan {
        for message in messages {
            if self.counts(&message, caller) {
                self.place(&mut plan, message);
            }
        }
        plan
    }

    /// A new message: the answer to an open call, or part of what the turn is about.
    fn place(&self, plan: &mut Plan, message: Message) {
        match self.answered_call(&message) {
            Some(id) if plan.answers.iter().any(|(answered, _)| *answered == id) => {}
            Some(id) => plan.answers.push((id, message)),
            None => plan.news.push(message),
        }
    }

    /// Matches a view by id from the root; the first new or edited message starts a branch. Results
    /// of tools may be left out or stand in another order.
    fn view(
        &self,
        mut plan: Plan,
        caller: &Caller,
        messages: Vec<Message>,
    ) -> Result<Plan, Rejection> {
        let tree = &self.session.tree;
        let mut matched = Match::default();
        let mut new_ids = BTreeSet::new();
        for (index, mut message) in messages.into_iter().enumerate() {
            if !self.counts(&message, caller) {
                continue;
            }
            let path = |field| format!("messages[{index}].{field}");
            let found = message.id.as_ref().and_then(|id| tree.find(id));
            let Some((at, recorded)) = found else {
                if let Some(id) = &message.id
                    && !new_ids.insert(id.clone())
                {
                    return Err(invalid(path("id"), "stands twice"));
                }
                self.place(&mut plan, message);
                continue;
            };
            let branched = !plan.news.is_empty() || !plan.answers.is_empty();
            let next = matched.result.or(matched.last);
            let follows = tree.parent(at) == next || tree.follows(at, matched.last);
            if branched || !follows {
                let problem = "is recorded at another place of the conversation";
                return Err(invalid(path("id"), problem));
            }
            if is_edited(recorded, &message) {
                if !message.says_something() {
                    return Err(invalid(path("content"), SAYS_NOTHING));
                }
                // A client goes on under the id that it knows: the edit may be recorded already.
                let edit = tree.same_beside(at, &message);
                matched = Match { last: edit.or_else(|| tree.parent(at)), result: None };
                if edit.is_some() {
                    continue;
                }
                message.id = None;
                plan.news.push(message);
            } else if recorded.role == Role::Tool {
                matched.result = Some(at);
            } else {
                matched = Match { last: Some(at), result: None };
            }
        }
        self.settle_place(&mut plan, matched);
        Ok(plan)
    }

    /// Where a view goes on: below its last match and the results that were recorded there, or at
    /// that match itself.
    fn settle_place(&self, plan: &mut Plan, matched: Match) {
        let tree = &self.session.tree;
        let Match { last, result } = matched;
        let ends_in_results = result.is_some();
        let end = result.or(last).and_then(|at| tree.id_at(at)).cloned();
        let last_result = |id: &MessageId| tree.below_its_results(id).clone();
        if !plan.news.is_empty() {
            plan.place = end.as_ref().map_or(Place::Root, |id| Place::At(last_result(id)));
        } else if let Some(end) = end
            && plan.answers.is_empty()
        {
            let end = if ends_in_results { last_result(&end) } else { end };
            plan.rerun = tree.get(&end).is_some_and(|end| end.role != Role::Assistant);
            plan.place = Place::At(end);
        }
    }
}

/// How far a view is the recorded conversation.
#[derive(Default, Clone, Copy)]
struct Match {
    /// Where the last message stands that matched and is not a result of a tool.
    last: Option<usize>,
    /// The last result of a tool that matched below it.
    result: Option<usize>,
}

/// A message of a person under a known id that says something else. What the engine itself said is
/// not the client's to change, so other content of it is not heard.
fn is_edited(recorded: &Message, message: &Message) -> bool {
    let of_a_person = |role| matches!(role, Role::System | Role::User);
    of_a_person(recorded.role) && of_a_person(message.role) && !recorded.says_the_same(message)
}

/// The system text of a front end counts as user text, and only a model makes calls (S22).
fn distrust(message: &mut Message) {
    if message.role == Role::System {
        message.role = Role::User;
    }
    message.tool_calls.clear();
}
