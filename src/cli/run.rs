//! `turnd run <text>`: one turn of an agent, without a server.

mod printer;

use std::future::poll_fn;
use std::io;
use std::process::ExitCode;

use self::printer::{Outcome, Printer};
use super::{Place, StartError};
use crate::config::{Config, process_environment};
use crate::control::agents::Catalogue;
use crate::ids::{AgentId, OwnerId, SessionId, SessionKey, local_tenant};
use crate::protocol::content::Blobs;
use crate::protocol::input::{Conditions, Identity, Input, MessageInput};
use crate::protocol::message::{Message, Role};
use crate::runtime::{End, Engine, EngineError, WatchRequest};
use crate::server;
use crate::session::{Caller, Command, Reply, Submission};

/// Who owns the sessions that are made here.
const OWNER: &str = "local";

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
    #[command(flatten)]
    pub place: Place,
}

/// Why a turn could not be run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("--agent: {0}")]
    Agent(String),
    #[error("--session: {0}")]
    Session(crate::ids::IdError),
    #[error("no random bytes")]
    Random(#[source] getrandom::Error),
    #[error("the turn was not taken")]
    Engine(#[from] EngineError),
    #[error("the session cannot be read to the end of the turn")]
    Interrupted,
    #[error("cannot print")]
    Print(#[source] io::Error),
}

pub async fn run(args: Args) -> Result<ExitCode, StartError> {
    let config = Config::load(&args.place.into(), &process_environment)?;
    let agent_id = choose_agent(&config.catalogue, args.agent.as_deref())?;
    let session = args.session.as_deref().map(SessionId::parse).transpose();
    let session = session.map_err(RunError::Session)?;
    let store = server::open_store(&config.data)?;
    let engine = server::engine(&config, &store);
    let printer = Printer::new(args.json);
    let outcome = turn(&engine, agent_id, session, args.text, printer).await;
    engine.stop(config.shutdown).await;
    // The turn is in the log whether or not the files close well.
    drop(tokio::task::spawn_blocking(move || store.close()).await);
    Ok(match outcome? {
        Outcome::Answered => ExitCode::SUCCESS,
        Outcome::Failed => ExitCode::FAILURE,
    })
}

/// The named agent, or the only one.
fn choose_agent(catalogue: &Catalogue, wanted: Option<&str>) -> Result<AgentId, RunError> {
    let names = || {
        let names: Vec<&str> = catalogue.agents.keys().map(AgentId::as_str).collect();
        names.join(", ")
    };
    let mut agents = catalogue.agents.keys();
    match (wanted, agents.next(), agents.next()) {
        (Some(wanted), ..) => {
            let found = catalogue.agents.keys().find(|id| id.as_str() == wanted).cloned();
            found.ok_or_else(|| {
                RunError::Agent(format!("`{wanted}` is not declared; there are: {}", names()))
            })
        }
        (None, Some(only), None) => Ok(only.clone()),
        (None, ..) => Err(RunError::Agent(format!("name one of: {}", names()))),
    }
}

/// Submits `text` and prints the turn until it is complete.
async fn turn(
    engine: &Engine,
    agent_id: AgentId,
    session: Option<SessionId>,
    text: String,
    mut printer: Printer,
) -> Result<Outcome, RunError> {
    let session = session.map_or_else(|| engine.mint_session_id(), Ok).map_err(RunError::Random)?;
    let owner = OwnerId::parse(OWNER).map_err(RunError::Session)?;
    let key = SessionKey { tenant: local_tenant(), session };
    let message = Message::text(Role::User, text);
    let submission = Submission {
        caller: Caller::Machine,
        identity: Identity { id: owner, metadata: None },
        agent_id,
        turn_id: None,
        queue: false,
        conditions: Conditions::default(),
        input: Input::Message(MessageInput { message, stream: None }),
        blobs: Blobs::new(),
    };
    let command = Command::Submit(Box::new(submission));
    let turn_id = match engine.command(key.clone(), command, Vec::new()).await? {
        Reply::Accepted { turn_id, .. } => turn_id,
        Reply::Interrupted { .. } | Reply::Cancelled { .. } | Reply::Done => {
            return Err(EngineError::Unavailable.into());
        }
    };
    loop {
        let request = WatchRequest { after: printer.seq(), turn_id: Some(turn_id.clone()) };
        let mut tail = engine.watch(key.clone(), Caller::Machine, request).await?;
        let end = loop {
            match poll_fn(|context| tail.poll_next(context)).await {
                Ok(frames) => printer.frames(&frames).map_err(RunError::Print)?,
                Err(end) => break end,
            }
        };
        match end {
            End::TurnCompleted => return printer.end(&key.session).map_err(RunError::Print),
            // A terminal is slower than a model; what it missed is in the log.
            End::Lagged => {}
            End::Stopped | End::Erased | End::Failed => return Err(RunError::Interrupted),
        }
    }
}
