//! What the server runs with: flags, environment, manifest and defaults in one value (S66).
//!
//! [`Config::load`] finds and reads the manifest, then [`Config::resolve`] decides: a pure function but
//! for credential files.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use secrecy::SecretString;

use crate::auth::api_key::CHOSEN_KEY_CHARS_MIN;
use crate::auth::client_token::KEY_BYTES_MIN;
use crate::control::agents::Catalogue;
use crate::control::limits::Limits;
use crate::control::manifest::{Fault, Manifest, Problem, http_url};
use crate::control::secrets::{Lookup, SecretError, Secrets};
use crate::ids::LlmId;

/// Where the manifest is looked for when nobody names one.
pub const MANIFEST_PATH: &str = "turnd.toml";

/// Where the data goes when nobody says, outside systemd.
pub const DATA_PATH: &str = "turnd-data";

/// Local only: whoever wants the server reachable says so.
pub const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7171);

/// A larger manifest is another file by mistake.
const MANIFEST_BYTES_MAX: u64 = 1024 * 1024;

/// What the command line says; each wins over its twin elsewhere.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    pub config: Option<PathBuf>,
    pub listen: Option<SocketAddr>,
    pub data: Option<PathBuf>,
}

#[derive(Debug, Clone)]
pub struct Config {
    /// The project's name.
    pub name: Option<String>,
    /// The manifest that was read, if there is one.
    pub manifest: Option<PathBuf>,
    pub data: PathBuf,
    pub listen: SocketAddr,
    /// How clients reach the server, without a slash at its end.
    pub public_url: Option<String>,
    pub cors_origins: Vec<String>,
    /// How long a stop waits for work in flight.
    pub shutdown: Duration,
    pub limits: Limits,
    pub catalogue: Catalogue,
    /// `TURND_API_KEY` (S7, S70).
    pub api_key: Option<SecretString>,
    /// `TURND_CLIENT_TOKEN_KEY` (S6).
    pub client_token_key: Option<SecretString>,
    /// `TURND_CLIENT_TOKEN_KEY_PREVIOUS` (S6).
    pub client_token_key_previous: Option<SecretString>,
    /// Model blocks that cannot be called for want of a key.
    pub missing: Vec<MissingKey>,
    /// What works, but is likely not meant.
    pub warnings: Vec<Warning>,
}

/// A block whose key is not set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingKey {
    pub llm: LlmId,
    pub variable: String,
}

impl fmt::Display for MissingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not set: models of `{}` cannot be called", self.variable, self.llm)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    #[error("llm.{0}.base_url: its key goes over plain http")]
    PlainHttp(LlmId),
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read the manifest {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the manifest {} is larger than 1 MiB", .0.display())]
    TooLarge(PathBuf),
    #[error("the manifest {} is not UTF-8 text", .0.display())]
    NotText(PathBuf),
    #[error("the configuration has {} problem(s)", .0.len())]
    Invalid(Vec<Finding>),
}

/// One thing that is wrong, and where.
#[derive(Debug)]
pub enum Finding {
    Manifest { file: PathBuf, problem: Problem },
    Variable { name: String, fault: VariableFault },
}

/// Why a variable of the environment cannot be used. Never holds its value.
#[derive(Debug, thiserror::Error)]
pub enum VariableFault {
    #[error("must be an address and a port, such as 127.0.0.1:7171")]
    Address,
    #[error(transparent)]
    Url(#[from] Fault),
    #[error(transparent)]
    Secret(#[from] SecretError),
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Manifest { file, problem } => write!(f, "{}:{problem}", file.display()),
            Self::Variable { name, fault } => write!(f, "{name}: {fault}"),
        }
    }
}

/// The process's own environment.
pub fn process_environment(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

impl Config {
    /// Finds and reads the manifest, then resolves.
    ///
    /// The manifest is the one that `--config` or `TURND_CONFIG` names, which must exist, else
    /// `turnd.toml` of the working folder if there is one.
    pub fn load(flags: &Flags, environment: &Lookup<'_>) -> Result<Self, ConfigError> {
        let named = flags.config.clone().or_else(|| path_variable(environment, "TURND_CONFIG"));
        let path = named.clone().unwrap_or_else(|| PathBuf::from(MANIFEST_PATH));
        let text = match read_manifest(&path) {
            Ok(text) => Some(text),
            Err(ConfigError::Read { source, .. })
                if named.is_none() && source.kind() == io::ErrorKind::NotFound =>
            {
                None
            }
            Err(error) => return Err(error),
        };
        Self::resolve(flags, environment, text.as_deref().map(|text| (path.as_path(), text)))
    }

    /// Puts together flags, environment, manifest and defaults, in this order of precedence.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`] with everything that is wrong.
    pub fn resolve(
        flags: &Flags,
        environment: &Lookup<'_>,
        manifest: Option<(&Path, &str)>,
    ) -> Result<Self, ConfigError> {
        let mut findings = Vec::new();
        let text = manifest.map_or("", |(_, text)| text);
        let parsed = Manifest::parse(text);
        let mut variables = Variables { environment, findings: &mut findings };
        let listen = variables.listen();
        let public_url = variables.public_url();
        let api_key = variables.secret("TURND_API_KEY", CHOSEN_KEY_CHARS_MIN);
        let client_token_key = variables.secret("TURND_CLIENT_TOKEN_KEY", KEY_BYTES_MIN);
        let client_token_key_previous =
            variables.secret("TURND_CLIENT_TOKEN_KEY_PREVIOUS", KEY_BYTES_MIN);
        let parsed = match parsed {
            Ok(parsed) => parsed,
            Err(problems) => {
                let file = manifest.map_or_else(|| Path::new(MANIFEST_PATH), |(file, _)| file);
                let in_file = |problem| Finding::Manifest { file: file.to_owned(), problem };
                findings.splice(..0, problems.into_iter().map(in_file));
                return Err(ConfigError::Invalid(findings));
            }
        };
        let data = data_folder(flags, environment, manifest.map(|(file, _)| file), &parsed);
        let (catalogue, missing) = variables.catalogue(&parsed);
        if !findings.is_empty() {
            return Err(ConfigError::Invalid(findings));
        }
        Ok(Self {
            manifest: manifest.map(|(file, _)| file.to_owned()),
            data,
            listen: flags.listen.or(listen).or(parsed.serve.listen).unwrap_or(LISTEN),
            public_url: public_url.or(parsed.serve.public_url),
            cors_origins: parsed.serve.cors_origins,
            shutdown: parsed.serve.shutdown,
            limits: parsed.limits,
            name: parsed.name,
            api_key,
            client_token_key,
            client_token_key_previous,
            missing,
            warnings: warnings(&catalogue),
            catalogue,
        })
    }
}

/// Reads variables and collects what is wrong with them.
struct Variables<'a> {
    environment: &'a Lookup<'a>,
    findings: &'a mut Vec<Finding>,
}

