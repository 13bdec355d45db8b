//! Interrupts, resumes and cancels (S20, S42 to S44).

use super::tree::Place;
use super::{Forecast, Model};
use crate::ids::{CallId, InterruptId, Seq, TurnId};
use crate::protocol::content::Content;
use crate::protocol::event::{
    CallKind, CallVoided, InterruptResumed, Origin, Payload, ResumeStatus, SessionCancelled,
    SessionInterrupted, TurnCompleted, VoidReason,
};
use crate::protocol::input::{CancelRequest, Conditions, InterruptRequest, Resume};
use crate::protocol::llm::{Cost, Usage};
use crate::protocol::message::{Message, Role};
use crate::session::{Caller, Rejection, Reply, TurnRecord};

/// An open interrupt.
#[derive(Debug, Clone)]
pub(super) struct Pause {
    pub(super) raised: SessionInterrupted,
    pub(super) seq: Seq,
    anchor: Place,
    /// The turn that ran when it was raised.
    turn: Option<TurnId>,
}

impl Pause {
    fn may_be_answered_by(&self, caller: &Caller) -> bool {
        match (caller, self.raised.origin) {
            (Caller::System | Caller::Machine, _) => true,
            (Caller::Frontend(_), origin) => origin == Origin::Frontend,
        }
    }
}

impl Model {
    fn holds_up(&self, pause: &Pause, place: Place) -> bool {
        match pause.anchor {
            None => true,
            Some(anchor) => self.tree.path(place).contains(&anchor),
        }
    }

    /// The first interrupt that pauses the branch which ends at `place`.
    pub(super) fn pause_of(&self, place: Place) -> Option<&Pause> {
        self.pauses.iter().find(|pause| self.holds_up(pause, place))
    }

    pub(super) fn head_pause(&self) -> Option<&Pause> {
        self.pause_of(self.tree.head)
    }
}

