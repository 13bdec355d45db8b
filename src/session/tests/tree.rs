//! The tree of messages by itself: it may branch, and a path is the line from the root to one node.

use std::sync::Arc;

use super::kit::message_id;
use crate::ids::MessageId;
use crate::protocol::content::Content;
use crate::protocol::message::{Message, Role};
use crate::session::tree::Tree;

fn add(tree: &mut Tree, id: &str, parent: Option<&str>) {
    let id = message_id(id);
    let mut message = Message::text(Role::User, id.as_str());
    message.id = Some(id.clone());
    tree.add(id, parent.map(message_id).as_ref(), Arc::new(message));
}

fn names(path: &[Arc<Message>]) -> Vec<String> {
    let content = path.iter().filter_map(|message| message.content.as_ref());
    content.map(Content::text).collect()
}

/// a - b - c, with d beside c and e beside a.
fn branching() -> Tree {
    let mut tree = Tree::default();
    for (id, parent) in [("a", None), ("b", Some("a")), ("c", Some("b")), ("d", Some("b"))] {
        add(&mut tree, id, parent);
    }
    add(&mut tree, "e", None);
    tree
}

#[test]
fn an_empty_tree_has_no_head_and_no_path() {
    let tree = Tree::default();
    assert_eq!(tree.head(), None);
    assert!(tree.path_to(&message_id("a")).is_empty());
    assert!(!tree.contains(&message_id("a")));
}

#[test]
fn a_recorded_message_becomes_the_head() {
    let mut tree = Tree::default();
    for (id, parent) in [("a", None), ("b", Some("a")), ("c", Some("a"))] {
        add(&mut tree, id, parent);
        assert_eq!(tree.head(), Some(&message_id(id)));
        assert!(tree.contains(&message_id(id)));
    }
}

#[test]
fn a_path_leads_from_the_root_and_leaves_out_other_branches() {
    let tree = branching();
    for (id, expected) in [
        ("a", &["a"][..]),
        ("c", &["a", "b", "c"]),
        ("d", &["a", "b", "d"]),
        ("e", &["e"]),
        ("unknown", &[]),
    ] {
        assert_eq!(names(&tree.path_to(&message_id(id))), expected);
    }
    assert_eq!(names(&tree.path_to(tree.head().unwrap())), ["e"]);
}

#[test]
fn nodes_come_in_the_order_of_recording_with_their_parents() {
    let tree = branching();
    let nodes: Vec<(Option<&str>, String)> = tree
        .nodes()
        .map(|(parent, message)| {
            let name = message.content.as_ref().map(Content::text);
            (parent.map(MessageId::as_str), name.unwrap_or_default())
        })
        .collect();
    let expected = [(None, "a"), (Some("a"), "b"), (Some("b"), "c"), (Some("b"), "d"), (None, "e")];
    let expected = expected.map(|(parent, name)| (parent, name.to_owned()));
    assert_eq!(nodes, expected);
}

#[test]
fn a_message_below_an_unknown_parent_starts_a_root_of_its_own() {
    let mut tree = branching();
    add(&mut tree, "f", Some("unknown"));
    assert_eq!(names(&tree.path_to(tree.head().unwrap())), ["f"]);
}
