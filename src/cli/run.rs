//! `turnd run <text>`: one turn of an agent, without a server.

use std::path::PathBuf;
use std::process::ExitCode;

use super::StartError;
use crate::config::{Config, Flags, process_environment};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to say to the agent
    pub text: String,
    /// Which agent [default: the only one]
    #[arg(long, value_name = "ID")]
    pub agent: Option<String>,
    /// Continue this session, or start it under this id
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Print the events of the turn as JSON, one per line
    #[arg(long)]
    pub json: bool,
    #[arg(
        long,
        value_name = "FILE",
        help = "The manifest [env: TURND_CONFIG] [default: turnd.toml]"
    )]
    pub config: Option<PathBuf>,
    #[arg(
        long,
        value_name = "FOLDER",
        help = "The data folder [env: TURND_DATA] [default: turnd-data]"
    )]
    pub data: Option<PathBuf>,
}

#[expect(clippy::unused_async, reason = "a turn awaits")]
pub async fn run(args: Args) -> Result<ExitCode, StartError> {
    let flags = Flags { config: args.config, data: args.data, ..Flags::default() };
    Config::load(&flags, &process_environment)?;
    Ok(ExitCode::SUCCESS)
}
