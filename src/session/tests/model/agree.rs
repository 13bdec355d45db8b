//! Every question that a session answers, held against the model's own answer.

use std::sync::Arc;

use super::calls::Phase;
use super::{Model, Turn};
use crate::ids::{CallId, MessageId};
use crate::protocol::agent::{AgentConfig, Seconds};
use crate::protocol::message::Message;
use crate::protocol::tool::AgentTool;
use crate::protocol::view::{
    NodeView, SessionStatus, SessionSummary, SessionView, TreeView, ViewRequest,
};
use crate::session::{Command, Effect, ModelCall, Rejection, Session};
use crate::time::Timestamp;

impl Model {
    pub(crate) fn agrees_with(&self, session: &Session, agent: Option<&AgentConfig>) {
        assert_eq!(session.seq().0, self.seq);
        assert_eq!(
            session.view(&ViewRequest::default()),
            self.view(session, &ViewRequest::default())
        );
        self.agrees_on_pages(session);
        assert_eq!(session.summary(), self.summary(session));
        assert_eq!(session.status(), self.status());
        for (id, record) in &self.turns {
            assert_eq!(session.turn(id).map(|(_, record)| record), Some(*record), "turn {id}");
        }
        for (label, id) in &self.labels {
            assert_eq!(
                session.turn(label).map(|(_, record)| record),
                self.turns.get(id).copied(),
                "label {label}"
            );
        }
        for (hash, info) in &self.blobs {
            assert_eq!(session.blob(hash), Some(info));
        }
        assert_eq!(session.agent_state(), None);
        assert_eq!(session.outstanding(), self.outstanding());
        assert_eq!(session.wake_at(), self.wake_at());
        let owes = !self.outstanding().is_empty() || self.wake_at().is_some();
        assert_eq!(session.owes(), owes);
        if let Some((turn, (id, _))) = self.running.as_ref().zip(self.open_model_call()) {
            assert_eq!(session.model_call(&id, agent), self.model_call(turn, agent));
        }
        for id in self.ended.keys() {
            assert_eq!(session.model_call(id, agent), None);
        }
        if self.running.is_some() && !owes {
            let waits = self.waits_for_client() || self.head_pause().is_some();
            assert!(waits, "S18: a turn runs and nobody is to go on");
        }
    }

    fn title(&self) -> Option<String> {
        self.title_given.clone().or_else(|| self.title_made.clone())
    }

    fn agrees_on_pages(&self, session: &Session) {
        let path: Vec<MessageId> = self.path().iter().filter_map(|m| m.id.clone()).collect();
        let elsewhere = self.message_ids().into_iter().find(|id| !path.contains(id));
        let befores = [None, path.first().cloned(), path.last().cloned(), elsewhere];
        for (limit, before) in [Some(1), Some(2), None].into_iter().zip(befores.iter().cycle()) {
            let request = ViewRequest { limit, before: before.clone(), without_tree: true };
            assert_eq!(session.view(&request), self.view(session, &request), "{request:?}");
        }
        for before in befores {
            let request = ViewRequest { limit: Some(3), before, without_tree: true };
            assert_eq!(session.view(&request), self.view(session, &request), "{request:?}");
        }
    }

    pub(crate) fn path(&self) -> Vec<&Message> {
        self.tree.messages(self.tree.head)
    }

    fn status(&self) -> SessionStatus {
        if self.done.is_some() {
            SessionStatus::Done
        } else if self.head_pause().is_some() {
            SessionStatus::Interrupted
        } else {
            SessionStatus::Idle
        }
    }

    fn view(&self, session: &Session, request: &ViewRequest) -> Result<SessionView, Rejection> {
        let (agent_id, _) = self.made_for.clone().ok_or(Rejection::UnknownSession)?;
        let path = self.path();
        let end = match &request.before {
            None => Some(path.len()),
            Some(before) => path.iter().position(|message| message.id.as_ref() == Some(before)),
        };
        let end = end.ok_or_else(|| Rejection::Invalid {
            path: "before".to_owned(),
            problem: "is not a message of the active conversation",
        })?;
        let from = end.saturating_sub(request.limit.unwrap_or(usize::MAX));
        let paged = request.limit.is_some() || request.before.is_some();
        Ok(SessionView {
            session_id: session.key().session.clone(),
            agent_id,
            seq: session.seq(),
            status: self.status(),
            title: self.title(),
            metadata: self.metadata.clone(),
            interrupts: self.pauses.iter().map(|pause| pause.raised.clone()).collect(),
            messages: path[from..end].iter().map(|message| Arc::new((*message).clone())).collect(),
            has_more: paged.then_some(from > 0),
            message_tree: (!request.without_tree).then(|| self.tree_view()),
        })
    }

