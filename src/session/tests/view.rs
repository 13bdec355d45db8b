//! `client.messages`: the conversation as a client has it, matched from the root (S22).

use super::kit::*;
use crate::protocol::content::{Content, ContentPart};
use crate::protocol::message::{Message, Role};
use crate::session::{Rejection, Reply};

const RUN: [&str; 4] = ["turn.started", "message.new", "llm.call.requested", "llm.call.dispatched"];
const RERUN: [&str; 4] =
    ["turn.started", "head.moved", "llm.call.requested", "llm.call.dispatched"];
const MOVE: [&str; 3] = ["turn.started", "head.moved", "turn.completed"];
const NOTHING: [&str; 2] = ["turn.started", "turn.completed"];

fn wrong_place(index: usize) -> Rejection {
    Rejection::Invalid {
        path: format!("messages[{index}].id"),
        problem: "is recorded at another place of the conversation",
    }
}

/// u1 - a1 - u2 - a2, all from outside.
fn recorded_conversation() -> Conversation {
    let mut conversation = Conversation::new();
    conversation.accepts(append(&told()));
    conversation
}

fn told() -> Vec<Message> {
    vec![user("u1", "one"), assistant("a1", "first"), user("u2", "two"), assistant("a2", "second")]
}

/// As `recorded_conversation`, with u3 - a3 beside u2, where the head is.
fn branched_conversation() -> Conversation {
    let mut conversation = recorded_conversation();
    let other = [user("u3", "three"), assistant("a3", "third")];
    conversation.accepts(view(&[&told()[..2], &other].concat()));
    assert_eq!(conversation.path(), ["u1", "a1", "u3", "a3"]);
    conversation
}

/// A batch of two tool calls, answered out of order, and the reply: the ids of its path.
fn conversation_with_results() -> (Conversation, Vec<Message>) {
    let (mut conversation, calls) = Conversation::with_open_tools(&["left", "right"]);
    for (call, id) in calls.iter().zip(["r1", "r2"]).rev() {
        conversation.accepts(append(&[result_of(call, id, id)]));
    }
    conversation.answers("done");
    let messages = conversation.view().messages;
    (conversation, messages.iter().map(|message| (**message).clone()).collect())
}

#[test]
fn a_view_of_new_messages_begins_the_conversation() {
    let mut conversation = Conversation::new();
    let step = conversation.accepts(view(&[assistant("a0", "welcome"), user("u1", "hello")]));
    let expected = [&["session.created", "turn.started", "message.new"][..], &RUN[1..]].concat();
    assert_eq!(kinds(&step.events), expected);
    assert_eq!(conversation.prompt(), ["welcome", "hello"]);
}

#[test]
fn the_first_new_message_goes_below_the_last_match() {
    for messages in [
        [&told()[..], &[user("u3", "three")]].concat(),
        [&told()[..], &[nameless(user("u3", "three"))]].concat(),
    ] {
        let mut conversation = recorded_conversation();
        let step = conversation.accepts(view(&messages));
        assert_eq!(kinds(&step.events), RUN);
        assert_eq!(only(&step.events, message_new).parent_id, Some(message_id("a2")));
        assert_eq!(conversation.prompt(), ["one", "first", "two", "second", "three"]);
    }
}

#[test]
fn messages_that_are_left_out_make_a_branch() {
    let mut conversation = recorded_conversation();
    let step = conversation.accepts(view(&[&told()[..2], &[user("u3", "three")]].concat()));
    assert_eq!(only(&step.events, message_new).parent_id, Some(message_id("a1")));
    assert_eq!(conversation.prompt(), ["one", "first", "three"]);
    assert_eq!(conversation.view().message_tree.unwrap().nodes.len(), 5);
}

#[test]
fn a_view_of_messages_without_ids_begins_anew_at_the_root() {
    let mut conversation = recorded_conversation();
    let step = conversation.accepts(view(&[nameless(user("u1", "one"))]));
    assert_eq!(only(&step.events, message_new).parent_id, None);
    assert_eq!(conversation.prompt(), ["one"]);
}

#[test]
fn several_new_messages_stand_one_below_the_other_and_the_last_decides() {
    let mut conversation = recorded_conversation();
    let news = [user("u3", "three"), assistant("a3", "third"), user("u4", "four")];
    let step = conversation.accepts(view(&[&told()[..], &news].concat()));
    let parents: Vec<_> = step.events.iter().filter_map(message_new).collect();
    let parents: Vec<_> = parents.iter().map(|new| new.parent_id.clone().unwrap()).collect();
    assert_eq!(parents, ["a2", "u3", "a3"].map(message_id));
    conversation.answers("fourth");
    let head = conversation.head();
    let news = [user("u5", "five"), assistant("a5", "fifth")];
    let known: Vec<Message> =
        conversation.view().messages.iter().map(|message| (**message).clone()).collect();
    let step = conversation.accepts(view(&[&known[..], &news].concat()));
    let expected = ["turn.started", "message.new", "message.new", "turn.completed"];
    assert_eq!(kinds(&step.events), expected);
    assert_ne!(conversation.head(), head);
}