impl Forecast<'_> {
    pub(super) fn interrupt(
        &mut self,
        caller: &Caller,
        request: InterruptRequest,
    ) -> Result<Reply, Rejection> {
        self.model.check_reader(caller)?;
        if let Some(id) = &request.interrupt_id
            && let Some(seq) = self.model.known_interrupt(id)
        {
            return Ok(Reply::Interrupted { interrupt_id: id.clone(), seq });
        }
        if let Some(seq) = self.model.done {
            return Err(Rejection::Done { seq });
        }
        self.void_the_model_call(VoidReason::Interrupted);
        let interrupt_id = request.interrupt_id.unwrap_or_else(|| self.news.interrupt_id());
        let raised = SessionInterrupted {
            interrupt_id: interrupt_id.clone(),
            origin: caller.origin(),
            reason: request.reason,
            payload: request.payload,
            anchor: self.model.head(),
        };
        let seq = self.emit(Payload::SessionInterrupted(raised.clone()));
        let anchor = self.model.tree.head;
        let turn = self.model.running.as_ref().map(|turn| turn.id.clone());
        self.model.pauses.push(Pause { raised, seq, anchor, turn });
        Ok(Reply::Interrupted { interrupt_id, seq })
    }

    /// The open model call is given up; what it has shown is kept as its answer.
    fn void_the_model_call(&mut self, reason: VoidReason) {
        let Some(call) = self.model.running.as_mut().and_then(|turn| turn.call.take()) else {
            return;
        };
        if call.is_out() {
            self.stops(&call.request.id, call.attempt);
        }
        self.void(&call.request.id, CallKind::LlmCall, reason);
        if !call.is_out() {
            self.model.note("a retry given up");
        }
        if let Some(text) = self.shown.get(&call.request.id).filter(|text| !text.is_empty()) {
            let mut partial = Message::text(Role::Assistant, "");
            partial.content = Some(Content::Text(text.clone()));
            partial.id = Some(call.reply_id());
            if self.model.tree.knows(&partial) {
                partial.id = None;
            }
            let parent = self.model.tree.find(&call.request.head_id);
            self.model.note(match reason {
                VoidReason::Cancelled => "text kept by a cancel",
                VoidReason::Interrupted => "text kept by an interrupt",
            });
            self.hear(parent, partial);
        }
    }

    fn void(&mut self, id: &CallId, kind: CallKind, reason: VoidReason) {
        let seq = self.emit(Payload::CallVoided(CallVoided { id: id.clone(), kind, reason }));
        self.model.ended.insert(id.clone(), seq);
    }

    pub(super) fn void_all(&mut self) {
        self.void_the_model_call(VoidReason::Cancelled);
        for tool in std::mem::take(&mut self.turn().tools) {
            self.void(&tool.id, CallKind::ToolCall, VoidReason::Cancelled);
        }
    }

    pub(super) fn resume(
        &mut self,
        caller: &Caller,
        conditions: &Conditions,
        turn_id: Option<TurnId>,
        resume: Resume,
    ) -> Result<Reply, Rejection> {
        self.model.check_reader(caller)?;
        if let Some(known) = turn_id.as_ref().and_then(|id| self.model.turn_called(id)) {
            return Ok(accepted(known));
        }
        let open = |pause: &Pause| pause.raised.interrupt_id == resume.interrupt_id;
        let Some(pause) = self.model.pauses.iter().find(|pause| open(pause)).cloned() else {
            let seq = self.model.answered.get(&resume.interrupt_id).map(|(_, answered)| *answered);
            return Ok(self.latest_turn(seq.unwrap_or(Seq(self.model.seq))));
        };
        if !pause.may_be_answered_by(caller) {
            return Err(Rejection::ResumeForbidden);
        }
        self.model.check_conditions(conditions)?;
        let on_head = self.model.holds_up(&pause, self.model.tree.head);
        let running = self.model.running.as_ref().map(|turn| turn.id.clone());
        let run_id = turn_id.clone().filter(|_| on_head && running.is_some());
        let seq = self.answer_pause(&pause, resume, run_id.clone());
        if let (Some(label), Some(running)) = (run_id, &running) {
            self.model.labels.insert(label, running.clone());
        }
        self.model.note(match (on_head, running.is_some()) {
            (true, true) => "resumed the running turn",
            (true, false) => "resumed without a turn",
            (false, _) => "resumed another branch",
        });
        if on_head && self.model.head_pause().is_none() {
            match running {
                Some(_) => self.go_on(),
                None if self.owes_a_reply() => self.start_the_owed_reply(turn_id),
                None => {}
            }
        }
        Ok(self.latest_turn(seq))
    }

    fn answer_pause(&mut self, pause: &Pause, answer: Resume, run_id: Option<TurnId>) -> Seq {
        let id = pause.raised.interrupt_id.clone();
        let seq = self.emit(Payload::InterruptResumed(InterruptResumed {
            interrupt_id: id.clone(),
            payload: answer.payload,
            status: answer.status,
            run_id,
        }));
        self.model.pauses.retain(|open| open.raised.interrupt_id != id);
        self.model.answered.insert(id, (pause.seq, seq));
        seq
    }

    /// The turn that runs, or the one that ran last.
    fn latest_turn(&self, seq: Seq) -> Reply {
        let turn_id = self.model.latest.clone().expect("a session has turns");
        Reply::Accepted { turn_id, queued: false, seq }
    }

    pub(super) fn cancel(
        &mut self,
        caller: &Caller,
        request: CancelRequest,
    ) -> Result<Reply, Rejection> {
        self.model.check_reader(caller)?;
        let turn = match &request.turn_id {
            Some(id) => Some(self.model.turn_called(id).ok_or(Rejection::UnknownTurn)?),
            None => self.model.latest.as_ref().and_then(|id| self.model.turn_called(id)),
        };
        if let Some(seq) = self.model.done {
            return Ok(Reply::Cancelled { cancelled: false, seq });
        }
        if request.session {
            return Ok(self.cancel_session(caller, request.reason));
        }
        let (cancelled, seq) = match turn {
            None => (false, Seq(self.model.seq)),
            Some((_, TurnRecord::Completed { completed, .. })) => (false, completed),
            Some((_, TurnRecord::Running { .. })) => {
                (true, self.cancel_running(caller, request.reason))
            }
            Some((id, TurnRecord::Queued { .. })) => (true, self.cancel_queued(id, request.reason)),
        };
        Ok(Reply::Cancelled { cancelled, seq })
    }

    fn cancel_running(&mut self, caller: &Caller, reason: Option<String>) -> Seq {
        self.void_all();
        let running = Some(self.turn().id.clone());
        for pause in self.model.pauses.clone() {
            if pause.turn == running && pause.may_be_answered_by(caller) {
                let answer = Resume {
                    interrupt_id: pause.raised.interrupt_id.clone(),
                    payload: None,
                    status: Some(ResumeStatus::Cancelled),
                };
                self.model.note("a cancel answered an interrupt");
                self.answer_pause(&pause, answer, None);
            }
        }
        self.end_turn(None, None, true, reason)
    }

    fn cancel_queued(&mut self, id: TurnId, reason: Option<String>) -> Seq {
        let completed = self.emit(Payload::TurnCompleted(TurnCompleted {
            turn_id: id.clone(),
            data: None,
            cost: Cost::default(),
            usage: Usage::default(),
            error: None,
            cancelled: true,
            reason,
        }));
        self.model.queue.retain(|(queued, _)| *queued != id);
        self.model.turns.insert(id, TurnRecord::Completed { started: completed, completed });
        completed
    }

    fn cancel_session(&mut self, caller: &Caller, reason: Option<String>) -> Reply {
        if self.model.running.is_some() {
            self.cancel_running(caller, None);
        }
        for (id, _) in self.model.queue.clone() {
            self.cancel_queued(id, None);
        }
        let seq = self.emit(Payload::SessionCancelled(SessionCancelled { reason }));
        self.model.done = Some(seq);
        for pause in std::mem::take(&mut self.model.pauses) {
            self.model.answered.insert(pause.raised.interrupt_id, (pause.seq, seq));
        }
        Reply::Cancelled { cancelled: true, seq }
    }
}

impl Model {
    pub(super) fn known_interrupt(&self, id: &InterruptId) -> Option<Seq> {
        let open = self.pauses.iter().find(|pause| pause.raised.interrupt_id == *id);
        open.map(|pause| pause.seq).or_else(|| self.answered.get(id).map(|(raised, _)| *raised))
    }
}

/// What an input is told that names a turn which is there.
pub(super) fn accepted((turn_id, record): (TurnId, TurnRecord)) -> Reply {
    let (queued, seq) = match record {
        TurnRecord::Queued { queued } => (true, queued),
        TurnRecord::Running { started } | TurnRecord::Completed { started, .. } => (false, started),
    };
    Reply::Accepted { turn_id, queued, seq }
}
