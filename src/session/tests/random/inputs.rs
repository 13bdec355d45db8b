//! Bytes to submits: small sets of names, so that they meet.

use super::super::kit::*;
use super::super::model::Model;
use super::draw::Draw;
use crate::ids::{MessageId, Seq, TurnId, derive_call_id};
use crate::protocol::blob::BlobHash;
use crate::protocol::content::{BlobInfo, BlobUrl, Blobs, Content, ContentPart};
use crate::protocol::message::{Message, Role};
use crate::session::{Caller, Command};

impl Draw<'_> {
    /// One that is free, or known, or given by the engine.
    pub(super) fn turn(&mut self, model: &Model) -> Option<TurnId> {
        match self.below(8) {
            0..4 => None,
            4 | 5 => Some(turn_id(&format!("t{}", model.seq()))),
            6 => Some(turn_id(&format!("t{}", self.below(6)))),
            _ => self.recent(&model.turn_ids()),
        }
    }

    /// An id that a caller may choose: its own, or one that it has seen or guessed.
    pub(super) fn message_id(&mut self, model: &Model) -> Option<MessageId> {
        match self.below(16) {
            0..6 => None,
            6..11 => Some(message_id(&format!("n{}-{}", model.seq(), self.below(3)))),
            11..13 => Some(message_id(&format!("m{}", self.below(6)))),
            13 => self.recent(&model.message_ids()),
            14 => {
                let (call, attempt) = model.open_model_call()?;
                let shown = self.one_in(2);
                Some(call.reply_id(attempt + u32::from(self.below(2)), shown))
            }
            _ => {
                let ahead = Seq(model.seq() + u64::from(self.below(6)));
                let call = derive_call_id(&key(), ahead, 0, model.last_at());
                Some(message_id(call.as_str()))
            }
        }
    }

    pub(super) fn text(&mut self) -> String {
        self.of(&["hello", "more", "two\nlines", " \n  padded", "\u{2028}\"\\"]).to_owned()
    }

    pub(super) fn content(&mut self) -> Option<Content> {
        let text = self.text();
        let part = |text: &str| ContentPart::Text { text: text.to_owned() };
        match self.below(16) {
            0..11 => Some(Content::Text(text)),
            11 => Some(Content::Text(" \n".to_owned())),
            12 => Some(Content::Parts(vec![part(&text)])),
            13 => Some(Content::Parts(vec![part(""), self.image(), part(&text)])),
            14 => Some(Content::Parts(vec![self.image()])),
            _ => {
                self.of(&[None, Some(Content::Parts(vec![])), Some(Content::Text("x".repeat(90)))])
            }
        }
    }

    fn image(&mut self) -> ContentPart {
        let url = BlobHash::of(&[self.below(6)]);
        let image_url = BlobUrl { url };
        ContentPart::ImageUrl { image_url, mime: "says/whoever".to_owned(), size: 7 }
    }

    /// What came with a request: most of what its messages name.
    pub(super) fn uploads(&mut self, messages: &[Message]) -> Blobs {
        let mut blobs = Blobs::new();
        for (hash, _) in messages.iter().flat_map(Message::blobs) {
            if !self.one_in(6) {
                let size = u64::from(self.below(3));
                blobs.insert(hash, BlobInfo { mime: "image/png".to_owned(), size });
            }
        }
        blobs
    }

    pub(super) fn new_message(&mut self, model: &Model) -> Message {
        let user = Role::User;
        let id = self.message_id(model);
        let role = self.of(&[user, user, user, user, Role::System, Role::Assistant, Role::Tool]);
        let content = self.content();
        let mut message = Message { id, content, ..Message::text(role, "") };
        if self.one_in(12) {
            message = with_a_call(message, "claimed", "look");
        }
        if role == Role::Tool {
            message.tool_call_id = self.of(&[None, Some(call_id("unknown"))]);
        }
        message
    }

    /// A tool message for a call that is open, or was, or never was.
    pub(super) fn tool_message(&mut self, model: &Model) -> Message {
        let call = match self.below(8) {
            0..6 => self.recent(&model.open_tools()),
            6 => self.recent(&model.ended_calls()),
            _ => None,
        };
        let id = self.message_id(model);
        let content = self.content();
        Message {
            id,
            content,
            tool_call_id: Some(call.unwrap_or_else(|| call_id("unknown"))),
            ..Message::text(Role::Tool, "")
        }
    }

    /// A list of what is new, now and then with something that is known.
    fn list(&mut self, model: &Model) -> Vec<Message> {
        let mut messages: Vec<Message> = Vec::new();
        for _ in 0..=self.below(3) {
            let message = match self.below(8) {
                0..3 => self.tool_message(model),
                3 => messages.last().cloned().unwrap_or_else(|| self.new_message(model)),
                4 => {
                    let known: Vec<Message> = model.recorded().cloned().collect();
                    self.recent(&known).unwrap_or_else(|| self.new_message(model))
                }
                _ => self.new_message(model),
            };
            messages.push(message);
        }
        messages
    }

    pub(super) fn submit(&mut self, model: &Model) -> Ask {
        let ask = match self.below(16) {
            0..4 => ask_message(self.new_message(model)),
            4 => ask_message(self.tool_message(model)),
            5..8 => append(&self.list(model)),
            8 => action("press", self.of(&[None, Some("{}")])),
            _ => view(&self.view(model)),
        };
        self.dress(ask, model)
    }

    /// What comes with an input.
    fn dress(&mut self, mut ask: Ask, model: &Model) -> Ask {
        let blobs = self.uploads(ask.0.input.messages());
        ask = ask.uploads(blobs);
        ask.0.turn_id = self.turn(model);
        ask.0.conditions = self.conditions(model);
        if self.one_in(3) {
            ask = ask.queued();
        }
        if self.one_in(4) {
            ask.0.caller = Caller::Machine;
        }
        let lists = matches!(ask.0.input.kind(), "client.messages" | "client.append");
        if lists && self.one_in(2) {
            ask = ask.client(self.of(&[&["pick"][..], &["look", "pick"], &[]]));
        }
        if ask.0.input.kind() != "client.action" && self.one_in(4) {
            ask = ask.streaming(self.one_in(2));
        }
        match self.below(40) {
            38 => ask.owner("eve"),
            39 => ask.agent("other"),
            _ => ask,
        }
    }

    /// What an end user says next, from a front end that offers tools.
    pub(super) fn say_something(&mut self, model: &Model) -> Ask {
        let mut message = Message::text(Role::User, self.text());
        message.id = self.of(&[None, Some(message_id(&format!("n{}", model.seq())))]);
        match self.below(4) {
            0 => ask_message(message),
            1 => append(&[message]).client(&["pick"]),
            2 => {
                let mut path = model.path().into_iter().cloned().collect::<Vec<_>>();
                path.push(message);
                view(&path).client(&["look", "pick"])
            }
            _ => view(&self.view(model)),
        }
    }

    /// A client does its part in one of the ways that there are.
    pub(super) fn answer_tool(&mut self, model: &Model) -> Command {
        let Some(id) = self.recent(&model.open_tools()) else {
            return Command::Wake;
        };
        let name = format!("r{}", model.seq());
        let result = result_of(&id, &name, self.of(&["rain", ""]));
        match self.below(8) {
            0..3 => settle_tool_by(zoe(), &id, None, self.tool_outcome()),
            3 => ask_message(result).into(),
            4 => append(&[result]).turn(&format!("t{}", model.seq())).into(),
            5 => {
                let results = model.open_tools();
                let results = results.iter().enumerate();
                let results: Vec<Message> = results
                    .map(|(index, id)| result_of(id, &format!("{name}-{index}"), "all"))
                    .collect();
                append(&results).into()
            }
            6 => append(&[result, user(&format!("n{}", model.seq()), "and then")]).into(),
            _ => {
                let mut path = model.path().into_iter().cloned().collect::<Vec<_>>();
                path.push(result);
                view(&path).into()
            }
        }
    }
}
