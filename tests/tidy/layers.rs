//! Who may know whom.

use super::source::{Source, tree};

/// What each module may import beside itself (`ARCHITECTURE.md`). The wiring, which is every module
/// that is not named here, may import all.
const IMPORTS: [(&str, &[&str]); 12] = [
    ("ids", &["time"]),
    ("time", &[]),
    ("clock", &["time"]),
    ("protocol", &["ids", "time"]),
    ("session", &["protocol", "ids", "time"]),
    ("sse", &["protocol", "ids", "time"]),
    ("agui", &["session", "protocol", "ids", "time"]),
    ("control", &["protocol", "ids", "time", "storage"]),
    ("auth", &["control", "protocol", "ids", "time"]),
    ("effects", &["session", "control", "protocol", "ids", "time"]),
    (
        "runtime",
        &["session", "effects", "sse", "control", "clock", "protocol", "ids", "time", "storage"],
    ),
    (
        "http",
        &[
            "runtime", "auth", "control", "agui", "sse", "session", "protocol", "ids", "time",
            "clock",
        ],
    ),
];

const WIRING: [&str; 6] = ["cli", "config", "lib", "main", "server", "telemetry"];

/// Dependencies that one place owns, so that the rest does not depend on them. Tests speak HTTP too.
const OWNERS: [(&[&str], &str, bool); 5] = [
    (&["hyper", "hyper_util"], "src/http/", true),
    (&["reqwest"], "src/effects/", true),
    (&["redb"], "storage/", false),
    (&["jsonwebtoken"], "src/auth/", false),
    (&["simd_json"], "src/protocol/json", false),
];

/// Modules without a clock, randomness, files, sockets or tasks: what they do depends on their
/// arguments alone.
const PURE: [&str; 6] = ["ids", "time", "protocol", "session", "sse", "agui"];
const IMPURE_WORDS: [&str; 9] = [
    "async",
    "await",
    "Instant",
    "SystemTime",
    "rand",
    "getrandom",
    "tokio",
    "thread_rng",
    "RandomState",
];
const IMPURE_STD: [&str; 5] = ["fs", "net", "env", "process", "thread"];

/// The module at the top of the crate that a file of `src` belongs to.
fn module(source: &Source) -> Option<&str> {
    let inside = source.path.strip_prefix("src/")?;
    let first = inside.split('/').next()?;
    Some(first.strip_suffix(".rs").unwrap_or(first))
}

fn imports(sources: &[Source]) -> Vec<String> {
    let mut offences = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust() && !source.is_test()) {
        let Some(module) = module(source) else {
            continue;
        };
        let Some((_, allowed)) = IMPORTS.iter().find(|(name, _)| *name == module) else {
            if !WIRING.contains(&module) {
                offences.push(source.offence(1, "the module stands in no table of tests/tidy"));
            }
            continue;
        };
        offences.extend(climbs(source));
        let mut used = source.paths_from("crate");
        let storage = source.words().into_iter().filter(|(_, word)| *word == "turnd_storage");
        used.extend(storage.map(|(line, _)| (line, "storage".to_owned())));
        used.retain(|(_, name)| name != module && !allowed.contains(&name.as_str()));
        offences.extend(used.into_iter().map(|(line, name)| {
            source.offence(line, &format!("`{module}` may not import `{name}`"))
        }));
    }
    offences
}

/// `super` that leaves the top module would walk around the table.
fn climbs(source: &Source) -> Vec<String> {
    let inside = source.path.trim_start_matches("src/").trim_end_matches(".rs");
    let depth = inside.split('/').filter(|part| *part != "mod").count();
    let mut offences = Vec::new();
    // How far the modules that are written out inside the file are indented.
    let mut inline: Vec<&str> = Vec::new();
    for (at, line) in source.code.lines().enumerate() {
        let start = line.trim_start();
        let indent = line.strip_suffix(start).unwrap_or_default();
        if start.trim_start_matches("pub ").starts_with("mod ") && line.ends_with('{') {
            inline.push(indent);
        } else if start == "}" && inline.last() == Some(&indent) {
            inline.pop();
        }
        if line.contains(&"super::".repeat(depth + inline.len())) {
            offences.push(source.offence(at + 1, "`super` leaves the module; say `crate`"));
        }
    }
    offences
}

fn owners(sources: &[Source]) -> Vec<String> {
    let mut offences = Vec::new();
    for source in sources {
        for (line, word) in source.words() {
            for (names, owner, tests_may) in OWNERS {
                let may = source.path.starts_with(owner) || (tests_may && source.is_test());
                if names.contains(&word) && !may {
                    offences.push(source.offence(line, &format!("`{word}` belongs to {owner}")));
                }
            }
        }
    }
    offences
}

