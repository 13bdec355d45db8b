//! Sessions whose logs cannot be read.

use tempfile::TempDir;
use turnd_storage::{Append, Head, Place};

use super::super::kit;
use super::*;
use crate::ids::AgentId;
use crate::protocol::view::SessionStatus;
use crate::time::Timestamp;

fn engine() -> (TempDir, Engine) {
    let (folder, shared) = kit::shared();
    (folder, Engine(Arc::new(shared)))
}

fn key(session: &str) -> SessionKey {
    SessionKey { tenant: tenant(), session: SessionId::parse(session).unwrap() }
}

fn tenant() -> TenantId {
    TenantId::parse("default").unwrap()
}

fn owner(name: &str) -> OwnerId {
    OwnerId::parse(name).unwrap()
}

fn frontend(name: &str) -> Caller {
    Caller::Frontend(owner(name))
}

/// A head that names `named` and stands in the list of `listed`.
fn head(session: &str, listed: &str, named: &str) -> Head {
    let summary = SessionSummary {
        session_id: SessionId::parse(session).unwrap(),
        agent_id: AgentId::parse("demo").unwrap(),
        owner_id: owner(named),
        status: SessionStatus::Idle,
        title: None,
        metadata: None,
        turn_id: None,
        first_event_at: Timestamp::default(),
        last_event_at: Timestamp::default(),
    };
    let list = Bytes::from(format!("default\0{listed}"));
    Head {
        summary: serde_json::to_vec(&summary).unwrap().into(),
        owes: false,
        places: vec![Place { list, rank: 1 }],
    }
}

/// Stores a log that holds no event.
async fn damage(engine: &Engine, session: &str, head: Head) {
    let append = Append {
        key: key(session).to_bytes(),
        first_seq: 1,
        events: vec![Bytes::from_static(b"no event")],
        head,
        blobs: Vec::new(),
    };
    engine.0.store.append(append).await.unwrap();
}

async fn seen(engine: &Engine, session: &str) -> Result<SessionSummary, EngineError> {
    engine.summary(key(session), Caller::Machine).await
}

#[tokio::test]
async fn a_damaged_session_says_so_and_its_owner_can_erase_it() {
    let (_folder, engine) = engine();
    damage(&engine, "s1", head("s1", "ann", "ann")).await;
    // Again and again: it says so for as long as it is not read again.
    for _ in 0..3 {
        assert_eq!(seen(&engine, "s1").await, Err(EngineError::Damaged));
    }
    let by_bob = engine.erase(key("s1"), frontend("bob")).await;
    assert_eq!(by_bob, Err(EngineError::Damaged));
    assert_eq!(engine.erase(key("s1"), frontend("ann")).await, Ok(()));
    assert_eq!(seen(&engine, "s1").await, Err(Rejection::UnknownSession.into()));
    assert_eq!(engine.0.store.head(&key("s1").to_bytes()).unwrap(), None);
}

#[tokio::test]
async fn the_backend_erases_a_session_of_which_nothing_can_be_read() {
    let (_folder, engine) = engine();
    damage(&engine, "s1", Head::default()).await;
    let by_ann = engine.erase(key("s1"), frontend("ann")).await;
    assert_eq!(by_ann, Err(EngineError::Damaged));
    assert_eq!(engine.erase(key("s1"), Caller::Machine).await, Ok(()));
    assert_eq!(seen(&engine, "s1").await, Err(Rejection::UnknownSession.into()));
}

#[tokio::test]
async fn an_owner_is_erased_with_damaged_sessions() {
    let (_folder, engine) = engine();
    for session in ["s1", "s2", "s3"] {
        damage(&engine, session, head(session, "ann", "ann")).await;
    }
    assert_eq!(engine.erase_owner(&tenant(), &owner("ann")).await, Ok(3));
    assert_eq!(engine.erase_owner(&tenant(), &owner("ann")).await, Ok(0));
}

#[tokio::test]
async fn a_session_that_cannot_be_erased_holds_up_no_other() {
    let (_folder, engine) = engine();
    damage(&engine, "s0", head("s0", "ann", "somebody")).await;
    for session in ["s1", "s2", "s3", "s4"] {
        damage(&engine, session, head(session, "ann", "ann")).await;
    }
    let erased = engine.erase_owner(&tenant(), &owner("ann")).await;
    assert_eq!(erased, Err(EngineError::Damaged));
    let left = engine.list(&tenant(), &owner("ann"), None, 10).await.unwrap().items;
    let left: Vec<&str> = left.iter().map(|summary| summary.session_id.as_str()).collect();
    assert_eq!(left, ["s0"]);
}
