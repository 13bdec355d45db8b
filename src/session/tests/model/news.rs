//! What a step recorded and asked for, taken in order by the model as it expects it.

use crate::ids::{CallId, TurnId};
use crate::protocol::error::ErrorInfo;
use crate::protocol::event::{Event, Payload};
use crate::protocol::llm::{Cost, Usage};
use crate::session::{Effect, Rejection, Reply, Step};
use crate::time::Timestamp;

pub(crate) struct News<'a> {
    events: std::slice::Iter<'a, Event>,
    effects: std::slice::Iter<'a, Effect>,
    reply: Option<&'a Reply>,
    /// When the step should have happened.
    pub(crate) now: Timestamp,
    recorded: bool,
}

impl<'a> News<'a> {
    pub(crate) fn of(actual: &'a Result<Step, Rejection>, now: Timestamp) -> Self {
        let step = actual.as_ref().ok();
        Self {
            events: step.map_or(&[][..], |step| &step.events).iter(),
            effects: step.map_or(&[][..], |step| &step.effects).iter(),
            reply: step.map(|step| &step.reply),
            now,
            recorded: false,
        }
    }

    /// The next event, which should be of this kind.
    pub(crate) fn next(&mut self, kind: &str) -> &'a Payload {
        let event = self.events.next();
        let event = event.unwrap_or_else(|| panic!("the model expects {kind}, and nothing came"));
        assert_eq!(event.payload.kind(), kind, "the model expects {kind}: {event:?}");
        assert_eq!(event.occurred_at, self.now, "{event:?}");
        self.recorded = true;
        &event.payload
    }

    pub(crate) fn minted_turn(&self) -> TurnId {
        match self.reply {
            Some(Reply::Accepted { turn_id, .. }) => turn_id.clone(),
            Some(Reply::Done) | None => panic!("the model expects a minted turn id"),
        }
    }

    pub(crate) fn dispatched(&mut self, id: &CallId, attempt: u32, deadline: Option<Timestamp>) {
        let Payload::LlmCallDispatched(dispatched) = self.next("llm.call.dispatched") else {
            unreachable!("by its kind")
        };
        assert_eq!((&dispatched.id, dispatched.attempt), (id, attempt));
        assert_eq!(dispatched.deadline, deadline);
        let id = id.clone();
        assert_eq!(self.effects.next(), Some(&Effect::CallModel { id, attempt }));
    }

    pub(crate) fn stops(&mut self, id: &CallId, attempt: u32) {
        let id = id.clone();
        assert_eq!(self.effects.next(), Some(&Effect::StopCall { id, attempt }));
    }

    pub(crate) fn turn_completed(
        &mut self,
        turn: &TurnId,
        (cost, usage): (Cost, Usage),
        text: Option<&str>,
        error: Option<&ErrorInfo>,
    ) {
        let Payload::TurnCompleted(completed) = self.next("turn.completed") else {
            unreachable!("by its kind")
        };
        assert_eq!(&completed.turn_id, turn);
        assert_eq!((completed.cost, completed.usage), (cost, usage));
        let data = completed.data.as_ref();
        let data = data.map(|data| serde_json::from_str::<String>(data.text()).expect("a text"));
        assert_eq!(data.as_deref(), text);
        assert_eq!(completed.error.as_ref(), error);
    }

    /// Nothing is left over. Says whether anything was recorded.
    pub(crate) fn finish(mut self) -> bool {
        assert_eq!(self.events.next(), None, "the model expects no more events");
        assert_eq!(self.effects.next(), None, "the model expects no more effects");
        self.recorded
    }
}