#[test]
fn known_ids_lead_down_any_branch() {
    let mut conversation = branched_conversation();
    let step = conversation.accepts(view(&told()));
    assert_eq!(kinds(&step.events), MOVE);
    assert_eq!(conversation.path(), ["u1", "a1", "u2", "a2"]);
    let other = [user("u3", ""), assistant("a3", "third"), user("u4", "four")];
    let other = [&told()[..2], &[user("u3", "three")], &other[1..]].concat();
    conversation.accepts(view(&other));
    assert_eq!(conversation.prompt(), ["one", "first", "three", "third", "four"]);
}

#[test]
fn a_view_that_ends_at_a_recorded_assistant_only_moves_the_head() {
    let mut conversation = recorded_conversation();
    let step = conversation.accepts(view(&told()[..2]).turn("t2"));
    assert_eq!(kinds(&step.events), MOVE);
    assert_eq!(conversation.head(), "a1");
    assert!(only(&step.events, turn_completed).data.is_none());
    let step = conversation.accepts(view(&told()[..2]));
    assert_eq!(kinds(&step.events), NOTHING, "a head that stays is not recorded");
    let step = conversation.accepts(view(&told()));
    assert_eq!(kinds(&step.events), MOVE);
    assert_eq!(conversation.head(), "a2");
}

#[test]
fn a_view_that_ends_at_a_user_message_is_answered_again() {
    for (end, prompt) in [(1, &["one"][..]), (3, &["one", "first", "two"])] {
        let mut conversation = recorded_conversation();
        let step = conversation.accepts(view(&told()[..end]));
        assert_eq!(kinds(&step.events), RERUN);
        assert_eq!(conversation.prompt(), prompt);
        conversation.answers("again");
        let nodes = conversation.view().message_tree.unwrap().nodes;
        assert_eq!(nodes.len(), 5, "the first answer stays beside the second");
    }
}

#[test]
fn an_unanswered_head_is_answered_again_without_a_move() {
    let mut conversation = Conversation::with_a_running_turn();
    conversation.fails(refused());
    let step = conversation.accepts(view(&[user("m1", "hello")]));
    assert_eq!(kinds(&step.events), ["turn.started", "llm.call.requested", "llm.call.dispatched"]);
}

#[test]
fn a_view_that_ends_at_a_tool_message_runs_again_from_the_last_result_of_its_batch() {
    // hello, the call, r2, r1, done
    for end in [3, 4] {
        let (mut conversation, messages) = conversation_with_results();
        let step = conversation.accepts(view(&messages[..end]));
        assert_eq!(kinds(&step.events), RERUN);
        assert_eq!(conversation.prompt(), ["hello", "", "r2", "r1"]);
    }
}

#[test]
fn results_may_be_left_out_or_stand_in_another_order() {
    let (_, all) = conversation_with_results();
    let new = || user("u2", "more");
    let pick = |order: &[usize]| -> Vec<Message> {
        order.iter().map(|at| all[*at].clone()).chain([new()]).collect()
    };
    for order in [&[0, 1, 2, 3, 4][..], &[0, 1, 3, 2, 4], &[0, 1, 2, 4], &[0, 1, 3, 4], &[0, 1, 4]]
    {
        let (mut conversation, _) = conversation_with_results();
        let step = conversation.accepts(view(&pick(order)));
        assert_eq!(kinds(&step.events), RUN, "{order:?}");
        assert_eq!(conversation.prompt(), ["hello", "", "r2", "r1", "done", "more"]);
    }
    for order in [&[0, 1][..], &[0, 1, 2], &[0, 1, 3, 2]] {
        let (mut conversation, _) = conversation_with_results();
        conversation.accepts(view(&pick(order)));
        let prompt = conversation.prompt();
        assert_eq!(prompt, ["hello", "", "r2", "r1", "more"], "below the results: {order:?}");
    }
}

