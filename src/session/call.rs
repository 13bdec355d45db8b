//! Calls that are not settled.

use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::ids::{CallId, MessageId};
use crate::protocol::agent::RetryPolicy;
use crate::protocol::event::{Handler, LlmCallRequested};
use crate::time::Timestamp;

/// A tool call that somebody is at work on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ToolCall {
    pub(super) id: CallId,
    pub(super) name: String,
    pub(super) handler: Handler,
    /// The latest attempt that was dispatched; 0 before the first.
    pub(super) attempt: u32,
}

/// A model call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) request: LlmCallRequested,
    /// The latest attempt that was dispatched; 0 before the first.
    pub(super) attempt: u32,
    pub(super) phase: Phase,
    /// An earlier attempt has shown output (S50).
    pub(super) streamed_before: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Requested,
    Running { deadline: Option<Timestamp> },
    Waiting { retry_at: Timestamp },
}

impl Call {
    pub(super) fn new(request: LlmCallRequested) -> Self {
        Self { request, attempt: 0, phase: Phase::Requested, streamed_before: false }
    }

    pub(super) fn is_running(&self, attempt: u32) -> bool {
        self.attempt == attempt && matches!(self.phase, Phase::Running { .. })
    }

    /// When time alone moves this call on.
    pub(super) fn wake_at(&self) -> Option<Timestamp> {
        match self.phase {
            Phase::Requested => None,
            Phase::Running { deadline } => deadline,
            Phase::Waiting { retry_at } => Some(retry_at),
        }
    }

    pub(super) fn reply_id(&self) -> MessageId {
        self.request.id.reply_id(self.attempt, self.streamed_before)
    }
}

/// Waits before attempt `attempt` (2 or more): `min(base^(n-1), max)` seconds and up to a fifth more
/// (S37). The jitter derives from the call, so that a replay waits as long.
pub(super) fn backoff(policy: &RetryPolicy, id: &CallId, attempt: u32) -> Duration {
    let base = policy.backoff_base_secs.duration().as_secs_f64();
    let longest = policy.backoff_max_secs.duration().as_secs_f64();
    let exponent = i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX);
    let wait = base.powi(exponent).min(longest);
    Duration::try_from_secs_f64(wait * (1.0 + 0.2 * jitter(id, attempt))).unwrap_or_default()
}

/// From 0 to 1, evenly spread over calls and attempts.
fn jitter(id: &CallId, attempt: u32) -> f64 {
    let digest =
        Sha256::new().chain_update(id.as_str()).chain_update(attempt.to_be_bytes()).finalize();
    digest.first().map_or(0.0, |byte| f64::from(*byte) / 255.0)
}
