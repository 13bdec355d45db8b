//! Messages and the tool calls that they carry.

use serde::{Deserialize, Serialize};

use super::content::Content;
use super::json::{DecodeError, Node};
use crate::ids::{CallId, MessageId};

/// Longest `name`, in bytes.
const NAME_BYTES_MAX: usize = 64 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    System,
    User,
    Assistant,
    Tool,
}

/// A message of the tree. A recorded one always has an `id`; a submitted one may come without.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<MessageId>,
    pub role: Role,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<CallId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// A call that the model asks for. `type` is always `function`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: CallId,
    #[serde(rename = "type")]
    pub kind: FunctionTag,
    pub function: FunctionCall,
}

/// The one value of `ToolCall.type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FunctionTag {
    #[default]
    Function,
}

/// `arguments` is the model's raw text: it may not be JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionCall {
    pub name: String,
    pub arguments: String,
}

impl Message {
    /// A message that says `text`, without an id.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self {
            id: None,
            role,
            content: Some(Content::Text(text.into())),
            tool_calls: Vec::new(),
            tool_call_id: None,
            name: None,
        }
    }

    /// Reads a message that a caller submits; each text is at most `text_bytes_max` bytes. Tool
    /// calls of a caller are never taken over: only a model makes calls (S22).
    pub fn read(node: &Node<'_>, text_bytes_max: usize) -> Result<Self, DecodeError> {
        let [id, role, content, tool_call_id, name] =
            node.fields(["id", "role", "content", "tool_call_id", "name"])?;
        let role_node = node.required("role", role)?;
        let role = match role_node.string()? {
            "system" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "tool" => Role::Tool,
            other => return Err(role_node.shape(format!("`{other}` is not a role"))),
        };
        Ok(Self {
            id: id.map(|id| id.parse(MessageId::parse)).transpose()?,
            role,
            content: content.map(|content| Content::read(&content, text_bytes_max)).transpose()?,
            tool_calls: Vec::new(),
            tool_call_id: tool_call_id.map(|id| id.parse(CallId::parse)).transpose()?,
            name: name.map(|name| name.text(NAME_BYTES_MAX)).transpose()?,
        })
    }
}
