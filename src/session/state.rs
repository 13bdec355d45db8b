//! What a session is at a position in its log. Built by replay alone.

use std::collections::{BTreeMap, VecDeque};

use super::tree::Tree;
use super::turn::{Turn, TurnRecord};
use crate::ids::{AgentId, Seq, SessionKey, TurnId};
use crate::protocol::event::{Event, TurnQueued};
use crate::protocol::input::Identity;
use crate::time::Timestamp;

/// The unit of consistency: equal logs make equal sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    pub(super) key: SessionKey,
    pub(super) seq: Seq,
    pub(super) last_event_at: Timestamp,
    /// Who and what it was created for; none before the first event.
    pub(super) origin: Option<Origin>,
    pub(super) tree: Tree,
    pub(super) turn: Option<Turn>,
    pub(super) queue: VecDeque<TurnQueued>,
    pub(super) turns: BTreeMap<TurnId, TurnRecord>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) agent_id: AgentId,
    pub(super) identity: Identity,
}

impl Session {
    /// A session without events.
    pub fn new(key: SessionKey) -> Self {
        Self {
            key,
            seq: Seq::default(),
            last_event_at: Timestamp::default(),
            origin: None,
            tree: Tree::default(),
            turn: None,
            queue: VecDeque::new(),
            turns: BTreeMap::new(),
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

    pub fn exists(&self) -> bool {
        self.origin.is_some()
    }

    pub fn agent_id(&self) -> Option<&AgentId> {
        self.origin.as_ref().map(|origin| &origin.agent_id)
    }

    pub fn running_turn(&self) -> Option<&TurnId> {
        self.turn.as_ref().map(|turn| &turn.id)
    }

    /// The turn that a new one must wait for: the running one, or the next that starts.
    pub(super) fn busy_with(&self) -> Option<&TurnId> {
        self.running_turn().or_else(|| self.queue.front().map(|queued| &queued.turn_id))
    }

    pub fn is_owned_by(&self, owner: &crate::ids::OwnerId) -> bool {
        self.origin.as_ref().is_some_and(|origin| origin.identity.id == *owner)
    }
}
