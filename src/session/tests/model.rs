//! A plain reference model of one conversation: what a reader of the rules would write down, without
//! a log, a tree or a reducer. It predicts every event of a step in order and learns from the events
//! only what the engine may choose: minted ids and the jitter of a wait.

mod news;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

pub(crate) use news::News;

use crate::ids::{AgentId, CallId, MessageId, OwnerId, TurnId};
use crate::protocol::agent::{AgentConfig, RetryPolicy, Seconds};
use crate::protocol::content::Content;
use crate::protocol::event::Payload;
use crate::protocol::input::Input;
use crate::protocol::llm::{Cost, LlmResponse, Usage};
use crate::protocol::message::{Message, Role};
use crate::session::{CallFailure, Caller, Command, Effect, ModelOutcome, Rejection, Reply, Step};
use crate::session::{Session, Submission, TurnRecord};
use crate::time::Timestamp;

#[derive(Debug, Default)]
pub(crate) struct Model {
    created_for: Option<(OwnerId, AgentId)>,
    turns: BTreeMap<TurnId, Progress>,
    running: Option<Running>,
    queue: VecDeque<(TurnId, Message, Option<bool>)>,
    /// Nothing branches in this version: the tree is a line.
    said: Vec<Message>,
    last_at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Queued,
    Running,
    Completed,
}

#[derive(Debug)]
struct Running {
    turn: TurnId,
    stream: bool,
    cost: Cost,
    usage: Usage,
    call: CallId,
    attempt: u32,
    attempt_state: Attempt,
    /// Messages that the call prompts from.
    prompt: usize,
    policy: RetryPolicy,
    shown: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempt {
    Out { deadline: Option<Timestamp> },
    Waits { until: Timestamp },
}

impl Model {
    /// What `command` should come to, held against what it came to.
    pub(crate) fn follow(
        &mut self,
        command: Command,
        agent: &AgentConfig,
        now: Timestamp,
        actual: &Result<Step, Rejection>,
    ) {
        let now = now.max(self.last_at);
        let mut news = News::of(actual, now);
        let expected = match command {
            Command::Submit(submission) => self.submit(*submission, agent, &mut news),
            Command::SettleModelCall { id, attempt, outcome } => {
                self.settle(&id, attempt, outcome, agent, &mut news)
            }
            Command::Wake { streamed } => {
                self.wake(&streamed, &mut news);
                Ok(Reply::Done)
            }
            Command::Recover => {
                self.recover(&mut news);
                Ok(Reply::Done)
            }
        };
        if expected.is_ok()
            && self.running.is_none()
            && let Some((turn, message, stream)) = self.queue.pop_front()
        {
            self.start(turn, message, stream, agent, &mut news);
        }
        if news.finish() {
            self.last_at = now;
        }
        assert_eq!(actual.as_ref().map(|step| &step.reply), expected.as_ref());
    }

    fn submit(
        &mut self,
        submission: Submission,
        agent: &AgentConfig,
        news: &mut News<'_>,
    ) -> Result<Reply, Rejection> {
        if let Some(reply) = self.check(&submission)? {
            return Ok(reply);
        }
        let Input::Message { mut message, stream } = submission.input;
        if submission.caller == Caller::Frontend && message.role == Role::System {
            message.role = Role::User;
        }
        if self.created_for.is_none() {
            news.next("session.created");
            self.created_for = Some((submission.identity.id, submission.agent_id));
        }
        let turn_id = submission.turn_id.unwrap_or_else(|| news.minted_turn());
        let queued = self.busy_with().is_some();
        if queued {
            let Payload::TurnQueued(recorded) = news.next("turn.queued") else {
                unreachable!("by its kind")
            };
            let Input::Message { message: with_id, .. } = &recorded.input;
            message.id = message.id.or_else(|| with_id.id.clone());
            assert!(message.id.is_some(), "a queued message has its id");
            assert_eq!((&recorded.turn_id, with_id), (&turn_id, &message));
            self.turns.insert(turn_id.clone(), Progress::Queued);
            self.queue.push_back((turn_id.clone(), message, stream));
        } else {
            self.start(turn_id.clone(), message, stream, agent, news);
        }
        Ok(Reply::Accepted { turn_id, queued })
    }

