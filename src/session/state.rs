//! What a session is at a position in its log. Built by replay alone.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::command::Caller;
use super::interrupt::{Answered, Interrupt};
use super::rejection::Rejection;
use super::tree::Tree;
use super::turn::{Turn, TurnRecord};
use crate::ids::{AgentId, CallId, InterruptId, OwnerId, Seq, SessionKey, TurnId};
use crate::protocol::content::Blobs;
use crate::protocol::event::{Event, TurnQueued};
use crate::protocol::input::Identity;
use crate::protocol::json::Json;
use crate::time::Timestamp;

/// The unit of consistency: equal logs make equal sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    pub(super) key: SessionKey,
    pub(super) seq: Seq,
    pub(super) first_event_at: Timestamp,
    pub(super) last_event_at: Timestamp,
    /// Who and what it was created for; none before the first event.
    pub(super) origin: Option<Origin>,
    pub(super) title: Title,
    pub(super) metadata: Option<Json>,
    pub(super) tree: Tree,
    pub(super) turn: Option<Turn>,
    pub(super) queue: VecDeque<TurnQueued>,
    pub(super) turns: HashMap<TurnId, TurnRecord>,
    /// Turn ids that came with an answer, and the turns that the answers continued (S58).
    pub(super) labels: HashMap<TurnId, TurnId>,
    /// The turn that started last.
    pub(super) last_turn: Option<TurnId>,
    /// Those that are open, in the order in which they were raised.
    pub(super) interrupts: Vec<Interrupt>,
    pub(super) resumed: HashMap<InterruptId, Answered>,
    /// Where the calls that are not open ended.
    pub(super) settled: HashMap<CallId, Seq>,
    /// Every blob that an event names.
    pub(super) blobs: Blobs,
    /// Where it was cancelled for good.
    pub(super) done: Option<Seq>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) agent_id: AgentId,
    pub(super) identity: Identity,
}

/// What a session is called in lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Title {
    /// The start of the first text of a user.
    pub(super) derived: Option<String>,
    /// Counts before the other.
    pub(super) given: Option<String>,
}

impl Session {
    /// A session without events.
    pub fn new(key: SessionKey) -> Self {
        Self {
            key,
            seq: Seq::default(),
            first_event_at: Timestamp::default(),
            last_event_at: Timestamp::default(),
            origin: None,
            title: Title::default(),
            metadata: None,
            tree: Tree::default(),
            turn: None,
            queue: VecDeque::new(),
            turns: HashMap::new(),
            labels: HashMap::new(),
            last_turn: None,
            interrupts: Vec::new(),
            resumed: HashMap::new(),
            settled: HashMap::new(),
            blobs: BTreeMap::new(),
            done: None,
        }
    }

    /// The session that `events` made.
    pub fn replay<'a>(key: SessionKey, events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut session = Self::new(key);
        for event in events {
            session.evolve(event);
        }
        session
    }

    pub fn key(&self) -> &SessionKey {
        &self.key
    }

    /// Position of the last event; 0 for a session that never received input.
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// When the last event was recorded.
    pub fn last_event_at(&self) -> Timestamp {
        self.last_event_at
    }

    pub fn agent_id(&self) -> Option<&AgentId> {
        self.origin.as_ref().map(|origin| &origin.agent_id)
    }

    pub fn running_turn(&self) -> Option<&TurnId> {
        self.turn.as_ref().map(|turn| &turn.id)
    }

    /// Refuses a caller who may not see the session.
    pub fn check_reader(&self, caller: &Caller) -> Result<(), Rejection> {
        match (&self.origin, caller) {
            (None, _) => Err(Rejection::UnknownSession),
            (Some(_), Caller::System | Caller::Machine) => Ok(()),
            (Some(origin), Caller::Frontend(owner)) if origin.identity.id == *owner => Ok(()),
            (Some(_), Caller::Frontend(_)) => Err(Rejection::NotOwner),
        }
    }

    pub fn owner(&self) -> Option<&OwnerId> {
        self.origin.as_ref().map(|origin| &origin.identity.id)
    }

    /// The next turn of the queue, if nothing holds it up: no pause, and no turn but one that waits for
    /// its client alone, which gives way to a new message (S42, S60).
    pub(super) fn next_in_queue(&self) -> Option<&TurnQueued> {
        let next = self.queue.front()?;
        let says_more = || next.input.messages().iter().any(|message| self.tree.is_new(message));
        let free = self.turn.as_ref().is_none_or(|turn| turn.waits_for_client() && says_more());
        (free && self.pause().is_none()).then_some(next)
    }
}
