//! Agents and model blocks as the manifest declares them, ready for use.

use std::collections::BTreeMap;
use std::sync::Arc;

use rust_decimal::Decimal;
use secrecy::SecretString;

use crate::ids::{AgentId, LlmId};
use crate::protocol::agent::{AgentConfig, RetryPolicy};

/// The built-in model, its block, and the agent that exists when none is declared (S49a).
pub const DEMO: &str = "demo";

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

impl Agent {
    /// The agent of an empty manifest.
    pub fn demo() -> Self {
        let config = AgentConfig {
            llm: LlmId::parse(DEMO).expect("`demo` is an id"),
            model: DEMO.to_owned(),
            system: None,
            stream: true,
            retry: RetryPolicy::MODEL_CALL,
            tools: Vec::new(),
        };
        Self { config: Arc::new(config), description: None }
    }
}

/// A model block: where calls go and what they cost.
#[derive(Debug, Clone)]
pub struct Llm {
    pub kind: LlmKind,
    /// Without a trailing slash. Empty for the built-in model.
    pub base_url: String,
    pub api_key: Option<SecretString>,
    /// The variable that `api_key` is read from, for messages about a missing key. A block without
    /// one calls its server without a key.
    pub api_key_env: Option<String>,
    /// By model name (S48).
    pub prices: BTreeMap<String, Price>,
}

impl Llm {
    pub fn demo() -> Self {
        Self {
            kind: LlmKind::Demo,
            base_url: String::new(),
            api_key: None,
            api_key_env: None,
            prices: BTreeMap::new(),
        }
    }

    /// The variable to set before this model can be called, if one is missing.
    pub fn missing_key(&self) -> Option<&str> {
        self.api_key_env.as_deref().filter(|_| self.api_key.is_none())
    }
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

impl LlmKind {
    /// As the manifest spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Demo => DEMO,
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
        }
    }
}
