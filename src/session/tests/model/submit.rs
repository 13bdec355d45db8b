//! Whether an input is taken, and when (S17 to S19, S22, S42, S60).

use super::pause::accepted;
use super::view::{End, Plan};
use super::{Forecast, Model, is_owner};
use crate::ids::{Seq, TurnId};
use crate::protocol::event::{Payload, SessionCreated, TurnQueued};
use crate::protocol::input::Input;
use crate::session::{Rejection, Reply, Submission, TurnRecord};

/// What becomes of an input that nothing refuses.
enum Admission {
    /// It answers calls of the running turn, which goes on.
    Continue,
    Queue,
    Start,
    /// The running turn is paused and left behind.
    LeaveThePausedTurn,
    /// The running turn waits for its client, who goes on with this.
    CloseTheWaitingTurn,
}

impl Forecast<'_> {
    pub(super) fn submit(&mut self, submission: Submission) -> Result<Reply, Rejection> {
        if let Some((_, identity)) = &self.model.made_for {
            is_owner(identity, &submission.identity.id)?;
        }
        let named = submission.turn_id.as_ref();
        if let Some(known) = named.and_then(|id| self.model.turn_called(id)) {
            return Ok(accepted(known));
        }
        let input = self.model.take(&submission)?;
        if let Some((agent_id, _)) = &self.model.made_for
            && *agent_id != submission.agent_id
        {
            return Err(Rejection::AgentMismatch(agent_id.clone()));
        }
        let plan = self.model.plan(&input, &submission.caller)?;
        if self.agent.is_none() {
            return Err(Rejection::UnknownAgent(submission.agent_id));
        }
        self.model.check_conditions(&submission.conditions)?;
        if let Some(seq) = self.model.done {
            return Err(Rejection::Done { seq });
        }
        let admission = self.admit(&submission, &plan)?;
        self.create(&submission);
        match admission {
            Admission::Continue => {
                self.model.note(if self.model.head_pause().is_some() {
                    "answered while paused"
                } else {
                    "answered by a message"
                });
                return Ok(self.continue_with(plan, submission.turn_id));
            }
            Admission::Queue => return Ok(self.enqueue(submission.turn_id, input, plan)),
            Admission::Start => {}
            Admission::LeaveThePausedTurn => {
                self.model.note("left a paused turn behind");
                self.void_all();
                self.end_turn(None, None, true, None);
            }
            Admission::CloseTheWaitingTurn => {
                self.model.note(if plan.answers.is_empty() {
                    "went on without answering"
                } else {
                    "answered and went on"
                });
                for answer in plan.answers.clone() {
                    self.tool_is_answered(answer, None);
                }
                self.close_for_the_next();
            }
        }
        let turn_id = submission.turn_id.unwrap_or_else(|| self.news.turn_id());
        Ok(self.start(turn_id, &input, plan))
    }

    fn admit(&self, submission: &Submission, plan: &Plan) -> Result<Admission, Rejection> {
        let model = &*self.model;
        if plan.only_answers() && model.running.is_some() {
            return Ok(Admission::Continue);
        }
        let only_moves = matches!(plan.end, End::Move(_));
        if let Some(pause) = model.pause_of(plan.place)
            && !(only_moves && model.running.is_none())
        {
            return self.queue_or(submission, Rejection::Interrupted { seq: pause.seq });
        }
        if let Some(turn) = &model.running {
            if model.head_pause().is_some() {
                return Ok(Admission::LeaveThePausedTurn);
            }
            let waits = turn.call.is_none() && !turn.tools.is_empty();
            if waits && model.goes_on_elsewhere(plan) {
                return Ok(Admission::CloseTheWaitingTurn);
            }
            let Some(TurnRecord::Running { started }) = model.turns.get(&turn.id) else {
                panic!("{} runs", turn.id);
            };
            return self.queue_or(submission, already_active(&turn.id, *started));
        }
        if let Some(next) = model.next_in_queue() {
            let Some(TurnRecord::Queued { queued }) = model.turns.get(next) else {
                panic!("{next} is queued");
            };
            return self.queue_or(submission, already_active(next, *queued));
        }
        Ok(Admission::Start)
    }

    fn queue_or(
        &self,
        submission: &Submission,
        refusal: Rejection,
    ) -> Result<Admission, Rejection> {
        let may_wait = matches!(submission.input, Input::Message(_) | Input::Append(_));
        if !submission.queue || !may_wait {
            return Err(refusal);
        }
        if self.model.queue.len() >= self.queued_turns_max {
            return Err(Rejection::QueueFull);
        }
        Ok(Admission::Queue)
    }

    fn create(&mut self, submission: &Submission) {
        if self.model.made_for.is_none() {
            let (agent_id, identity) = (submission.agent_id.clone(), submission.identity.clone());
            self.model.made_for = Some((agent_id.clone(), identity.clone()));
            self.model.first_at = self.now;
            let ancestry = vec![];
            self.emit(Payload::SessionCreated(SessionCreated { agent_id, identity, ancestry }));
        }
    }

    fn continue_with(&mut self, plan: Plan, run_id: Option<TurnId>) -> Reply {
        let running = self.turn().id.clone();
        let seq = Seq(self.model.seq + 1);
        for answer in plan.answers {
            self.tool_is_answered(answer, run_id.clone());
        }
        if let Some(label) = run_id {
            self.model.labels.insert(label, running.clone());
        }
        self.go_on_unless_paused();
        Reply::Accepted { turn_id: running, queued: false, seq }
    }

    /// What it answers does not wait.
    fn enqueue(&mut self, turn_id: Option<TurnId>, mut input: Input, plan: Plan) -> Reply {
        for answer in plan.answers {
            self.model.note("answered while something else waits");
            self.tool_is_answered(answer, None);
        }
        if let Input::Append(list) = &mut input {
            list.messages = plan.rest;
        }
        let ids = self.news.queued_ids();
        assert_eq!(ids.len(), input.messages().len());
        for (message, id) in input.messages_mut().iter_mut().zip(ids) {
            if message.id.is_none() {
                assert!(self.model.tree.find(&id).is_none(), "{id} is not new");
                message.id = Some(id);
            }
        }
        let turn_id = turn_id.unwrap_or_else(|| self.news.accepted_turn());
        let queued = TurnQueued { turn_id: turn_id.clone(), input: input.clone() };
        let seq = self.emit(Payload::TurnQueued(queued));
        let before = self.model.turns.insert(turn_id.clone(), TurnRecord::Queued { queued: seq });
        assert_eq!(before, None, "{turn_id} is not new");
        for message in input.messages() {
            self.model.keep(message.blobs());
        }
        self.model.queue.push_back((turn_id.clone(), input));
        Reply::Accepted { turn_id, queued: true, seq }
    }
}

fn already_active(turn_id: &TurnId, seq: Seq) -> Rejection {
    Rejection::TurnAlreadyActive { turn_id: turn_id.clone(), seq }
}

impl Model {
    /// What a turn that waits for its client gives way to.
    fn goes_on_elsewhere(&self, plan: &Plan) -> bool {
        match plan.end {
            End::New => true,
            End::Again(from) => self.tree.head != Some(from),
            End::Move(to) => !self.tree.path(self.tree.head).contains(&to),
            End::Nothing => false,
        }
    }

    /// The turn that waits and that nothing holds up.
    pub(super) fn next_in_queue(&self) -> Option<&TurnId> {
        let (next, input) = self.queue.front()?;
        let says_more = input.messages().iter().any(|message| !self.tree.knows(message));
        let waits = |turn: &super::Turn| turn.call.is_none() && !turn.tools.is_empty() && says_more;
        let free = self.running.as_ref().is_none_or(waits);
        (free && self.head_pause().is_none() && self.done.is_none()).then_some(next)
    }
}