#[test]
fn a_known_id_at_the_wrong_place_is_refused() {
    let [u1, a1, u2, a2] = told().try_into().unwrap();
    let new = user("u9", "nine");
    for (messages, at) in [
        (vec![a1.clone()], 0),
        (vec![u2.clone(), a2.clone()], 0),
        (vec![u1.clone(), u2.clone()], 1),
        (vec![u1.clone(), a2.clone()], 1),
        (vec![u1.clone(), a1.clone(), a2.clone()], 2),
        (vec![u1.clone(), u1.clone()], 1),
        (vec![u1.clone(), a1.clone(), u1.clone()], 2),
        (vec![u1.clone(), a1.clone(), u2, a2.clone(), u1.clone()], 4),
        (vec![new.clone(), u1.clone()], 1),
        (vec![u1.clone(), new, a1.clone()], 2),
        (vec![user("u1", "edited"), a1], 1),
        (vec![user("u1", "edited"), u1], 1),
    ] {
        let mut conversation = recorded_conversation();
        assert_eq!(conversation.refuses(view(&messages)), wrong_place(at), "{messages:?}");
    }
}

#[test]
fn a_result_before_its_call_is_at_the_wrong_place() {
    let (mut conversation, all) = conversation_with_results();
    let early = [all[0].clone(), all[2].clone(), all[1].clone()];
    assert_eq!(conversation.refuses(view(&early)), wrong_place(1));
}

#[test]
fn a_new_id_that_stands_twice_is_refused() {
    let twice = [user("u8", "eight"), assistant("a8", "eighth"), user("u8", "again")];
    let expected =
        Rejection::Invalid { path: "messages[2].id".to_owned(), problem: "stands twice" };
    assert_eq!(Conversation::new().refuses(view(&twice)), expected);
    let mut conversation = recorded_conversation();
    assert_eq!(conversation.refuses(view(&twice)), expected);
}

#[test]
fn other_words_of_a_user_branch_under_an_id_of_the_engine() {
    let mut conversation = recorded_conversation();
    let edited = [&told()[..2], &[user("u2", "TWO")]].concat();
    let step = conversation.accepts(view(&edited));
    assert_eq!(kinds(&step.events), RUN);
    let new = only(&step.events, message_new);
    assert_eq!(new.parent_id, Some(message_id("a1")));
    assert_ne!(new.message.id, Some(message_id("u2")));
    assert_eq!(conversation.prompt(), ["one", "first", "TWO"]);
    let nodes = conversation.view().message_tree.unwrap().nodes;
    assert_eq!(nodes.iter().filter(|node| text_of(&node.message) == "two").count(), 1);
}

#[test]
fn an_edit_of_the_first_message_begins_a_second_root() {
    let mut conversation = recorded_conversation();
    let step = conversation.accepts(view(&[user("u1", "ONE")]));
    assert_eq!(only(&step.events, message_new).parent_id, None);
    assert_eq!(conversation.prompt(), ["ONE"]);
}

#[test]
fn what_follows_an_edit_goes_below_it() {
    let mut conversation = recorded_conversation();
    conversation.accepts(view(&[user("u1", "ONE"), user("u5", "five")]));
    assert_eq!(conversation.prompt(), ["ONE", "five"]);
}

#[test]
fn an_edit_after_results_goes_below_the_results() {
    let (mut conversation, _) = Conversation::with_open_tools(&["left"]);
    conversation.accepts(ask("never mind").message("u2"));
    conversation.answers("all right");
    let mut messages: Vec<Message> =
        conversation.view().messages.iter().map(|message| (**message).clone()).collect();
    messages.truncate(4);
    messages[3].content = Some(Content::Text("go on".to_owned()));
    conversation.accepts(view(&messages));
    let unanswered = "the user continued without answering";
    assert_eq!(conversation.prompt(), ["hello", "", unanswered, "go on"]);
}

#[test]
fn the_same_words_in_another_spelling_are_no_edit() {
    let mut conversation = recorded_conversation();
    let part = ContentPart::Text { text: "one".to_owned() };
    let spelled = Message { content: Some(Content::Parts(vec![part])), ..user("u1", "") };
    let verdict = conversation.apply(view(&[&[spelled], &told()[1..]].concat()).into());
    assert_eq!(kinds(&verdict.unwrap().events), NOTHING);
}

#[test]
fn other_words_of_an_assistant_or_a_tool_are_not_heard() {
    let (mut conversation, mut messages) = conversation_with_results();
    for message in &mut messages[1..] {
        message.content = Some(Content::Text("something else".to_owned()));
    }
    messages[0].role = Role::User;
    let step = conversation.accepts(view(&messages));
    assert_eq!(kinds(&step.events), NOTHING);
    assert_eq!(conversation.texts(), ["hello", "", "r2", "r1", "done"]);
}

