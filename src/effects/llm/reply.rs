//! A model's answer while it comes in: each piece is shown as a delta and added to what will be
//! recorded, so that the two cannot differ.

use rust_decimal::Decimal;

use crate::effects::{Delta, classify};
use crate::ids::{MessageId, tool_call_id};
use crate::protocol::llm::{Cost, LlmResponse, Usage};
use crate::protocol::message::{FunctionCall, FunctionTag, ToolCall};
use crate::session::{CallFailure, ModelCall};

/// Most tool calls in one answer: each becomes events and work of its own.
pub const CALLS_MAX: usize = 128;
/// Longest name of a tool. No provider takes one near it, and each is repeated in deltas and events.
const NAME_BYTES_MAX: usize = 1024;
/// What a tool call takes of an answer's JSON beside its name and arguments.
const CALL_OVERHEAD_BYTES: usize = 96;

pub struct Reply<'a> {
    message: &'a MessageId,
    model: &'a str,
    deltas: &'a mut (dyn FnMut(Delta<'_>) + Send),
    bytes_max: usize,
    bytes: usize,
    content: String,
    calls: Vec<ToolCall>,
}

/// What a provider says once about an answer. A missing `model` is the one that was asked for.
#[derive(Debug, Default)]
pub struct Summary {
    pub model: Option<String>,
    pub finish_reason: String,
    pub usage: Option<Usage>,
    /// Only what the provider itself reported (S48).
    pub cost: Option<Decimal>,
}

impl<'a> Reply<'a> {
    pub fn new(
        call: &'a ModelCall,
        bytes_max: usize,
        deltas: &'a mut (dyn FnMut(Delta<'_>) + Send),
    ) -> Self {
        Self {
            message: &call.reply_id,
            model: &call.model,
            deltas,
            bytes_max,
            bytes: 0,
            content: String::new(),
            calls: Vec::new(),
        }
    }

    pub fn text(&mut self, piece: &str) -> Result<(), CallFailure> {
        if piece.is_empty() {
            return Ok(());
        }
        self.grow(piece.len())?;
        self.content.push_str(piece);
        (self.deltas)(Delta::Text(piece));
        Ok(())
    }

    /// Reasoning is shown and never recorded. It counts, or an answer of nothing else had no end.
    pub fn reasoning(&mut self, piece: &str) -> Result<(), CallFailure> {
        if piece.is_empty() {
            return Ok(());
        }
        self.grow(piece.len())?;
        (self.deltas)(Delta::Reasoning(piece));
        Ok(())
    }

    /// Opens the next tool call and returns its index. The name may come later.
    pub fn open_call(&mut self, name: &str) -> Result<usize, CallFailure> {
        let index = self.calls.len();
        if index == CALLS_MAX {
            return Err(classify::too_many_calls(CALLS_MAX));
        }
        check_name(name)?;
        self.grow(name.len() + CALL_OVERHEAD_BYTES)?;
        let id = tool_call_id(self.message, index);
        let shown = (!name.is_empty()).then_some(name);
        (self.deltas)(Delta::ToolCall { index, id: &id, name: shown, arguments: None });
        self.calls.push(ToolCall {
            id,
            kind: FunctionTag::Function,
            function: FunctionCall { name: name.to_owned(), arguments: String::new() },
        });
        Ok(index)
    }

    /// Names a call that was opened without a name; a second name is not heard.
    pub fn name_call(&mut self, index: usize, name: &str) -> Result<(), CallFailure> {
        if name.is_empty() {
            return Ok(());
        }
        check_name(name)?;
        self.grow(name.len())?;
        if let Some(call) = self.calls.get_mut(index)
            && call.function.name.is_empty()
        {
            name.clone_into(&mut call.function.name);
            let name = Some(name);
            (self.deltas)(Delta::ToolCall { index, id: &call.id, name, arguments: None });
        }
        Ok(())
    }

    pub fn arguments(&mut self, index: usize, piece: &str) -> Result<(), CallFailure> {
        if piece.is_empty() {
            return Ok(());
        }
        self.grow(piece.len())?;
        if let Some(call) = self.calls.get_mut(index) {
            call.function.arguments.push_str(piece);
            let arguments = Some(piece);
            (self.deltas)(Delta::ToolCall { index, id: &call.id, name: None, arguments });
        }
        Ok(())
    }

    /// True while nothing that will be recorded has come.
    pub fn is_empty(&self) -> bool {
        self.content.is_empty() && self.calls.is_empty()
    }

    pub fn complete(mut self, summary: Summary) -> Result<LlmResponse, CallFailure> {
        if self.calls.iter().any(|call| call.function.name.is_empty()) {
            return Err(classify::garbled("a tool call without a name"));
        }
        for index in 0..self.calls.len() {
            let blank = |call: &ToolCall| call.function.arguments.trim().is_empty();
            // Providers leave the arguments of a tool without parameters empty.
            if self.calls.get(index).is_some_and(blank) {
                self.arguments(index, "{}")?;
            }
        }
        // Several servers say `stop` after tool calls.
        let finish_reason = match summary.finish_reason.as_str() {
            "stop" if !self.calls.is_empty() => "tool_calls".to_owned(),
            _ => summary.finish_reason,
        };
        let response = LlmResponse {
            model: summary.model.unwrap_or_else(|| self.model.to_owned()),
            content: (!self.content.is_empty()).then_some(self.content),
            tool_calls: self.calls,
            finish_reason: Some(finish_reason),
            usage: summary.usage,
            cost: summary.cost.map(|cost| Cost(cost.normalize())),
        };
        // The count of `grow` leaves out what JSON escapes.
        let json_bytes = serde_json::to_vec(&response).map_or(usize::MAX, |json| json.len());
        if json_bytes > self.bytes_max {
            return Err(classify::answer_too_large(self.bytes_max));
        }
        if let Some(finish_reason) = &response.finish_reason {
            (self.deltas)(Delta::Finish(finish_reason));
        }
        Ok(response)
    }

    fn grow(&mut self, bytes: usize) -> Result<(), CallFailure> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.bytes_max {
            return Err(classify::answer_too_large(self.bytes_max));
        }
        Ok(())
    }
}

fn check_name(name: &str) -> Result<(), CallFailure> {
    if name.len() > NAME_BYTES_MAX {
        return Err(classify::name_too_long(NAME_BYTES_MAX));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
