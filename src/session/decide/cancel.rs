//! The end of a turn, or of a session, before it is done (S20).

use super::{Decider, Reply};
use crate::ids::{CallId, InterruptId, Seq, TurnId};
use crate::protocol::event::{
    InterruptResumed, Payload, ResumeStatus, SessionCancelled, TurnCompleted, VoidReason,
};
use crate::protocol::input::CancelRequest;
use crate::session::command::Caller;
use crate::session::rejection::Rejection;
use crate::session::state::Session;
use crate::session::turn::TurnRecord;

/// What a cancel finds.
enum Target {
    /// It ended before, or never was: there is nothing to end.
    Ended(Seq),
    Session,
    Running,
    Queued(TurnId),
}

impl Session {
    fn cancel_target(&self, caller: &Caller, request: &CancelRequest) -> Result<Target, Rejection> {
        self.check_reader(caller)?;
        let named = request.turn_id.as_ref().or(self.last_turn.as_ref());
        let (named, record) = named.and_then(|id| self.turn(id)).unzip();
        if request.turn_id.is_some() && record.is_none() {
            return Err(Rejection::UnknownTurn);
        }
        if let Some(done) = self.done {
            return Ok(Target::Ended(done));
        }
        if request.session {
            return Ok(Target::Session);
        }
        Ok(match (named, record) {
            (Some(id), Some(TurnRecord::Queued { .. })) => Target::Queued(id.clone()),
            (_, Some(TurnRecord::Running { .. })) => Target::Running,
            (_, Some(TurnRecord::Completed { completed, .. })) => Target::Ended(completed),
            (None, Some(TurnRecord::Queued { .. })) | (_, None) => Target::Ended(self.seq),
        })
    }

    pub(super) fn cut_by_cancel(&self, caller: &Caller, request: &CancelRequest) -> Vec<CallId> {
        match self.cancel_target(caller, request) {
            Ok(Target::Session | Target::Running) => self.running_calls(),
            Ok(Target::Ended(_) | Target::Queued(_)) | Err(_) => Vec::new(),
        }
    }
}

impl Decider<'_> {
    pub(super) fn cancel(
        &mut self,
        caller: &Caller,
        request: CancelRequest,
    ) -> Result<Reply, Rejection> {
        let seq = match self.session.cancel_target(caller, &request)? {
            Target::Ended(seq) => return Ok(Reply::Cancelled { cancelled: false, seq }),
            Target::Running => self.cancel_running(caller, request.reason),
            Target::Queued(turn_id) => self.cancel_queued(turn_id, request.reason),
            Target::Session => self.cancel_session(caller, request.reason),
        };
        Ok(Reply::Cancelled { cancelled: true, seq })
    }

    /// Ends the running turn and answers the pauses that came with it, as far as this caller may.
    fn cancel_running(&mut self, caller: &Caller, reason: Option<String>) -> Seq {
        self.void_calls(VoidReason::Cancelled);
        let turn = self.session.running_turn();
        let own = self.session.interrupts.iter().filter(|interrupt| {
            interrupt.turn.as_ref() == turn && interrupt.may_be_resumed_by(caller)
        });
        let own: Vec<InterruptId> =
            own.map(|interrupt| interrupt.raised.interrupt_id.clone()).collect();
        for interrupt_id in own {
            self.emit(Payload::InterruptResumed(InterruptResumed {
                interrupt_id,
                payload: None,
                status: Some(ResumeStatus::Cancelled),
                run_id: None,
            }));
        }
        self.cancel_turn(reason);
        self.session.seq
    }

    fn cancel_queued(&mut self, turn_id: TurnId, reason: Option<String>) -> Seq {
        self.emit(Payload::TurnCompleted(TurnCompleted {
            turn_id,
            data: None,
            cost: crate::protocol::llm::Cost::default(),
            usage: crate::protocol::llm::Usage::default(),
            error: None,
            cancelled: true,
            reason,
        }))
    }

    /// Ends everything, for good.
    fn cancel_session(&mut self, caller: &Caller, reason: Option<String>) -> Seq {
        if self.session.turn.is_some() {
            self.cancel_running(caller, None);
        }
        let queue = self.session.queue.iter();
        for turn_id in queue.map(|queued| queued.turn_id.clone()).collect::<Vec<_>>() {
            self.cancel_queued(turn_id, None);
        }
        self.emit(Payload::SessionCancelled(SessionCancelled { reason }))
    }
}
