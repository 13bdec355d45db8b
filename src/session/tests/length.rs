//! A long conversation costs no more a turn than a short one.

use super::kit::*;
use crate::protocol::event::Event;
use crate::session::{Command, Context, Effect, Session, Shown, Step};
use crate::time::Timestamp;

const TURNS: usize = 10_000;

/// A session alone: the kit checks all of a conversation at every step.
struct Long {
    session: Session,
    now: Timestamp,
}

impl Long {
    fn decide(&mut self, command: Command) -> Step {
        let (agent, shown) = (agent(), Shown::new());
        let bounds = Conversation::new().bounds();
        let context = Context { agent: Some(&agent), bounds, shown: &shown };
        self.now = self.now.plus(std::time::Duration::from_millis(500));
        self.session.decide(command, &context, self.now).unwrap()
    }

    /// Bytes that the appends of one turn hold: its events, and the head that goes with each.
    fn turn(&mut self) -> usize {
        let asked = self.decide(ask("What is the weather in Oslo?").into());
        let mut bytes = self.stored(&asked.events);
        for effect in asked.effects {
            if let Effect::CallModel { id, attempt } = effect {
                let answered = self.decide(settle(id, attempt, answer("It rains.")));
                bytes += self.stored(&answered.events);
            }
        }
        bytes
    }

    fn stored(&self, events: &[Event]) -> usize {
        let summary = serde_json::to_vec(&self.session.summary()).unwrap();
        let encode = |event: &Event| event.encode(&self.session.key().session).len();
        summary.len() + events.iter().map(encode).sum::<usize>()
    }
}

#[test]
fn the_ten_thousandth_turn_takes_the_bytes_of_the_tenth() {
    let mut long = Long { session: Session::new(key()), now: start() };
    let bytes: Vec<usize> = (0..TURNS).map(|_| long.turn()).collect();
    let (tenth, last) = (bytes[9], bytes[TURNS - 1]);
    assert!(last * 100 <= tenth * 105, "{tenth} bytes, then {last}");
}
