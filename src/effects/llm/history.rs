//! The conversation as providers take it: every tool call with its result right behind it.
//!
//! A history that a provider refuses would end every later turn of the session, so what no provider
//! takes is made whole here: calls without a result, arguments that are no JSON object, odd names.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::media::Piece;
use crate::effects::BlobBytes;
use crate::ids::CallId;
use crate::protocol::content::Content;
use crate::protocol::message::{Message, Role, ToolCall};

/// Longest name of a tool or a speaker that every provider takes.
const NAME_BYTES_MAX: usize = 64;
const NO_RESULT: &str = "No result of this call was recorded.";

/// One step of the conversation. An `Assistant` step with calls is followed by their `Results`. Only
/// users and tools say more than text.
pub enum Step<'m> {
    System { name: Option<&'m str>, text: String },
    User { name: Option<&'m str>, said: Vec<Piece<'m>> },
    Assistant { name: Option<&'m str>, text: String, calls: Vec<Invocation<'m>> },
    Results(Vec<ToolResult<'m>>),
}

pub struct Invocation<'m> {
    pub id: &'m CallId,
    pub name: Cow<'m, str>,
    /// A JSON object.
    pub arguments: Cow<'m, str>,
}

pub struct ToolResult<'m> {
    pub call: &'m CallId,
    pub said: Vec<Piece<'m>>,
}

pub fn steps<'m>(messages: &'m [Arc<Message>], blobs: &'m BlobBytes) -> Vec<Step<'m>> {
    // The first result behind each call, as seen from the message at hand. From the last message to
    // the first, since a conversation from elsewhere may use an id again: every use has its own.
    let mut results: BTreeMap<&CallId, &'m Message> = BTreeMap::new();
    let mut steps = Vec::with_capacity(messages.len());
    for message in messages.iter().rev() {
        let name = message.name.as_deref().filter(|name| is_plain(name));
        match message.role {
            Role::System => steps.push(Step::System { name, text: text_of(message) }),
            Role::User => {
                let said = Piece::of(message.content.as_ref(), blobs);
                steps.push(Step::User { name, said });
            }
            Role::Assistant => {
                let calls = &message.tool_calls;
                if !calls.is_empty() {
                    let answered = calls.iter().map(|call| ToolResult::of(call, &results, blobs));
                    steps.push(Step::Results(answered.collect()));
                    for call in calls {
                        results.remove(&call.id);
                    }
                }
                let made = calls.iter().map(Invocation::of).collect();
                steps.push(Step::Assistant { name, text: text_of(message), calls: made });
            }
            // Stands behind its call; without a call it would say nothing to the model.
            Role::Tool => {
                if let Some(call) = &message.tool_call_id {
                    results.insert(call, message);
                }
            }
        }
    }
    steps.reverse();
    steps
}

/// All text of a message; empty if it only makes calls.
pub fn text_of(message: &Message) -> String {
    message.content.as_ref().map(Content::text).unwrap_or_default()
}

impl<'m> Invocation<'m> {
    fn of(call: &'m ToolCall) -> Self {
        Self {
            id: &call.id,
            name: plain(&call.function.name),
            arguments: object(&call.function.arguments),
        }
    }

    /// The arguments as a value that keeps their text.
    pub fn input(&self) -> Box<RawValue> {
        RawValue::from_string(self.arguments.clone().into_owned()).unwrap_or_default()
    }
}

impl<'m> ToolResult<'m> {
    fn of(
        call: &'m ToolCall,
        results: &BTreeMap<&CallId, &'m Message>,
        blobs: &'m BlobBytes,
    ) -> Self {
        let said = match results.get(&call.id) {
            Some(message) => Piece::of(message.content.as_ref(), blobs),
            None => vec![Piece::text(NO_RESULT)],
        };
        Self { call: &call.id, said }
    }
}

/// Text that is no JSON object is shown to the model as what it wrote.
fn object(arguments: &str) -> Cow<'_, str> {
    let read: Result<serde_json::Map<String, serde_json::Value>, _> =
        serde_json::from_str(arguments);
    match read {
        Ok(_) => Cow::Borrowed(arguments),
        Err(_) if arguments.trim().is_empty() => Cow::Borrowed("{}"),
        Err(_) => Cow::Owned(serde_json::json!({ "malformed_arguments": arguments }).to_string()),
    }
}

fn is_plain(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(allowed)
}

fn plain(name: &str) -> Cow<'_, str> {
    if is_plain(name) {
        return Cow::Borrowed(name);
    }
    let allowed = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }
    };
    let name: String = name.chars().take(NAME_BYTES_MAX).map(allowed).collect();
    Cow::Owned(if name.is_empty() { "_".to_owned() } else { name })
}

#[cfg(test)]
mod tests;
