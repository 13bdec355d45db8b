//! Bytes from outside to typed values: one parser, one depth limit, errors that name the field.
//!
//! `simd-json` builds the tape that the readers walk. It refuses a few texts that `serde_json` takes
//! (integers beyond 64 bits), so where it fails, `serde_json` has the last word and lays out a tape of
//! its own ([`wide`]). A value that the engine does not look into stays the caller's own text.

mod wide;

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use simd_json::StaticNode;

use self::wide::Wide;

/// Deepest nesting taken from a caller (S56). Our own readers stop at `serde_json`'s 128.
pub const DEPTH_MAX: usize = 64;

/// A value kept as the text it came in, so that member order and number spelling survive.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(Arc<RawValue>);

impl Json {
    /// Takes `text` when it is one JSON value. Line breaks, which stand between tokens only, become
    /// spaces, because an event is one line of its stream.
    pub fn parse(text: &str) -> Option<Self> {
        let mut raw = RawValue::from_string(text.to_owned()).ok()?;
        if raw.get().contains(['\r', '\n']) {
            raw = RawValue::from_string(raw.get().replace(['\r', '\n'], " ")).ok()?;
        }
        Some(Self(raw.into()))
    }

    /// The text of a value of our own.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Option<Self> {
        serde_json::value::to_raw_value(value).ok().map(|raw| Self(raw.into()))
    }

    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// The text without the white space between its tokens.
    pub fn compact(&self) -> String {
        let mut compact = String::with_capacity(self.text().len());
        let (mut in_string, mut escaped) = (false, false);
        for c in self.text().chars() {
            if in_string || !c.is_ascii_whitespace() {
                compact.push(c);
            }
            in_string = if c == '"' && !escaped { !in_string } else { in_string };
            escaped = c == '\\' && !escaped;
        }
        compact
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Json {}

/// Bytes that `value` takes as JSON, without writing them anywhere.
pub fn encoded_len<T: Serialize + ?Sized>(value: &T) -> usize {
    struct Counter(usize);
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.saturating_add(bytes.len());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    serde_json::to_writer(&mut counter, value).map_or(usize::MAX, |()| counter.0)
}

/// Why a body is not what its endpoint takes. `Display` is safe to send back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Not JSON, or nested too deep (400).
    #[error("malformed JSON: {0}")]
    Malformed(String),
    /// JSON, but not a shape the engine knows (422).
    #[error("`{path}` {problem}")]
    Shape { path: String, problem: String },
    /// The right shape with a value outside its range (400).
    #[error("`{path}` {problem}")]
    Range { path: String, problem: String },
}

/// Parses `text`, refusing nesting beyond `depth_max`, and hands its root to `walk`.
pub fn decode<T>(
    text: &[u8],
    depth_max: usize,
    walk: impl FnOnce(&Node<'_>) -> Result<T, DecodeError>,
) -> Result<T, DecodeError> {
    thread_local! {
        static BUFFERS: RefCell<(usize, simd_json::Buffers)> =
            RefCell::new((DEPTH_MAX, simd_json::Buffers::with_max_depth(4096, DEPTH_MAX)));
    }
    let mut scratch = text.to_vec();
    let tape = BUFFERS.with_borrow_mut(|(depth, buffers)| {
        if *depth != depth_max {
            (*depth, *buffers) = (depth_max, simd_json::Buffers::with_max_depth(4096, depth_max));
        }
        simd_json::to_tape_with_buffers(&mut scratch, buffers)
    });
    if let Ok(tape) = tape {
        return walk(&Node { source: text, nodes: &tape.0, path: Path::Root });
    }
    let wide =
        Wide::read(text, depth_max).map_err(|error| DecodeError::Malformed(error.to_string()))?;
    walk(&Node { source: text, nodes: &wide.tape(), path: Path::Root })
}

/// Where a value stands in its document.
#[derive(Clone, Copy)]
enum Path<'a> {
    Root,
    Field(&'a Path<'a>, &'a str),
    Item(&'a Path<'a>, usize),
    /// An item whose node has no other source than its own text.
    OwnItem(&'a Path<'a>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => f.write_str("body"),
            Path::Field(Path::Root, name) => f.write_str(name),
            Path::Field(parent, name) => write!(f, "{parent}.{name}"),
            Path::Item(parent, index) | Path::OwnItem(parent, index) => {
                write!(f, "{parent}[{index}]")
            }
        }
    }
}

