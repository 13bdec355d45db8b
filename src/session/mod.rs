//! The core: one conversation as a pure state machine.
//!
//! A [`Command`] may be refused ([`Rejection`]); what it does is recorded as events, and state changes
//! only by applying events ([`Session::evolve`]). No clock, no randomness, no I/O: `now` is an
//! argument, ids derive from the session and the position in its log.

mod command;
mod effect;

pub use command::{CallFailure, Caller, Command, ModelOutcome, Submission};
pub use effect::{Effect, ModelCall};