    fn check(&self, submission: &Submission) -> Result<Option<Reply>, Rejection> {
        if let Some((owner, _)) = &self.created_for
            && *owner != submission.identity.id
        {
            return Err(Rejection::NotOwner);
        }
        if let Some(turn_id) = &submission.turn_id
            && let Some(progress) = self.turns.get(turn_id)
        {
            return Ok(Some(Reply::Accepted {
                turn_id: turn_id.clone(),
                queued: *progress == Progress::Queued,
            }));
        }
        let Input::Message { message, .. } = &submission.input;
        if message.role == Role::Tool {
            return Err(Rejection::Invalid {
                path: "message.role",
                problem: "is `tool`, but no client-handled call is open",
            });
        }
        let text = message.content.as_ref().map(Content::text).unwrap_or_default();
        if text.chars().all(char::is_whitespace) {
            return Err(Rejection::Invalid {
                path: "message.content",
                problem: "says nothing, and no model answers that",
            });
        }
        if let Some((_, agent)) = &self.created_for
            && *agent != submission.agent_id
        {
            return Err(Rejection::AgentMismatch(agent.clone()));
        }
        match self.busy_with() {
            Some(turn_id) if !submission.queue => Err(Rejection::TurnAlreadyActive { turn_id }),
            Some(_) if self.queue.len() >= submission.queued_turns_max => Err(Rejection::QueueFull),
            Some(_) | None => Ok(None),
        }
    }

    /// The running turn, or the one that starts next.
    fn busy_with(&self) -> Option<TurnId> {
        let running = self.running.as_ref().map(|running| running.turn.clone());
        running.or_else(|| self.queue.front().map(|(turn, ..)| turn.clone()))
    }

    fn start(
        &mut self,
        turn: TurnId,
        message: Message,
        stream: Option<bool>,
        agent: &AgentConfig,
        news: &mut News<'_>,
    ) {
        let Payload::TurnStarted(started) = news.next("turn.started") else {
            unreachable!("by its kind")
        };
        assert_eq!(started.turn_id, turn);
        self.turns.insert(turn.clone(), Progress::Running);
        let known = message.id.is_some() && self.said.iter().any(|said| said.id == message.id);
        let owed = !known && message.role != Role::Assistant;
        if !known {
            self.hear(message, news);
        }
        let stream = stream.unwrap_or(agent.stream);
        if owed {
            self.request(turn, stream, (Cost::default(), Usage::default()), agent, news);
        } else {
            self.complete(&turn, (Cost::default(), Usage::default()), None, news);
        }
    }

    /// A message is recorded under the last one.
    fn hear(&mut self, mut message: Message, news: &mut News<'_>) {
        let Payload::MessageNew(recorded) = news.next("message.new") else {
            unreachable!("by its kind")
        };
        message.id = message.id.or_else(|| recorded.message.id.clone());
        assert!(message.id.is_some() && self.said.iter().all(|said| said.id != message.id));
        assert_eq!(*recorded.message, message);
        let last = self.said.last().and_then(|said| said.id.as_ref());
        assert_eq!(recorded.parent_id.as_ref(), last);
        self.said.push(message);
    }

    fn request(
        &mut self,
        turn: TurnId,
        stream: bool,
        (cost, usage): (Cost, Usage),
        agent: &AgentConfig,
        news: &mut News<'_>,
    ) {
        let Payload::LlmCallRequested(request) = news.next("llm.call.requested") else {
            unreachable!("by its kind")
        };
        let head = self.said.last().and_then(|said| said.id.as_ref());
        assert_eq!(Some(&request.head_id), head);
        assert_eq!((&request.llm, &request.model), (&agent.llm, &agent.model));
        assert_eq!((request.stream, request.retry), (stream, agent.retry));
        let mut running = Running {
            turn,
            stream,
            cost,
            usage,
            call: request.id.clone(),
            attempt: 0,
            attempt_state: Attempt::Out { deadline: None },
            prompt: self.said.len(),
            policy: agent.retry,
            shown: false,
        };
        running.dispatch(news);
        self.running = Some(running);
    }

