//! The core: one conversation as a pure state machine.
//!
//! A [`Command`] may be refused ([`Rejection`]); what it does is recorded as events, and state changes
//! only by applying events ([`Session::evolve`]). No clock, no randomness, no I/O: `now` is an
//! argument, ids derive from the session and the position in its log.

mod call;
mod command;
mod decide;
mod effect;
mod evolve;
mod interrupt;
mod outstanding;
mod project;
mod rejection;
mod state;
mod tree;
mod turn;

pub use command::{Bounds, CallFailure, Caller, Command, Context, ModelOutcome, Shown, Submission};
pub use decide::{Reply, Step};
pub use effect::{Effect, ModelCall};
pub use rejection::Rejection;
pub use state::Session;
pub use turn::TurnRecord;

#[cfg(test)]
mod tests;
