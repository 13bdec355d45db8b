//! Reads the tables of a parsed manifest key by key and collects everything that is wrong.
//!
//! A key counts as known because somebody asked for it: [`Section::finish`] reports the others, so
//! the list of known keys cannot drift from what is read.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::later;
use super::nearest::nearest;
use super::problem::{Fault, Problem};

/// What a section is about, where the same key may mean different things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Top,
    Serve,
    Limits,
    Llm,
    /// Not a section: the values of `type` in an llm block.
    LlmType,
    Price,
    Agent,
    Tool,
    Retry,
    Policy,
}

/// What is wrong so far, one problem per key: the first is the cause, others follow from it.
pub(super) struct Problems<'t> {
    text: &'t str,
    found: RefCell<Vec<(usize, String, Fault)>>,
}

impl<'t> Problems<'t> {
    pub fn new(text: &'t str) -> Self {
        Self { text, found: RefCell::default() }
    }

    /// `at` is an offset into the text.
    pub fn add(&self, at: usize, key: String, fault: Fault) {
        self.found.borrow_mut().push((at, key, fault));
    }

    /// In the order of the file.
    pub fn into_sorted(self) -> Vec<Problem> {
        let mut found = self.found.into_inner();
        let mut keys = BTreeSet::new();
        found.retain(|(_, key, _)| key.is_empty() || keys.insert(key.clone()));
        found.sort_by_key(|(at, _, _)| *at);
        let starts: Vec<usize> = self.text.match_indices('\n').map(|(at, _)| at + 1).collect();
        let line = |at: usize| 1 + starts.partition_point(|start| *start <= at);
        found.into_iter().map(|(at, key, fault)| Problem { line: line(at), key, fault }).collect()
    }
}

/// One table, with the way to it.
pub(super) struct Section<'a, 'i> {
    kind: Kind,
    path: String,
    at: usize,
    table: Option<&'a DeTable<'i>>,
    known: Vec<&'static str>,
    problems: &'a Problems<'a>,
}

impl<'a, 'i> Section<'a, 'i> {
    pub fn top(table: &'a DeTable<'i>, problems: &'a Problems<'a>) -> Self {
        Self {
            kind: Kind::Top,
            path: String::new(),
            at: 0,
            table: Some(table),
            known: Vec::new(),
            problems,
        }
    }

    /// Reports a fault of `key`, or of the whole section where the key is absent.
    pub fn fault(&self, key: &str, fault: Fault) {
        let at = self.entry(key).map_or(self.at, |(at, _)| at);
        self.problems.add(at, join(&self.path, key), fault);
    }

    /// Reports a fault of the section itself.
    pub fn own_fault(&self, fault: Fault) {
        self.problems.add(self.at, self.path.clone(), fault);
    }

    pub fn has(&self, key: &str) -> bool {
        self.entry(key).is_some()
    }

    /// The value of `key`, which is known from here on.
    pub fn value(&mut self, key: &'static str) -> Option<&'a DeValue<'i>> {
        self.known.push(key);
        self.entry(key).map(|(_, value)| value.get_ref())
    }

    /// A text that is not empty.
    pub fn string(&mut self, key: &'static str) -> Option<&'a str> {
        let value = self.value(key)?;
        match value.as_str() {
            Some("") => self.refuse(key, Fault::Empty),
            Some(text) => Some(text),
            None => self.refuse(key, wrong_type("a string", value)),
        }
    }

    /// A text that `parse` takes.
    pub fn parsed<T>(
        &mut self,
        key: &'static str,
        parse: impl FnOnce(&str) -> Result<T, Fault>,
    ) -> Option<T> {
        match parse(self.string(key)?) {
            Ok(value) => Some(value),
            Err(fault) => self.refuse(key, fault),
        }
    }

    pub fn bool(&mut self, key: &'static str) -> Option<bool> {
        let value = self.value(key)?;
        match value.as_bool() {
            Some(flag) => Some(flag),
            None => self.refuse(key, wrong_type("true or false", value)),
        }
    }

    /// Puts a whole number within `range` into `target`; leaves it alone when the key is absent.
    pub fn number<T: TryFrom<u64>>(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u64>,
        target: &mut T,
    ) {
        let Some(value) = self.value(key) else { return };
        let DeValue::Integer(integer) = value else {
            self.fault(key, wrong_type("a whole number", value));
            return;
        };
        let number = u64::from_str_radix(integer.as_str(), integer.radix()).ok();
        match number.filter(|number| range.contains(number)).map(T::try_from) {
            Some(Ok(number)) => *target = number,
            _ => self.fault(key, Fault::Range { min: *range.start(), max: *range.end() }),
        }
    }

    /// A list of texts, each of which `parse` takes and none of which stands there twice.
    pub fn list(
        &mut self,
        key: &'static str,
        parse: impl Fn(&str) -> Result<String, Fault>,
    ) -> Option<Vec<String>> {
        let value = self.value(key)?;
        let DeValue::Array(items) = value else {
            return self.refuse(key, wrong_type("a list of strings", value));
        };
        let mut list = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let parsed = match item.get_ref().as_str() {
                Some(text) => parse(text),
                None => Err(wrong_type("a string", item.get_ref())),
            };
            let fault = match parsed {
                Ok(text) if list.contains(&text) => Fault::ListedTwice,
                Ok(text) => {
                    list.push(text);
                    continue;
                }
                Err(fault) => fault,
            };
            let key = format!("{}[{index}]", join(&self.path, key));
            self.problems.add(item.span().start, key, fault);
        }
        Some(list)
    }

