//! Any bytes as a conversation, followed by the model.

mod draw;

use self::draw::Draw;
use super::kit::{Conversation, answer, settle};
use super::model::Model;
use crate::session::Command;

/// Reads `bytes` as a conversation and checks every step of it.
pub(crate) fn run(bytes: &[u8]) {
    let mut draw = Draw::new(bytes);
    let mut conversation = Conversation::new();
    let mut model = Model::default();
    while !draw.is_empty() {
        step(&mut draw, &mut conversation, &mut model);
    }
    conversation.restart();
    finish(&mut conversation, &mut model);
}

fn step(draw: &mut Draw<'_>, conversation: &mut Conversation, model: &mut Model) {
    conversation.now = draw.time(conversation);
    let command = match draw.below(20) {
        0..9 => natural(draw, conversation),
        9..13 => draw.submit(conversation).into(),
        13..15 => draw.settle(conversation),
        15 => draw.wake(conversation),
        16 => {
            conversation.restart();
            Command::Recover
        }
        17 => Command::Recover,
        18 => return conversation.restart(),
        _ => {
            conversation.agent = draw.agent();
            return;
        }
    };
    follow(command, conversation, model);
}

/// What moves the conversation on.
fn natural(draw: &mut Draw<'_>, conversation: &mut Conversation) -> Command {
    let session = &conversation.session;
    if !session.owes() {
        return draw.submit(conversation).into();
    }
    if session.outstanding().is_empty() {
        conversation.now = session.wake_at().expect("a retry is timed");
        return draw.wake(conversation);
    }
    let (id, attempt) = conversation.open();
    settle(id, attempt, draw.outcome())
}

fn follow(command: Command, conversation: &mut Conversation, model: &mut Model) {
    let verdict = conversation.apply(command.clone());
    model.follow(command, &conversation.agent, conversation.now, &verdict);
    model.agrees_with(&conversation.session);
}

/// Every accepted turn ends: executors answer, and timers fire until nothing is owed.
fn finish(conversation: &mut Conversation, model: &mut Model) {
    while conversation.session.owes() {
        let command = match model.open() {
            Some((id, attempt)) if !conversation.session.outstanding().is_empty() => {
                settle(id, attempt, answer("the end"))
            }
            Some(_) | None => {
                conversation.now = conversation.session.wake_at().expect("a timer is set");
                Command::Wake { streamed: vec![] }
            }
        };
        follow(command, conversation, model);
    }
    assert!(!conversation.session.owes());
}
