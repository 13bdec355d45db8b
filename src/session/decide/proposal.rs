//! The engine's own decision for an agent without a worker: its proposal, taken in the same commit
//! (S29).

use std::sync::Arc;

use super::Decider;
use crate::ids::derive_call_id;
use crate::ids::{CallId, MessageId};
use crate::protocol::agent::{RetryPolicy, Seconds};
use crate::protocol::content::Content;
use crate::protocol::error::ErrorInfo;
use crate::protocol::event::{CallDispatched, Handler, LlmCallRequested, MessageNew, Payload};
use crate::protocol::json::Json;
use crate::protocol::llm::LlmResponse;
use crate::protocol::message::{Message, Role};
use crate::session::effect::Effect;

/// Most model calls in one turn: a model that answers every tool result with another call would
/// otherwise spend without end.
pub(crate) const MODEL_CALLS_MAX: u32 = 500;

impl Decider<'_> {
    /// Prompts the model from the head. `stream` is the submit's wish; later calls of the turn do as
    /// its first.
    pub(super) fn request_model_call(&mut self, stream: Option<bool>) {
        let (Some(turn), Some(head_id)) = (&self.session.turn, self.session.tree.head().cloned())
        else {
            return self.complete_turn(None, None);
        };
        if turn.model_calls >= MODEL_CALLS_MAX {
            let message = format!("the turn made {MODEL_CALLS_MAX} model calls without an answer");
            return self.complete_turn(None, Some(ErrorInfo::new(message, None)));
        }
        let Some(agent) = self.agent() else {
            let message = "the agent of this session is no longer declared";
            return self.complete_turn(None, Some(ErrorInfo::new(message, None)));
        };
        let retry = agent.retry;
        let request = LlmCallRequested {
            id: derive_call_id(&self.session.key, self.next_seq(), 0, self.now),
            llm: agent.llm.clone(),
            model: agent.model.clone(),
            handler: Handler::Server,
            stream: stream.or(turn.stream).unwrap_or(agent.stream),
            head_id,
            tools: turn.offered(agent).map(|tool| tool.name.clone()).collect(),
            retry,
        };
        let id = request.id.clone();
        self.emit(Payload::LlmCallRequested(request));
        self.dispatch_model_call(id, 1, &retry);
    }

    pub(super) fn dispatch_model_call(&mut self, id: CallId, attempt: u32, retry: &RetryPolicy) {
        let deadline = self.after(retry.timeout_secs.map(Seconds::duration));
        let dispatched = CallDispatched { id: id.clone(), attempt, deadline };
        self.emit(Payload::LlmCallDispatched(dispatched));
        self.effects.push(Effect::CallModel { id, attempt });
    }

    /// Records the reply to `request` and acts on it: its tool calls, or the end of the turn.
    pub(super) fn accept_reply(
        &mut self,
        reply_id: MessageId,
        request: &LlmCallRequested,
        response: LlmResponse,
    ) {
        let data = response.content.as_deref().and_then(Json::of);
        let message = Message {
            id: Some(reply_id),
            role: Role::Assistant,
            content: response.content.map(Content::Text),
            tool_calls: response.tool_calls.clone(),
            tool_call_id: None,
            name: None,
        };
        let message = Arc::new(message);
        let parent_id = Some(request.head_id.clone());
        self.emit(Payload::MessageNew(MessageNew { message, parent_id }));
        if response.tool_calls.is_empty() {
            return self.complete_turn(data, None);
        }
        for call in response.tool_calls {
            self.request_tool_call(call, &request.tools);
        }
        self.go_on_after_results();
    }
}
