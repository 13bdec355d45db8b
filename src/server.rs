//! Wiring: from a configuration to a server that answers.

use std::fs;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use http::Request;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use turnd_storage::Store;

use crate::auth::api_key::CreateError;
use crate::auth::{ApiKeys, Authenticator, BlobUrls, ClientTokens};
use crate::clock::{self, Clock};
use crate::config::Config;
use crate::control::api_keys::{ApiKeyDocuments, StoreError, client_token_key};
use crate::control::limits::Limits;
use crate::effects::{self, Executors};
use crate::http::api::{Api, BLOBS_KIB_MAX, BODIES_KIB_MAX};
use crate::http::body::RequestBody;
use crate::http::connection::Peer;
use crate::http::cors::{Cors, OriginError};
use crate::http::listener;
use crate::http::rate::Rates;
use crate::http::service;
use crate::runtime::Engine;
use crate::session::Bounds;

/// Says where the server that holds the data folder can be reached.
const ADDRESS_FILE: &str = "address";
/// How often the last uses of API keys are written down (S7).
const SAVE_USED_EVERY: Duration = Duration::from_mins(1);

/// How long answers under way may take once every stream has ended.
const EDGE_GRACE: Duration = Duration::from_secs(5);
/// After a failed write nothing more is acknowledged and the process leaves (M4); this long, those
/// who wait are still told that the outcome is unknown.
const FAILED_GRACE: Duration = Duration::from_secs(1);

