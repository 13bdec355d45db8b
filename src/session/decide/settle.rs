//! Answers of executors to calls (S36 to S38).

use super::{Decider, Reply};
use crate::ids::{CallId, MessageId, tool_call_id};
use crate::protocol::event::{CallErrored, LlmCallCompleted, Payload};
use crate::protocol::llm::LlmResponse;
use crate::session::call::{Call, backoff};
use crate::session::command::{CallFailure, ModelOutcome};
use crate::session::rejection::Rejection;

impl Decider<'_> {
    pub(super) fn settle_model_call(
        &mut self,
        id: &CallId,
        attempt: u32,
        outcome: ModelOutcome,
    ) -> Result<Reply, Rejection> {
        let call = self
            .session
            .turn
            .as_ref()
            .and_then(|turn| turn.calls.get(id))
            .filter(|call| call.is_running(attempt))
            .ok_or_else(|| Rejection::NotPending { seq: self.session.settled.get(id).copied() })?
            .clone();
        match outcome.result {
            Ok(response) => self.model_call_completed(&call, response),
            Err(failure) => self.model_call_failed(&call, failure, outcome.streamed),
        }
        Ok(Reply::Done)
    }

    fn model_call_completed(&mut self, call: &Call, mut response: LlmResponse) {
        let reply_id = self.free_reply_id(call);
        for (index, tool_call) in response.tool_calls.iter_mut().enumerate() {
            tool_call.id = tool_call_id(&call.reply_id(), index);
        }
        self.emit(Payload::LlmCallCompleted(LlmCallCompleted {
            id: call.request.id.clone(),
            attempt: call.attempt,
            response: response.clone(),
        }));
        self.accept_reply(reply_id, &call.request, response);
    }

    /// The id that the deltas of this attempt carry, unless a caller took it while the call ran.
    pub(super) fn free_reply_id(&self, call: &Call) -> MessageId {
        let reply_id = call.reply_id();
        if self.session.tree.contains(&reply_id) { self.mint_message_id(0) } else { reply_id }
    }

    /// Ends an attempt; the call waits for its next one, or the turn ends with it.
    pub(super) fn model_call_failed(&mut self, call: &Call, failure: CallFailure, streamed: bool) {
        let CallFailure { error, retryable, retry_after } = failure;
        let retry = &call.request.retry;
        let will_retry = retryable && call.attempt < retry.max_retries;
        let wait =
            backoff(retry, &call.request.id, call.attempt + 1).max(retry_after.unwrap_or_default());
        self.emit(Payload::LlmCallErrored(CallErrored {
            id: call.request.id.clone(),
            attempt: call.attempt,
            error: error.clone(),
            retryable,
            will_retry,
            retry_at: self.after(will_retry.then_some(wait)),
            streamed,
        }));
        if !will_retry {
            self.complete_turn(None, Some(error));
        }
    }
}
