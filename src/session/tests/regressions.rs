//! What random conversations have found, as sentences.

use super::kit::*;
use crate::protocol::message::Role;
use crate::session::Rejection;

fn invalid(path: &str, problem: &'static str) -> Rejection {
    Rejection::Invalid { path: path.to_owned(), problem }
}

#[test]
fn an_edit_that_says_nothing_is_refused() {
    let mut conversation = Conversation::with_a_completed_turn();
    let problem = "says nothing, and no model answers that";
    for text in ["", " \n"] {
        let refused = conversation.refuses(view(&[user("m1", text)]));
        assert_eq!(refused, invalid("messages[0].content", problem));
    }
}

#[test]
fn a_refusal_counts_the_messages_that_are_not_looked_at() {
    let mut conversation = Conversation::with_a_completed_turn();
    let nobody_asked = result_of(&call_id("unknown"), "r1", "42");
    let seen = [user("m1", "hello"), nobody_asked, user("m2", "a"), user("m2", "b")];
    assert_eq!(conversation.refuses(view(&seen)), invalid("messages[3].id", "stands twice"));
}

#[test]
fn a_known_tool_message_alone_answers_no_other_call() {
    let (mut conversation, calls) = Conversation::with_open_tools(&["a", "b"]);
    conversation.accepts(append(&[result_of(&calls[0], "r1", "one")]));
    let again = ask_message(result_of(&calls[1], "r1", "two"));
    let refused = conversation.refuses(again);
    assert!(matches!(refused, Rejection::TurnAlreadyActive { .. }), "{refused:?}");
}

#[test]
fn a_view_goes_on_below_a_result_that_begins_the_conversation() {
    let mut conversation = Conversation::new();
    let result = result_of(&call_id("theirs"), "r1", "42");
    conversation.accepts(append(std::slice::from_ref(&result)).by_a_machine());
    conversation.answers("so it is");
    conversation.accepts(view(&[result, user("m1", "why?")]).by_a_machine());
    assert_eq!(conversation.texts(), ["42", "why?"]);
    let roles = conversation.view().messages.iter().map(|message| message.role).collect::<Vec<_>>();
    assert_eq!(roles, [Role::Tool, Role::User]);
}
