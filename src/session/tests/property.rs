//! Random conversations do as the model.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::Config;

use super::random;

/// Enough for every kind of command to meet every state; `PROPTEST_CASES` asks for more.
const CASES: u32 = 1500;
/// Most bytes of one conversation: some 60 steps.
const BYTES_MAX: usize = 500;
/// Conversations of which all together come to everything.
const SEEDS: u64 = 300;

fn config() -> Config {
    let mut config = Config::default();
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = CASES;
    }
    config
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_random_conversation_does_as_the_model(
        bytes in prop::collection::vec(any::<u8>(), 0..BYTES_MAX),
    ) {
        random::run(&bytes);
    }
}

/// Pseudo-random, and the same in every run.
fn bytes_of(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut byte = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_be_bytes()[3]
    };
    (0..BYTES_MAX).map(|_| byte()).collect()
}

/// All but what only the decision of a worker records.
const EVENTS: [&str; 19] = [
    "session.created",
    "session.updated",
    "session.cancelled",
    "message.new",
    "head.moved",
    "turn.queued",
    "turn.started",
    "turn.completed",
    "session.interrupted",
    "session.interrupt_resumed",
    "llm.call.requested",
    "llm.call.dispatched",
    "llm.call.completed",
    "llm.call.errored",
    "tool.call.requested",
    "tool.call.dispatched",
    "tool.call.completed",
    "tool.call.errored",
    "call.voided",
];

const REJECTIONS: [&str; 15] = [
    "UnknownSession",
    "NotOwner",
    "AgentMismatch",
    "UnknownAgent",
    "UnknownTurn",
    "ConditionFailed",
    "TurnAlreadyActive",
    "Interrupted",
    "Done",
    "QueueFull",
    "Invalid",
    "ResumeForbidden",
    "UnknownCall",
    "NotClientHandled",
    "NotPending",
];

/// What the model tells apart within them.
const SITUATIONS: [&str; 17] = [
    "a cancel answered an interrupt",
    "a resume began the owed reply",
    "a retry given up",
    "answered again",
    "answered and went on",
    "answered by a message",
    "answered while paused",
    "branched",
    "left a paused turn behind",
    "moved",
    "resumed another branch",
    "resumed the running turn",
    "resumed without a turn",
    "text kept by a cancel",
    "text kept by an interrupt",
    "the queue went on without answers",
    "went on without answering",
];

#[test]
fn random_conversations_come_to_everything_that_can_happen() {
    let mut seen = BTreeSet::new();
    for seed in 0..SEEDS {
        seen.extend(random::run(&bytes_of(seed)));
    }
    let expected = EVENTS.iter().chain(&REJECTIONS).chain(&SITUATIONS);
    let missing: Vec<_> = expected.filter(|name| !seen.contains(**name)).collect();
    assert!(missing.is_empty(), "{missing:?} never happened");
}