impl Variables<'_> {
    fn listen(&mut self) -> Option<SocketAddr> {
        let name = "TURND_LISTEN";
        let value = set(self.environment, name)?;
        match value.to_str().and_then(|text| text.parse().ok()) {
            Some(address) => Some(address),
            None => self.refuse(name, VariableFault::Address),
        }
    }

    fn public_url(&mut self) -> Option<String> {
        let name = "TURND_PUBLIC_URL";
        let value = set(self.environment, name)?;
        match http_url(&value.to_string_lossy()) {
            Ok(url) => Some(url),
            Err(fault) => self.refuse(name, VariableFault::Url(fault)),
        }
    }

    fn secret(&mut self, name: &str, chars_min: usize) -> Option<SecretString> {
        match Secrets::new(self.environment).read(name, chars_min) {
            Ok(secret) => secret,
            Err(error) => self.refuse(name, VariableFault::Secret(error)),
        }
    }

    /// The catalogue with the keys of its models, and the keys that are not set.
    fn catalogue(&mut self, manifest: &Manifest) -> (Catalogue, Vec<MissingKey>) {
        let mut catalogue = Catalogue { agents: manifest.agents.clone(), ..Catalogue::default() };
        let mut missing = Vec::new();
        for (id, llm) in &manifest.llms {
            let mut llm = llm.clone();
            if let Some(variable) = &llm.api_key_env {
                llm.api_key = self.secret(variable, 1);
            }
            if let Some(variable) = llm.missing_key() {
                missing.push(MissingKey { llm: id.clone(), variable: variable.to_owned() });
            }
            catalogue.llms.insert(id.clone(), llm.into());
        }
        (catalogue, missing)
    }

    fn refuse<T>(&mut self, name: &str, fault: VariableFault) -> Option<T> {
        // Two model blocks may share a variable: it is wrong once.
        let told = self.findings.iter().any(|finding| match finding {
            Finding::Variable { name: told, .. } => told == name,
            Finding::Manifest { .. } => false,
        });
        if !told {
            let name = name.to_owned();
            self.findings.push(Finding::Variable { name, fault });
        }
        None
    }
}

fn data_folder(
    flags: &Flags,
    environment: &Lookup<'_>,
    file: Option<&Path>,
    manifest: &Manifest,
) -> PathBuf {
    let beside_manifest = |data: &String| match file.and_then(Path::parent) {
        Some(folder) => folder.join(data),
        None => PathBuf::from(data),
    };
    flags
        .data
        .clone()
        .or_else(|| path_variable(environment, "TURND_DATA"))
        .or_else(|| manifest.data.as_ref().map(beside_manifest))
        .or_else(|| state_directory(environment))
        .unwrap_or_else(|| PathBuf::from(DATA_PATH))
}

/// The first folder of `$STATE_DIRECTORY`, which systemd sets.
fn state_directory(environment: &Lookup<'_>) -> Option<PathBuf> {
    let folders = set(environment, "STATE_DIRECTORY")?;
    std::env::split_paths(&folders).next()
}

fn path_variable(environment: &Lookup<'_>, name: &str) -> Option<PathBuf> {
    set(environment, name).map(PathBuf::from)
}

/// A variable that is set to something: an empty one counts as unset.
fn set(environment: &Lookup<'_>, name: &str) -> Option<OsString> {
    environment(name).filter(|value| !value.is_empty())
}

fn read_manifest(path: &Path) -> Result<String, ConfigError> {
    let unreadable = |source| ConfigError::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(MANIFEST_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MANIFEST_BYTES_MAX {
        return Err(ConfigError::TooLarge(path.to_owned()));
    }
    String::from_utf8(bytes).map_err(|_| ConfigError::NotText(path.to_owned()))
}

fn warnings(catalogue: &Catalogue) -> Vec<Warning> {
    let plain = catalogue
        .llms
        .iter()
        .filter(|(_, llm)| llm.api_key_env.is_some() && is_plain_http(&llm.base_url));
    plain.map(|(id, _)| Warning::PlainHttp(id.clone())).collect()
}

/// Whether a URL leads over an unencrypted way to another machine, as far as its text tells.
fn is_plain_http(url: &str) -> bool {
    let Ok(url) = url.parse::<http::Uri>() else {
        return false;
    };
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    let local =
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    url.scheme_str() == Some("http") && !local
}

#[cfg(test)]
mod tests;