    fn settle(
        &mut self,
        id: &CallId,
        attempt: u32,
        outcome: ModelOutcome,
        agent: &AgentConfig,
        news: &mut News<'_>,
    ) -> Result<Reply, Rejection> {
        let out = self.running.take_if(|running| {
            running.call == *id
                && running.attempt == attempt
                && matches!(running.attempt_state, Attempt::Out { .. })
        });
        let running = out.ok_or(Rejection::NotPending)?;
        match outcome.result {
            Ok(response) => self.reply(running, response, agent, news),
            Err(failure) => self.fail(running, &failure, outcome.streamed, news),
        }
        Ok(Reply::Done)
    }

    fn reply(
        &mut self,
        running: Running,
        response: LlmResponse,
        agent: &AgentConfig,
        news: &mut News<'_>,
    ) {
        let Payload::LlmCallCompleted(completed) = news.next("llm.call.completed") else {
            unreachable!("by its kind")
        };
        assert_eq!(completed.id, running.call);
        let calls = completed.response.tool_calls.clone();
        assert_eq!(calls.len(), response.tool_calls.len());
        let reply_id = running.reply_id();
        let taken = self.said.iter().any(|said| said.id.as_ref() == Some(&reply_id));
        let reply = Message {
            id: (!taken).then_some(reply_id),
            role: Role::Assistant,
            content: response.content.clone().map(Content::Text),
            tool_calls: calls.clone(),
            tool_call_id: None,
            name: None,
        };
        self.hear(reply, news);
        let mut spent = (running.cost, running.usage);
        spent.0 += response.cost.unwrap_or_default();
        spent.1 += response.usage.unwrap_or_default();
        if calls.is_empty() {
            return self.complete(&running.turn, spent, response.content.as_deref(), news);
        }
        for (call, asked) in calls.into_iter().zip(response.tool_calls) {
            assert_eq!(call.function, asked.function);
            news.next("tool.call.requested");
            news.next("tool.call.errored");
            let text = format!("the tool `{}` is not declared", call.function.name);
            let mut result = Message::text(Role::Tool, text);
            result.tool_call_id = Some(call.id);
            result.name = Some(call.function.name);
            self.hear(result, news);
        }
        self.request(running.turn, running.stream, spent, agent, news);
    }

    fn fail(
        &mut self,
        mut running: Running,
        failure: &CallFailure,
        shown: bool,
        news: &mut News<'_>,
    ) {
        let Payload::LlmCallErrored(errored) = news.next("llm.call.errored") else {
            unreachable!("by its kind")
        };
        assert_eq!((&errored.id, errored.attempt), (&running.call, running.attempt));
        assert_eq!(errored.streamed, shown);
        let again = failure.retryable && running.attempt < running.policy.max_retries;
        assert_eq!(errored.will_retry, again);
        if !again {
            let spent = (running.cost, running.usage);
            self.turns.insert(running.turn.clone(), Progress::Completed);
            return news.turn_completed(&running.turn, spent, None, Some(&errored.error));
        }
        let until = errored.retry_at.expect("a retry has its time");
        let (least, most) = running.wait(failure.retry_after);
        let (least, most) = (news.now.plus(least), news.now.plus(most));
        assert!((least..=most).contains(&until), "{least} <= {until} <= {most}");
        running.attempt_state = Attempt::Waits { until };
        running.shown |= shown;
        self.running = Some(running);
    }

    fn complete(
        &mut self,
        turn: &TurnId,
        spent: (Cost, Usage),
        text: Option<&str>,
        news: &mut News<'_>,
    ) {
        self.turns.insert(turn.clone(), Progress::Completed);
        news.turn_completed(turn, spent, text, None);
    }

