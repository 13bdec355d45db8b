//! Sizes, marks and what a file looks like.

use super::source::{Source, has_extension, is_word, tree};

/// A reader who opens a file for the first time holds about this much.
const FILE_LINES_MAX: usize = 500;
/// Tables of cases are long without being deep.
const TEST_FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;

/// Spelled apart, so that this file does not hold them.
const MARKS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX")];
const UNFINISHED: [&str; 3] = ["todo", "unimplemented", "dbg"];
const MACHINE_PATHS: [&str; 3] =
    [concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/wo", "rk/")];

fn sizes(sources: &[Source]) -> Vec<String> {
    let too_long = |source: &Source| {
        let most = if source.is_test() { TEST_FILE_LINES_MAX } else { FILE_LINES_MAX };
        let lines = source.text.lines().count();
        (lines > most).then(|| source.offence(lines, &format!("more than {most} lines")))
    };
    let rust = sources.iter().filter(|source| source.is_rust());
    rust.filter_map(too_long).collect()
}

fn functions(sources: &[Source]) -> Vec<String> {
    let mut offences = Vec::new();
    for source in sources {
        let mut offset = 0;
        for (at, line) in source.code.split_inclusive('\n').enumerate() {
            let rest = source.code.get(offset..).unwrap_or_default();
            offset += line.len();
            let Some(name) = declared_function(line) else {
                continue;
            };
            let lines = body_end(rest).map_or(0, |body| body.lines().count());
            if lines > FUNCTION_LINES_MAX {
                let why = format!("`{name}` has {lines} lines, more than {FUNCTION_LINES_MAX}");
                offences.push(source.offence(at + 1, &why));
            }
        }
    }
    offences
}

/// The name in `pub(super) const async fn name(`.
fn declared_function(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let modifiers = ["pub", "crate", "super", "in", "const", "async", "unsafe", "extern"];
    let mut words = before.split(|letter: char| !is_word(letter));
    let only = words.all(|word| word.is_empty() || modifiers.contains(&word));
    let name = after.split(|letter: char| !is_word(letter)).next()?;
    (only && !name.is_empty()).then_some(name)
}

/// The text from a declaration to the brace that ends its body; none without a body.
fn body_end(text: &str) -> Option<&str> {
    let (mut braces, mut brackets) = (0_usize, 0_usize);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets = brackets.saturating_sub(1),
            ';' if braces == 0 && brackets == 0 => return None,
            '{' => braces += 1,
            '}' if braces <= 1 => return text.get(..=at),
            '}' => braces -= 1,
            _ => {}
        }
    }
    None
}

fn marks(sources: &[Source]) -> Vec<String> {
    let mut offences = Vec::new();
    for source in sources {
        for (at, line) in source.text.lines().enumerate() {
            let mut words = line.split(|letter: char| !is_word(letter));
            if let Some(word) = words.find(|word| MARKS.contains(word)) {
                offences.push(
                    source.offence(at + 1, &format!("{word}: do it or write it down elsewhere")),
                );
            }
            if let Some(path) = MACHINE_PATHS.iter().find(|path| line.contains(**path)) {
                offences.push(source.offence(at + 1, &format!("{path} is a path of one machine")));
            }
        }
        for (at, line) in source.code.lines().enumerate() {
            let dense: String = line.chars().filter(|letter| !letter.is_whitespace()).collect();
            if dense.contains("#[allow(") || dense.contains("#![allow(") {
                offences.push(source.offence(at + 1, "say `expect` with a reason"));
            }
            for name in UNFINISHED.iter().filter(|name| calls(line, name)) {
                offences.push(source.offence(at + 1, &format!("`{name}!`")));
            }
        }
    }
    offences
}

fn calls(line: &str, name: &str) -> bool {
    line.match_indices(&format!("{name}!")).any(|(at, _)| {
        let before = line.get(..at).and_then(|before| before.chars().next_back());
        !before.is_some_and(is_word)
    })
}

fn characters(sources: &[Source]) -> Vec<String> {
    let mut offences = Vec::new();
    let plain = |source: &&Source| source.is_rust() || has_extension(&source.path, "toml");
    for source in sources.iter().filter(plain) {
        for (at, line) in source.text.lines().enumerate() {
            if let Some(letter) = line.chars().find(|letter| !letter.is_ascii()) {
                let why = format!("{} is not ASCII; escape it", letter.escape_unicode());
                offences.push(source.offence(at + 1, &why));
            }
        }
    }
    offences
}

