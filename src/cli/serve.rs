//! `turnd serve`: the server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use super::StartError;
use crate::config::{Config, Flags, process_environment};

#[derive(Debug, clap::Args)]
pub struct Args {
    #[arg(
        long,
        value_name = "FILE",
        help = "The manifest [env: TURND_CONFIG] [default: turnd.toml]"
    )]
    pub config: Option<PathBuf>,
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        help = "Where to listen [env: TURND_LISTEN] [default: 127.0.0.1:7171]"
    )]
    pub listen: Option<SocketAddr>,
    #[arg(
        long,
        value_name = "FOLDER",
        help = "The data folder [env: TURND_DATA] [default: turnd-data]"
    )]
    pub data: Option<PathBuf>,
}

#[expect(clippy::unused_async, reason = "serving awaits")]
pub async fn run(args: Args) -> Result<ExitCode, StartError> {
    let flags = Flags {
        config: args.config,
        listen: args.listen,
        data: args.data,
    };
    Config::load(&flags, &process_environment)?;
    Err(StartError::Unavailable("serve"))
}
