//! Lists of sessions, and what a session is called (S25).

use serde_json::{Value, json};

use crate::kit::{Caller, Place};

fn list(caller: &Caller, query: &str) -> Value {
    caller.get(&format!("/api/client/sessions{query}")).expect(200)
}

fn ids(page: &Value) -> Vec<&str> {
    let items = page["items"].as_array().unwrap();
    items.iter().map(|item| item["session_id"].as_str().unwrap()).collect()
}

fn turn(caller: &Caller, session: &str, turn: &str) {
    caller.say(session, turn, "hello");
    caller.watch_turn(session, turn);
}

#[test]
fn a_list_shows_the_latest_session_first_and_goes_on_where_it_stopped() {
    let place = Place::new();
    let server = place.serve();
    let (ann, bob) = (server.client("ann"), server.client("bob"));
    assert_eq!(list(&ann, ""), json!({ "items": [], "next_cursor": null }));
    for session in ["s1", "s2", "s3", "s4", "s5"] {
        turn(&ann, session, "t1");
    }
    turn(&bob, "b1", "t1");
    turn(&ann, "s2", "t2");
    let whole = list(&ann, "");
    assert_eq!(ids(&whole), ["s2", "s5", "s4", "s3", "s1"]);
    assert_eq!(whole["next_cursor"], Value::Null);
    assert_eq!(ids(&list(&bob, "")), ["b1"]);
    let item = &whole["items"][0];
    assert_eq!((&item["agent_id"], &item["owner_id"]), (&"demo".into(), &"ann".into()));
    assert_eq!(item["status"], "idle");
    assert_eq!(item.get("turn_id"), None);
    assert!(item["last_event_at"].as_str() >= item["first_event_at"].as_str());

    let first = list(&ann, "?limit=2");
    assert_eq!(ids(&first), ["s2", "s5"]);
    server.kill();
    let server = place.serve();
    let ann = server.client("ann");
    assert_eq!(list(&ann, ""), whole, "a restart keeps the list");
    let cursor = |page: &Value| page["next_cursor"].as_str().unwrap().to_owned();
    let second = list(&ann, &format!("?limit=2&cursor={}", cursor(&first)));
    assert_eq!(ids(&second), ["s4", "s3"]);
    let third = list(&ann, &format!("?cursor={}&limit=2", cursor(&second)));
    assert_eq!((ids(&third), &third["next_cursor"]), (vec!["s1"], &Value::Null));
    // A session that moves up meanwhile is not shown twice to who goes on.
    turn(&ann, "s3", "t2");
    assert_eq!(ids(&list(&ann, &format!("?cursor={}", cursor(&first)))), ["s4", "s1"]);
}

#[test]
fn a_running_turn_shows_in_the_list() {
    let server = Place::new().serve_once();
    let ann = server.client("ann");
    ann.say("s1", "t1", "/slow 10000 held");
    let item = list(&ann, "")["items"][0].clone();
    assert_eq!(item["turn_id"], "t1");
}

#[test]
fn a_session_is_named_and_labelled() {
    let place = Place::new();
    let server = place.serve();
    let (ann, bob, machine) = (server.client("ann"), server.client("bob"), server.machine());
    turn(&ann, "s1", "t1");
    turn(&ann, "s2", "t1");
    let body = json!({ "title": "My trip", "metadata": { "folder": "travel" } });
    let row = ann.patch(&ann.path("s1", ""), &body).expect(200);
    assert_eq!((&row["title"], &row["metadata"]), (&body["title"], &body["metadata"]));
    assert_eq!(list(&ann, "")["items"][0], row);
    let row = machine.patch(&machine.path("s1", ""), &json!({ "title": "Rome" })).expect(200);
    assert_eq!((&row["title"], &row["metadata"]), (&"Rome".into(), &body["metadata"]));
    server.kill();
    let server = place.serve();
    let ann = server.client("ann");
    assert_eq!(list(&ann, "")["items"][0], row);
    let session = ann.session("s1");
    assert_eq!((&session["title"], &session["metadata"]), (&"Rome".into(), &body["metadata"]));

    let (bob, machine) = (Caller { address: ann.address, ..bob }, server.machine());
    assert_eq!(bob.patch(&bob.path("s1", ""), &body).status, 403);
    assert_eq!(ann.patch(&ann.path("s9", ""), &body).refusal(404), "unknown session");
    assert_eq!(machine.patch(&machine.path("s9", ""), &body).refusal(404), "unknown session");
    let wrong = Caller { api: "machine", ..ann.clone() };
    assert_eq!(wrong.patch(&wrong.path("s1", ""), &body).status, 401);
    for (body, status) in [
        (json!({ "title": 7 }), 422),
        (json!({ "metadata": { "a": 1 } }), 422),
        (json!({ "title": "x".repeat(1025) }), 400),
        (json!([]), 422),
    ] {
        assert_eq!(ann.patch(&ann.path("s1", ""), &body).status, status, "{body}");
    }
}

#[test]
fn a_list_that_is_asked_for_wrongly_is_refused() {
    let server = Place::new().serve_once();
    let ann = server.client("ann");
    for query in ["?limit=0", "?limit=-1", "?limit=x", "?limit=1.5"] {
        let refusal = ann.get(&format!("/api/client/sessions{query}")).refusal(400);
        assert_eq!(refusal, "`limit` must be a number from 1 on", "{query}");
    }
    for cursor in ["x", "AAAA", "AAAAAAAAAAA", "AAAAAAAAAAAg", "%00", ""] {
        let refusal = ann.get(&format!("/api/client/sessions?cursor={cursor}")).refusal(400);
        assert_eq!(refusal, "`cursor` is not the `next_cursor` of a page", "{cursor}");
    }
    assert_eq!(server.stranger().get("/api/client/sessions").status, 401);
    let wrong = Caller { api: "client", ..server.machine() };
    assert_eq!(wrong.get("/api/client/sessions").status, 401);
}