/// One value of a parsed document.
#[derive(Clone, Copy)]
pub struct Node<'a> {
    source: &'a [u8],
    nodes: &'a [simd_json::Node<'a>],
    path: Path<'a>,
}

impl Node<'_> {
    /// Nothing of the document is of the right shape at this place (422).
    pub fn shape(&self, problem: impl Into<String>) -> DecodeError {
        DecodeError::Shape { path: self.path.to_string(), problem: problem.into() }
    }

    /// The shape is right but the value is not (400).
    pub fn range(&self, problem: impl fmt::Display) -> DecodeError {
        DecodeError::Range { path: self.path.to_string(), problem: problem.to_string() }
    }

    /// The named members of an object, in the order asked; a member that is null counts as absent.
    /// Other members are ignored (S55); a named one that stands twice is refused.
    pub fn fields<const N: usize>(
        &self,
        names: [&'static str; N],
    ) -> Result<[Option<Node<'_>>; N], DecodeError> {
        let mut found = [None; N];
        let mut seen = [false; N];
        self.each_member(|key, member| {
            let Some(index) = names.iter().position(|name| *name == key) else {
                return Ok(());
            };
            let (Some(slot), Some(seen)) = (found.get_mut(index), seen.get_mut(index)) else {
                return Ok(());
            };
            if std::mem::replace(seen, true) {
                return Err(member.shape("stands twice"));
            }
            *slot = (!member.is_null()).then_some(member);
            Ok(())
        })?;
        Ok(found)
    }

    /// Whether an object has a member of that name, null or not.
    pub fn has(&self, name: &str) -> bool {
        let mut found = false;
        let walked = self.each_member(|key, _| {
            found |= key == name;
            Ok(())
        });
        walked.is_ok() && found
    }

    fn each_member<'s>(
        &'s self,
        mut visit: impl FnMut(&'s str, Node<'s>) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        let Some((simd_json::Node::Object { len, .. }, mut rest)) = self.nodes.split_first() else {
            return Err(self.shape("must be an object"));
        };
        for _ in 0..*len {
            let Some((simd_json::Node::String(key), after)) = rest.split_first() else {
                break;
            };
            let (nodes, after) = split_value(after);
            rest = after;
            visit(key, Node { source: self.source, nodes, path: Path::Field(&self.path, key) })?;
        }
        Ok(())
    }

    /// Every member of an object, in the order of the text.
    pub fn members(&self) -> Result<Vec<(&str, Node<'_>)>, DecodeError> {
        let mut members = Vec::new();
        self.each_member(|key, member| {
            members.push((key, member));
            Ok(())
        })?;
        Ok(members)
    }

    /// The items of an array of at most `items_max`.
    pub fn items(&self, items_max: usize) -> Result<Vec<Node<'_>>, DecodeError> {
        let Some((simd_json::Node::Array { len, .. }, mut rest)) = self.nodes.split_first() else {
            return Err(self.shape("must be an array"));
        };
        if *len > items_max {
            return Err(self.range(format!("holds more than {items_max} items")));
        }
        let mut items = Vec::with_capacity(*len);
        for index in 0..*len {
            let (nodes, after) = split_value(rest);
            rest = after;
            items.push(Node { source: self.source, nodes, path: Path::Item(&self.path, index) });
        }
        Ok(items)
    }

    /// As [`Node::items`], for items of which [`Node::raw`] is asked: it splits the whole source, so
    /// many items that share one would cost its length each.
    pub fn own_items(&self, items_max: usize) -> Result<Vec<Node<'_>>, DecodeError> {
        let mut items = self.items(items_max)?;
        let texts: Option<Vec<&RawValue>> =
            slice(self.source, self.path).and_then(|text| serde_json::from_str(text.get()).ok());
        let texts = texts.ok_or_else(|| self.shape("cannot be read"))?;
        for (index, (item, text)) in items.iter_mut().zip(texts).enumerate() {
            item.source = text.get().as_bytes();
            item.path = Path::OwnItem(&self.path, index);
        }
        Ok(items)
    }

    /// A required member, from the answer of [`Node::fields`].
    pub fn required<'n>(
        &self,
        name: &str,
        member: Option<Node<'n>>,
    ) -> Result<Node<'n>, DecodeError> {
        member.ok_or_else(|| self.missing(name))
    }

    /// A member that must be there is not (422).
    pub fn missing(&self, name: &str) -> DecodeError {
        DecodeError::Shape {
            path: Path::Field(&self.path, name).to_string(),
            problem: "is missing".to_owned(),
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self.nodes.first(), Some(simd_json::Node::Static(StaticNode::Null)))
    }

    pub fn is_array(&self) -> bool {
        matches!(self.nodes.first(), Some(simd_json::Node::Array { .. }))
    }

    /// How deep the value is nested: 1 for one that holds no other.
    pub fn depth(&self) -> usize {
        let mut open: Vec<usize> = Vec::new();
        let mut deepest = 1;
        for (at, node) in self.nodes.iter().enumerate() {
            while open.last().is_some_and(|end| *end <= at) {
                open.pop();
            }
            deepest = deepest.max(open.len() + 1);
            if let simd_json::Node::Object { count, .. } | simd_json::Node::Array { count, .. } =
                node
            {
                open.push(at + 1 + count);
            }
        }
        deepest
    }

    pub fn string(&self) -> Result<&str, DecodeError> {
        match self.nodes.first() {
            Some(simd_json::Node::String(text)) => Ok(text),
            _ => Err(self.shape("must be a string")),
        }
    }

    /// A string of at most `bytes_max` bytes.
    pub fn text(&self, bytes_max: usize) -> Result<String, DecodeError> {
        let text = self.string()?;
        if text.len() > bytes_max {
            return Err(self.range(format!("is longer than {bytes_max} bytes")));
        }
        Ok(text.to_owned())
    }

    pub fn bool(&self) -> Result<bool, DecodeError> {
        match self.nodes.first() {
            Some(simd_json::Node::Static(StaticNode::Bool(value))) => Ok(*value),
            _ => Err(self.shape("must be true or false")),
        }
    }

    /// A whole number of 0 or more.
    pub fn unsigned(&self) -> Result<u64, DecodeError> {
        match self.nodes.first() {
            Some(simd_json::Node::Static(StaticNode::U64(value))) => Ok(*value),
            Some(simd_json::Node::Static(StaticNode::I64(value))) if *value >= 0 => {
                Ok(value.unsigned_abs())
            }
            Some(simd_json::Node::Static(StaticNode::I64(_) | StaticNode::F64(_))) => {
                Err(self.range("must be a whole number of 0 or more"))
            }
            _ => Err(self.shape("must be a number")),
        }
    }

    /// A string read by `parse`, whose error is a matter of range.
    pub fn parse<T, E: fmt::Display>(
        &self,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, DecodeError> {
        parse(self.string()?).map_err(|problem| self.range(problem))
    }

    /// The value as the caller wrote it.
    pub fn raw(&self) -> Result<Json, DecodeError> {
        slice(self.source, self.path)
            .and_then(|raw| Json::parse(raw.get()))
            .ok_or_else(|| self.shape("cannot be read"))
    }
}

