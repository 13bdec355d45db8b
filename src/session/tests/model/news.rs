//! What a step recorded and asked for, taken in order by the model as it expects it.

use crate::ids::{CallId, InterruptId, MessageId, TurnId};
use crate::protocol::event::{Event, Payload};
use crate::session::{Effect, Rejection, Reply, Step};
use crate::time::Timestamp;

pub(super) struct News<'a> {
    actual: &'a Result<Step, Rejection>,
    events: std::slice::Iter<'a, Event>,
    effects: std::slice::Iter<'a, Effect>,
}

impl<'a> News<'a> {
    pub(super) fn of(actual: &'a Result<Step, Rejection>) -> Self {
        let step = actual.as_ref().ok();
        Self {
            actual,
            events: step.map_or(&[][..], |step| &step.events).iter(),
            effects: step.map_or(&[][..], |step| &step.effects).iter(),
        }
    }

    /// The next event should be this one.
    #[track_caller]
    pub(super) fn event(&mut self, expected: &Event) {
        match self.events.next() {
            Some(event) => assert_eq!(event, expected, "the model (right) expects another event"),
            None => panic!("the model expects {expected:?}, and nothing came: {:?}", self.actual),
        }
    }

    #[track_caller]
    pub(super) fn effect(&mut self, expected: &Effect) {
        assert_eq!(self.effects.next(), Some(expected), "the model (right) expects this effect");
    }

    #[track_caller]
    pub(super) fn nothing_more(mut self) {
        assert_eq!(self.events.next(), None, "the model expects no more events");
        assert_eq!(self.effects.next(), None, "the model expects no more effects");
    }

    // What the engine chooses freely.

    #[track_caller]
    fn chosen<T>(&self, what: &str, pick: impl Fn(&'a Payload) -> Option<T>) -> T {
        let next = self.events.as_slice().first();
        let found = next.and_then(|event| pick(&event.payload));
        found.unwrap_or_else(|| panic!("the model expects {what}, not {next:?}: {:?}", self.actual))
    }

    #[track_caller]
    pub(super) fn message_id(&self) -> MessageId {
        self.chosen("a message", |payload| {
            let Payload::MessageNew(new) = payload else { return None };
            new.message.id.clone()
        })
    }

    /// Of the messages of a turn that waits.
    #[track_caller]
    pub(super) fn queued_ids(&self) -> Vec<MessageId> {
        self.chosen("a queued turn", |payload| {
            let Payload::TurnQueued(queued) = payload else { return None };
            queued.input.messages().iter().map(|message| message.id.clone()).collect()
        })
    }

    #[track_caller]
    pub(super) fn turn_id(&self) -> TurnId {
        self.chosen("a turn", |payload| {
            let Payload::TurnStarted(started) = payload else { return None };
            Some(started.turn_id.clone())
        })
    }

    #[track_caller]
    pub(super) fn interrupt_id(&self) -> InterruptId {
        self.chosen("an interrupt", |payload| {
            let Payload::SessionInterrupted(raised) = payload else { return None };
            Some(raised.interrupt_id.clone())
        })
    }

    #[track_caller]
    pub(super) fn call_id(&self) -> CallId {
        self.chosen("a model call", |payload| {
            let Payload::LlmCallRequested(requested) = payload else { return None };
            Some(requested.id.clone())
        })
    }

    #[track_caller]
    pub(super) fn tool_call_ids(&self) -> Vec<CallId> {
        self.chosen("the answer of a model", |payload| {
            let Payload::LlmCallCompleted(completed) = payload else { return None };
            Some(completed.response.tool_calls.iter().map(|call| call.id.clone()).collect())
        })
    }

    #[track_caller]
    pub(super) fn retry_at(&self) -> Timestamp {
        self.chosen("the time of a retry", |payload| {
            let Payload::LlmCallErrored(errored) = payload else { return None };
            errored.retry_at
        })
    }

    /// The id that the reply gives to what is minted ahead of the event that names it.
    #[track_caller]
    pub(super) fn accepted_turn(&self) -> TurnId {
        match self.actual {
            Ok(Step { reply: Reply::Accepted { turn_id, .. }, .. }) => turn_id.clone(),
            other => panic!("the model expects a turn, not {other:?}"),
        }
    }
}
