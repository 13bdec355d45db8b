//! Bytes to choices.

use std::time::Duration;

use super::super::kit::*;
use crate::protocol::agent::AgentConfig;
use crate::time::Timestamp;

pub(super) struct Draw<'a> {
    bytes: &'a [u8],
}

impl<'a> Draw<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The next byte; 0 past the end.
    pub(super) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.bytes.split_first() else {
            return 0;
        };
        self.bytes = rest;
        *first
    }

    pub(super) fn below(&mut self, end: u8) -> u8 {
        self.byte() % end
    }

    pub(super) fn one_in(&mut self, n: u8) -> bool {
        self.below(n) == n - 1
    }

    pub(super) fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.byte()) % choices.len()].clone()
    }

    /// One of `choices`, mostly of the last ones; none where there are none.
    pub(super) fn recent<T: Clone>(&mut self, choices: &[T]) -> Option<T> {
        let back = usize::from(self.below(16)) * usize::from(self.below(4));
        choices.iter().rev().nth(back % choices.len().max(1)).cloned()
    }

    /// When the next step happens: mostly a little later, sometimes at or about the timer, sometimes
    /// on a clock that jumped.
    pub(super) fn time(&mut self, conversation: &Conversation) -> Timestamp {
        let now = conversation.now;
        let timer = conversation.session.wake_at().unwrap_or(now);
        match self.below(128) {
            0..100 => now.plus(Duration::from_millis(u64::from(self.byte()))),
            100..110 => timer,
            110..114 => Timestamp::from_millis(timer.millis() - 1),
            114..120 => now.plus(Duration::from_secs(u64::from(self.byte()))),
            120..127 => Timestamp::from_millis(now.millis() - 1000 * i64::from(self.byte())),
            _ => Timestamp::from_millis(self.of(&[0, now.millis() + 1_000_000_000, i64::MAX])),
        }
    }

    pub(super) fn agent(&mut self) -> AgentConfig {
        let timeout = self.of(&[None, Some(1), Some(180)]);
        let attempts = self.of(&[1, 2, 4]);
        let (base, longest) = self.of(&[(2, 30), (0, 5), (3, 1000), (1, 1)]);
        let tools = self.of(&[&[][..], &["look"], &["look", "ask"]]);
        AgentConfig {
            stream: self.one_in(2),
            model: self.of(&["demo-1", "demo-2"]).to_owned(),
            system: self.of(&[None, Some("be brief".to_owned())]),
            retry: retry(timeout, attempts, base, longest),
            tools: tools.iter().map(|name| client_tool(name)).collect(),
            ..agent()
        }
    }
}
