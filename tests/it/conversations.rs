//! Conversations that branch, are edited, run again, and are read a page at a time (S22, S25).

use serde_json::{Value, json};

use crate::kit::{Caller, Place, input, text_of};

fn user(id: &str, text: &str) -> Value {
    json!({ "id": id, "role": "user", "content": text })
}

/// A known message, as a client that holds it sends it again.
fn known(message: &Value) -> Value {
    message.clone()
}

/// Submits a whole view and waits for its turn.
fn show(caller: &Caller, turn: &str, messages: &[Value]) {
    let fields = json!({ "type": "client.messages", "messages": messages });
    caller.input(&input("s1", turn, fields)).expect(202);
    caller.watch_turn("s1", turn);
}

fn append(caller: &Caller, turn: &str, messages: &[Value]) -> Value {
    let fields = json!({ "type": "client.append", "messages": messages });
    let taken = caller.input(&input("s1", turn, fields)).expect(202);
    caller.watch_turn("s1", turn);
    taken
}

fn messages(caller: &Caller) -> Vec<Value> {
    caller.session("s1")["messages"].as_array().unwrap().clone()
}

fn texts(caller: &Caller) -> Vec<String> {
    messages(caller).iter().map(|message| text_of(message).to_owned()).collect()
}

fn nodes(caller: &Caller) -> usize {
    caller.session("s1")["message_tree"]["nodes"].as_array().unwrap().len()
}

#[test]
fn a_view_goes_on_branches_switches_and_runs_again() {
    let place = Place::new();
    let server = place.serve();
    let ann = server.client("ann");
    show(&ann, "t1", &[user("m1", "one")]);
    let first = messages(&ann);
    show(&ann, "t2", &[known(&first[0]), known(&first[1]), user("m2", "two")]);
    let long = messages(&ann);
    assert_eq!(texts(&ann), ["one", "You said: one", "two", "You said: two"]);

    // Another word under a known id is an edit: it begins a branch, and the old one stays.
    show(&ann, "t3", &[user("m1", "uno")]);
    assert_eq!(texts(&ann), ["uno", "You said: uno"]);
    assert_ne!(messages(&ann)[0]["id"], "m1");
    assert_eq!(nodes(&ann), 6);

    // A view that ends at a reply moves the head there, and nothing else happens.
    let moved = append_nothing_but_look(&ann, "t4", &long);
    assert_eq!(texts(&ann), ["one", "You said: one", "two", "You said: two"]);
    assert_eq!(moved, ["turn.started", "head.moved", "turn.completed"]);

    // One that ends at a question asks it again.
    show(&ann, "t5", &long[..3]);
    assert_eq!(texts(&ann), ["one", "You said: one", "two", "You said: two"]);
    assert_ne!(messages(&ann)[3]["id"], long[3]["id"]);
    assert_eq!(nodes(&ann), 7);

    let before = ann.session("s1");
    server.kill();
    let server = place.serve();
    let ann = server.client("ann");
    assert_eq!(ann.session("s1"), before, "a restart reads the same conversation");
    show(&ann, "t6", &[known(&long[0]), known(&long[1]), user("m3", "three")]);
    assert_eq!(texts(&ann), ["one", "You said: one", "three", "You said: three"]);
}

/// Submits a view and tells the kinds of the events of its turn.
fn append_nothing_but_look(caller: &Caller, turn: &str, messages: &[Value]) -> Vec<String> {
    let fields = json!({ "type": "client.messages", "messages": messages });
    caller.input(&input("s1", turn, fields)).expect(202);
    caller.watch_turn("s1", turn).into_iter().map(|frame| frame.event).collect()
}

#[test]
fn a_view_that_does_not_fit_the_tree_is_refused_by_its_place() {
    let server = Place::new().serve_once();
    let ann = server.client("ann");
    show(&ann, "t1", &[user("m1", "one")]);
    show(&ann, "t2", &[known(&messages(&ann)[0]), known(&messages(&ann)[1]), user("m2", "two")]);
    let whole = messages(&ann);
    let fields = json!({ "type": "client.messages", "messages": [whole[0], whole[2]] });
    let refusal = ann.input(&input("s1", "t3", fields)).refusal(400);
    assert!(refusal.starts_with("`input.messages[1]"), "{refusal}");
    assert_eq!(nodes(&ann), 4, "nothing was added");
}

