//! `[[agent.<id>.tools]]`: tools that the client handles, and TOML as JSON for their schemas.

use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::Fault;
use super::reader::{Kind, Section, decimal_digits, wrong_type};
use crate::protocol::event::Handler;
use crate::protocol::json::Json;
use crate::protocol::tool::{
    AgentTool, SCHEMA_BYTES_MAX, SCHEMA_DEPTH_MAX, TOOL_NAME_BYTES_MAX, TOOLS_MAX, is_tool_name,
};

/// The tools of an agent, in the order of the file.
pub(super) fn read(agent: &mut Section<'_, '_>) -> Vec<Arc<AgentTool>> {
    let sections = agent.tables("tools", Kind::Tool);
    if sections.len() > TOOLS_MAX {
        agent.fault("tools", Fault::Items { max: TOOLS_MAX });
        return Vec::new();
    }
    let mut tools: Vec<Arc<AgentTool>> = Vec::new();
    for section in sections {
        if let Some(tool) = read_tool(section, &tools) {
            tools.push(Arc::new(tool));
        }
    }
    tools
}

fn read_tool(mut section: Section<'_, '_>, known: &[Arc<AgentTool>]) -> Option<AgentTool> {
    let name = section.parsed("name", |name| {
        if !is_tool_name(name) {
            return Err(Fault::ToolName { bytes_max: TOOL_NAME_BYTES_MAX });
        }
        if known.iter().any(|tool| tool.name == name) {
            return Err(Fault::ListedTwice);
        }
        Ok(name.to_owned())
    });
    if !section.has("name") {
        section.own_fault(Fault::Missing("`name`, by which the model calls the tool"));
    }
    let description = section.parsed("description", |text| within_bytes(text.to_owned()));
    let input = read_schema(&mut section, "input");
    let output = read_schema(&mut section, "output");
    section.parsed("handler", |handler| match handler {
        "client" => Ok(()),
        _ => Err(Fault::ToolHandler),
    });
    section.finish();
    Some(AgentTool { name: name?, description, input, output, handler: Handler::Client })
}

fn read_schema(section: &mut Section<'_, '_>, key: &'static str) -> Option<Json> {
    let value = section.value(key)?;
    match schema(value) {
        Ok(schema) => Some(schema),
        Err(fault) => {
            section.fault(key, fault);
            None
        }
    }
}

fn schema(value: &DeValue<'_>) -> Result<Json, Fault> {
    if value.as_table().is_none() {
        return Err(wrong_type("a table, which is a JSON Schema", value));
    }
    let mut text = String::new();
    write_json(value, 1, &mut text)?;
    Json::parse(&within_bytes(text)?).ok_or(Fault::NotJson)
}

fn within_bytes(text: String) -> Result<String, Fault> {
    if text.len() > SCHEMA_BYTES_MAX {
        return Err(Fault::Bytes { max: SCHEMA_BYTES_MAX });
    }
    Ok(text)
}

/// Writes `value` as JSON. `depth` counts as [`crate::protocol::json::Node::depth`] does.
fn write_json(value: &DeValue<'_>, depth: usize, out: &mut String) -> Result<(), Fault> {
    if depth > SCHEMA_DEPTH_MAX {
        return Err(Fault::Depth { max: SCHEMA_DEPTH_MAX });
    }
    match value {
        DeValue::String(text) => write_text(text, out),
        DeValue::Boolean(true) => out.push_str("true"),
        DeValue::Boolean(false) => out.push_str("false"),
        DeValue::Integer(_) | DeValue::Float(_) => {
            let digits = decimal_digits(value).ok_or(Fault::NotJson)?;
            let digits = digits.trim_start_matches('+');
            if digits.ends_with(|last: char| !last.is_ascii_digit()) {
                // `inf` and `nan`.
                return Err(Fault::NotJson);
            }
            out.push_str(digits);
        }
        DeValue::Datetime(_) => return Err(Fault::NotJson),
        DeValue::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_json(item.get_ref(), depth + 1, out)?;
            }
            out.push(']');
        }
        DeValue::Table(table) => {
            out.push('{');
            for (at, (key, value)) in in_order(table).into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_text(key, out);
                out.push(':');
                write_json(value.get_ref(), depth + 1, out)?;
            }
            out.push('}');
        }
    }
    Ok(())
}

/// The entries as they stand in the file: a model reads the properties in the order that was meant.
fn in_order<'t, 'i>(table: &'t DeTable<'i>) -> Vec<(&'t str, &'t Spanned<DeValue<'i>>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries.into_iter().map(|(key, value)| (key.get_ref().as_ref(), value)).collect()
}

fn write_text(text: &str, out: &mut String) {
    out.push_str(&serde_json::Value::from(text).to_string());
}
