//! Tools that a model is offered.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::event::Handler;
use super::json::{DecodeError, Json, Node};

/// Most tools in one request.
pub const TOOLS_MAX: usize = 256;
/// Longest name of a tool: what every provider takes.
pub const TOOL_NAME_BYTES_MAX: usize = 64;
/// Longest description of a tool, and longest schema, in bytes each.
pub const SCHEMA_BYTES_MAX: usize = 64 * 1024;
/// Deepest nesting of a schema.
pub const SCHEMA_DEPTH_MAX: usize = 16;
/// Most entries of `context`.
const CONTEXT_MAX: usize = 256;

/// A tool that a model may call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentTool {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of the arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Json>,
    /// JSON Schema of the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    pub handler: Handler,
}

/// What a front end says of itself beside the conversation (interface 2.3). Only `tools` means
/// something to the engine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClientContext {
    /// Handled by the client, whatever they say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Arc<AgentTool>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forwarded_props: Option<Json>,
}

impl AgentTool {
    /// Reads a tool that a client offers: it handles it, whatever the tool says.
    fn read_client(node: &Node<'_>) -> Result<Self, DecodeError> {
        let [name, description, input, output, handler] =
            node.fields(["name", "description", "input", "output", "handler"])?;
        let name_node = node.required("name", name)?;
        let name = name_node.string()?;
        if !is_tool_name(name) {
            return Err(name_node.range(format!(
                "must be 1 to {TOOL_NAME_BYTES_MAX} characters of A-Z a-z 0-9 _ -"
            )));
        }
        if let Some(handler) = handler {
            match handler.string()? {
                "worker" | "client" => {}
                other => return Err(handler.shape(format!("`{other}` is not a handler"))),
            }
        }
        Ok(Self {
            name: name.to_owned(),
            description: description.map(|text| text.text(SCHEMA_BYTES_MAX)).transpose()?,
            input: input.map(|schema| read_schema(&schema)).transpose()?,
            output: output.map(|schema| read_schema(&schema)).transpose()?,
            handler: Handler::Client,
        })
    }
}

/// Whether every provider takes `name` as the name of a tool.
pub fn is_tool_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=TOOL_NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(allowed)
}

fn read_schema(node: &Node<'_>) -> Result<Json, DecodeError> {
    if node.depth() > SCHEMA_DEPTH_MAX {
        return Err(node.range(format!("is nested deeper than {SCHEMA_DEPTH_MAX}")));
    }
    let schema = node.raw()?;
    if schema.text().len() > SCHEMA_BYTES_MAX {
        return Err(node.range(format!("is longer than {SCHEMA_BYTES_MAX} bytes")));
    }
    Ok(schema)
}

impl ClientContext {
    /// Reads `client` of an input. Where two tools have one name, the first counts.
    pub fn read(node: &Node<'_>) -> Result<Self, DecodeError> {
        let [tools, context, state, forwarded_props] =
            node.fields(["tools", "context", "state", "forwarded_props"])?;
        let mut read: Vec<Arc<AgentTool>> = Vec::new();
        let tools = tools.as_ref().map(|tools| tools.own_items(TOOLS_MAX)).transpose()?;
        for tool in tools.unwrap_or_default() {
            let tool = AgentTool::read_client(&tool)?;
            if !read.iter().any(|known| known.name == tool.name) {
                read.push(Arc::new(tool));
            }
        }
        let context = context.as_ref().map(|context| context.own_items(CONTEXT_MAX)).transpose()?;
        Ok(Self {
            tools: read,
            context: context.unwrap_or_default().iter().map(Node::raw).collect::<Result<_, _>>()?,
            state: state.map(|state| state.raw()).transpose()?,
            forwarded_props: forwarded_props.map(|props| props.raw()).transpose()?,
        })
    }
}
