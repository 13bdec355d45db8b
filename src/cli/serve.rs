//! `turnd serve`: the server.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::process::ExitCode;

use secrecy::ExposeSecret as _;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{Place, StartError};
use crate::config::{Config, Flags, process_environment};
use crate::server::Server;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        value_parser = parse_address,
        help = "Where to listen [env: TURND_LISTEN] [default: 127.0.0.1:7171]"
    )]
    pub listen: Option<SocketAddr>,
    #[command(flatten)]
    pub place: Place,
}

pub async fn run(args: Args) -> Result<ExitCode, StartError> {
    let flags = Flags { listen: args.listen, ..args.place.into() };
    let config = Config::load(&flags, &process_environment)?;
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    for missing in &config.missing {
        tracing::warn!("{missing}");
    }
    let (stop, stop_now) = (Signals::listen()?, Signals::listen()?);
    let mut server = Server::start(&config).await?;
    greet(&mut server, &config);
    tokio::select! {
        ended = server.run(stop.after(1)) => ended.map(|()| ExitCode::SUCCESS).map_err(Into::into),
        () = stop_now.after(2) => Ok(ExitCode::FAILURE),
    }
}

/// The signals that ask for a stop; a second one asks not to wait.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> Result<Self, StartError> {
        let listen = |kind| signal(kind).map_err(StartError::Runtime);
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    async fn after(mut self, count: usize) {
        for _ in 0..count {
            tokio::select! {
                _ = self.terminate.recv() => {}
                _ = self.interrupt.recv() => {}
            }
        }
    }
}

fn parse_address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "must be an address and a port, such as 127.0.0.1:7171")
}

/// Says where the server is and, at the first start, how to try it.
fn greet(server: &mut Server, config: &Config) {
    let local = format!("http://{}", server.address());
    let url = config.public_url.as_ref().unwrap_or(&local);
    let mut out = io::stdout().lock();
    let mut text = format!("turnd listens on {local}\ndata folder: {}\n", config.data.display());
    if let Some(key) = server.take_first_key() {
        let agent = config.catalogue.agents.keys().next().map_or("demo", |id| id.as_str());
        text.push_str(&first_steps(url, key.expose_secret(), agent));
    }
    // A closed stdout leaves nobody to greet.
    drop(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}

/// Lines to paste: a key, a token, a message, a stream.
fn first_steps(url: &str, key: &str, agent: &str) -> String {
    format!(
        r#"
Your API key, shown once; keep it:

export TURND_KEY={key}

Try it: mint a client token, submit a message as its owner, watch the stream.

export TURND_TOKEN=$(curl -s {url}/api/machine/client-tokens -H "Authorization: Bearer $TURND_KEY" -H 'Content-Type: application/json' -d '{{"identity":{{"id":"ann"}}}}' | sed 's/.*"token":"\([^"]*\)".*/\1/')
curl -s {url}/api/client/sessions/input -H "Authorization: Bearer $TURND_TOKEN" -H 'Content-Type: application/json' -d '{{"session_id":"first","input":{{"type":"client.message","agent_id":"{agent}","message":{{"role":"user","content":"hello"}}}}}}'
curl -sN {url}/api/client/sessions/first/events/stream -H "Authorization: Bearer $TURND_TOKEN"

"#
    )
}