    fn tree_view(&self) -> TreeView {
        let nodes = self.tree.nodes.iter().map(|node| NodeView {
            parent_id: self.tree.id(node.parent),
            message: Arc::new(node.message.clone()),
        });
        TreeView { head_id: self.head(), nodes: nodes.collect() }
    }

    fn summary(&self, session: &Session) -> Option<SessionSummary> {
        let (agent_id, identity) = self.made_for.clone()?;
        Some(SessionSummary {
            session_id: session.key().session.clone(),
            agent_id,
            owner_id: identity.id,
            status: self.status(),
            title: self.title(),
            metadata: self.metadata.clone(),
            turn_id: self.running.as_ref().map(|turn| turn.id.clone()),
            first_event_at: self.first_at,
            last_event_at: self.last_at,
        })
    }

    fn outstanding(&self) -> Vec<Effect> {
        let call = self.running.as_ref().and_then(|turn| turn.call.as_ref());
        let out = call.filter(|call| call.is_out());
        let effect = |call: &super::calls::ModelCall| Effect::CallModel {
            id: call.request.id.clone(),
            attempt: call.attempt,
        };
        out.map(effect).into_iter().collect()
    }

    fn wake_at(&self) -> Option<Timestamp> {
        let call = self.running.as_ref().and_then(|turn| turn.call.as_ref());
        let timer = call.and_then(|call| match call.phase {
            Phase::Out { deadline } => deadline,
            Phase::Waits { until } => Some(until),
        });
        let next = self.next_in_queue().map(|_| self.last_at);
        timer.into_iter().chain(next).min()
    }

    fn model_call(&self, turn: &Turn, agent: Option<&AgentConfig>) -> Option<ModelCall> {
        let call = turn.call.as_ref()?;
        let head = self.tree.find(&call.request.head_id);
        let messages = self.tree.messages(head);
        Some(ModelCall {
            id: call.request.id.clone(),
            attempt: call.attempt,
            reply_id: call.reply_id(),
            llm: call.request.llm.clone(),
            model: call.request.model.clone(),
            system: agent.and_then(|agent| agent.system.clone()),
            stream: call.request.stream,
            timeout: call.request.retry.timeout_secs.map(Seconds::duration),
            messages: messages.into_iter().map(|message| Arc::new(message.clone())).collect(),
            tools: tools_of(turn, &call.request.tools, agent),
        })
    }

    /// The calls whose running attempt `command` ends without an answer, if it is taken.
    pub(crate) fn cut_by(&self, command: &Command, now: Timestamp) -> Vec<CallId> {
        let out = self.running.as_ref().and_then(|turn| turn.call.as_ref());
        let Some(call) = out.filter(|call| call.is_out()) else { return vec![] };
        let cut = match command {
            Command::Interrupt { caller, request } => {
                let id = request.interrupt_id.as_ref();
                let known = id.is_some_and(|id| self.known_interrupt(id).is_some());
                self.check_reader(caller).is_ok() && !known
            }
            Command::Cancel { caller, request } => {
                let named = request.turn_id.as_ref().map(|id| self.turn_called(id));
                let running = self.running.as_ref().map(|turn| &turn.id);
                let is_it = match &named {
                    None => true,
                    Some(None) => false,
                    Some(Some((id, _))) => request.session || Some(id) == running,
                };
                self.check_reader(caller).is_ok() && is_it
            }
            Command::Wake => call.is_overdue(now.max(self.last_at)),
            Command::Submit(_)
            | Command::Resume { .. }
            | Command::SettleToolCall { .. }
            | Command::Update { .. }
            | Command::SettleModelCall { .. }
            | Command::Recover => false,
        };
        if cut { vec![call.request.id.clone()] } else { vec![] }
    }

    pub(crate) fn waits_for_client(&self) -> bool {
        let waits = |turn: &Turn| turn.call.is_none() && !turn.tools.is_empty();
        self.running.as_ref().is_some_and(waits)
    }
}

/// The tools of those names: the agent's own, else the client's.
fn tools_of(turn: &Turn, names: &[String], agent: Option<&AgentConfig>) -> Vec<Arc<AgentTool>> {
    let Some(agent) = agent else { return vec![] };
    let own = agent.tools.iter().filter(|tool| names.contains(&tool.name));
    let of_client = turn.client.iter().flat_map(|client| &client.tools).filter(|tool| {
        names.contains(&tool.name) && !agent.tools.iter().any(|own| own.name == tool.name)
    });
    own.chain(of_client).map(Arc::clone).collect()
}
