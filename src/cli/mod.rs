//! The command line: one file per command.
//!
//! Exit codes: 0 when the command did its work, 1 when it could not, 2 for a wrong command line.

pub mod check;
pub mod compact;
pub mod run;
pub mod serve;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::{ConfigError, Flags};
use crate::protocol::error::chain;
use crate::server::ServerError;
use crate::telemetry;

#[derive(Debug, Parser)]
#[command(name = "turnd", version, about, max_term_width = 80)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the server
    Serve(serve::Args),
    /// Ask an agent once and print its answer
    Run(run::Args),
    /// Check the configuration and say what is missing
    Check(check::Args),
    /// Rewrite the data files of a stopped server without what was erased
    Compact(compact::Args),
}

/// Where a command finds its manifest and its data.
#[derive(Debug, Clone, clap::Args)]
pub struct Place {
    #[arg(
        long,
        value_name = "FILE",
        help = "The manifest [env: TURND_CONFIG] [default: turnd.toml]"
    )]
    config: Option<PathBuf>,
    #[arg(
        long,
        value_name = "FOLDER",
        help = "The data folder [env: TURND_DATA] [default: turnd-data]"
    )]
    data: Option<PathBuf>,
}

impl From<Place> for Flags {
    fn from(Place { config, data }: Place) -> Self {
        Self { config, data, listen: None }
    }
}

/// Why a command could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot start")]
    Config(#[from] ConfigError),
    #[error("cannot start the runtime")]
    Runtime(#[source] io::Error),
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Run(#[from] run::RunError),
    #[error("cannot compact the data folder")]
    Compact(#[source] turnd_storage::Error),
}

/// Parses the command line and performs it.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    telemetry::init();
    match perform(cli.command) {
        Ok(code) => code,
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

fn perform(command: Command) -> Result<ExitCode, StartError> {
    match command {
        Command::Serve(args) => runtime()?.block_on(serve::run(args)),
        Command::Run(args) => runtime()?.block_on(run::run(args)),
        Command::Check(args) => Ok(check::run(&args)),
        Command::Compact(args) => compact::run(args),
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, StartError> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(StartError::Runtime)
}

/// Prints an error with its causes. What is wrong with a configuration gets a line each.
fn complain(error: &StartError) {
    let mut stderr = io::stderr().lock();
    if let StartError::Config(ConfigError::Invalid(findings)) = error {
        for finding in findings {
            // A closed stderr leaves nobody to tell.
            writeln!(stderr, "{finding}").ok();
        }
        return;
    }
    writeln!(stderr, "turnd: {}", chain(error)).ok();
}