    fn wake(&mut self, streamed: &[CallId], news: &mut News<'_>) {
        let due = |at: Timestamp| at <= news.now;
        let Some(mut running) = self.running.take() else {
            return;
        };
        match running.attempt_state {
            Attempt::Out { deadline: Some(at) } if due(at) => {
                news.stops(&running.call, running.attempt);
                let shown = streamed.contains(&running.call);
                self.fail(running, &retryable(), shown, news);
            }
            Attempt::Waits { until } if due(until) => {
                running.dispatch(news);
                self.running = Some(running);
            }
            Attempt::Out { .. } | Attempt::Waits { .. } => self.running = Some(running),
        }
    }

    fn recover(&mut self, news: &mut News<'_>) {
        let out = |running: &mut Running| matches!(running.attempt_state, Attempt::Out { .. });
        if let Some(running) = self.running.take_if(out) {
            let shown = running.stream;
            self.fail(running, &retryable(), shown, news);
        }
    }

    /// Every question that a session answers, held against the model's own answer.
    pub(crate) fn agrees_with(&self, session: &Session) {
        assert_eq!(session.exists(), self.created_for.is_some());
        let view = session.view();
        let messages = view.iter().flat_map(|view| &view.messages);
        assert!(messages.map(|message| &**message).eq(&self.said), "{view:?}");
        for (id, expected) in &self.turns {
            let actual = session.turn_record(id).map(|record| match record {
                TurnRecord::Queued => Progress::Queued,
                TurnRecord::Running { .. } => Progress::Running,
                TurnRecord::Completed { .. } => Progress::Completed,
            });
            assert_eq!(actual, Some(*expected), "turn {id}");
        }
        let running = self.turns.values();
        let running = running.filter(|progress| **progress == Progress::Running);
        assert_eq!(running.count(), usize::from(self.running.is_some()));
        let Some(running) = &self.running else {
            assert_eq!(session.owes(), !self.queue.is_empty());
            assert_eq!(session.outstanding(), []);
            assert_eq!(session.wake_at(), session.owes().then_some(self.last_at));
            return;
        };
        let (id, attempt) = (running.call.clone(), running.attempt);
        let (owed, timer) = match running.attempt_state {
            Attempt::Out { deadline } => (vec![Effect::CallModel { id, attempt }], deadline),
            Attempt::Waits { until } => (vec![], Some(until)),
        };
        assert!(session.owes());
        assert_eq!((session.outstanding(), session.wake_at()), (owed, timer));
        let work = session.model_call(&running.call).expect("an open call");
        assert_eq!((work.attempt, work.stream), (attempt, running.stream));
        assert_eq!(work.timeout, running.policy.timeout_secs.map(Seconds::duration));
        assert_eq!(work.reply_id, running.reply_id());
        let prompt = work.messages.iter().map(|message| &**message);
        assert!(prompt.eq(&self.said[..running.prompt]));
    }

    /// The attempt that is out, or the latest that was.
    pub(crate) fn open(&self) -> Option<(CallId, u32)> {
        let running = self.running.as_ref()?;
        Some((running.call.clone(), running.attempt))
    }
}

impl Running {
    fn dispatch(&mut self, news: &mut News<'_>) {
        self.attempt += 1;
        let timeout = self.policy.timeout_secs;
        let deadline = timeout.map(|timeout| news.now.plus(timeout.duration()));
        self.attempt_state = Attempt::Out { deadline };
        news.dispatched(&self.call, self.attempt, deadline);
    }

    fn reply_id(&self) -> MessageId {
        let text = if self.shown {
            format!("{}~{}", self.call, self.attempt)
        } else {
            self.call.to_string()
        };
        MessageId::parse(&text).expect("the id of a call is the id of a message")
    }

    /// The least and the most that the next attempt may have to wait.
    fn wait(&self, asked: Option<Duration>) -> (Duration, Duration) {
        let base = self.policy.backoff_base_secs.millis() / 1000;
        let least = (0..self.attempt)
            .fold(1, |power: u64, _| power.saturating_mul(base))
            .saturating_mul(1000)
            .min(self.policy.backoff_max_secs.millis());
        let asked = asked.unwrap_or_default();
        let most = Duration::from_millis(least + least / 5);
        (Duration::from_millis(least).max(asked), most.max(asked))
    }
}

fn retryable() -> CallFailure {
    super::kit::overloaded()
}
