//! Tool calls that a client handles: made, answered, recorded (S22, S23, S38).

use super::size::check_event;
use super::{Decider, Reply};
use crate::ids::{CallId, TurnId};
use crate::protocol::agent::RetryPolicy;
use crate::protocol::content::Content;
use crate::protocol::error::ErrorInfo;
use crate::protocol::event::{
    CallDispatched, CallErrored, Handler, Payload, ToolCallCompleted, ToolCallRequested,
};
use crate::protocol::input::{Conditions, Settlement, ToolFailure};
use crate::protocol::json::encoded_len;
use crate::protocol::message::{Message, Role, ToolCall};
use crate::protocol::tool_result::ToolResult;
use crate::session::command::Caller;
use crate::session::rejection::Rejection;

impl Decider<'_> {
    /// Asks the client for a call that the model made, or tells the model that it was not offered
    /// such a tool.
    pub(super) fn request_tool_call(&mut self, call: ToolCall, offered: &[String]) {
        let offered = offered.contains(&call.function.name);
        let (handler, retry) = if offered {
            (Handler::Client, RetryPolicy::CLIENT_TOOL)
        } else {
            (Handler::Worker, RetryPolicy::WORKER_TOOL)
        };
        let id = call.id;
        let name = call.function.name;
        self.emit(Payload::ToolCallRequested(ToolCallRequested {
            id: id.clone(),
            name: name.clone(),
            arguments: call.function.arguments,
            handler,
            retry,
        }));
        if offered {
            let dispatched = CallDispatched { id, attempt: 1, deadline: None };
            self.emit(Payload::ToolCallDispatched(dispatched));
        } else {
            let problem = format!("the tool `{name}` is not declared");
            self.fail_tool_call(id, 1, name, problem);
        }
    }

    /// A caller's result of a call. Only a client-handled one is anybody's to settle here.
    pub(super) fn settle_tool_call(
        &mut self,
        caller: &Caller,
        conditions: &Conditions,
        settlement: Settlement,
    ) -> Result<Reply, Rejection> {
        let Settlement { id, attempt, outcome } = settlement;
        let bytes = match &outcome {
            Ok(result) => encoded_len(result).max(encoded_len(&result.to_content())),
            Err(failure) => encoded_len(&failure.error),
        };
        check_event(bytes, self.context.bounds.event_bytes_max)?;
        self.session.check_reader(caller)?;
        let (turn_id, call) = self.check_settle(&id, attempt)?;
        self.check_conditions(conditions)?;
        let seq = self.next_seq();
        match outcome {
            Ok(result) => self.complete_tool_call(id, call.attempt, call.name, result, None, None),
            Err(ToolFailure { error, .. }) => {
                self.fail_tool_call(id, call.attempt, call.name, error);
            }
        }
        self.go_on_after_results();
        Ok(Reply::Accepted { turn_id, queued: false, seq })
    }

    fn check_settle(
        &self,
        id: &CallId,
        attempt: Option<u32>,
    ) -> Result<(TurnId, crate::session::call::ToolCall), Rejection> {
        let session = &*self.session;
        if let Some(seq) = session.settled.get(id) {
            return Err(Rejection::NotPending { seq: Some(*seq) });
        }
        let turn = session.turn.as_ref().ok_or(Rejection::UnknownCall)?;
        let Some(call) = turn.client_call(id) else {
            let open = turn.calls.contains_key(id) || turn.tools.iter().any(|tool| tool.id == *id);
            return Err(if open { Rejection::NotClientHandled } else { Rejection::UnknownCall });
        };
        if attempt.is_some_and(|attempt| attempt != call.attempt) {
            return Err(Rejection::NotPending { seq: None });
        }
        Ok((turn.id.clone(), call.clone()))
    }

    /// The message of a client that answers a call (S23).
    pub(super) fn take_answer(&mut self, id: CallId, message: Message, run_id: Option<TurnId>) {
        let call = self.session.turn.as_ref().and_then(|turn| turn.client_call(&id));
        let Some((attempt, name)) = call.map(|call| (call.attempt, call.name.clone())) else {
            return;
        };
        let result = ToolResult::of_message(message.content.as_ref());
        self.complete_tool_call(id, attempt, name, result, run_id, Some(message));
    }

    /// Records a result, and the message that the model reads: the client's own, where it sent one.
    fn complete_tool_call(
        &mut self,
        id: CallId,
        attempt: u32,
        name: String,
        result: ToolResult,
        run_id: Option<TurnId>,
        message: Option<Message>,
    ) {
        let content = match &message {
            Some(message) => {
                message.content.clone().unwrap_or_else(|| Content::Text(String::new()))
            }
            None => result.to_content(),
        };
        self.emit(Payload::ToolCallCompleted(ToolCallCompleted {
            id: id.clone(),
            attempt,
            name: name.clone(),
            result,
            run_id,
        }));
        self.record_result(id, name, content, message);
    }

    fn fail_tool_call(&mut self, id: CallId, attempt: u32, name: String, problem: String) {
        self.emit(Payload::ToolCallErrored(CallErrored {
            id: id.clone(),
            attempt,
            error: ErrorInfo::new(problem.clone(), None),
            retryable: false,
            will_retry: false,
            retry_at: None,
            streamed: false,
        }));
        self.record_result(id, name, Content::Text(problem), None);
    }

    /// The tool message of a call, under the head.
    pub(super) fn record_result(
        &mut self,
        id: CallId,
        name: String,
        content: Content,
        message: Option<Message>,
    ) {
        let message_id = message.and_then(|message| message.id);
        let message_id = message_id.filter(|id| !self.session.tree.contains(id));
        self.record(Message {
            id: Some(message_id.unwrap_or_else(|| self.mint_message_id(0))),
            role: Role::Tool,
            content: Some(content),
            tool_calls: Vec::new(),
            tool_call_id: Some(id),
            name: Some(name),
        });
    }

    /// The model goes on once no call of its batch is open and nothing pauses the branch.
    pub(super) fn go_on_after_results(&mut self) {
        let waits = self.session.turn.as_ref().is_none_or(|turn| !turn.tools.is_empty());
        if !waits && self.session.pause().is_none() {
            self.request_model_call(None);
        }
    }
}
