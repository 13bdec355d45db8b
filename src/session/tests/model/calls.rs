//! Model calls: attempts, answers, failures, timers, restarts (S36 to S39, S50).

use std::time::Duration;

use super::Forecast;
use crate::ids::{CallId, MessageId};
use crate::protocol::agent::{AgentConfig, Seconds};
use crate::protocol::content::Content;
use crate::protocol::error::{ErrorCode, ErrorInfo};
use crate::protocol::event::{
    CallDispatched, CallErrored, Handler, LlmCallCompleted, LlmCallRequested, Payload,
};
use crate::protocol::json::Json;
use crate::protocol::llm::LlmResponse;
use crate::protocol::message::{Message, Role};
use crate::session::{CallFailure, Effect, ModelOutcome, Rejection, Reply};
use crate::time::Timestamp;

/// Most model calls of one turn.
const MODEL_CALLS_MAX: u32 = 500;

#[derive(Debug, Clone)]
pub(super) struct ModelCall {
    pub(super) request: LlmCallRequested,
    pub(super) attempt: u32,
    pub(super) phase: Phase,
    /// An attempt before this one has shown text.
    pub(super) shown_before: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Out { deadline: Option<Timestamp> },
    Waits { until: Timestamp },
}

impl ModelCall {
    pub(super) fn is_out(&self) -> bool {
        matches!(self.phase, Phase::Out { .. })
    }

    pub(super) fn reply_id(&self) -> MessageId {
        let text = if self.shown_before {
            format!("{}~{}", self.request.id, self.attempt)
        } else {
            self.request.id.to_string()
        };
        MessageId::parse(&text).expect("the id of a call is the id of a message")
    }

    pub(super) fn is_overdue(&self, now: Timestamp) -> bool {
        matches!(self.phase, Phase::Out { deadline: Some(deadline) } if deadline <= now)
    }

    /// The least and the most that the next attempt has to wait.
    fn wait(&self, asked: Option<Duration>) -> (Duration, Duration) {
        let base = self.request.retry.backoff_base_secs.millis() / 1000;
        let least = (0..self.attempt)
            .fold(1, |power: u64, _| power.saturating_mul(base))
            .saturating_mul(1000)
            .min(self.request.retry.backoff_max_secs.millis());
        let asked = asked.unwrap_or_default();
        let most = Duration::from_millis(least + least / 5);
        (Duration::from_millis(least).max(asked), most.max(asked))
    }
}