/// The nodes of the first value, and what follows it.
fn split_value<'a>(
    nodes: &'a [simd_json::Node<'a>],
) -> (&'a [simd_json::Node<'a>], &'a [simd_json::Node<'a>]) {
    let size = match nodes.first() {
        Some(simd_json::Node::Object { count, .. } | simd_json::Node::Array { count, .. }) => {
            1 + count
        }
        Some(simd_json::Node::String(_) | simd_json::Node::Static(_)) => 1,
        None => 0,
    };
    nodes.split_at_checked(size).unwrap_or((nodes, &[]))
}

/// The text at `path`: each step splits one level of the document and no more.
fn slice<'t>(source: &'t [u8], path: Path<'_>) -> Option<&'t RawValue> {
    match path {
        Path::Root | Path::OwnItem(..) => serde_json::from_slice(source).ok(),
        Path::Field(parent, name) => {
            let members: HashMap<std::borrow::Cow<'t, str>, &'t RawValue> =
                serde_json::from_str(slice(source, *parent)?.get()).ok()?;
            members.get(name).copied()
        }
        Path::Item(parent, index) => {
            let items: Vec<&'t RawValue> =
                serde_json::from_str(slice(source, *parent)?.get()).ok()?;
            items.get(index).copied()
        }
    }
}

#[cfg(test)]
mod tests;
