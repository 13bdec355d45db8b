//! A session comes to memory: its whole log is replayed, page by page.

use std::sync::Arc;

use turnd_storage::Page;

use super::super::dispatch::Dispatcher;
use super::super::feed::Feed;
use super::super::shared::{EngineError, Shared};
use super::Actor;
use crate::ids::SessionKey;
use crate::protocol::event::Event;
use crate::session::Session;

/// Bytes read at a time.
const PAGE_BYTES_MAX: usize = 1024 * 1024;

impl Actor {
    pub(super) async fn load(shared: Arc<Shared>, key: SessionKey) -> Result<Self, EngineError> {
        let _permit = shared.loads.acquire().await.map_err(|_| EngineError::Unavailable)?;
        let store = shared.store.clone();
        let replay_key = key.clone();
        let replayed = tokio::task::spawn_blocking(move || replay(&store, replay_key)).await;
        let session = match replayed {
            Ok(session) => session?,
            Err(panic) => {
                tracing::error!(session = %key.session, %panic, "a replay panicked");
                return Err(EngineError::Damaged);
            }
        };
        Ok(Self {
            ahead: session.last_event_at().since(shared.clock.now()),
            feed: Arc::new(Feed::new(key.session.clone(), session.seq())),
            key_bytes: key.to_bytes(),
            session,
            dispatcher: Dispatcher::default(),
            shared: Arc::clone(&shared),
            key,
        })
    }
}

fn replay(store: &turnd_storage::Store, key: SessionKey) -> Result<Session, EngineError> {
    let bytes = key.to_bytes();
    let mut session = Session::new(key);
    loop {
        let read = store.read(&bytes, session.seq().0, PAGE_BYTES_MAX);
        let Page { events, more } = read.map_err(|error| {
            tracing::error!(session = %session.key().session, %error, "a log cannot be read");
            EngineError::Damaged
        })?;
        for (seq, json) in events {
            let event = Event::decode(&json).ok().filter(|event| event.seq.0 == seq);
            let Some(event) = event else {
                tracing::error!(session = %session.key().session, seq, "an event cannot be read");
                return Err(EngineError::Damaged);
            };
            session.evolve(&event);
        }
        if !more {
            return Ok(session);
        }
    }
}
