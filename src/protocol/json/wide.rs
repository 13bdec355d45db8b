//! The tape of a text that `simd-json` refuses and `serde_json` takes, such as one with an integer
//! beyond 64 bits. Nothing is kept of a text that is not JSON, and no tree is built of one that is.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use simd_json::{Node, StaticNode};

/// The values of a document in the order of its text; strings are the text's own where they can be.
pub(super) struct Wide<'t>(Vec<Cell<'t>>);

enum Cell<'t> {
    Static(StaticNode),
    String(Cow<'t, str>),
    /// `count` is how many cells stand inside.
    Array {
        len: usize,
        count: usize,
    },
    Object {
        len: usize,
        count: usize,
    },
}

impl<'t> Wide<'t> {
    pub(super) fn read(text: &'t [u8], depth_max: usize) -> Result<Self, serde_json::Error> {
        serde_json::from_slice::<IgnoredAny>(text)?;
        let mut cells = Vec::new();
        let mut deserializer = serde_json::Deserializer::from_slice(text);
        Fill { cells: &mut cells, depth_left: depth_max }.deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(Self(cells))
    }

    pub(super) fn tape<'w>(&'w self) -> Vec<Node<'w>> {
        let node = |cell: &'w Cell<'t>| match cell {
            Cell::Static(value) => Node::Static(*value),
            Cell::String(text) => Node::String(text),
            Cell::Array { len, count } => Node::Array { len: *len, count: *count },
            Cell::Object { len, count } => Node::Object { len: *len, count: *count },
        };
        self.0.iter().map(node).collect()
    }
}

/// Reads one value to the end of the cells.
struct Fill<'f, 't> {
    cells: &'f mut Vec<Cell<'t>>,
    depth_left: usize,
}

impl Fill<'_, '_> {
    fn scalar(self, value: StaticNode) {
        self.cells.push(Cell::Static(value));
    }
}

impl<'t> DeserializeSeed<'t> for Fill<'_, 't> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'t>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'t> Visitor<'t> for Fill<'_, 't> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.scalar(StaticNode::Null);
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.scalar(StaticNode::Bool(value));
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.scalar(StaticNode::U64(value));
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.scalar(StaticNode::I64(value));
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.scalar(StaticNode::F64(value));
        Ok(())
    }

    fn visit_borrowed_str<E>(self, text: &'t str) -> Result<(), E> {
        self.cells.push(Cell::String(Cow::Borrowed(text)));
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.cells.push(Cell::String(Cow::Owned(text.to_owned())));
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'t>>(self, mut items: A) -> Result<(), A::Error> {
        let Self { cells, depth_left } = self;
        let depth_left = deeper(depth_left).map_err(A::Error::custom)?;
        let at = cells.len();
        cells.push(Cell::Array { len: 0, count: 0 });
        let mut len = 0;
        while items.next_element_seed(Fill { cells: &mut *cells, depth_left })?.is_some() {
            len += 1;
        }
        let count = cells.len() - at - 1;
        if let Some(head) = cells.get_mut(at) {
            *head = Cell::Array { len, count };
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'t>>(self, mut members: A) -> Result<(), A::Error> {
        let Self { cells, depth_left } = self;
        let depth_left = deeper(depth_left).map_err(A::Error::custom)?;
        let at = cells.len();
        cells.push(Cell::Object { len: 0, count: 0 });
        let mut len = 0;
        while members.next_key_seed(Fill { cells: &mut *cells, depth_left })?.is_some() {
            members.next_value_seed(Fill { cells: &mut *cells, depth_left })?;
            len += 1;
        }
        let count = cells.len() - at - 1;
        if let Some(head) = cells.get_mut(at) {
            *head = Cell::Object { len, count };
        }
        Ok(())
    }
}

fn deeper(depth_left: usize) -> Result<usize, &'static str> {
    depth_left.checked_sub(1).ok_or("nested too deep")
}
