//! The title and the labels of a session.

use super::kit::*;
use crate::protocol::event::{Event, Payload, SessionUpdated};
use crate::protocol::json::Json;
use crate::protocol::message::Message;
use crate::session::{Caller, Rejection, Reply};

fn updated(event: &Event) -> Option<&SessionUpdated> {
    if let Payload::SessionUpdated(updated) = &event.payload {
        return Some(updated);
    }
    None
}

fn title(conversation: &Conversation) -> Option<String> {
    assert_eq!(conversation.session.summary().unwrap().title, conversation.view().title);
    conversation.view().title
}

#[test]
fn a_title_is_the_first_line_of_the_first_text_of_a_user() {
    let long = "x".repeat(100);
    for (text, expected) in [
        ("hello", "hello"),
        ("  \n\n  hello there \nand more", "hello there"),
        (long.as_str(), &"x".repeat(80)),
        (&"\u{e9}".repeat(100), &"\u{e9}".repeat(80)),
    ] {
        let mut conversation = Conversation::new();
        conversation.accepts(append(&[assistant("a1", "welcome"), user("u1", text)]));
        assert_eq!(title(&conversation).as_deref(), Some(expected));
        conversation.answers("hi");
        conversation.accepts(ask("something else"));
        assert_eq!(title(&conversation).as_deref(), Some(expected));
    }
}

#[test]
fn what_no_user_said_is_no_title() {
    let mut conversation = Conversation::new();
    conversation.accepts(action("begin", None));
    assert_eq!(title(&conversation), None);
    conversation.accepts(append(&[assistant("a1", "welcome")]));
    conversation.accepts(append(&[system("s1", "obey")]).by_a_machine());
    assert_eq!(title(&conversation), None);
    conversation.answers("yes");
    conversation.accepts(ask("hello"));
    assert_eq!(title(&conversation).as_deref(), Some("hello"));
}

#[test]
fn a_message_that_waits_gives_no_title_before_it_is_recorded() {
    let mut conversation = Conversation::new();
    conversation.accepts(append(&[system("s1", "obey")]).by_a_machine());
    conversation.accepts(ask("hello").queued());
    assert_eq!(title(&conversation), None);
    conversation.answers("yes");
    assert_eq!(title(&conversation).as_deref(), Some("hello"));
}

#[test]
fn a_given_title_stays_whatever_is_said() {
    let mut conversation = Conversation::new();
    conversation.accepts(action("begin", None));
    let step = conversation.accepts(update(Some("my notes"), None));
    assert_eq!((kinds(&step.events), step.reply), (vec!["session.updated"], Reply::Done));
    conversation.accepts(ask("hello"));
    assert_eq!(title(&conversation).as_deref(), Some("my notes"));
    conversation.accepts(update(Some("other notes"), None));
    conversation.restart();
    assert_eq!(title(&conversation).as_deref(), Some("other notes"));
}

#[test]
fn a_title_that_is_given_as_it_was_derived_is_a_given_one() {
    let mut conversation = Conversation::with_a_completed_turn();
    let step = conversation.accepts(update(Some("hello"), None));
    assert_eq!(only(&step.events, updated).title.as_deref(), Some("hello"));
    conversation.ignores(update(Some("hello"), None));
}

#[test]
fn an_update_records_only_what_changes() {
    let mut conversation = Conversation::with_a_completed_turn();
    conversation.ignores(update(None, None));
    let step = conversation.accepts(update(Some("notes"), Some(r#"{"a":"1"}"#)));
    let both = only(&step.events, updated);
    assert!(both.title.is_some() && both.metadata.is_some());
    conversation.ignores(update(Some("notes"), Some(r#"{"a":"1"}"#)));
    let step = conversation.accepts(update(Some("notes"), Some(r#"{"a":"2"}"#)));
    let one = only(&step.events, updated);
    assert_eq!((&one.title, one.metadata.as_ref().map(Json::text)), (&None, Some(r#"{"a":"2"}"#)));
    let step = conversation.accepts(update(Some("more notes"), Some(r#"{"a":"2"}"#)));
    let one = only(&step.events, updated);
    assert!(one.title.is_some() && one.metadata.is_none());
    let metadata = conversation.view().metadata.unwrap();
    assert_eq!(metadata.text(), r#"{"a":"2"}"#);
    assert_eq!(conversation.session.summary().unwrap().metadata, Some(metadata));
}

#[test]
fn metadata_replaces_what_was_there() {
    let mut conversation = Conversation::with_a_completed_turn();
    conversation.accepts(update(None, Some(r#"{"a":"1"}"#)));
    conversation.accepts(update(None, Some(r#"{"b":"2"}"#)));
    assert_eq!(conversation.view().metadata.unwrap().text(), r#"{"b":"2"}"#);
}

#[test]
fn an_update_is_taken_in_every_state_and_disturbs_nothing() {
    let mut paused = Conversation::with_a_running_turn();
    paused.accepts(interrupt("i1"));
    let (waiting, _) = Conversation::with_open_tools(&["left"]);
    for mut conversation in [Conversation::with_a_running_turn(), paused, waiting] {
        let owes = (conversation.session.owes(), conversation.session.wake_at());
        let step = conversation.accepts(update(Some("notes"), None));
        assert_eq!(kinds(&step.events), ["session.updated"]);
        assert_eq!(step.events[0].turn_id, Some(turn_id("t1")));
        assert_eq!((conversation.session.owes(), conversation.session.wake_at()), owes);
    }
}

#[test]
fn only_who_may_see_the_session_updates_it() {
    let mut conversation = Conversation::with_a_completed_turn();
    let eve = update_by(frontend_of("eve"), Some("mine"), None);
    assert_eq!(conversation.refuses(eve), Rejection::NotOwner);
    conversation.accepts(update_by(Caller::Machine, Some("theirs"), None));
    let nobody = Conversation::new().refuses(update(Some("mine"), None));
    assert_eq!(nobody, Rejection::UnknownSession);
}

#[test]
fn a_first_message_without_text_leaves_the_title_to_the_next() {
    let mut conversation = Conversation::new();
    let link = crate::protocol::content::ContentPart::Link {
        uri: crate::protocol::blob::Uri::Other("https://example.com/".to_owned()),
        name: None,
        mime_type: None,
        size: None,
    };
    let content = Some(crate::protocol::content::Content::Parts(vec![link]));
    let picture = Message { content, ..user("u1", "") };
    conversation.accepts(append(&[picture, user("u2", "what is this?")]));
    assert_eq!(title(&conversation).as_deref(), Some("what is this?"));
}
