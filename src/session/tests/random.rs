//! Any bytes as a conversation, followed by the model.

mod commands;
mod draw;
mod inputs;
mod views;

use std::collections::BTreeSet;

use self::draw::Draw;
use super::kit::{Conversation, answer, resume_by, settle, settle_tool_by};
use super::model::Model;
use crate::protocol::tool_result::ToolResult;
use crate::session::{Caller, Command, Context, Rejection, Shown, Step};

/// Most steps that the end of a conversation takes.
const FINISH_MAX: usize = 2000;

/// A conversation beside its model.
pub(crate) struct Run {
    conversation: Conversation,
    model: Model,
    /// Everything that was asked of it.
    commands: Vec<Command>,
    /// What has happened, by name.
    seen: BTreeSet<String>,
}

/// Reads `bytes` as a conversation and checks every step of it; names what has happened.
pub(crate) fn run(bytes: &[u8]) -> BTreeSet<String> {
    let mut draw = Draw::new(bytes);
    let mut run = Run {
        conversation: Conversation::new(),
        model: Model::default(),
        commands: Vec::new(),
        seen: BTreeSet::new(),
    };
    while !draw.is_empty() {
        run.step(&mut draw);
    }
    run.conversation.restart();
    run.finish();
    std::mem::take(&mut run.seen)
}

/// What a failing run prints, beside the log.
impl Drop for Run {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for command in &self.commands {
                eprintln!("{command:?}");
            }
        }
    }
}

impl Run {
    fn step(&mut self, draw: &mut Draw<'_>) {
        self.conversation.now = draw.time(&self.conversation);
        let command = match draw.below(64) {
            0..30 => self.natural(draw),
            30..42 => draw.submit(&self.model).into(),
            42..45 => draw.settle_model(&self.model),
            45..49 => draw.settle_tool(&self.model),
            49..52 => {
                self.show(draw);
                draw.interrupt(&self.model)
            }
            52..55 => draw.resume(&self.model),
            55..57 => {
                self.show(draw);
                draw.cancel(&self.model)
            }
            57 => draw.update(),
            58 => Command::Wake,
            59 => {
                self.conversation.restart();
                Command::Recover
            }
            60 => return self.show(draw),
            61 => return self.conversation.restart(),
            62 => {
                self.conversation.queued_turns_max = draw.of(&[0, 1, 2, 100]);
                return;
            }
            _ => {
                self.conversation.agent = draw.agent();
                self.conversation.declared = !draw.one_in(8);
                return;
            }
        };
        self.follow(command);
    }

    /// The running attempt of a model call shows text.
    fn show(&mut self, draw: &mut Draw<'_>) {
        if self.model.model_is_at_work()
            && let Some((id, _)) = self.model.open_model_call()
            && draw.one_in(2)
        {
            self.conversation.shows(&id, draw.of(&["so far", "s", "two\nlines"]));
        }
    }

    /// What moves the conversation on.
    fn natural(&mut self, draw: &mut Draw<'_>) -> Command {
        if draw.one_in(4) {
            self.show(draw);
        }
        if self.model.model_is_at_work()
            && let Some((id, attempt)) = self.model.open_model_call()
        {
            let outcome = draw.outcome(&self.model);
            return settle(id, attempt, outcome);
        }
        if let Some(at) = self.conversation.session.wake_at() {
            self.conversation.now = at;
            return Command::Wake;
        }
        if let Some(id) = self.model.head_interrupt()
            && draw.one_in(2)
        {
            return resume_by(Caller::System, id.as_str(), None);
        }
        if self.model.waits_for_client() {
            return draw.answer_tool(&self.model);
        }
        draw.say_something(&self.model).into()
    }

    fn follow(&mut self, command: Command) {
        let now = self.conversation.now;
        self.commands.push(command.clone());
        let cut = self.model.cut_by(&command, now);
        assert_eq!(self.conversation.session.cut_by(&command, now), cut, "{command:?}");
        let mut shown: Shown = self.conversation.shown.clone();
        shown.retain(|id, _| cut.contains(id));
        let verdict = self.conversation.apply(command.clone());
        self.note(&verdict);
        let context = Context {
            agent: Some(&self.conversation.agent).filter(|_| self.conversation.declared),
            bounds: self.conversation.bounds(),
            shown: &shown,
        };
        self.model.follow(command, &context, now, &verdict);
        self.model.agrees_with(&self.conversation.session, context.agent);
    }

    fn note(&mut self, verdict: &Result<Step, Rejection>) {
        match verdict {
            Ok(step) => {
                for event in &step.events {
                    let kind = event.payload.kind();
                    if !self.seen.contains(kind) {
                        self.seen.insert(kind.to_owned());
                    }
                }
            }
            Err(rejection) => {
                let text = format!("{rejection:?}");
                let name = text.split(|c: char| !c.is_ascii_alphanumeric()).next();
                self.seen.insert(name.unwrap_or_default().to_owned());
                if let Rejection::Invalid { path, problem } = rejection {
                    let place = path.trim_start_matches(|c: char| c != '.' && c != ']');
                    self.seen.insert(format!("{place} {problem}"));
                }
            }
        }
    }

    /// Every accepted turn ends: whoever holds it up does their part.
    fn finish(&mut self) {
        self.conversation.declared = true;
        for _ in 0..FINISH_MAX {
            let Some(command) = self.part_of_others() else {
                assert_eq!(self.model.unfinished(), Vec::<&crate::ids::TurnId>::new());
                self.seen.extend(self.model.notes().map(str::to_owned));
                return;
            };
            self.follow(command);
        }
        panic!("after {FINISH_MAX} steps there is still something to do");
    }

    /// What somebody has to do for the conversation to go on.
    fn part_of_others(&mut self) -> Option<Command> {
        if self.model.model_is_at_work()
            && let Some((id, attempt)) = self.model.open_model_call()
        {
            return Some(settle(id, attempt, answer("the end")));
        }
        if let Some(at) = self.conversation.session.wake_at() {
            self.conversation.now = self.conversation.now.max(at);
            return Some(Command::Wake);
        }
        if self.model.is_done() {
            return None;
        }
        if let Some(id) = self.model.head_interrupt() {
            return Some(resume_by(Caller::System, id.as_str(), None));
        }
        let tool = self.model.open_tools().first().cloned()?;
        Some(settle_tool_by(Caller::Machine, &tool, None, Ok(ToolResult::text("done"))))
    }
}
