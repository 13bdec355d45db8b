//! Messages and the tool calls that they carry.

use serde::{Deserialize, Serialize};

use super::blob::BlobHash;
use super::content::{BlobInfo, Content, Intake};
use super::json::{DecodeError, Node};
use crate::ids::{CallId, MessageId};

/// Longest `name`, in bytes.
const NAME_BYTES_MAX: usize = 64 * 1024;
/// Most tool calls in a message, as many as a model may make in one answer.
const TOOL_CALLS_MAX: usize = 128;

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

    /// Reads a message that a caller submits.
    pub fn read(node: &Node<'_>, intake: &mut Intake) -> Result<Self, DecodeError> {
        let [id, role, content, tool_calls, tool_call_id, name] =
            node.fields(["id", "role", "content", "tool_calls", "tool_call_id", "name"])?;
        let role_node = node.required("role", role)?;
        let role = match role_node.string()? {
            "system" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "tool" => Role::Tool,
            other => return Err(role_node.shape(format!("`{other}` is not a role"))),
        };
        let tool_calls =
            tool_calls.as_ref().map(|calls| calls.items(TOOL_CALLS_MAX)).transpose()?;
        let tool_calls = tool_calls.unwrap_or_default();
        Ok(Self {
            id: id.map(|id| id.parse(MessageId::parse)).transpose()?,
            role,
            content: content.map(|content| intake.content(&content)).transpose()?,
            tool_calls: tool_calls
                .iter()
                .map(|call| ToolCall::read(call, intake.text_bytes_max))
                .collect::<Result<_, _>>()?,
            tool_call_id: tool_call_id.map(|id| id.parse(CallId::parse)).transpose()?,
            name: name.map(|name| name.text(NAME_BYTES_MAX)).transpose()?,
        })
    }

    /// Every blob that it names, with what it says of it.
    pub fn blobs(&self) -> impl Iterator<Item = (BlobHash, BlobInfo)> {
        self.content.iter().flat_map(Content::blobs)
    }

    pub fn says_something(&self) -> bool {
        self.content.as_ref().is_some_and(Content::says_something)
    }

    /// Whether both have the same content, however a client spells it.
    pub fn says_the_same(&self, other: &Self) -> bool {
        match (&self.content, &other.content) {
            (Some(a), Some(b)) => a.same_as(b),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }
}

impl ToolCall {
    fn read(node: &Node<'_>, text_bytes_max: usize) -> Result<Self, DecodeError> {
        let [id, kind, function] = node.fields(["id", "type", "function"])?;
        if let Some(kind) = kind
            && kind.string()? != "function"
        {
            return Err(kind.shape("must be `function`"));
        }
        let function = node.required("function", function)?;
        let [name, arguments] = function.fields(["name", "arguments"])?;
        Ok(Self {
            id: node.required("id", id)?.parse(CallId::parse)?,
            kind: FunctionTag::Function,
            function: FunctionCall {
                name: function.required("name", name)?.text(NAME_BYTES_MAX)?,
                arguments: function.required("arguments", arguments)?.text(text_bytes_max)?,
            },
        })
    }
}