#[test]
fn the_system_text_of_a_frontend_counts_as_user_text_in_a_view() {
    for (machine, expected) in [(false, Role::User), (true, Role::System)] {
        let mut conversation = Conversation::new();
        let mut ask = view(&[system("s1", "obey"), user("u1", "hello")]);
        if machine {
            ask = ask.by_a_machine();
        }
        conversation.accepts(ask);
        let roles: Vec<Role> =
            conversation.view().messages.iter().map(|message| message.role).collect();
        assert_eq!(roles, [expected, Role::User]);
        let again = view(&[system("s1", "obey"), user("u1", "hello")]);
        conversation.answers("hi");
        let step = conversation.accepts(again);
        assert_eq!(kinds(&step.events), RERUN, "the system text is known, and no edit");
    }
}

#[test]
fn an_unknown_assistant_message_of_a_frontend_is_recorded_without_tool_calls() {
    for (machine, calls) in [(false, 0), (true, 1)] {
        let mut conversation = Conversation::new();
        let claimed = with_a_call(assistant("a1", "I called"), "c1", "left");
        let mut ask = view(&[user("u1", "hello"), claimed, user("u2", "go on")]);
        if machine {
            ask = ask.by_a_machine();
        }
        conversation.accepts(ask);
        let said = &conversation.view().messages[1];
        assert_eq!((said.role, said.tool_calls.len()), (Role::Assistant, calls));
    }
}

#[test]
fn an_unknown_assistant_message_that_says_nothing_is_dropped() {
    let mut conversation = Conversation::new();
    let empty = with_a_call(assistant("a1", " "), "c1", "left");
    conversation.accepts(view(&[user("u1", "hello"), empty, user("u2", "go on")]));
    assert_eq!(conversation.prompt(), ["hello", "go on"]);
}

#[test]
fn a_tool_message_of_a_frontend_that_answers_nothing_is_dropped() {
    let mut conversation = Conversation::new();
    let claimed = result_of(&call_id("c1"), "r1", "42");
    let step = conversation.accepts(view(&[user("u1", "hello"), claimed.clone()]));
    assert_eq!(conversation.prompt(), ["hello"], "{step:?}");
    conversation.answers("hi");
    let step = conversation.accepts(view(&[claimed]));
    assert_eq!(kinds(&step.events), NOTHING);
}

#[test]
fn a_message_of_a_person_that_says_nothing_is_refused() {
    for silent in [user("u2", " \n"), system("u2", "")] {
        let expected = Rejection::Invalid {
            path: "messages[1].content".to_owned(),
            problem: "says nothing, and no model answers that",
        };
        let messages = [user("u1", "hello"), silent];
        for ask in [view(&messages), append(&messages), view(&messages).by_a_machine()] {
            assert_eq!(Conversation::new().refuses(ask), expected);
        }
    }
}

#[test]
fn a_view_is_refused_while_a_turn_runs_and_never_queued() {
    let mut conversation = Conversation::with_a_running_turn();
    for messages in [
        &[user("m1", "hello")][..],
        &[user("m1", "edited")],
        &[user("m1", "hello"), user("u2", "more")],
    ] {
        let rejection = conversation.refuses(view(messages).queued());
        assert!(matches!(rejection, Rejection::TurnAlreadyActive { .. }), "{rejection:?}");
    }
}

#[test]
fn a_view_answers_with_its_own_turn() {
    let mut conversation = recorded_conversation();
    let step = conversation.accepts(view(&told()[..2]).turn("t2"));
    let Reply::Accepted { turn_id: id, queued, seq } = step.reply else { panic!("accepted") };
    assert_eq!((id, queued, seq), (turn_id("t2"), false, step.events[0].seq));
    let again = conversation.ignores(view(&told()).turn("t2"));
    assert!(matches!(again, Reply::Accepted { .. }));
    assert_eq!(conversation.head(), "a1");
}

#[test]
fn a_long_conversation_that_is_known_records_nothing() {
    let told: Vec<Message> = (0..5_000)
        .flat_map(|at| [user(&format!("u{at}"), "why?"), assistant(&format!("a{at}"), "so")])
        .collect();
    let mut conversation = Conversation::new();
    conversation.accepts(append(&told));
    let step = conversation.accepts(view(&told));
    assert_eq!(kinds(&step.events), NOTHING);
    let bytes: usize = step.events.iter().map(|event| event.encode(&key().session).len()).sum();
    assert!(bytes < 500, "S14: {bytes}");
    let step = conversation.accepts(view(&[&told[..], &[user("more", "more")]].concat()));
    assert_eq!(kinds(&step.events), RUN);
}
