//! Bytes to commands that are no submits.

use std::time::Duration;

use super::super::kit::*;
use super::super::model::Model;
use super::draw::Draw;
use crate::ids::{CallId, Seq, derive_interrupt_id};
use crate::protocol::event::ResumeStatus;
use crate::protocol::input::{
    CancelRequest, Conditions, InterruptRequest, Resume, Settlement, ToolFailure,
};
use crate::protocol::json::Json;
use crate::protocol::tool_result::ToolResult;
use crate::session::{Caller, Command, ModelOutcome};

impl Draw<'_> {
    /// Mostly one who may.
    pub(super) fn caller(&mut self) -> Caller {
        match self.below(16) {
            0..9 => zoe(),
            9..12 => Caller::Machine,
            12..15 => Caller::System,
            _ => frontend_of("eve"),
        }
    }

    /// Mostly none; right and wrong ones otherwise.
    pub(super) fn conditions(&mut self, model: &Model) -> Conditions {
        let mut conditions = Conditions::default();
        match self.below(24) {
            18 | 19 => conditions.if_head = model.path().last().and_then(|head| head.id.clone()),
            20 => conditions.if_head = Some(message_id("m1")),
            21 => conditions.if_seq = Some(Seq(model.seq())),
            22 => conditions.if_seq = Some(Seq(u64::from(self.byte()))),
            23 => {
                conditions.if_head = model.path().last().and_then(|head| head.id.clone());
                conditions.if_seq = Some(Seq(model.seq()));
            }
            _ => {}
        }
        conditions
    }

    pub(super) fn interrupt(&mut self, model: &Model) -> Command {
        let known = model.open_interrupts().into_iter().chain(model.answered_interrupts());
        let known: Vec<_> = known.collect();
        let interrupt_id = match self.below(8) {
            0..3 => None,
            3..5 => Some(interrupt_id(self.of(&["i0", "i1", "i2", "i3", "i4", "i5"]))),
            5 => {
                let ahead = Seq(model.seq() + u64::from(self.below(8)));
                Some(derive_interrupt_id(&key(), ahead, 0, model.last_at()))
            }
            _ => self.recent(&known),
        };
        let request = InterruptRequest {
            interrupt_id,
            reason: self.of(&["wait", "approve?"]).to_owned(),
            payload: self.of(&[None, Json::parse(r#"{"amount":1}"#)]),
        };
        Command::Interrupt { caller: self.caller(), request }
    }

    pub(super) fn resume(&mut self, model: &Model) -> Command {
        let id = match self.below(16) {
            0..10 => self.recent(&model.open_interrupts()),
            10..13 => model.head_interrupt(),
            13 | 14 => self.recent(&model.answered_interrupts()),
            _ => None,
        };
        let resume = Resume {
            interrupt_id: id.unwrap_or_else(|| interrupt_id("nobody-raised-it")),
            payload: self.of(&[None, None, Json::parse(r#""go on""#)]),
            status: self.of(&[None, None, None, Some(ResumeStatus::Cancelled)]),
        };
        let turn_id = self.turn(model);
        let conditions = self.conditions(model);
        Command::Resume { caller: self.caller(), conditions, turn_id, resume }
    }

    pub(super) fn cancel(&mut self, model: &Model) -> Command {
        let known = model.turn_ids();
        let turn_id = match self.below(8) {
            0..3 => None,
            3..5 => self.recent(&known),
            5 | 6 => model.unfinished().last().map(|id| (*id).clone()),
            _ => Some(turn_id("never-was")),
        };
        let reason = self.of(&[None, Some("enough".to_owned())]);
        let request = CancelRequest { turn_id, reason, session: self.one_in(12) };
        Command::Cancel { caller: self.caller(), request }
    }

    pub(super) fn update(&mut self) -> Command {
        let title = self.of(&[None, Some("a title"), Some("hello"), Some("")]);
        let metadata = self.of(&[None, Some(r#"{"a":"b"}"#), Some("{}")]);
        update_by(self.caller(), title, metadata)
    }

    /// A call that is open, has ended, never was, or is of the other kind.
    fn call(&mut self, model: &Model, mostly: &[CallId]) -> CallId {
        let other = model.open_model_call().map(|(id, _)| id);
        let id = match self.below(16) {
            0..11 => self.recent(mostly),
            11 => other,
            12 => self.recent(&model.open_tools()),
            13 | 14 => self.recent(&model.ended_calls()),
            _ => None,
        };
        id.unwrap_or_else(|| call_id("unknown"))
    }

    pub(super) fn settle_model(&mut self, model: &Model) -> Command {
        let (open, latest) = model.open_model_call().unzip();
        let id = self.call(model, open.as_slice());
        let attempt = latest.unwrap_or(1);
        let attempt = match self.below(8) {
            0 => attempt + 1,
            1 => attempt.saturating_sub(1),
            _ => attempt,
        };
        let outcome = self.outcome(model);
        settle(id, attempt, outcome)
    }

    pub(super) fn settle_tool(&mut self, model: &Model) -> Command {
        let id = self.call(model, &model.open_tools());
        let attempt = self.of(&[None, None, Some(1), Some(1), Some(2), Some(0)]);
        let outcome = self.tool_outcome();
        let settlement = Settlement { id, attempt, outcome };
        let conditions = self.conditions(model);
        Command::SettleToolCall { caller: self.caller(), conditions, settlement }
    }

    pub(super) fn tool_outcome(&mut self) -> Result<ToolResult, ToolFailure> {
        let mut result = ToolResult::text(self.of(&["sunny", "", "a\nb"]));
        match self.below(8) {
            0..4 => Ok(result),
            4 => Ok(ToolResult::default()),
            5 => {
                result.is_error = true;
                result.structured_content = Json::parse(r#"{"deg":20}"#);
                Ok(result)
            }
            6 => Err(ToolFailure { error: "no network".to_owned(), retryable: true }),
            _ => Err(ToolFailure { error: "denied".to_owned(), retryable: false }),
        }
    }

    /// Names of tools that a model calls: those that it is offered, and others.
    fn tools(&mut self, model: &Model) -> Vec<String> {
        let mut names = model.offered_tools();
        names.push("weather".to_owned());
        let count = self.of(&[1, 1, 2, 2, 3]);
        (0..count)
            .map(|index| names[(index + usize::from(self.below(2))) % names.len()].clone())
            .collect()
    }

    pub(super) fn outcome(&mut self, model: &Model) -> ModelOutcome {
        let streamed = self.one_in(2);
        let wait = Duration::from_secs(self.of(&[0, 1, 10, 3600]));
        let mut outcome = match self.below(16) {
            0..6 => answer(self.of(&["hi", "", "\r\n\0"])),
            6 => tool_calls(&[]),
            7..13 => {
                let names = self.tools(model);
                let arguments = self.of(&["{}", "{oops", ""]);
                let calls: Vec<_> = names.iter().map(|name| (name.as_str(), arguments)).collect();
                tool_calls(&calls)
            }
            13 => failed(overloaded(), streamed),
            14 => failed(overloaded_for(wait), streamed),
            _ => failed(refused(), streamed),
        };
        if let Ok(response) = &mut outcome.result
            && self.one_in(4)
        {
            response.cost = Some(cost(self.of(&["0.1", "0.020", "3", "0.000001"])));
            response.usage = Some(usage(u64::from(self.byte()), 3));
        }
        outcome.streamed = streamed;
        outcome
    }
}
