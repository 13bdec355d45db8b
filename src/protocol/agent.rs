//! How an agent behaves: the configuration that a turn runs with, and retry policies.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::tool::AgentTool;
use crate::ids::LlmId;

/// What the engine's own decision needs to know of an agent (S29).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentConfig {
    pub llm: LlmId,
    pub model: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    pub stream: bool,
    /// For model calls; complete, every narrower setting applied (S37).
    pub retry: RetryPolicy,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Arc<AgentTool>>,
}

/// Attempts and waits of a call (S37).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// Deadline of each attempt; none waits forever.
    pub timeout_secs: Option<Seconds>,
    /// Attempts in all, at least 1.
    pub max_retries: u32,
    pub backoff_base_secs: Seconds,
    pub backoff_max_secs: Seconds,
}

impl RetryPolicy {
    /// Model calls: 180 s, 4 attempts, backoff base 2 up to 30 s (S37).
    pub const MODEL_CALL: Self = Self {
        timeout_secs: Some(Seconds::whole(180)),
        max_retries: 4,
        backoff_base_secs: Seconds::whole(2),
        backoff_max_secs: Seconds::whole(30),
    };

    /// A tool that a worker runs: 120 s, one attempt (S37).
    pub const WORKER_TOOL: Self = Self {
        timeout_secs: Some(Seconds::whole(120)),
        max_retries: 1,
        backoff_base_secs: Seconds::whole(2),
        backoff_max_secs: Seconds::whole(30),
    };
}

impl RetryPolicy {
    /// A tool that a client runs: one attempt, for as long as it takes (S37).
    pub const CLIENT_TOOL: Self = Self { timeout_secs: None, ..Self::WORKER_TOOL };
}

/// A time in seconds, kept to the millisecond; written as a JSON number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Seconds(u64);

impl Seconds {
    pub const fn whole(secs: u64) -> Self {
        Self(secs.saturating_mul(1000))
    }

    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    pub const fn millis(self) -> u64 {
        self.0
    }

    pub fn duration(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_multiple_of(1000) {
            serializer.serialize_u64(self.0 / 1000)
        } else {
            serializer.serialize_f64(Duration::from_millis(self.0).as_secs_f64())
        }
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let secs = f64::deserialize(deserializer)?;
        // To the nearest millisecond: the number may stand a little below the one that was written.
        let nanos = Duration::try_from_secs_f64(secs).map_err(serde::de::Error::custom)?;
        let millis = (nanos.as_nanos() + 500_000) / 1_000_000;
        Ok(Self(u64::try_from(millis).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests;