/// Every public module that a file declares says in its first line what it is.
fn undocumented(sources: &[Source]) -> Vec<String> {
    let mut offences = Vec::new();
    for source in sources {
        let folder = match source.path.rsplit_once('/') {
            Some((folder, "mod.rs" | "lib.rs" | "main.rs")) => folder,
            _ => source.path.trim_end_matches(".rs"),
        };
        for (at, line) in source.code.lines().enumerate() {
            let declared = line.strip_prefix("pub mod ");
            let Some(name) = declared.and_then(|rest| rest.strip_suffix(';')) else {
                continue;
            };
            let homes = [format!("{folder}/{name}.rs"), format!("{folder}/{name}/mod.rs")];
            match sources.iter().find(|source| homes.contains(&source.path)) {
                Some(home) if home.text.starts_with("//!") => {}
                Some(home) => offences.push(home.offence(1, "does not start with `//!`")),
                None => offences.push(source.offence(at + 1, &format!("`{name}` has no file"))),
            }
        }
    }
    offences
}

#[test]
fn files_fit_a_reader() {
    let offences = sizes(&tree());
    assert!(offences.is_empty(), "\n{}", offences.join("\n"));
}

#[test]
fn functions_fit_a_screen() {
    let offences = functions(&tree());
    assert!(offences.is_empty(), "\n{}", offences.join("\n"));
}

#[test]
fn nothing_is_left_for_later_or_from_elsewhere() {
    let offences = marks(&tree());
    assert!(offences.is_empty(), "\n{}", offences.join("\n"));
}

#[test]
fn source_is_ascii() {
    let offences = characters(&tree());
    assert!(offences.is_empty(), "\n{}", offences.join("\n"));
}

#[test]
fn every_public_module_says_what_it_is() {
    let offences = undocumented(&tree());
    assert!(offences.is_empty(), "\n{}", offences.join("\n"));
}

#[test]
fn a_long_file_is_found() {
    let lines = |count| "\n".repeat(count);
    for (path, count, expected) in [
        ("src/x.rs", 500, 0),
        ("src/x.rs", 501, 1),
        ("src/x/tests.rs", 600, 0),
        ("src/x/tests.rs", 601, 1),
        ("docs/x.md", 2000, 0),
    ] {
        let offences = sizes(&[Source::new(path, &lines(count))]);
        assert_eq!(offences.len(), expected, "{path} {count}");
    }
}

#[test]
fn a_long_function_is_found() {
    let function = |head: &str, count| format!("\n{head} {{\n{}}}\n", "    x;\n".repeat(count));
    let found = |text: &str| functions(&[Source::new("src/x.rs", text)]);
    assert!(found(&function("fn a()", 68)).is_empty());
    assert_eq!(found(&function("fn a()", 69)), ["src/x.rs:2: `a` has 71 lines, more than 70"]);
    for head in
        ["pub(super) async fn a(x: [u8; 3])", "    pub const fn a()", "fn a<T>(\n) -> [T; 2]"]
    {
        assert_eq!(found(&function(head, 70)).len(), 1, "{head}");
    }
    let declared = format!("trait T {{\n    fn a();\n{}}}\n", "    // x\n".repeat(100));
    assert!(found(&declared).is_empty());
    assert!(found(&function("struct A", 100)).is_empty());
}

#[test]
fn a_mark_is_found() {
    let done = concat!("TO", "DO");
    for (text, expected) in [
        (format!("// {done}: later"), 1),
        (format!("// {done}S"), 0),
        ("todo!()".to_owned(), 1),
        ("std::unimplemented!()".to_owned(), 1),
        ("my_dbg!(x); // dbg!(x)".to_owned(), 0),
        ("#[allow(dead_code)]".to_owned(), 1),
        ("#![allow(dead_code)]".to_owned(), 1),
        ("#[expect(dead_code, reason = \"x\")]".to_owned(), 0),
        (format!("const X: &str = \"{}me\";", concat!("/ho", "me/")), 1),
    ] {
        let offences = marks(&[Source::new("src/x.rs", &text)]);
        assert_eq!(offences.len(), expected, "{text}: {offences:?}");
    }
}

#[test]
fn a_letter_beyond_ascii_is_found() {
    let found = |path| characters(&[Source::new(path, "// caf\u{e9}")]);
    assert_eq!(found("src/x.rs"), ["src/x.rs:1: \\u{e9} is not ASCII; escape it"]);
    assert!(found("docs/x.md").is_empty());
}

#[test]
fn a_public_module_without_a_word_is_found() {
    let tree = |text: &str| {
        let parent = Source::new("src/a/mod.rs", "//! A.\npub mod b;\nmod c;\n");
        undocumented(&[parent, Source::new("src/a/b.rs", text)])
    };
    assert!(tree("//! B.\n").is_empty());
    assert_eq!(tree("use x;\n"), ["src/a/b.rs:1: does not start with `//!`"]);
}