fn impurities(sources: &[Source]) -> Vec<String> {
    let mut offences = Vec::new();
    let pure = |source: &&Source| module(source).is_some_and(|module| PURE.contains(&module));
    for source in sources.iter().filter(pure).filter(|source| !source.is_test()) {
        let words = source.words().into_iter();
        let words = words.filter(|(_, word)| IMPURE_WORDS.contains(word));
        let mut found: Vec<(usize, String)> =
            words.map(|(line, word)| (line, word.to_owned())).collect();
        let std = source.paths_from("std").into_iter();
        let std = std.filter(|(_, name)| IMPURE_STD.contains(&name.as_str()));
        found.extend(std.map(|(line, name)| (line, format!("std::{name}"))));
        let why = |name: &str| format!("`{name}` in a pure module");
        offences.extend(found.iter().map(|(line, name)| source.offence(*line, &why(name))));
    }
    offences
}

#[test]
fn modules_import_what_the_table_allows() {
    let offences = imports(&tree());
    assert!(offences.is_empty(), "\n{}", offences.join("\n"));
}

#[test]
fn dependencies_stay_with_their_owners() {
    let offences = owners(&tree());
    assert!(offences.is_empty(), "\n{}", offences.join("\n"));
}

#[test]
fn pure_modules_are_pure() {
    let offences = impurities(&tree());
    assert!(offences.is_empty(), "\n{}", offences.join("\n"));
}

#[test]
fn an_import_against_the_table_is_found() {
    for (path, text, expected) in [
        ("src/session/x.rs", "use crate::{ids::Seq,\n runtime::Engine};", 1),
        ("src/session/mod.rs", "use super::runtime::Engine;", 1),
        ("src/session/decide/x.rs", "use super::super::super::runtime::Engine;", 1),
        ("src/session/decide/x.rs", "use super::super::state::Session;", 0),
        ("src/session/decide/mod.rs", "use super::state::Session;", 0),
        ("src/sse.rs", "fn f() { crate::http::g() }", 1),
        ("src/http/x.rs", "use turnd_storage::Store;", 1),
        ("src/runtime/x.rs", "use turnd_storage::Store;", 0),
        ("src/unheard/mod.rs", "", 1),
        ("src/server.rs", "use crate::http::Listener;", 0),
        ("src/sse.rs", "mod frame {\n    use super::Frame;\n}\nuse super::http;", 1),
        ("src/session/tests/x.rs", "use crate::runtime::Engine;", 0),
        ("src/time.rs", "// crate::http\nconst X: &str = \"crate::http\";", 0),
    ] {
        let offences = imports(&[Source::new(path, text)]);
        assert_eq!(offences.len(), expected, "{path} {text}: {offences:?}");
    }
    let offences = imports(&[Source::new("src/sse.rs", "\nuse crate::http::X;")]);
    assert_eq!(offences, ["src/sse.rs:2: `sse` may not import `http`"]);
}

#[test]
fn a_dependency_away_from_its_owner_is_found() {
    for (path, text, expected) in [
        ("src/runtime/x.rs", "use hyper::Request;", 1),
        ("src/http/x.rs", "use hyper::Request;", 0),
        ("tests/it/main.rs", "use hyper::Request;", 0),
        ("src/http/x.rs", "fn f(e: reqwest::Error) {}", 1),
        ("src/runtime/x.rs", "use redb::Database;", 1),
        ("tests/it/main.rs", "use redb::Database;", 1),
        ("src/protocol/event.rs", "use simd_json::Node;", 1),
        ("src/protocol/json.rs", "use simd_json::Node;", 0),
        ("src/http/auth.rs", "jsonwebtoken::decode()", 1),
        ("src/http/auth.rs", "// jsonwebtoken::decode()", 0),
    ] {
        let offences = owners(&[Source::new(path, text)]);
        assert_eq!(offences.len(), expected, "{path} {text}: {offences:?}");
    }
}

#[test]
fn an_impure_module_is_found() {
    for (path, text, expected) in [
        ("src/session/x.rs", "async fn f() {}", 1),
        ("src/session/x.rs", "fn f() { g().await }", 1),
        ("src/time.rs", "use std::time::{Duration, Instant};", 1),
        ("src/ids.rs", "use std::{fmt, fs};", 1),
        ("src/ids.rs", "fn f() { std::net::TcpStream::connect() }", 1),
        ("src/ids.rs", "fn f() { getrandom::fill() }", 1),
        ("src/ids.rs", "/// A random async Instant.\nfn mint(random: [u8; 10]) {}", 0),
        ("src/clock.rs", "use std::time::Instant;", 0),
        ("src/protocol/event/tests.rs", "use std::fs;", 0),
    ] {
        let offences = impurities(&[Source::new(path, text)]);
        assert_eq!(offences.len(), expected, "{path} {text}: {offences:?}");
    }
}
