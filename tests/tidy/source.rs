//! The files of the tree, each with its code apart from its comments and literals.

use std::fs;
use std::path::{Path, PathBuf};

pub(crate) struct Source {
    /// Relative to the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
    /// `text` with comments and literals blanked; the same lines at the same places.
    pub(crate) code: String,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            code: if has_extension(path, "rs") { blank(text) } else { String::new() },
        }
    }

    pub(crate) fn is_rust(&self) -> bool {
        has_extension(&self.path, "rs")
    }

    /// Tests, and what is only for measuring.
    pub(crate) fn is_test(&self) -> bool {
        let outside = ["tests/", "benches/", "fuzz/", "storage/tests/", "storage/benches/"];
        outside.iter().any(|folder| self.path.starts_with(folder))
            || self.path.ends_with("/tests.rs")
            || self.path.contains("/tests/")
    }

    pub(crate) fn offence(&self, line: usize, why: &str) -> String {
        format!("{}:{line}: {why}", self.path)
    }

    /// Every identifier of the code with its line, in order.
    pub(crate) fn words(&self) -> Vec<(usize, &str)> {
        let lines = self.code.lines().enumerate();
        lines
            .flat_map(|(at, line)| {
                let words = line.split(|letter: char| !is_word(letter));
                words.filter(|word| !word.is_empty()).map(move |word| (at + 1, word))
            })
            .collect()
    }

    /// What follows `root::` in the code, groups taken apart, each with its line: for
    /// `use crate::{a, b::c}` the names `a` and `b`.
    pub(crate) fn paths_from(&self, root: &str) -> Vec<(usize, String)> {
        let start = format!("{root}::");
        let mut found = Vec::new();
        for (at, _) in self.code.match_indices(&start) {
            let (before, after) = self.code.split_at(at);
            if before.chars().next_back().is_some_and(is_word) {
                continue;
            }
            let line = before.matches('\n').count() + 1;
            let names = after.strip_prefix(&start).map(first_names).unwrap_or_default();
            found.extend(names.into_iter().map(|name| (line, name)));
        }
        found
    }
}

pub(crate) fn has_extension(path: &str, extension: &str) -> bool {
    Path::new(path).extension().is_some_and(|it| it == extension)
}

pub(crate) fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn first_names(path: &str) -> Vec<String> {
    let word =
        |text: &str| -> String { text.trim_start().chars().take_while(|c| is_word(*c)).collect() };
    let Some(group) = path.strip_prefix('{') else {
        return vec![word(path)];
    };
    let mut names = vec![word(group)];
    let mut depth = 1;
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => names.extend(group.get(at + 1..).map(word)),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// The text files of the repository; what `.gitignore` names is left out.
pub(crate) fn tree() -> Vec<Source> {
    let root = std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs the tests");
    let root = PathBuf::from(root);
    let ignored = fs::read_to_string(root.join(".gitignore")).unwrap_or_default();
    let mut skip: Vec<&str> = ignored.lines().map(|line| line.trim_matches('/')).collect();
    skip.push(".git");
    let mut found = Vec::new();
    collect(&root, &root, &skip, &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(found.iter().any(|source| source.path == "src/lib.rs"));
    found
}

fn collect(root: &Path, folder: &Path, skip: &[&str], found: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).expect("a folder of the repository") {
        let path = entry.expect("an entry of the repository").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if skip.contains(&name) {
            continue;
        }
        if path.is_dir() {
            collect(root, &path, skip, found);
        } else if let Ok(text) = fs::read_to_string(&path) {
            let relative = path.strip_prefix(root).unwrap_or(&path);
            found.push(Source::new(&relative.to_string_lossy(), &text));
        }
    }
}

/// `text` with every comment and literal turned to spaces.
fn blank(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut after_word = false;
    while let Some(letter) = rest.chars().next() {
        let length = match blank_length(rest, after_word) {
            0 => {
                out.push(letter);
                after_word = is_word(letter);
                rest = rest.get(letter.len_utf8()..).unwrap_or_default();
                continue;
            }
            length => length.min(rest.len()),
        };
        let (gone, left) = rest.split_at(length);
        out.extend(gone.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        after_word = false;
        rest = left;
    }
    out
}

/// How many bytes of comment or literal `rest` starts with.
fn blank_length(rest: &str, after_word: bool) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return rest.find("*/").map_or(rest.len(), |end| end + 2);
    }
    if rest.starts_with('"') {
        return quoted_length(rest);
    }
    if let Some(raw) = rest.strip_prefix('r').filter(|_| !after_word) {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw.trim_start_matches('#').starts_with('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            let body = raw.get(hashes + 1..).unwrap_or_default();
            return body.find(&end).map_or(rest.len(), |at| 1 + hashes + 1 + at + end.len());
        }
    }
    if rest.starts_with('\'') {
        return letter_length(rest);
    }
    0
}

fn quoted_length(rest: &str) -> usize {
    let mut escaped = false;
    for (at, letter) in rest.char_indices().skip(1) {
        match letter {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    rest.len()
}

/// The length of a character literal; 0 for a lifetime.
fn letter_length(rest: &str) -> usize {
    let mut letters = rest.char_indices().skip(1);
    match (letters.next(), letters.next()) {
        (Some((_, '\\')), Some((escaped, _))) => {
            let body = rest.get(escaped + 1..).unwrap_or_default();
            body.find('\'').map_or(0, |end| escaped + 1 + end + 1)
        }
        (Some(_), Some((end, '\''))) => end + 1,
        _ => 0,
    }
}

#[test]
fn comments_and_literals_are_not_code() {
    for (text, code) in [
        ("a // b\nc", "a     \nc"),
        ("a /* b\n */ c", "a     \n    c"),
        (r#"a("x\"y") b"#, "a(      ) b"),
        (r##"r#"x " y"# z"##, "           z"),
        (r#"for"x" r"y\" z"#, "for    r z".replace("r z", "      z").as_str()),
        ("'x' '\\'' '\\u{1}' &'a b", "                 &'a b"),
        ("\"// no\" b", "        b"),
    ] {
        assert_eq!(blank(text), code, "{text}");
    }
}

#[test]
fn paths_are_found_in_groups_as_well() {
    let text =
        "use crate::{a, b::{c, d}, e};\nfn f() { crate::g::h(); mycrate::x(); }\n// crate::no";
    let source = Source::new("src/x.rs", text);
    let expected = [(1, "a"), (1, "b"), (1, "e"), (2, "g")];
    let expected = expected.map(|(line, name)| (line, name.to_owned()));
    assert_eq!(source.paths_from("crate"), expected);
}
