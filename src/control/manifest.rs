//! The manifest, `turnd.toml`: text to a checked [`Manifest`], or every problem in it.
//!
//! Pure: no file, no environment. Secrets are named here and read elsewhere (S66).
//! `docs/manifest.md` lists the keys.

mod agent;
mod later;
mod limits;
mod llm;
mod nearest;
mod problem;
mod reader;
mod syntax;
mod text;
mod tool;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::panic::resume_unwind;
use std::thread;
use std::time::Duration;

pub use problem::{Fault, Problem};
pub use text::http_url;

use crate::control::agents::{Agent, DEMO, Llm};
use crate::control::limits::Limits;
use crate::ids::{AgentId, LlmId};
use reader::{Kind, Problems, Section};

/// What the operator declares. Everything in it is checked and every reference leads somewhere.
#[derive(Debug, Clone)]
pub struct Manifest {
    pub name: Option<String>,
    /// As written: relative to the manifest's folder.
    pub data: Option<String>,
    pub serve: Serve,
    pub limits: Limits,
    /// The built-in `demo` is always among them. Keys are not read yet.
    pub llms: BTreeMap<LlmId, Llm>,
    /// Never empty: `demo` where none is declared (S49a).
    pub agents: BTreeMap<AgentId, Agent>,
}

/// `[serve]`.
#[derive(Debug, Clone)]
pub struct Serve {
    pub listen: Option<SocketAddr>,
    /// Without a slash at its end.
    pub public_url: Option<String>,
    pub cors_origins: Vec<String>,
    /// How long a stop waits for work in flight.
    pub shutdown: Duration,
}

/// A stop waits no longer than this by default; systemd's own limit is 30 s in our unit.
const SHUTDOWN_SECS: u64 = 20;

/// The parser bounds inline tables and dotted keys at 80 levels each, together 6,400, and a tree is
/// dropped by recursion: more than the 2 MiB of an ordinary thread hold.
const STACK_BYTES: usize = 16 * 1024 * 1024;

impl Manifest {
    /// Parses and checks the text of a manifest.
    ///
    /// # Errors
    /// Everything that is wrong, in the order of the file.
    pub fn parse(text: &str) -> Result<Self, Vec<Problem>> {
        thread::scope(|scope| {
            let parser = thread::Builder::new().stack_size(STACK_BYTES);
            match parser.spawn_scoped(scope, || parse(text)) {
                Ok(parser) => parser.join().unwrap_or_else(|panic| resume_unwind(panic)),
                Err(_) => parse(text),
            }
        })
    }
}

fn parse(text: &str) -> Result<Manifest, Vec<Problem>> {
    let problems = Problems::new(text);
    let manifest = syntax::parse(text, &problems).map(|tree| {
        syntax::find_secrets(&tree, &problems);
        read(Section::top(&tree, &problems))
    });
    let problems = problems.into_sorted();
    match manifest {
        Some(manifest) if problems.is_empty() => Ok(manifest),
        _ => Err(problems),
    }
}

fn read(mut top: Section<'_, '_>) -> Manifest {
    let name = top.parsed("name", text::name_text);
    let data = top.string("data").map(str::to_owned);
    let serve = read_serve(top.section("serve", Kind::Serve));
    let limits = limits::read(top.section("limits", Kind::Limits));
    let llm_section = top.section("llm", Kind::Top);
    let mut llm_names: Vec<&str> = llm_section.names().collect();
    if !llm_names.contains(&DEMO) {
        llm_names.push(DEMO);
    }
    let llms = llm::read(llm_section);
    let mut agents = agent::read(top.section("agent", Kind::Top), &llm_names);
    top.finish();
    if agents.is_empty() {
        agents.insert(AgentId::parse(DEMO).expect("`demo` is an id"), Agent::demo());
    }
    Manifest { name, data, serve, limits, llms, agents }
}

fn read_serve(mut section: Section<'_, '_>) -> Serve {
    let listen = section.parsed("listen", |text| text.parse().map_err(|_| Fault::Address));
    let public_url = section.parsed("public_url", text::http_url);
    let cors_origins = section.list("cors_origins", text::origin);
    let mut shutdown_secs = SHUTDOWN_SECS;
    section.number("shutdown_secs", 1..=600, &mut shutdown_secs);
    section.finish();
    Serve {
        listen,
        public_url,
        cors_origins: cors_origins.unwrap_or_else(|| vec!["*".to_owned()]),
        shutdown: Duration::from_secs(shutdown_secs),
    }
}

#[cfg(test)]
mod tests;