impl Forecast<'_> {
    /// The model is asked to go on from the head.
    pub(super) fn ask_the_model(&mut self) {
        if self.turn().model_calls == MODEL_CALLS_MAX {
            let text = format!("the turn made {MODEL_CALLS_MAX} model calls without an answer");
            self.complete(None, Some(ErrorInfo::new(text, None)));
            return;
        }
        let Some(agent) = self.agent.cloned() else {
            let error = ErrorInfo::new("the agent of this session is no longer declared", None);
            self.complete(None, Some(error));
            return;
        };
        let stream = *self.turn().stream.get_or_insert(agent.stream);
        let request = LlmCallRequested {
            id: self.news.call_id(),
            llm: agent.llm.clone(),
            model: agent.model.clone(),
            handler: Handler::Server,
            stream,
            head_id: self.model.head().expect("a model answers a message"),
            tools: self.offered(&agent),
            retry: agent.retry,
        };
        assert!(!self.model.ended.contains_key(&request.id), "{} is not new", request.id);
        self.emit(Payload::LlmCallRequested(request.clone()));
        self.turn().model_calls += 1;
        let phase = Phase::Out { deadline: None };
        self.turn().call = Some(ModelCall { request, attempt: 0, phase, shown_before: false });
        self.dispatch();
    }

    /// Names of the tools of the agent, and of those of the client that are called otherwise.
    pub(super) fn offered(&mut self, agent: &AgentConfig) -> Vec<String> {
        let mut names: Vec<String> = agent.tools.iter().map(|tool| tool.name.clone()).collect();
        for tool in self.turn().client.iter().flat_map(|client| &client.tools) {
            if !agent.tools.iter().any(|own| own.name == tool.name) {
                names.push(tool.name.clone());
            }
        }
        names
    }

    fn dispatch(&mut self) {
        let now = self.now;
        let call = self.turn().call.as_mut().expect("a call is open");
        call.attempt += 1;
        let timeout = call.request.retry.timeout_secs.map(Seconds::duration);
        let deadline = timeout.map(|timeout| now.plus(timeout));
        call.phase = Phase::Out { deadline };
        let (id, attempt) = (call.request.id.clone(), call.attempt);
        let dispatched = CallDispatched { id: id.clone(), attempt, deadline };
        self.emit(Payload::LlmCallDispatched(dispatched));
        self.news.effect(&Effect::CallModel { id, attempt });
    }

    pub(super) fn settle_model(
        &mut self,
        id: &CallId,
        attempt: u32,
        outcome: ModelOutcome,
    ) -> Result<Reply, Rejection> {
        let call = self.model.running.as_ref().and_then(|turn| turn.call.clone());
        let Some(call) = call.filter(|call| call.request.id == *id) else {
            return Err(Rejection::NotPending { seq: self.model.ended.get(id).copied() });
        };
        if !call.is_out() || call.attempt != attempt {
            return Err(Rejection::NotPending { seq: None });
        }
        match outcome.result {
            Ok(response) => self.model_answered(&call, response),
            Err(failure) => self.model_failed(&failure, outcome.streamed),
        }
        Ok(Reply::Done)
    }

    fn model_answered(&mut self, call: &ModelCall, mut response: LlmResponse) {
        let ids = if response.tool_calls.is_empty() { vec![] } else { self.news.tool_call_ids() };
        assert_eq!(ids.len(), response.tool_calls.len());
        for (asked, id) in response.tool_calls.iter_mut().zip(ids) {
            assert!(!self.model.ended.contains_key(&id), "{id} is not new");
            asked.id = id;
        }
        let seq = self.emit(Payload::LlmCallCompleted(LlmCallCompleted {
            id: call.request.id.clone(),
            attempt: call.attempt,
            response: response.clone(),
        }));
        self.model.ended.insert(call.request.id.clone(), seq);
        let turn = self.turn();
        turn.call = None;
        turn.cost += response.cost.unwrap_or_default();
        turn.usage += response.usage.unwrap_or_default();
        let mut reply = Message {
            id: Some(call.reply_id()),
            role: Role::Assistant,
            content: response.content.clone().map(Content::Text),
            tool_calls: response.tool_calls.clone(),
            tool_call_id: None,
            name: None,
        };
        if self.model.tree.knows(&reply) {
            reply.id = None;
        }
        self.hear_below_the_head(reply);
        if response.tool_calls.is_empty() {
            let data = response.content.map(|text| Json::of(&text).expect("a text is JSON"));
            self.complete(data, None);
            return;
        }
        for asked in response.tool_calls {
            self.tool_is_called(asked, &call.request.tools);
        }
        self.go_on();
    }

    /// The attempt that is out ends without an answer.
    fn model_failed(&mut self, failure: &CallFailure, streamed: bool) {
        let now = self.now;
        let call = self.turn().call.clone().expect("a call is open");
        let will_retry = failure.retryable && call.attempt < call.request.retry.max_retries;
        let retry_at = will_retry.then(|| self.news.retry_at());
        if let Some(at) = retry_at {
            let (least, most) = call.wait(failure.retry_after);
            let (least, most) = (now.plus(least), now.plus(most));
            assert!((least..=most).contains(&at), "S37: {least} <= {at} <= {most}");
        }
        let id = call.request.id;
        let seq = self.emit(Payload::LlmCallErrored(CallErrored {
            id: id.clone(),
            attempt: call.attempt,
            error: failure.error.clone(),
            retryable: failure.retryable,
            will_retry,
            retry_at,
            streamed,
        }));
        if let Some(until) = retry_at {
            let call = self.turn().call.as_mut().expect("a call is open");
            call.phase = Phase::Waits { until };
            call.shown_before |= streamed;
        } else {
            self.turn().call = None;
            self.model.ended.insert(id, seq);
            self.complete(None, Some(failure.error.clone()));
        }
    }

    pub(super) fn wake(&mut self) {
        let Some(call) = self.model.running.as_ref().and_then(|turn| turn.call.clone()) else {
            return;
        };
        match call.phase {
            Phase::Out { .. } if call.is_overdue(self.now) => {
                let id = call.request.id;
                self.stops(&id, call.attempt);
                let code = Some(ErrorCode::DeadlineExceeded);
                let error = ErrorInfo::new("the model did not answer before its deadline", code);
                self.model_failed(&retryable(error), self.shown.contains_key(&id));
            }
            Phase::Waits { until } if until <= self.now => self.dispatch(),
            Phase::Out { .. } | Phase::Waits { .. } => {}
        }
    }

    /// What was in flight when the process ended is interrupted; nobody is left to be stopped.
    pub(super) fn recover(&mut self) {
        let call = self.model.running.as_ref().and_then(|turn| turn.call.clone());
        if let Some(call) = call.filter(ModelCall::is_out) {
            let message = "the server stopped while the model was answering";
            let mut error = ErrorInfo::new(message, Some(ErrorCode::ProviderError));
            error.detail = Json::parse(r#""interrupted""#);
            self.model_failed(&retryable(error), call.request.stream);
        }
    }
}

fn retryable(error: ErrorInfo) -> CallFailure {
    CallFailure { error, retryable: true, retry_after: None }
}
