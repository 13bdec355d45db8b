use proptest::prelude::*;

use super::*;

fn read<T>(
    text: &str,
    walk: impl FnOnce(&Node<'_>) -> Result<T, DecodeError>,
) -> Result<T, DecodeError> {
    decode(text.as_bytes(), DEPTH_MAX, walk)
}

#[test]
fn an_error_names_the_place() {
    let error = read(r#"{"a":[{"b":1},{"b":"x"}]}"#, |root| {
        let [a] = root.fields(["a"])?;
        for item in root.required("a", a)?.items(10)? {
            let [b] = item.fields(["b"])?;
            item.required("b", b)?.string()?;
        }
        Ok(())
    })
    .unwrap_err();
    assert_eq!(error.to_string(), "`a[0].b` must be a string");
}

#[test]
fn a_missing_member_and_a_null_one_are_the_same() {
    for text in ["{}", r#"{"a":null}"#] {
        let error = read(text, |root| {
            let [a] = root.fields(["a"])?;
            root.required("a", a).map(|_| ())
        });
        assert_eq!(error.unwrap_err().to_string(), "`a` is missing");
    }
}

#[test]
fn a_member_that_stands_twice_is_refused() {
    for text in [r#"{"a":1,"a":2}"#, r#"{"a":null,"a":null}"#] {
        let error = read(text, |root| root.fields(["a"]).map(|_| ())).unwrap_err();
        assert_eq!(error.to_string(), "`a` stands twice");
    }
}

#[test]
fn an_opaque_value_keeps_its_spelling() {
    let text = r#" {"x" : [1.50, {"\u0061rgs": {"b":1e2,  "a":18446744073709551616}}]} "#;
    let raw = read(text, |root| {
        let [x] = root.fields(["x"])?;
        let x = root.required("x", x)?;
        let items = x.items(2)?;
        let [args] = items[1].fields(["args"])?;
        items[1].required("args", args)?.raw()
    });
    assert_eq!(raw.unwrap().text(), r#"{"b":1e2,  "a":18446744073709551616}"#);
}

#[test]
fn an_item_of_its_own_has_the_same_place_and_text() {
    let text = r#"{"a":[ 1.50, {"b": {"c":[ 2 ]}}, "x" ]}"#;
    read(text, |root| {
        let [a] = root.fields(["a"])?;
        let a = root.required("a", a)?;
        for (item, own) in a.items(3)?.iter().zip(a.own_items(3)?) {
            assert_eq!(own.raw()?, item.raw()?);
            assert_eq!(own.shape(""), item.shape(""));
        }
        let own = a.own_items(3)?;
        let [b] = own[1].fields(["b"])?;
        let b = own[1].required("b", b)?;
        assert_eq!(b.raw()?.text(), r#"{"c":[ 2 ]}"#);
        let [c] = b.fields(["c"])?;
        let c = b.required("c", c)?;
        let item = &c.items(1)?[0];
        assert_eq!(item.shape("p").to_string(), "`a[1].b.c[0]` p");
        assert_eq!(item.raw()?.text(), "2");
        assert!(a.own_items(2).is_err() && root.own_items(1).is_err());
        Ok(())
    })
    .unwrap();
}

#[test]
fn an_opaque_value_is_one_line() {
    let raw = read("{\"x\":\n{\r\n  \"a\":\n\t[1,\r2]}\n}", |root| {
        let [x] = root.fields(["x"])?;
        root.required("x", x)?.raw()
    });
    assert_eq!(raw.unwrap().text(), "{    \"a\": \t[1, 2]}");
    assert_eq!(Json::parse("\"a\nb\""), None, "not a JSON string");
}

#[test]
fn nesting_is_limited_on_both_paths() {
    let nested =
        |depth: usize, leaf: &str| format!("{}{leaf}{}", "[".repeat(depth), "]".repeat(depth));
    for leaf in ["1", "18446744073709551616"] {
        assert!(read(&nested(DEPTH_MAX, leaf), |_| Ok(())).is_ok(), "{leaf}");
        for depth in [DEPTH_MAX + 1, 200, 5000] {
            let error = read(&nested(depth, leaf), |_| Ok(())).unwrap_err();
            assert!(matches!(error, DecodeError::Malformed(_)), "{leaf} {depth}: {error}");
        }
    }
}

#[test]
fn what_is_not_json_is_malformed() {
    let bad: [&[u8]; 12] = [
        b"",
        b"{",
        b"nul",
        b"{\"a\":NaN}",
        b"1e400",
        b"\"\\ud800\"",
        b"\"\xff\"",
        b"\xef\xbb\xbf1",
        b"1 2",
        b"\"\0\"",
        b"{'a':1}",
        b"[1,]",
    ];
    for text in bad {
        let error = decode(text, DEPTH_MAX, |_| Ok(())).unwrap_err();
        assert!(matches!(error, DecodeError::Malformed(_)), "{text:?}");
    }
}

fn any_json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|value| value.to_string()),
        any::<i64>().prop_map(|value| value.to_string()),
        any::<u128>().prop_map(|value| value.to_string()),
        any::<f64>()
            .prop_filter("finite", |value| value.is_finite())
            .prop_map(|v| format!("{v:e}")),
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6)
                .prop_map(|items| format!("[{}]", items.join(" , "))),
            prop::collection::btree_map(any::<String>(), inner, 0..6).prop_map(|members| {
                let members: Vec<String> = members
                    .iter()
                    .map(|(key, value)| format!("{}:{value}", serde_json::to_string(key).unwrap()))
                    .collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

/// Every value reached by walking is the text that `serde_json` sees at the same place.
fn invariant_walk_agrees(node: &Node<'_>, value: &serde_json::Value) {
    let raw = node.raw().unwrap();
    assert_eq!(&serde_json::from_str::<serde_json::Value>(raw.text()).unwrap(), value);
    match value {
        serde_json::Value::Array(items) => {
            for (node, item) in node.items(usize::MAX).unwrap().iter().zip(items) {
                invariant_walk_agrees(node, item);
            }
        }
        serde_json::Value::Object(members) => {
            let walked = node.members().unwrap();
            assert_eq!(walked.len(), members.len());
            for (key, member) in walked {
                invariant_walk_agrees(&member, &members[key]);
            }
        }
        serde_json::Value::String(text) => assert_eq!(node.string().unwrap(), text),
        serde_json::Value::Bool(value) => assert_eq!(node.bool().unwrap(), *value),
        serde_json::Value::Number(number) => {
            assert_eq!(node.unsigned().ok(), number.as_u64());
        }
        serde_json::Value::Null => assert!(node.is_null()),
    }
}

proptest! {
    #[test]
    fn the_tape_and_serde_json_agree_on_every_value(text in any_json()) {
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        read(&text, |root| {
            invariant_walk_agrees(root, &value);
            Ok(())
        }).unwrap();
    }

    #[test]
    fn the_tape_and_serde_json_accept_the_same_texts(text in "[\\[\\]{}:,\"0-9eE+.a-fnul\\\\ -]{0,24}") {
        let ours = read(&text, |_| Ok(())).is_ok();
        let theirs = serde_json::from_str::<serde_json::Value>(&text).is_ok();
        prop_assert_eq!(ours, theirs);
    }
}