    /// The table under `key`; an empty one where it is absent.
    pub fn section(&mut self, key: &'static str, kind: Kind) -> Section<'a, 'i> {
        self.known.push(key);
        self.child(key, kind)
    }

    /// The tables in the list under `key`; none where it is absent.
    pub fn tables(&mut self, key: &'static str, kind: Kind) -> Vec<Section<'a, 'i>> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let DeValue::Array(items) = value else {
            self.fault(key, wrong_type("a list of sections", value));
            return Vec::new();
        };
        let mut sections = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let (at, value) = (item.span().start, item.get_ref());
            let path = format!("{}[{index}]", join(&self.path, key));
            let Some(table) = value.as_table() else {
                self.problems.add(at, path, wrong_type("a section", value));
                continue;
            };
            let (table, problems) = (Some(table), self.problems);
            sections.push(Section { kind, path, at, table, known: Vec::new(), problems });
        }
        sections
    }

    /// Every entry, each of which must be a table. Nothing is left unknown then.
    pub fn sections(self, kind: Kind) -> impl Iterator<Item = (&'a str, Section<'a, 'i>)> {
        let names: Vec<&'a str> = self.names().collect();
        names.into_iter().map(move |name| (name, self.child(name, kind)))
    }

    /// Reports every key that nobody asked for.
    pub fn finish(self) {
        for name in self.names() {
            if !self.known.contains(&name) {
                self.fault(name, self.unknown(name));
            }
        }
    }

    fn unknown(&self, name: &str) -> Fault {
        if let Some(capability) = later::capability(self.kind, name) {
            return Fault::Later { name: name.to_owned(), capability };
        }
        let nearest = nearest(name, self.known.iter().copied());
        let is_text = matches!(self.entry(name), Some((_, value)) if value.get_ref().is_str());
        if nearest.is_none() && is_text && names_a_secret(name) {
            return Fault::Secret { named_by: secret_named_by(self.kind) };
        }
        Fault::UnknownKey { nearest, known: self.known.clone() }
    }

    fn child(&self, key: &str, kind: Kind) -> Section<'a, 'i> {
        let mut table = None;
        let mut at = self.at;
        if let Some((start, value)) = self.entry(key) {
            at = start;
            table = value.get_ref().as_table();
            if table.is_none() {
                self.fault(key, wrong_type("a section", value.get_ref()));
            }
        }
        let path = join(&self.path, key);
        Section { kind, path, at, table, known: Vec::new(), problems: self.problems }
    }

    pub fn names(&self) -> impl Iterator<Item = &'a str> {
        self.table.into_iter().flatten().map(|(key, _)| key.get_ref().as_ref())
    }

    fn entry(&self, key: &str) -> Option<(usize, &'a Spanned<DeValue<'i>>)> {
        let (key, value) = self.table?.get_key_value(key)?;
        Some((key.span().start, value))
    }

    fn refuse<T>(&self, key: &str, fault: Fault) -> Option<T> {
        self.fault(key, fault);
        None
    }
}

pub(super) fn wrong_type(expected: &'static str, found: &DeValue<'_>) -> Fault {
    let found = match found {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a section",
    };
    Fault::Type { expected, found }
}

/// A number in decimal, without separators; `None` for what is no number.
pub(super) fn decimal_digits<'v>(value: &'v DeValue<'_>) -> Option<Cow<'v, str>> {
    if let Some(float) = value.as_float() {
        return Some(float.as_str().into());
    }
    let integer = value.as_integer()?;
    if integer.radix() == 10 {
        return Some(integer.as_str().into());
    }
    let number = u64::from_str_radix(integer.as_str(), integer.radix());
    Some(number.unwrap_or(u64::MAX).to_string().into())
}

/// `path.key`, the key quoted where TOML wants it quoted.
pub(super) fn join(path: &str, key: &str) -> String {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let key = if !key.is_empty() && key.bytes().all(bare) {
        key.to_owned()
    } else {
        format!("\"{}\"", key.escape_debug())
    };
    if path.is_empty() { key } else { format!("{path}.{key}") }
}

/// The key that a secret of such a section is named with.
pub(super) fn secret_named_by(kind: Kind) -> Option<&'static str> {
    (kind == Kind::Llm).then_some("api_key_env")
}

fn names_a_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    ["key", "token", "secret", "password", "credential"].iter().any(|word| key.contains(word))
}
