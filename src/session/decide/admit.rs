//! Whether what an input brings may begin a turn now (S17, S19, S42, S60).

use super::Decider;
use crate::ids::{CallId, MessageId, TurnId};
use crate::protocol::event::VoidReason;
use crate::protocol::input::{ActionInput, Input, MessageInput, MessagesInput};
use crate::protocol::message::Message;
use crate::protocol::tool::ClientContext;
use crate::session::rejection::Rejection;
use crate::session::turn::Turn;

/// What an input comes to, held against the conversation.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Messages that answer open client-handled calls (S23).
    pub(super) answers: Vec<(CallId, Message)>,
    pub(super) place: Place,
    pub(super) news: Vec<Message>,
    /// A recorded message is answered once more (S22).
    pub(super) rerun: bool,
    pub(super) stream: Option<bool>,
    pub(super) client: Option<ClientContext>,
    pub(super) action: Option<ActionInput>,
    /// As what it waits in the queue, which takes neither views nor actions.
    pub(super) waits: Option<Waits>,
}

/// What new messages go below, or the head moves to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Place {
    /// The head as it is when the turn starts.
    #[default]
    Head,
    /// Nothing: they begin a conversation.
    Root,
    At(MessageId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waits {
    Message,
    Append,
}

/// How an input enters.
pub(super) enum Entry {
    /// It answers calls of the running turn and no more.
    Continue(TurnId),
    Queue,
    Start,
}

impl Plan {
    /// What a queued input comes to when its turn starts: messages below the head as it is then.
    pub(super) fn queued(input: Input) -> Self {
        match input {
            Input::Message(MessageInput { message, stream }) => {
                Self { news: vec![message], stream, ..Self::default() }
            }
            // The turn knows its client context from `turn.queued`.
            Input::Append(MessagesInput { messages, stream, .. })
            | Input::Messages(MessagesInput { messages, stream, .. }) => {
                Self { news: messages, stream, ..Self::default() }
            }
            Input::Action(action) => Self { action: Some(action), ..Self::default() },
        }
    }

    /// The same again, to wait in the queue.
    pub(super) fn into_input(self) -> Input {
        let Self { mut news, stream, client, waits, .. } = self;
        if waits == Some(Waits::Message)
            && let Some(message) = news.pop()
        {
            return Input::Message(MessageInput { message, stream });
        }
        Input::Append(MessagesInput { messages: news, stream, client })
    }

    /// What is left once the answers are recorded: the rest goes below them.
    fn after_answers(self) -> Self {
        if self.answers.is_empty() {
            return self;
        }
        Self { place: Place::Head, answers: Vec::new(), ..self }
    }

    /// It shows another part of the conversation, and asks for nothing.
    fn only_moves(&self) -> bool {
        self.target().is_some() && !self.rerun
    }

    /// The recorded message that it ends at, with nothing new.
    pub(super) fn target(&self) -> Option<&MessageId> {
        match &self.place {
            Place::At(id) if self.news.is_empty() => Some(id),
            Place::At(_) | Place::Head | Place::Root => None,
        }
    }
}

impl Decider<'_> {
    pub(super) fn admit(&self, plan: &Plan, queue: bool) -> Result<Entry, Rejection> {
        let session = &*self.session;
        if !plan.answers.is_empty()
            && !self.brings_news(plan)
            && let Some(turn) = &session.turn
        {
            return Ok(Entry::Continue(turn.id.clone()));
        }
        let queue = queue && plan.waits.is_some();
        if let Some(pause) = session.pause_of(self.landing(plan))
            && !(plan.only_moves() && session.turn.is_none())
        {
            return if queue {
                self.queue()
            } else {
                Err(Rejection::Interrupted { seq: pause.seq })
            };
        }
        let busy_with = match &session.turn {
            Some(turn) if session.pause().is_some() || self.gives_way(turn, plan) => None,
            Some(turn) => Some(&turn.id),
            None => session.next_in_queue().map(|queued| &queued.turn_id),
        };
        match busy_with {
            None => Ok(Entry::Start),
            Some(_) if queue => self.queue(),
            Some(turn_id) => {
                let seq = session.turns.get(turn_id).map_or(session.seq, |record| record.seq());
                Err(Rejection::TurnAlreadyActive { turn_id: turn_id.clone(), seq })
            }
        }
    }

    fn queue(&self) -> Result<Entry, Rejection> {
        if self.session.queue.len() >= self.context.bounds.queued_turns_max {
            return Err(Rejection::QueueFull);
        }
        Ok(Entry::Queue)
    }

    /// Where the conversation would go on.
    fn landing<'p>(&'p self, plan: &'p Plan) -> Option<&'p MessageId> {
        if !plan.answers.is_empty() {
            return self.session.tree.head();
        }
        match &plan.place {
            Place::At(id) => Some(id),
            Place::Root => None,
            Place::Head => self.session.tree.head(),
        }
    }

    /// A turn that waits for its client alone gives way to what its user does next (S60): a new
    /// message, another answer to an earlier one, another branch; not to the same conversation
    /// without a word more.
    fn gives_way(&self, turn: &Turn, plan: &Plan) -> bool {
        let tree = &self.session.tree;
        let elsewhere = plan.target().is_some_and(|target| {
            let earlier = plan.rerun && Some(target) != tree.head();
            earlier || !tree.is_on_path(target, tree.head())
        });
        turn.waits_for_client() && (self.brings_news(plan) || elsewhere)
    }

    /// Known messages are dropped when the turn starts.
    fn brings_news(&self, plan: &Plan) -> bool {
        plan.news.iter().any(|message| self.session.tree.is_new(message))
    }

    /// Ends the running turn for one that takes its place: a paused one is left behind, one that
    /// waits for a client is closed. What is left of the plan goes below what that recorded.
    pub(super) fn make_way(&mut self, mut plan: Plan) -> Plan {
        if self.session.turn.is_none() {
            return plan;
        }
        if self.session.pause().is_some() {
            self.void_calls(VoidReason::Cancelled);
            self.cancel_turn(None);
            return plan;
        }
        for (id, answer) in plan.answers.clone() {
            self.take_answer(id, answer, None);
        }
        self.leave_unanswered_calls();
        if let Place::At(id) = &mut plan.place
            && !plan.news.is_empty()
        {
            *id = self.session.tree.below_its_results(id).clone();
        }
        plan.after_answers()
    }
}
