//! What time and a restart do to calls (S36, S39).

use super::{Decider, Reply};
use crate::ids::CallId;
use crate::protocol::error::{ErrorCode, ErrorInfo};
use crate::protocol::json::Json;
use crate::session::call::{Call, Phase};
use crate::session::command::CallFailure;
use crate::session::effect::Effect;
use crate::session::state::Session;
use crate::time::Timestamp;

impl Session {
    /// The calls whose running attempt is past its deadline.
    pub(super) fn overdue(&self, now: Timestamp) -> Vec<CallId> {
        let running = self.calls().filter(|call| matches!(call.phase, Phase::Running { .. }));
        let overdue = running.filter(|call| call.wake_at().is_some_and(|at| at <= now));
        overdue.map(|call| call.request.id.clone()).collect()
    }
}

impl Decider<'_> {
    /// Fires every timer that is due.
    pub(super) fn wake(&mut self) -> Reply {
        for call in self.due_calls() {
            match call.phase {
                Phase::Requested | Phase::Waiting { .. } => {
                    let id = call.request.id.clone();
                    self.dispatch_model_call(id, call.attempt + 1, &call.request.retry);
                }
                Phase::Running { .. } => {
                    let id = call.request.id.clone();
                    self.effects.push(Effect::StopCall { id, attempt: call.attempt });
                    let shown = self.context.shown.contains_key(&call.request.id);
                    self.model_call_failed(&call, deadline_exceeded(), shown);
                }
            }
        }
        Reply::Done
    }

    fn due_calls(&self) -> Vec<Call> {
        let calls = self.session.calls();
        calls.filter(|call| call.wake_at().is_some_and(|at| at <= self.now)).cloned().collect()
    }

    /// Ends the attempts that the last process left in flight: nobody will answer them. Whether they
    /// had shown output is not known, so a streaming one counts as if it had.
    pub(super) fn recover(&mut self) -> Reply {
        let calls = self.session.calls();
        let in_flight: Vec<Call> =
            calls.filter(|call| matches!(call.phase, Phase::Running { .. })).cloned().collect();
        for call in in_flight {
            self.model_call_failed(&call, interrupted(), call.request.stream);
        }
        Reply::Done
    }
}

fn deadline_exceeded() -> CallFailure {
    CallFailure {
        error: ErrorInfo::new(
            "the model did not answer before its deadline",
            Some(ErrorCode::DeadlineExceeded),
        ),
        retryable: true,
        retry_after: None,
    }
}

fn interrupted() -> CallFailure {
    CallFailure {
        error: ErrorInfo {
            message: "the server stopped while the model was answering".to_owned(),
            code: Some(ErrorCode::ProviderError),
            detail: Json::of("interrupted"),
        },
        retryable: true,
        retry_after: None,
    }
}
