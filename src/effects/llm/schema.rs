//! The schemas of tools as providers take them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::protocol::json::Json;

const NO_ARGUMENTS: &str = r#"{"type":"object","properties":{}}"#;

/// The schema of a tool's arguments. Providers want an object that says so and lists its properties,
/// and refuse every call that offers another one.
pub fn parameters(schema: Option<&Json>) -> Box<RawValue> {
    let text = schema.and_then(|schema| of_object(schema.text()));
    let text = text.map_or_else(|| NO_ARGUMENTS.to_owned(), Cow::into_owned);
    // Either given or made of what was given, both of which are JSON.
    RawValue::from_string(text).unwrap_or_default()
}

/// `schema` with what it leaves out; none where it is not of an object.
fn of_object(schema: &str) -> Option<Cow<'_, str>> {
    let members: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(schema).ok()?;
    let kind = members.get("type").map(|kind| kind.get());
    if kind.is_some_and(|kind| kind != r#""object""#) {
        return None;
    }
    let added = match (kind, members.contains_key("properties")) {
        (Some(_), true) => return Some(Cow::Borrowed(schema)),
        (Some(_), false) => r#""properties":{}"#,
        (None, true) => r#""type":"object""#,
        (None, false) => r#""type":"object","properties":{}"#,
    };
    let rest = schema.trim_start().strip_prefix('{')?;
    let comma = if members.is_empty() { "" } else { "," };
    Some(Cow::Owned(format!("{{{added}{comma}{rest}")))
}

#[cfg(test)]
mod tests;
