//! Pauses that somebody must answer (S42 to S44).

use super::command::Caller;
use super::state::Session;
use crate::ids::{InterruptId, MessageId, Seq, TurnId};
use crate::protocol::event::{Origin, SessionInterrupted};

/// One that is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interrupt {
    pub(super) raised: SessionInterrupted,
    pub(super) seq: Seq,
    /// The turn that ran when it was raised.
    pub(super) turn: Option<TurnId>,
}

/// One that is not open any more: where it was raised, and where it was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answered {
    pub(super) raised: Seq,
    pub(super) answered: Seq,
}

impl Interrupt {
    /// A machine caller may answer what the system raised, too (S43).
    pub(super) fn may_be_resumed_by(&self, caller: &Caller) -> bool {
        let of_system = self.raised.origin == Origin::System && *caller == Caller::Machine;
        of_system || self.raised.origin <= caller.origin()
    }
}

impl Session {
    pub(super) fn open_interrupt(&self, id: &InterruptId) -> Option<&Interrupt> {
        self.interrupts.iter().find(|interrupt| interrupt.raised.interrupt_id == *id)
    }

    /// The first open interrupt that pauses the branch that ends at `place`.
    pub(super) fn pause_of(&self, place: Option<&MessageId>) -> Option<&Interrupt> {
        self.interrupts.iter().find(|interrupt| self.pauses(interrupt, place))
    }

    /// The first open interrupt that pauses the head.
    pub(super) fn pause(&self) -> Option<&Interrupt> {
        self.pause_of(self.tree.head())
    }

    pub(super) fn pauses(&self, interrupt: &Interrupt, place: Option<&MessageId>) -> bool {
        let anchor = interrupt.raised.anchor.as_ref();
        anchor.is_none_or(|anchor| self.tree.is_on_path(anchor, place))
    }
}
