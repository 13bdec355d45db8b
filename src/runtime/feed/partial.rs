//! The output so far of a model call that is being answered.

use bytes::Bytes;

use super::Frame;
use crate::effects::Delta;
use crate::ids::{MessageId, SessionId, TurnId};
use crate::protocol::llm::{StreamDelta, ToolCallDelta};
use crate::sse;

/// Everything that the deltas of one attempt have said.
#[derive(Debug)]
pub(super) struct Partial {
    pub(super) attempt: u32,
    reply_id: MessageId,
    turn_id: Option<TurnId>,
    seq: u64,
    text: String,
    reasoning: String,
    /// By the index of the call in the reply.
    tool_calls: Vec<ToolCallDelta>,
    finish_reason: Option<String>,
}

impl Partial {
    pub(super) fn new(attempt: u32, reply_id: MessageId, turn_id: Option<TurnId>) -> Self {
        Self {
            attempt,
            reply_id,
            turn_id,
            seq: 0,
            text: String::new(),
            reasoning: String::new(),
            tool_calls: Vec::new(),
            finish_reason: None,
        }
    }

    pub(super) fn turn_id(&self) -> Option<&TurnId> {
        self.turn_id.as_ref()
    }

    pub(super) fn has_output(&self) -> bool {
        self.seq > 0
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    pub(super) fn add(&mut self, delta: &Delta<'_>) {
        self.seq += 1;
        match delta {
            Delta::Text(text) => self.text.push_str(text),
            Delta::Reasoning(text) => self.reasoning.push_str(text),
            Delta::Finish(reason) => self.finish_reason = Some((*reason).to_owned()),
            Delta::ToolCall { id, name, arguments, .. } => {
                if !self.tool_calls.iter().any(|call| call.id == **id) {
                    let id = (*id).clone();
                    self.tool_calls.push(ToolCallDelta { id, name: None, arguments: None });
                }
                let call = self.tool_calls.iter_mut().find(|call| call.id == **id);
                let Some(call) = call else { return };
                append(&mut call.name, *name);
                append(&mut call.arguments, *arguments);
            }
        }
    }

    /// The frame of the delta that was added last.
    pub(super) fn frame(&self, session_id: &SessionId, delta: &Delta<'_>) -> Frame {
        let tool_call = match delta {
            Delta::ToolCall { id, name, arguments, .. } => Some(ToolCallDelta {
                id: (*id).clone(),
                name: name.map(str::to_owned),
                arguments: arguments.map(str::to_owned),
            }),
            Delta::Text(_) | Delta::Reasoning(_) | Delta::Finish(_) => None,
        };
        let (mut text, mut reasoning, mut finish_reason) = (None, None, None);
        match delta {
            Delta::Text(piece) => text = Some(*piece),
            Delta::Reasoning(piece) => reasoning = Some(*piece),
            Delta::Finish(reason) => finish_reason = Some(*reason),
            Delta::ToolCall { .. } => {}
        }
        let bytes = sse::delta_frame(&StreamDelta {
            session_id,
            call_id: &self.reply_id,
            seq: self.seq,
            text,
            reasoning,
            tool_calls: tool_call.as_slice(),
            finish_reason,
            snapshot: false,
        });
        Frame {
            bytes: Bytes::from(bytes),
            seq: None,
            turn_id: self.turn_id.clone(),
            ends_turn: false,
        }
    }

    /// One frame that stands for all deltas so far.
    pub(super) fn snapshot(&self, session_id: &SessionId) -> Vec<u8> {
        sse::delta_frame(&StreamDelta {
            session_id,
            call_id: &self.reply_id,
            seq: self.seq,
            text: Some(self.text.as_str()).filter(|text| !text.is_empty()),
            reasoning: Some(self.reasoning.as_str()).filter(|text| !text.is_empty()),
            tool_calls: &self.tool_calls,
            finish_reason: self.finish_reason.as_deref(),
            snapshot: true,
        })
    }
}

fn append(whole: &mut Option<String>, piece: Option<&str>) {
    if let Some(piece) = piece {
        whole.get_or_insert_default().push_str(piece);
    }
}
