//! What callers say, as it is taken (S15, S22).

use super::Model;
use crate::protocol::blob::BlobHash;
use crate::protocol::content::{BlobInfo, Content};
use crate::protocol::input::Input;
use crate::protocol::message::{Message, Role};
use crate::session::{Caller, Rejection, Submission};

/// Longest title that is made of a text, in characters.
const TITLE_CHARS: usize = 80;

pub(super) fn title_of(message: &Message) -> Option<String> {
    let text = message.content.as_ref()?.text();
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(TITLE_CHARS).collect())
}

pub(super) fn invalid(path: String, problem: &'static str) -> Rejection {
    Rejection::Invalid { path, problem }
}

impl Model {
    /// The input of `submission` as the session takes it, or what is wrong with it.
    pub(super) fn take(&self, submission: &Submission) -> Result<Input, Rejection> {
        let mut input = submission.input.clone();
        for message in input.messages_mut() {
            if matches!(submission.caller, Caller::Frontend(_)) {
                message.tool_calls.clear();
                if message.role == Role::System {
                    message.role = Role::User;
                }
            }
        }
        match &mut input {
            Input::Message(input) => self.take_one(&mut input.message, submission)?,
            Input::Messages(input) | Input::Append(input) => {
                self.take_list(&mut input.messages, submission)?;
            }
            Input::Action(_) => {}
        }
        Ok(input)
    }

    fn take_one(&self, message: &mut Message, submission: &Submission) -> Result<(), Rejection> {
        if !self.tree.knows(message) && message.role != Role::Tool && !message.says_something() {
            return Err(invalid("message.content".to_owned(), SAYS_NOTHING));
        }
        self.describe(message, "message", submission)?;
        if message.role == Role::Tool && !self.tree.knows(message) && !self.answers(message) {
            let problem = "is `tool`, but answers no open client-handled call";
            return Err(invalid("message.role".to_owned(), problem));
        }
        Ok(())
    }

    fn take_list(
        &self,
        messages: &mut [Message],
        submission: &Submission,
    ) -> Result<(), Rejection> {
        for (index, message) in messages.iter_mut().enumerate() {
            let of_user = matches!(message.role, Role::User | Role::System);
            if of_user && !self.tree.knows(message) && !message.says_something() {
                return Err(invalid(format!("messages[{index}].content"), SAYS_NOTHING));
            }
            self.describe(message, &format!("messages[{index}]"), submission)?;
        }
        Ok(())
    }

    /// Whether a message of a list is looked at.
    pub(super) fn counts(&self, message: &Message, caller: &Caller) -> bool {
        let known = self.tree.knows(message);
        match message.role {
            Role::System | Role::User => true,
            Role::Assistant => known || message.says_something() || !message.tool_calls.is_empty(),
            Role::Tool => known || self.answers(message) || !matches!(caller, Caller::Frontend(_)),
        }
    }

    /// Whether a message is new and answers an open call.
    pub(super) fn answers(&self, message: &Message) -> bool {
        let open = self.running.iter().flat_map(|turn| &turn.tools);
        message.role == Role::Tool
            && !self.tree.knows(message)
            && open.map(|tool| Some(&tool.id)).any(|id| id == message.tool_call_id.as_ref())
    }

    /// A caller's word about bytes does not count.
    fn describe(
        &self,
        message: &mut Message,
        path: &str,
        submission: &Submission,
    ) -> Result<(), Rejection> {
        let known = |hash: &BlobHash| -> Option<BlobInfo> {
            submission.blobs.get(hash).or_else(|| self.blobs.get(hash)).cloned()
        };
        let described =
            message.content.as_mut().map(|content: &mut Content| content.describe_blobs(known));
        match described {
            Some(Err(_)) => Err(invalid(format!("{path}.content"), UNKNOWN_BLOB)),
            Some(Ok(())) | None => Ok(()),
        }
    }
}

pub(super) const SAYS_NOTHING: &str = "says nothing, and no model answers that";
const UNKNOWN_BLOB: &str = "names a blob that this session does not have";
