//! Agents and model blocks as the manifest declares them, ready for use.

use std::collections::BTreeMap;
use std::sync::Arc;

use rust_decimal::Decimal;
use secrecy::SecretString;

use crate::ids::{AgentId, LlmId};
use crate::protocol::agent::AgentConfig;

/// Everything declared, by id. Never empty of agents: without any, `demo` is there (S49a).
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    pub agents: BTreeMap<AgentId, Agent>,
    pub llms: BTreeMap<LlmId, Arc<Llm>>,
}

#[derive(Debug, Clone)]
pub struct Agent {
    pub config: Arc<AgentConfig>,
    pub description: Option<String>,
}

/// A model block: where calls go and what they cost.
#[derive(Debug, Clone)]
pub struct Llm {
    pub kind: LlmKind,
    /// Without a trailing slash.
    pub base_url: String,
    pub api_key: Option<SecretString>,
    /// The variable that `api_key` is read from, for messages about a missing key.
    pub api_key_env: Option<String>,
    /// By model name (S48).
    pub prices: BTreeMap<String, Price>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LlmKind {
    Demo,
    OpenAi,
    Anthropic,
}

/// Dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    pub input: Decimal,
    pub output: Decimal,
    pub cached_input: Option<Decimal>,
}
