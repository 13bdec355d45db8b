//! The life of a turn: it starts, goes on, and ends exactly once (S18).

use std::sync::Arc;

use super::Decider;
use super::admit::{Place, Plan};
use super::size::fitting;
use crate::ids::{CallId, MessageId, TurnId};
use crate::protocol::content::Content;
use crate::protocol::error::ErrorInfo;
use crate::protocol::event::{
    CallErrored, CallKind, CallVoided, HeadMoved, MessageNew, Payload, TurnCompleted, TurnStarted,
    VoidReason,
};
use crate::protocol::input::Input;
use crate::protocol::json::Json;
use crate::protocol::message::{Message, Role};
use crate::session::call::{Call, Phase, ToolCall};
use crate::session::effect::Effect;

/// What the model reads of a call that its user left unanswered (S60).
const UNANSWERED: &str = "the user continued without answering";

impl Decider<'_> {
    /// Begins a turn and goes on until it waits for something or is complete.
    pub(super) fn start_turn(&mut self, turn_id: TurnId, plan: Plan) {
        let target = plan.target().cloned();
        let Plan { place, news, rerun, stream, client, action, .. } = plan;
        self.emit(Payload::TurnStarted(TurnStarted {
            turn_id,
            input: action.map(Input::Action),
            client,
        }));
        if let Some(head_id) = target
            && self.session.tree.head() != Some(&head_id)
        {
            self.emit(Payload::HeadMoved(HeadMoved { head_id }));
        }
        let parent = match place {
            Place::Head => self.session.tree.head().cloned(),
            Place::Root => None,
            Place::At(id) => Some(id),
        };
        if self.record_all(news, parent) || rerun {
            self.request_model_call(stream);
        } else {
            self.complete_turn(None, None);
        }
    }

    /// Records messages one below the other, the first below `parent`; those whose id is known are
    /// dropped. Whether the last one that was recorded asks for a reply.
    fn record_all(&mut self, messages: Vec<Message>, mut parent: Option<MessageId>) -> bool {
        let mut owed = false;
        for mut message in messages {
            if message.id.as_ref().is_some_and(|id| self.session.tree.contains(id)) {
                continue;
            }
            let id = message.id.get_or_insert_with(|| self.mint_message_id(0)).clone();
            owed = message.role != Role::Assistant;
            self.record_below(parent.replace(id), message);
        }
        owed
    }

    /// Records a message that has an id under the head.
    pub(super) fn record(&mut self, message: Message) {
        self.record_below(self.session.tree.head().cloned(), message);
    }

    pub(super) fn record_below(&mut self, parent_id: Option<MessageId>, message: Message) {
        self.emit(Payload::MessageNew(MessageNew { message: Arc::new(message), parent_id }));
    }

    /// What the running turn owes once nothing of it is open (S44): a reply to a message of a user
    /// or a tool, else its end.
    pub(super) fn go_on_with_the_turn(&mut self) {
        let head = self.session.tree.head_message();
        if head.is_some_and(|head| head.role != Role::Assistant) {
            self.request_model_call(None);
        } else {
            self.complete_turn(None, None);
        }
    }

    /// Ends the running turn. Nothing of it may be open.
    pub(super) fn complete_turn(&mut self, data: Option<Json>, error: Option<ErrorInfo>) {
        self.end_turn(|completed| TurnCompleted { data, error, ..completed });
    }

    pub(super) fn cancel_turn(&mut self, reason: Option<String>) {
        self.end_turn(|completed| TurnCompleted { cancelled: true, reason, ..completed });
    }

    fn end_turn(&mut self, how: impl FnOnce(TurnCompleted) -> TurnCompleted) {
        let Some(turn) = &self.session.turn else { return };
        let completed = TurnCompleted {
            turn_id: turn.id.clone(),
            data: None,
            cost: turn.cost,
            usage: turn.usage,
            error: None,
            cancelled: false,
            reason: None,
        };
        self.emit(Payload::TurnCompleted(how(completed)));
    }

    /// Starts the turn that has waited longest, unless something holds it up. One at a time, which
    /// bounds the step: where it owes nothing and completes at once, the session wakes for the next.
    pub(super) fn go_on_with_the_queue(&mut self) {
        let Some(queued) = self.session.next_in_queue().cloned() else { return };
        self.leave_unanswered_calls();
        self.start_turn(queued.turn_id, Plan::queued(queued.input));
    }

    /// The turn that waits for a client alone gives way: each call of it ends with an error that the
    /// model reads later (S60).
    pub(super) fn leave_unanswered_calls(&mut self) {
        let tools = self.session.turn.iter().flat_map(|turn| turn.tools.clone());
        for ToolCall { id, name, attempt, .. } in tools.collect::<Vec<_>>() {
            self.emit(Payload::ToolCallErrored(CallErrored {
                id: id.clone(),
                attempt,
                error: ErrorInfo::new(UNANSWERED, None),
                retryable: false,
                will_retry: false,
                retry_at: None,
                streamed: false,
            }));
            self.record_result(id, name, Content::Text(UNANSWERED.to_owned()), None);
        }
        self.complete_turn(None, None);
    }

    /// Gives up every open call of the running turn.
    pub(super) fn void_calls(&mut self, reason: VoidReason) {
        self.void_model_calls(reason);
        let tools = self.session.turn.iter().flat_map(|turn| &turn.tools);
        let open: Vec<CallId> = tools.map(|tool| tool.id.clone()).collect();
        for id in open {
            self.emit(Payload::CallVoided(CallVoided { id, kind: CallKind::ToolCall, reason }));
        }
    }

    /// Gives up the model calls of the running turn. The text that one has shown stays, as the
    /// message that it would have become (S20).
    pub(super) fn void_model_calls(&mut self, reason: VoidReason) {
        let open: Vec<Call> = self.session.calls().cloned().collect();
        for call in open {
            let id = call.request.id.clone();
            let voided = CallVoided { id: id.clone(), kind: CallKind::LlmCall, reason };
            self.emit(Payload::CallVoided(voided));
            if let Phase::Running { .. } = call.phase {
                self.effects.push(Effect::StopCall { id: id.clone(), attempt: call.attempt });
            }
            let shown = self.context.shown.get(&id).filter(|text| !text.is_empty());
            if let Some(text) = shown {
                let text = fitting(text, self.context.bounds.event_bytes_max);
                let mut message = Message::text(Role::Assistant, text);
                message.id = Some(self.free_reply_id(&call));
                self.record_below(Some(call.request.head_id), message);
            }
        }
    }
}
