//! Model providers. Each file speaks one dialect; `reply` is what they all fill.

pub(super) mod demo;
pub(super) mod reply;
