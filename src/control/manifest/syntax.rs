//! From text to a tree of spanned values; what is not TOML becomes problems.

use toml::Spanned;
use toml::de::{DeTable, DeValue, Error};

use super::problem::Fault;
use super::reader::{Kind, Problems, join, secret_named_by};
use crate::control::secrets::looks_like_secret;

/// The tree of `text`, or `None` when it is not TOML, which is then among the problems.
pub(super) fn parse<'i>(text: &'i str, problems: &Problems<'_>) -> Option<DeTable<'i>> {
    let (tree, errors) = DeTable::parse_recoverable(text);
    let tree = tree.into_inner();
    if errors.is_empty() {
        return Some(tree);
    }
    let mut headers = Vec::new();
    find_headers(text, &tree, "", &mut headers);
    headers.sort();
    for error in &errors {
        let at = error.span().map_or(text.len(), |span| span.start);
        match duplicate_key(text, &headers, error) {
            Some(key) => problems.add(at, key, Fault::Duplicate),
            // The parser's message describes, its `Display` would show the line with all it holds.
            None => problems.add(at, String::new(), Fault::Syntax(error.message().to_owned())),
        }
    }
    None
}

/// Reports every value that is plainly a credential, wherever it stands.
pub(super) fn find_secrets(tree: &DeTable<'_>, problems: &Problems<'_>) {
    for (key, value) in tree {
        let in_llm = key.get_ref() == "llm";
        let named_by = secret_named_by(if in_llm { Kind::Llm } else { Kind::Top });
        find_in(value, &join("", key.get_ref()), named_by, problems);
    }
}

fn find_in(
    value: &Spanned<DeValue<'_>>,
    path: &str,
    named_by: Option<&'static str>,
    problems: &Problems<'_>,
) {
    match value.get_ref() {
        DeValue::String(text) if looks_like_secret(text) => {
            let at = value.span().start;
            problems.add(at, path.to_owned(), Fault::Secret { named_by });
        }
        DeValue::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                find_in(item, &format!("{path}[{index}]"), named_by, problems);
            }
        }
        DeValue::Table(table) => {
            for (key, value) in table {
                find_in(value, &join(path, key.get_ref()), named_by, problems);
            }
        }
        DeValue::String(_)
        | DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_) => {}
    }
}

/// The full key that `error` says is there twice.
fn duplicate_key(text: &str, headers: &[(usize, String)], error: &Error) -> Option<String> {
    if error.message() != "duplicate key" {
        return None;
    }
    let span = error.span()?;
    let line_start = text.get(..span.start)?.rfind('\n').map_or(0, |newline| newline + 1);
    let written = text.get(line_start..span.end)?.trim_start();
    // Where a value stands before the key on its line, only the key is shown: the value may be secret.
    if written.contains(['=', '{', ',']) {
        return text.get(span).map(str::to_owned);
    }
    if written.starts_with('[') {
        return Some(written.trim_start_matches('[').trim().to_owned());
    }
    let above = headers.partition_point(|(at, _)| *at < span.start);
    Some(match headers.get(..above).and_then(<[_]>::last) {
        Some((_, path)) => format!("{path}.{written}"),
        None => written.to_owned(),
    })
}

/// Where each `[section]` starts, with its path.
fn find_headers(text: &str, tree: &DeTable<'_>, path: &str, found: &mut Vec<(usize, String)>) {
    for (key, value) in tree {
        let Some(table) = value.get_ref().as_table() else {
            continue;
        };
        let at = value.span().start;
        let path = join(path, key.get_ref());
        find_headers(text, table, &path, found);
        // A table of a dotted key or in braces starts otherwise and is no section of the file.
        if text.get(at..).is_some_and(|rest| rest.starts_with('[')) {
            found.push((at, path));
        }
    }
}