#[test]
fn an_append_drops_what_is_known() {
    let server = Place::new().serve_once();
    let ann = server.client("ann");
    append(&ann, "t1", &[user("m1", "one")]);
    append(&ann, "t2", &[user("m1", "one"), user("m2", "two")]);
    assert_eq!(texts(&ann), ["one", "You said: one", "two", "You said: two"]);
    append(&ann, "t3", &[user("m1", "one"), user("m2", "two")]);
    assert_eq!(nodes(&ann), 4);
}

#[test]
fn a_condition_that_does_not_hold_is_a_conflict_that_says_what_does() {
    let server = Place::new().serve_once();
    let ann = server.client("ann");
    let first = append(&ann, "t1", &[user("m1", "one")]);
    assert_eq!(first["seq"], 2, "the position of what decided: the turn's start");
    let head = messages(&ann)[1]["id"].clone();
    let seq = ann.stream("s1", "").until_completed("t1").last().unwrap().id.unwrap();
    for (name, value) in [("if_seq", json!(seq + 1)), ("if_head", json!("m1"))] {
        let mut fields = json!({ "type": "client.message", "message": user("m2", "two") });
        fields[name] = value;
        let refused = ann.input(&input("s1", "t2", fields)).expect(409);
        let expected =
            json!({ "error": "the condition does not hold", "head_id": head, "seq": seq });
        assert_eq!(refused, expected);
    }
    let mut fields = json!({ "type": "client.message", "message": user("m2", "two") });
    fields["if_seq"] = seq.into();
    fields["if_head"] = head;
    let taken = ann.input(&input("s1", "t2", fields)).expect(202);
    assert_eq!(taken["seq"], seq + 1);
}

#[test]
fn a_conversation_is_read_a_page_at_a_time() {
    let server = Place::new().serve_once();
    let ann = server.client("ann");
    for turn in 1..=4 {
        append(&ann, &format!("t{turn}"), &[user(&format!("m{turn}"), &turn.to_string())]);
    }
    let whole = messages(&ann);
    let page = |query: &str| ann.get(&ann.path("s1", query)).expect(200);
    let last = page("?limit=3");
    assert_eq!(last["messages"], json!(whole[5..]));
    assert_eq!((&last["has_more"], last["message_tree"].is_null()), (&true.into(), false));
    let mut before = last["messages"][0]["id"].as_str().unwrap().to_owned();
    let middle = page(&format!("?limit=3&before={before}&tree=false"));
    assert_eq!(middle["messages"], json!(whole[2..5]));
    assert!(middle.get("message_tree").is_none(), "{middle}");
    middle["messages"][0]["id"].as_str().unwrap().clone_into(&mut before);
    let first = page(&format!("?before={before}&limit=3"));
    assert_eq!((&first["messages"], &first["has_more"]), (&json!(whole[..2]), &false.into()));
    let all = page("?tree=true");
    assert_eq!((&all["messages"], all.get("has_more")), (&json!(whole), None));
    for query in [
        "?limit=0",
        "?limit=-1",
        "?limit=x",
        "?limit=",
        "?before=%20",
        "?tree=no",
        "?before=unheard",
    ] {
        let refusal = ann.get(&ann.path("s1", query)).refusal(400);
        let (name, _) = query.trim_start_matches('?').split_once('=').unwrap();
        assert!(refusal.contains(&format!("`{name}`")), "{query}: {refusal}");
    }
}

#[test]
fn a_long_conversation_comes_whole_in_pieces() {
    let server = Place::new().serve_once();
    let ann = server.client("ann");
    let text = "word ".repeat(20_000);
    let long: Vec<Value> =
        (0..8).map(|number| user(&format!("m{number}"), &format!("{number} {text}"))).collect();
    append(&ann, "t1", &long);
    let answer = ann.get(&ann.path("s1", ""));
    assert_eq!(answer.header("transfer-encoding"), Some("chunked"));
    let session = answer.expect(200);
    assert_eq!(session["messages"].as_array().unwrap().len(), 9);
    assert_eq!(session["messages"][7]["content"], format!("7 {text}"));
    assert_eq!(session["message_tree"]["nodes"].as_array().unwrap().len(), 9);
}
