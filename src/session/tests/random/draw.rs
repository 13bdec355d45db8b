//! Bytes to commands: small sets of names, so that they meet, and answers that are mostly in time.

use std::time::Duration;

use super::super::kit::*;
use crate::ids::{CallId, derive_call_id};
use crate::protocol::agent::AgentConfig;
use crate::protocol::message::Role;
use crate::session::{Command, ModelOutcome};
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
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.bytes.split_first() else {
            return 0;
        };
        self.bytes = rest;
        *first
    }

    pub(super) fn below(&mut self, end: u8) -> u8 {
        self.byte() % end
    }

    fn one_in(&mut self, n: u8) -> bool {
        self.below(n) == n - 1
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.byte()) % choices.len()]
    }

    /// When the next step happens: mostly a little later, sometimes at or about the timer, sometimes
    /// on a clock that jumped.
    pub(super) fn time(&mut self, conversation: &Conversation) -> Timestamp {
        let now = conversation.now;
        let timer = conversation.session.wake_at().unwrap_or(now);
        match self.below(64) {
            0..40 => now.plus(Duration::from_millis(u64::from(self.byte()))),
            40..50 => timer,
            50..54 => Timestamp::from_millis(timer.millis() - 1),
            54..59 => now.plus(Duration::from_secs(u64::from(self.byte()))),
            59..63 => Timestamp::from_millis(now.millis() - 1000 * i64::from(self.byte())),
            _ => Timestamp::from_millis(self.of(&[0, now.millis() + 1_000_000_000, i64::MAX])),
        }
    }

    pub(super) fn agent(&mut self) -> AgentConfig {
        let timeout = self.of(&[None, Some(1), Some(180)]);
        let attempts = self.of(&[1, 2, 4]);
        let (base, longest) = self.of(&[(2, 30), (0, 5), (3, 1000), (1, 1)]);
        AgentConfig {
            stream: self.one_in(2),
            model: self.of(&["demo-1", "demo-2"]).to_owned(),
            retry: retry(timeout, attempts, base, longest),
            ..agent()
        }
    }

    pub(super) fn submit(&mut self, conversation: &Conversation) -> Ask {
        let user = Role::User;
        let mut ask = ask(self.of(&["hello", "", "two\nlines", "\u{2028}\"\\"]));
        ask = ask.role(self.of(&[user, user, user, Role::System, Role::Assistant, Role::Tool]));
        if self.one_in(2) {
            ask = ask.turn(self.of(&["t0", "t1", "t2", "t3", "t4", "t5"]));
        }
        if self.one_in(3) {
            ask = ask.message(&self.message(conversation));
        }
        if self.one_in(2) {
            ask = ask.queued();
        }
        if self.one_in(3) {
            ask = ask.queue_of(self.of(&[0, 1, 3]));
        }
        if self.one_in(2) {
            ask = ask.by_a_machine();
        }
        if self.one_in(3) {
            ask = ask.streaming(self.one_in(2));
        }
        match self.below(16) {
            14 => ask.owner("eve"),
            15 => ask.agent("other"),
            _ => ask,
        }
    }

    /// An id that a caller may choose: its own, or one it has seen or guessed.
    fn message(&mut self, conversation: &Conversation) -> String {
        let open = conversation.session.outstanding();
        let seen = conversation.log.iter().rev().find_map(call_requested);
        match (self.below(8), seen) {
            (4, Some(call)) => call.id.to_string(),
            (5, Some(call)) => format!("{}~{}", call.id, open.len() + 1),
            (6, _) => {
                let ahead = u64::from(self.below(5));
                let seq = crate::ids::Seq(conversation.session.seq().0 + ahead);
                derive_call_id(&key(), seq, 0, conversation.now).to_string()
            }
            (own, _) => format!("m{own}"),
        }
    }

    pub(super) fn settle(&mut self, conversation: &Conversation) -> Command {
        let requests = conversation.log.iter().rev().filter_map(call_requested);
        let (id, attempt) = match self.below(16) {
            // An earlier call, or one that never was.
            14 => (requests.map(|request| request.id.clone()).nth(1), 1),
            15 => (None, 1),
            which => {
                let id = requests.map(|request| request.id.clone()).next();
                let dispatched = conversation.log.iter().rev().find_map(call_dispatched);
                let attempt = dispatched.map_or(1, |dispatched| dispatched.attempt);
                let attempt = match which {
                    12 => attempt + 1,
                    13 => attempt - 1,
                    _ => attempt,
                };
                (id, attempt)
            }
        };
        let id = id.unwrap_or_else(|| CallId::parse("unknown").unwrap());
        let outcome = self.outcome();
        settle(id, attempt, outcome)
    }

    pub(super) fn outcome(&mut self) -> ModelOutcome {
        let streamed = self.one_in(2);
        let wait = Duration::from_secs(self.of(&[0, 1, 10, 3600]));
        let mut outcome = match self.below(10) {
            0..3 => answer(self.of(&["hi", "", "\r\n\0"])),
            3 => tool_calls(&[]),
            4..6 => tool_calls(&[("weather", "{\"in\":\"Oslo\"}")]),
            6 => tool_calls(&[("a", ""), ("b", "{oops")]),
            7 => failed(overloaded(), streamed),
            8 => failed(overloaded_for(wait), streamed),
            _ => failed(refused(), streamed),
        };
        if let Ok(response) = &mut outcome.result
            && self.one_in(2)
        {
            response.cost = Some(cost(self.of(&["0.1", "0.020", "3", "0.000001"])));
            response.usage = Some(usage(u64::from(self.byte()), 3));
        }
        outcome.streamed = streamed;
        outcome
    }

    pub(super) fn wake(&mut self, conversation: &Conversation) -> Command {
        let known = conversation.log.iter().rev().find_map(call_requested);
        let known = known.filter(|_| self.one_in(2));
        let streamed = known.map(|request| request.id.clone());
        Command::Wake { streamed: streamed.into_iter().collect() }
    }
}
