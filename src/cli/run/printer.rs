//! A turn's stream for a person at a terminal, or as JSON lines for a program.

use std::io::{self, Write};

use serde::Deserialize;

use crate::ids::{MessageId, Seq, SessionId};
use crate::protocol::content::Content;
use crate::protocol::event::{Event, Payload};
use crate::protocol::message::{Message, Role};

/// How the turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Answered,
    Failed,
}

pub(super) struct Printer {
    json: bool,
    /// The reply whose text is on the current line, and how many bytes of it.
    printing: Option<(MessageId, usize)>,
    /// The last event that was printed.
    seq: Seq,
    outcome: Outcome,
}

/// What a person sees of a delta.
#[derive(Deserialize)]
struct Delta {
    call_id: MessageId,
    text: Option<String>,
    #[serde(default)]
    snapshot: bool,
}

impl Printer {
    pub(super) fn new(json: bool) -> Self {
        Self { json, printing: None, seq: Seq::default(), outcome: Outcome::Failed }
    }

    /// Where to go on after a break.
    pub(super) fn seq(&self) -> Seq {
        self.seq
    }

    /// Prints whole frames of the event stream.
    pub(super) fn frames(&mut self, frames: &[u8]) -> io::Result<()> {
        let text = String::from_utf8_lossy(frames);
        for frame in text.split("\n\n") {
            let field = |name| frame.lines().find_map(|line| line.strip_prefix(name));
            let (Some(kind), Some(data)) = (field("event: "), field("data: ")) else { continue };
            if kind == "llm.token.delta" {
                self.delta(data)?;
            } else {
                self.event(data)?;
            }
        }
        io::stdout().flush()
    }

    /// Tells how to go on.
    pub(super) fn end(self, session: &SessionId) -> io::Result<Outcome> {
        if !self.json {
            writeln!(io::stderr(), "\n(session {session}; continue with --session {session})")?;
        }
        Ok(self.outcome)
    }

    fn delta(&mut self, data: &str) -> io::Result<()> {
        if self.json {
            return writeln!(io::stdout(), "{data}");
        }
        let Ok(Delta { call_id, text: Some(text), snapshot }) = serde_json::from_str(data) else {
            return Ok(());
        };
        let printed = self.printed(&call_id)?;
        let piece = if snapshot { text.get(printed..).unwrap_or_default() } else { &text };
        self.write(call_id, printed, piece)
    }

    fn event(&mut self, data: &str) -> io::Result<()> {
        if self.json {
            writeln!(io::stdout(), "{data}")?;
        }
        let event = Event::decode(data.as_bytes()).map_err(io::Error::other)?;
        self.seq = event.seq;
        match event.payload {
            Payload::MessageNew(new) if new.message.role == Role::Assistant && !self.json => {
                self.reply(&new.message)
            }
            Payload::ToolCallErrored(errored) if !self.json => {
                self.break_line()?;
                writeln!(io::stderr(), "tool call failed: {}", errored.error.message)
            }
            Payload::LlmCallErrored(errored) if errored.will_retry && !self.json => {
                self.break_line()?;
                writeln!(io::stderr(), "turnd: {}; trying again", errored.error.message)
            }
            Payload::TurnCompleted(completed) => {
                match completed.error {
                    None if completed.cancelled => {}
                    None => self.outcome = Outcome::Answered,
                    Some(error) => {
                        self.break_line()?;
                        writeln!(io::stderr(), "turnd: {}", error.message)?;
                    }
                }
                Ok(())
            }
            Payload::SessionCreated(_)
            | Payload::SessionUpdated(_)
            | Payload::SessionCancelled(_)
            | Payload::MessageNew(_)
            | Payload::HeadMoved(_)
            | Payload::TurnQueued(_)
            | Payload::TurnStarted(_)
            | Payload::SessionInterrupted(_)
            | Payload::InterruptResumed(_)
            | Payload::LlmCallRequested(_)
            | Payload::LlmCallDispatched(_)
            | Payload::LlmCallCompleted(_)
            | Payload::LlmCallErrored(_)
            | Payload::ToolCallRequested(_)
            | Payload::ToolCallDispatched(_)
            | Payload::ToolCallCompleted(_)
            | Payload::ToolCallErrored(_)
            | Payload::CallVoided(_)
            | Payload::WorkerStateUpdated(_)
            | Payload::AgentUpdated(_) => Ok(()),
        }
    }

    /// What of a reply was not streamed is printed; then its line ends.
    fn reply(&mut self, message: &Message) -> io::Result<()> {
        if let Some(id) = &message.id {
            let text = message.content.as_ref().map(Content::text).unwrap_or_default();
            let printed = self.printed(id)?;
            self.write(id.clone(), printed, text.get(printed..).unwrap_or_default())?;
        }
        self.break_line()
    }

    /// How many bytes of a reply are printed; another reply's line ends first.
    fn printed(&mut self, id: &MessageId) -> io::Result<usize> {
        match &self.printing {
            Some((printing, bytes)) if printing == id => Ok(*bytes),
            Some(_) | None => self.break_line().map(|()| 0),
        }
    }

    fn write(&mut self, id: MessageId, printed: usize, piece: &str) -> io::Result<()> {
        if !piece.is_empty() {
            write!(io::stdout(), "{piece}")?;
            self.printing = Some((id, printed + piece.len()));
        }
        Ok(())
    }

    fn break_line(&mut self) -> io::Result<()> {
        if self.printing.take().is_some() { writeln!(io::stdout()) } else { Ok(()) }
    }
}
