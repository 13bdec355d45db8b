//! `turnd check`: is the configuration right, and what does it lack?

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use serde::Serialize;

use super::Place;
use crate::config::{Config, ConfigError, Finding, process_environment};

/// Widest line of the output on a terminal.
const COLUMNS: usize = 80;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: Place,
}

/// Checks and prints. 0 when the configuration is right, 1 when it is not; a missing key of a model
/// is told, but is no fault of the file.
pub fn run(args: &Args) -> ExitCode {
    let flags = args.place.clone().into();
    let report = Report::of(Config::load(&flags, &process_environment));
    let mut stdout = io::stdout().lock();
    let text = if args.json {
        report.json()
    } else if stdout.is_terminal() {
        wrap(&report.text())
    } else {
        report.text()
    };
    // A reader that went away has seen enough.
    stdout.write_all(text.as_bytes()).ok();
    if report.ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// All that `check` has to say, in the shape of its `--json`.
#[derive(Debug, Default, Serialize)]
struct Report {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    manifest: Option<String>,
    problems: Vec<ProblemView>,
    agents: Vec<AgentView>,
    missing: Vec<MissingView>,
    warnings: Vec<String>,
}

#[derive(Debug, Default, Serialize)]
struct ProblemView {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    /// A key of the manifest or a variable of the environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    problem: String,
    /// The line for people.
    #[serde(skip)]
    text: String,
}

#[derive(Debug, Serialize)]
struct AgentView {
    id: String,
    llm: String,
    model: String,
    /// Whether the model can be called as far as keys go.
    ready: bool,
}

#[derive(Debug, Serialize)]
struct MissingView {
    llm: String,
    variable: String,
}

impl Report {
    fn of(loaded: Result<Config, ConfigError>) -> Self {
        match loaded {
            Ok(config) => Self::of_config(&config),
            Err(ConfigError::Invalid(findings)) => {
                Self { problems: findings.iter().map(finding_view).collect(), ..Self::default() }
            }
            Err(error) => Self { problems: vec![error_view(&error)], ..Self::default() },
        }
    }

    fn of_config(config: &Config) -> Self {
        let agents = config.catalogue.agents.iter().map(|(id, agent)| AgentView {
            id: id.to_string(),
            llm: agent.config.llm.to_string(),
            model: agent.config.model.clone(),
            ready: config.missing.iter().all(|missing| missing.llm != agent.config.llm),
        });
        let missing = config.missing.iter().map(|missing| MissingView {
            llm: missing.llm.to_string(),
            variable: missing.variable.clone(),
        });
        Self {
            ok: true,
            manifest: config.manifest.as_ref().map(|path| path.display().to_string()),
            problems: Vec::new(),
            agents: agents.collect(),
            missing: missing.collect(),
            warnings: config.warnings.iter().map(ToString::to_string).collect(),
        }
    }

    fn json(&self) -> String {
        // Strings, numbers and booleans: nothing in it can fail to be JSON.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for problem in &self.problems {
            writeln!(text, "{}", problem.text).ok();
        }
        if !self.ok {
            return text;
        }
        match &self.manifest {
            Some(path) => writeln!(text, "{path}: ok"),
            None => writeln!(text, "no turnd.toml: everything is at its default"),
        }
        .ok();
        for agent in &self.agents {
            let note = if agent.ready { "" } else { " (no key)" };
            writeln!(text, "agent {}: {} / {}{note}", agent.id, agent.llm, agent.model).ok();
        }
        for MissingView { llm, variable } in &self.missing {
            writeln!(text, "missing {variable}: models of `{llm}` cannot be called").ok();
        }
        for warning in &self.warnings {
            writeln!(text, "warning: {warning}").ok();
        }
        text
    }
}

fn finding_view(finding: &Finding) -> ProblemView {
    let text = finding.to_string();
    match finding {
        Finding::Manifest { file, problem } => ProblemView {
            file: Some(file.display().to_string()),
            line: Some(problem.line),
            key: Some(problem.key.clone()).filter(|key| !key.is_empty()),
            problem: problem.fault.to_string(),
            text,
        },
        Finding::Variable { name, fault } => ProblemView {
            key: Some(name.clone()),
            problem: fault.to_string(),
            text,
            ..ProblemView::default()
        },
    }
}

fn error_view(error: &ConfigError) -> ProblemView {
    let problem = super::chain(error);
    ProblemView { text: problem.clone(), problem, ..ProblemView::default() }
}

/// Breaks lines that are wider than a terminal between words; what continues a line is indented.
fn wrap(text: &str) -> String {
    let mut wrapped = String::new();
    for line in text.lines() {
        let mut width = 0;
        for word in line.split(' ') {
            let chars = word.chars().count();
            if width > 0 && width + 1 + chars > COLUMNS {
                wrapped.push_str("\n  ");
                width = 2;
            } else if width > 0 {
                wrapped.push(' ');
                width += 1;
            }
            wrapped.push_str(word);
            width += chars;
        }
        wrapped.push('\n');
    }
    wrapped
}

#[cfg(test)]
mod tests;
