//! What there is to speak of: names that a driver of random commands can meet.

use super::Model;
use crate::ids::{CallId, InterruptId, MessageId, TurnId};
use crate::protocol::message::Message;
use crate::session::TurnRecord;
use crate::time::Timestamp;

impl Model {
    /// Every recorded message, in the order in which they were recorded.
    pub(crate) fn recorded(&self) -> impl ExactSizeIterator<Item = &Message> {
        self.tree.nodes.iter().map(|node| &node.message)
    }

    pub(crate) fn message_ids(&self) -> Vec<MessageId> {
        self.recorded().filter_map(|message| message.id.clone()).collect()
    }

    /// From the root to the `index`-th recorded message.
    pub(crate) fn path_to(&self, index: usize) -> Vec<Message> {
        self.tree.messages(Some(index)).into_iter().cloned().collect()
    }

    pub(crate) fn head_index(&self) -> Option<usize> {
        self.tree.head
    }

    /// The model call that is not settled, and its latest attempt.
    pub(crate) fn open_model_call(&self) -> Option<(CallId, u32)> {
        let call = self.running.as_ref()?.call.as_ref()?;
        Some((call.request.id.clone(), call.attempt))
    }

    pub(crate) fn model_is_at_work(&self) -> bool {
        let call = self.running.as_ref().and_then(|turn| turn.call.as_ref());
        call.is_some_and(super::ModelCall::is_out)
    }

    /// Names of the tools that the open call offers.
    pub(crate) fn offered_tools(&self) -> Vec<String> {
        let call = self.running.as_ref().and_then(|turn| turn.call.as_ref());
        call.map(|call| call.request.tools.clone()).unwrap_or_default()
    }

    pub(crate) fn open_tools(&self) -> Vec<CallId> {
        let tools = self.running.iter().flat_map(|turn| &turn.tools);
        tools.map(|tool| tool.id.clone()).collect()
    }

    pub(crate) fn ended_calls(&self) -> Vec<CallId> {
        self.ended.keys().cloned().collect()
    }

    pub(crate) fn open_interrupts(&self) -> Vec<InterruptId> {
        self.pauses.iter().map(|pause| pause.raised.interrupt_id.clone()).collect()
    }

    /// The interrupt that pauses the head.
    pub(crate) fn head_interrupt(&self) -> Option<InterruptId> {
        self.head_pause().map(|pause| pause.raised.interrupt_id.clone())
    }

    pub(crate) fn answered_interrupts(&self) -> Vec<InterruptId> {
        self.answered.keys().cloned().collect()
    }

    pub(crate) fn turn_ids(&self) -> Vec<TurnId> {
        self.turns.keys().chain(self.labels.keys()).cloned().collect()
    }

    /// What became of inputs, by name.
    pub(crate) fn notes(&self) -> impl Iterator<Item = &'static str> {
        self.notes.iter().copied()
    }

    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    pub(crate) fn last_at(&self) -> Timestamp {
        self.last_at
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done.is_some()
    }

    /// Turns that were taken and have not ended.
    pub(crate) fn unfinished(&self) -> Vec<&TurnId> {
        let completed = |record: &TurnRecord| matches!(record, TurnRecord::Completed { .. });
        self.turns.iter().filter(|(_, record)| !completed(record)).map(|(id, _)| id).collect()
    }
}
