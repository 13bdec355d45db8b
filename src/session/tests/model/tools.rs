//! Tool calls: made by a model, answered by clients (S23, S38, S40, S60).

use super::Forecast;
use crate::ids::{CallId, MessageId, Seq, TurnId};
use crate::protocol::agent::RetryPolicy;
use crate::protocol::content::Content;
use crate::protocol::error::ErrorInfo;
use crate::protocol::event::{
    CallDispatched, CallErrored, Handler, Payload, ToolCallCompleted, ToolCallRequested,
};
use crate::protocol::input::{Conditions, Settlement};
use crate::protocol::message::{self, Message, Role};
use crate::protocol::tool_result::ToolResult;
use crate::session::{Caller, Rejection, Reply};

/// An open call that a client handles.
#[derive(Debug, Clone)]
pub(super) struct ToolCall {
    pub(super) id: CallId,
    pub(super) name: String,
    pub(super) attempt: u32,
}

impl ToolCall {
    /// What the model reads of it.
    fn message(&self, id: Option<MessageId>, content: Option<Content>) -> Message {
        Message {
            id,
            role: Role::Tool,
            content,
            tool_calls: vec![],
            tool_call_id: Some(self.id.clone()),
            name: Some(self.name.clone()),
        }
    }
}

impl Forecast<'_> {
    /// Only a tool that the model was offered can be called.
    pub(super) fn tool_is_called(&mut self, asked: message::ToolCall, offered: &[String]) {
        let declared = offered.contains(&asked.function.name);
        let (handler, retry) = if declared {
            (Handler::Client, RetryPolicy::CLIENT_TOOL)
        } else {
            (Handler::Worker, RetryPolicy::WORKER_TOOL)
        };
        let tool = ToolCall { id: asked.id, name: asked.function.name, attempt: 1 };
        self.emit(Payload::ToolCallRequested(ToolCallRequested {
            id: tool.id.clone(),
            name: tool.name.clone(),
            arguments: asked.function.arguments,
            handler,
            retry,
        }));
        if declared {
            let (id, attempt) = (tool.id.clone(), tool.attempt);
            let deadline = None;
            self.emit(Payload::ToolCallDispatched(CallDispatched { id, attempt, deadline }));
            self.turn().tools.push(tool);
        } else {
            let text = format!("the tool `{}` is not declared", tool.name);
            self.tool_failed(&tool, text);
        }
    }

    fn tool_failed(&mut self, tool: &ToolCall, text: String) {
        let seq = self.emit(Payload::ToolCallErrored(CallErrored {
            id: tool.id.clone(),
            attempt: tool.attempt,
            error: ErrorInfo::new(text.clone(), None),
            retryable: false,
            will_retry: false,
            retry_at: None,
            streamed: false,
        }));
        self.tool_ended(tool, seq);
        self.hear_below_the_head(tool.message(None, Some(Content::Text(text))));
    }

    fn tool_ended(&mut self, tool: &ToolCall, seq: Seq) {
        self.turn().tools.retain(|open| open.id != tool.id);
        self.model.ended.insert(tool.id.clone(), seq);
    }

    fn tool_completed(&mut self, tool: &ToolCall, result: ToolResult, run_id: Option<TurnId>) {
        self.model.keep(result.blobs());
        let seq = self.emit(Payload::ToolCallCompleted(ToolCallCompleted {
            id: tool.id.clone(),
            attempt: tool.attempt,
            name: tool.name.clone(),
            result,
            run_id,
        }));
        self.tool_ended(tool, seq);
    }

    pub(super) fn open_tool(&self, id: &CallId) -> Option<ToolCall> {
        let turn = self.model.running.as_ref()?;
        turn.tools.iter().find(|tool| tool.id == *id).cloned()
    }

    pub(super) fn settle_tool(
        &mut self,
        caller: &Caller,
        conditions: &Conditions,
        settlement: Settlement,
    ) -> Result<Reply, Rejection> {
        self.model.check_reader(caller)?;
        let Settlement { id, attempt, outcome } = settlement;
        if let Some(seq) = self.model.ended.get(&id) {
            return Err(Rejection::NotPending { seq: Some(*seq) });
        }
        let Some(tool) = self.open_tool(&id) else {
            let call = self.model.running.as_ref().and_then(|turn| turn.call.as_ref());
            let is_model_call = call.is_some_and(|call| call.request.id == id);
            return Err(if is_model_call {
                Rejection::NotClientHandled
            } else {
                Rejection::UnknownCall
            });
        };
        if attempt.is_some_and(|attempt| attempt != tool.attempt) {
            return Err(Rejection::NotPending { seq: None });
        }
        self.model.check_conditions(conditions)?;
        let turn_id = self.turn().id.clone();
        let seq = Seq(self.model.seq + 1);
        match outcome {
            Ok(result) => {
                let content = result.to_content();
                self.tool_completed(&tool, result, None);
                self.hear_below_the_head(tool.message(None, Some(content)));
            }
            Err(failure) => self.tool_failed(&tool, failure.error),
        }
        self.go_on_unless_paused();
        Ok(Reply::Accepted { turn_id, queued: false, seq })
    }

    /// A tool message that answers an open call.
    pub(super) fn tool_is_answered(&mut self, mut message: Message, run_id: Option<TurnId>) {
        let call = message.tool_call_id.as_ref().and_then(|id| self.open_tool(id));
        let tool = call.expect("it answers an open call");
        let result = ToolResult::of_message(message.content.as_ref());
        self.tool_completed(&tool, result, run_id);
        if self.model.tree.knows(&message) {
            message.id = None;
        }
        let content = message.content.unwrap_or_else(|| Content::Text(String::new()));
        self.hear_below_the_head(tool.message(message.id, Some(content)));
    }

    /// The client goes on with something else, so that what it owes is not coming.
    pub(super) fn close_for_the_next(&mut self) {
        for tool in self.turn().tools.clone() {
            let text = "the user continued without answering".to_owned();
            self.tool_failed(&tool, text);
        }
        self.complete(None, None);
    }
}
