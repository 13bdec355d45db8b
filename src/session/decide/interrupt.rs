//! Pauses and their answers (S42 to S44).

use super::admit::Plan;
use super::size::check_event;
use super::{Decider, Reply};
use crate::ids::{CallId, TurnId};
use crate::protocol::event::{InterruptResumed, Payload, SessionInterrupted, VoidReason};
use crate::protocol::input::{Conditions, InterruptRequest, Resume};
use crate::protocol::json::encoded_len;
use crate::session::call::{Call, Phase};
use crate::session::command::Caller;
use crate::session::rejection::Rejection;
use crate::session::state::Session;

/// Most interrupts that are open at once, for every read shows all of them; and more that a front end
/// cannot take up.
const INTERRUPTS_MAX: usize = 64;
const INTERRUPTS_MORE: usize = 16;

impl Session {
    /// Refuses an interrupt, or answers one that is known under its id.
    fn check_interrupt(
        &self,
        caller: &Caller,
        request: &InterruptRequest,
    ) -> Result<Option<Reply>, Rejection> {
        self.check_reader(caller)?;
        if let Some(id) = &request.interrupt_id {
            let open = self.open_interrupt(id).map(|interrupt| interrupt.seq);
            if let Some(seq) = open.or_else(|| self.resumed.get(id).map(|it| it.raised)) {
                return Ok(Some(Reply::Interrupted { interrupt_id: id.clone(), seq }));
            }
        }
        match self.done {
            Some(seq) => Err(Rejection::Done { seq }),
            None if self.interrupts.len() < interrupts_max(caller) => Ok(None),
            None => Err(Rejection::TooManyInterrupts),
        }
    }

    pub(super) fn cut_by_interrupt(
        &self,
        caller: &Caller,
        request: &InterruptRequest,
    ) -> Vec<CallId> {
        match self.check_interrupt(caller, request) {
            Ok(None) => self.running_calls(),
            Ok(Some(_)) | Err(_) => Vec::new(),
        }
    }

    /// The model calls that an executor is at work on.
    pub(super) fn running_calls(&self) -> Vec<CallId> {
        let running = |call: &&Call| matches!(call.phase, Phase::Running { .. });
        self.calls().filter(running).map(|call| call.request.id.clone()).collect()
    }

    /// A turn id that is known, of a turn or of an answer that one continued with (S17, S62a).
    pub(super) fn known_turn(&self, id: &TurnId) -> Option<Reply> {
        let (turn_id, record) = self.turn(id)?;
        let queued = matches!(record, crate::session::turn::TurnRecord::Queued { .. });
        Some(Reply::Accepted { turn_id: turn_id.clone(), queued, seq: record.seq() })
    }
}

fn interrupts_max(caller: &Caller) -> usize {
    match caller {
        Caller::Frontend(_) => INTERRUPTS_MAX,
        Caller::Machine | Caller::System => INTERRUPTS_MAX + INTERRUPTS_MORE,
    }
}

impl Decider<'_> {
    pub(super) fn interrupt(
        &mut self,
        caller: &Caller,
        request: InterruptRequest,
    ) -> Result<Reply, Rejection> {
        if let Some(reply) = self.session.check_interrupt(caller, &request)? {
            return Ok(reply);
        }
        let InterruptRequest { interrupt_id, reason, payload } = request;
        let interrupt_id = interrupt_id.unwrap_or_else(|| self.mint_interrupt_id());
        self.void_model_calls(VoidReason::Interrupted);
        let seq = self.emit(Payload::SessionInterrupted(SessionInterrupted {
            interrupt_id: interrupt_id.clone(),
            origin: caller.origin(),
            reason,
            payload,
            anchor: self.session.tree.head().cloned(),
        }));
        Ok(Reply::Interrupted { interrupt_id, seq })
    }

    /// Answers an interrupt. One that is not open changes nothing; one of another branch is only
    /// recorded.
    pub(super) fn resume(
        &mut self,
        caller: &Caller,
        conditions: &Conditions,
        turn_id: Option<TurnId>,
        resume: Resume,
    ) -> Result<Reply, Rejection> {
        let bytes = resume.payload.as_ref().map_or(0, encoded_len);
        check_event(bytes, self.context.bounds.event_bytes_max)?;
        self.session.check_reader(caller)?;
        if let Some(reply) = turn_id.as_ref().and_then(|id| self.session.known_turn(id)) {
            return Ok(reply);
        }
        let Resume { interrupt_id, payload, status } = resume;
        let Some(interrupt) = self.session.open_interrupt(&interrupt_id) else {
            let seq = self.session.resumed.get(&interrupt_id).map(|it| it.answered);
            return Ok(self.latest_turn(seq.unwrap_or(self.session.seq)));
        };
        if !interrupt.may_be_resumed_by(caller) {
            return Err(Rejection::ResumeForbidden);
        }
        let here = self.session.pauses(interrupt, self.session.tree.head());
        self.check_conditions(conditions)?;

        let run_id = turn_id.clone().filter(|_| here && self.session.turn.is_some());
        let resumed = InterruptResumed { interrupt_id, payload, status, run_id };
        let seq = self.emit(Payload::InterruptResumed(resumed));
        if here && self.session.pause().is_none() {
            self.go_on_after_the_pause(turn_id);
        }
        Ok(self.latest_turn(seq))
    }

    /// S44: the paused turn goes on unless it waits for somebody else; without one, only a reply that
    /// is owed starts one.
    fn go_on_after_the_pause(&mut self, turn_id: Option<TurnId>) {
        match &self.session.turn {
            Some(turn) if turn.calls.is_empty() && turn.tools.is_empty() => {
                self.go_on_with_the_turn();
            }
            Some(_) => {}
            None if self.session.tree.head_is_unanswered() => {
                let turn_id = turn_id.unwrap_or_else(|| self.mint_turn_id());
                self.start_turn(turn_id, Plan { rerun: true, ..Plan::default() });
            }
            None => {}
        }
    }

    /// The turn that runs, or ran last, for an answer that began none.
    fn latest_turn(&self, seq: crate::ids::Seq) -> Reply {
        let turn_id = self.session.last_turn.clone();
        match turn_id {
            Some(turn_id) => Reply::Accepted { turn_id, queued: false, seq },
            None => Reply::Done,
        }
    }
}