/// Why a server, or a turn without one, cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error("cannot open the store")]
    Storage(#[from] turnd_storage::Error),
    #[error("the server at {address} holds the data folder {}", data.display())]
    Held { data: PathBuf, address: String },
    #[error("cannot use the credentials of the data folder")]
    Credentials(#[from] StoreError),
    #[error("cannot make an API key")]
    ApiKey(#[from] CreateError),
    #[error("TURND_API_KEY")]
    ChosenKey(#[from] crate::auth::api_key::ChosenKeyError),
    #[error("cannot sign client tokens")]
    TokenKey(#[from] crate::auth::client_token::KeyError),
    #[error("serve.cors_origins")]
    Origins(#[from] OriginError),
    #[error("cannot listen on {address}")]
    Listen {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error("cannot write to the data folder")]
    Data(#[source] io::Error),
    #[error("storage failed: {0}")]
    StorageFailed(String),
}

/// A server that is bound and ready; it answers once it is run.
pub struct Server {
    store: Store,
    engine: Engine,
    api: Arc<Api>,
    documents: ApiKeyDocuments,
    listener: TcpListener,
    address: SocketAddr,
    address_file: PathBuf,
    shutdown: Duration,
    first_key: Option<SecretString>,
}

/// Opens the data folder; a folder that a server holds is an error that says where it is.
pub fn open_store(data: &Path) -> Result<Store, ServerError> {
    match Store::open(data, turnd_storage::Options::default()) {
        Err(turnd_storage::Error::Locked { .. }) => {
            let address = fs::read_to_string(data.join(ADDRESS_FILE));
            let address = address.unwrap_or_else(|_| "an unknown address".to_owned());
            Err(ServerError::Held { data: data.to_owned(), address })
        }
        opened => {
            let store = opened?;
            // A server that was killed has left its address.
            drop(fs::remove_file(data.join(ADDRESS_FILE)));
            Ok(store)
        }
    }
}

/// The engine of a data folder, without an edge.
pub fn engine(config: &Config, store: &Store) -> Engine {
    let Limits { event_bytes_max, queued_turns_max, .. } = config.limits;
    let executors = Executors::new(effects::Bounds::new(event_bytes_max));
    let bounds = Bounds { queued_turns_max, event_bytes_max };
    Engine::new(store.clone(), Clock::start(), config.catalogue.clone(), executors, bounds)
}

impl Server {
    /// Opens the data folder, binds, and brings back what is owed.
    pub async fn start(config: &Config) -> Result<Self, ServerError> {
        let store = open_store(&config.data)?;
        let documents = ApiKeyDocuments::new(store.clone());
        let api_keys = ApiKeys::new(documents.load()?, config.api_key.as_ref())?;
        let signing = client_token_key(&store, config.client_token_key.as_ref()).await?;
        let previous = config.client_token_key_previous.as_ref();
        let previous = previous.map(|key| key.expose_secret().as_bytes());
        let authenticator = Authenticator {
            api_keys,
            client_tokens: ClientTokens::new(signing.expose_secret(), previous)?,
            blob_urls: BlobUrls::new(signing.expose_secret(), previous)?,
        };
        let engine = engine(config, &store);
        let api = Api {
            engine: engine.clone(),
            authenticator: Arc::new(authenticator),
            cors: Cors::new(&config.cors_origins)?,
            rates: Rates::new(&config.limits),
            limits: Arc::new(config.limits.clone()),
            bodies: Semaphore::new(BODIES_KIB_MAX),
            blobs: Arc::new(Semaphore::new(BLOBS_KIB_MAX)),
            streams: Arc::new(AtomicUsize::new(0)),
        };
        let listen = |source| ServerError::Listen { address: config.listen, source };
        let listener = listener::bind(config.listen).map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let address_file = config.data.join(ADDRESS_FILE);
        write_private(&address_file, &format!("http://{address}")).map_err(ServerError::Data)?;
        // After the bind, because a start that fails must not use up the attempts of open calls;
        // nobody is answered before `run`.
        let owing = engine.recover().await?;
        tracing::info!(sessions = owing, "recovered");
        // Made last of all: it is shown once, so nothing may fail between this and the showing.
        let api_keys = &api.authenticator.api_keys;
        let first_key = if api_keys.list().is_empty() {
            Some(api_keys.create(&documents, "first", clock::wall()).await?.text)
        } else {
            None
        };
        Ok(Self {
            store,
            engine,
            api: Arc::new(api),
            documents,
            listener,
            address,
            address_file,
            shutdown: config.shutdown,
            first_key,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The API key of a first start: to be shown once, and kept nowhere.
    pub fn take_first_key(&mut self) -> Option<SecretString> {
        self.first_key.take()
    }

    /// Serves until `stop` is set or storage fails, then ends what is open in order (M10).
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<(), ServerError> {
        let Self { store, engine, api, documents, listener, address_file, shutdown, .. } = self;
        let (closing, closed) = watch::channel(false);
        let (limits, authenticator) = (Arc::clone(&api.limits), Arc::clone(&api.authenticator));
        let service = move |request: Request<RequestBody>, peer: Peer| {
            let api = Arc::clone(&api);
            async move { service::answer(&api, request, peer).await }
        };
        let edge = listener::serve(vec![listener], limits, service, closed, EDGE_GRACE);
        let edge = tokio::spawn(edge);
        let uses = tokio::spawn(save_uses(Arc::clone(&authenticator), documents.clone()));
        let mut failure = store.failure();
        tokio::select! {
            () = stop => {}
            _ = failure.wait_for(Option::is_some) => {}
        }
        uses.abort();
        let failed = failure.borrow().clone();
        if failed.is_none() {
            tracing::info!("stopping");
            engine.stop(shutdown).await;
        }
        // Nobody listens when the edge has ended by itself.
        let _ = closing.send(true);
        // The edge cuts off what is left by itself, and is given a moment for that.
        let grace = if failed.is_some() { FAILED_GRACE } else { EDGE_GRACE * 2 };
        drop(tokio::time::timeout(grace, edge).await);
        drop(fs::remove_file(address_file));
        if let Some(reason) = failed {
            return Err(ServerError::StorageFailed(reason));
        }
        save_used(&authenticator, &documents).await;
        drop(tokio::task::spawn_blocking(move || store.close()).await);
        Ok(())
    }
}

/// Writes down when keys were last used, until it is dropped.
async fn save_uses(authenticator: Arc<Authenticator>, documents: ApiKeyDocuments) {
    loop {
        tokio::time::sleep(SAVE_USED_EVERY).await;
        save_used(&authenticator, &documents).await;
    }
}

async fn save_used(authenticator: &Authenticator, documents: &ApiKeyDocuments) {
    if let Err(error) = authenticator.api_keys.save_used(documents).await {
        tracing::warn!(%error, "the last uses of API keys are not written down");
    }
}

/// Writes a small file that only this user may read.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)?.write_all(text.as_bytes())
}
