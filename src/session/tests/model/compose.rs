//! How turns begin and go on (S18, S22, S44).

use super::view::{Below, End, Plan};
use super::{Forecast, Turn};
use crate::ids::TurnId;
use crate::protocol::event::{HeadMoved, Payload, TurnStarted};
use crate::protocol::input::Input;
use crate::protocol::llm::{Cost, Usage};
use crate::protocol::message::Role;
use crate::protocol::tool::ClientContext;
use crate::session::{Caller, Reply, TurnRecord};

impl Forecast<'_> {
    /// A turn begins at once with `input`.
    pub(super) fn start(&mut self, turn_id: TurnId, input: &Input, plan: Plan) -> Reply {
        let asked = matches!(input, Input::Action(_)).then(|| input.clone());
        let client = input.client().cloned();
        let started = TurnStarted { turn_id, input: asked, client: client.clone() };
        self.begin(started, client, wish(input));
        let reply = super::pause::accepted(self.latest());
        self.compose(plan);
        reply
    }

    fn latest(&self) -> (TurnId, TurnRecord) {
        let id = self.model.running.as_ref().map(|turn| turn.id.clone()).expect("a turn runs");
        let record = self.model.turns[&id];
        (id, record)
    }

    fn begin(&mut self, event: TurnStarted, client: Option<ClientContext>, stream: Option<bool>) {
        assert!(self.model.running.is_none(), "one turn at a time");
        let id = event.turn_id.clone();
        let started = self.emit(Payload::TurnStarted(event));
        let before = self.model.turns.insert(id.clone(), TurnRecord::Running { started });
        assert!(matches!(before, None | Some(TurnRecord::Queued { .. })), "{id} is not new");
        self.model.latest = Some(id.clone());
        self.model.running = Some(Turn {
            id,
            client,
            stream,
            cost: Cost::default(),
            usage: Usage::default(),
            call: None,
            tools: vec![],
            model_calls: 0,
        });
    }

    fn compose(&mut self, plan: Plan) {
        match plan.end {
            End::Nothing => {
                self.complete(None, None);
            }
            End::Move(to) => {
                self.move_head(to);
                self.complete(None, None);
            }
            End::Again(from) => {
                self.model.note("answered again");
                self.move_head(from);
                self.ask_the_model();
            }
            End::New => self.record(plan),
        }
    }

    fn move_head(&mut self, to: usize) {
        if self.model.tree.head != Some(to) {
            self.model.note("moved");
            let head_id = self.model.tree.id(Some(to)).expect("it is recorded");
            self.emit(Payload::HeadMoved(HeadMoved { head_id }));
            self.model.tree.head = Some(to);
        }
    }

    fn record(&mut self, plan: Plan) {
        let mut owed = false;
        let mut parent = match plan.below {
            Below::Head => self.model.tree.head,
            Below::Match(None) => None,
            Below::Match(place) => self.model.tree.below_results(place),
        };
        for message in plan.fresh {
            // One before it, or an answer, has the same id.
            if self.model.tree.knows(&message) {
                continue;
            }
            owed = message.role != Role::Assistant;
            if parent != self.model.tree.head {
                self.model.note("branched");
            }
            self.hear(parent, message);
            parent = self.model.tree.head;
        }
        if owed {
            self.ask_the_model();
        } else {
            self.complete(None, None);
        }
    }

    pub(super) fn go_on_with_the_queue(&mut self) {
        if self.model.next_in_queue().is_none() {
            return;
        }
        let (turn_id, input) = self.model.queue.pop_front().expect("a turn waits");
        let plan = self.model.plan(&input, &Caller::System).expect("it was taken");
        if self.model.running.is_some() {
            self.model.note("the queue went on without answers");
            self.close_for_the_next();
        }
        let started = TurnStarted { turn_id, input: None, client: None };
        self.begin(started, input.client().cloned(), wish(&input));
        self.compose(plan);
    }

    /// The running turn goes on where nobody is at work for it.
    pub(super) fn go_on(&mut self) {
        if !self.turn().tools.is_empty() {
            return;
        }
        if self.model.tree.role(self.model.tree.head) == Some(Role::Assistant) {
            self.complete(None, None);
        } else {
            self.ask_the_model();
        }
    }

    pub(super) fn go_on_unless_paused(&mut self) {
        if self.model.head_pause().is_none() {
            self.go_on();
        }
    }

    /// A turn for a message that nobody answered while its branch was paused.
    pub(super) fn start_the_owed_reply(&mut self, turn_id: Option<TurnId>) {
        self.model.note("a resume began the owed reply");
        let turn_id = turn_id.unwrap_or_else(|| self.news.turn_id());
        self.begin(TurnStarted { turn_id, input: None, client: None }, None, None);
        self.ask_the_model();
    }

    pub(super) fn owes_a_reply(&self) -> bool {
        let tree = &self.model.tree;
        let replied =
            tree.children(tree.head).any(|child| tree.role(Some(child)) == Some(Role::Assistant));
        tree.head.is_some() && tree.role(tree.head) != Some(Role::Assistant) && !replied
    }
}

fn wish(input: &Input) -> Option<bool> {
    match input {
        Input::Message(input) => input.stream,
        Input::Messages(input) | Input::Append(input) => input.stream,
        Input::Action(_) => None,
    }
}
