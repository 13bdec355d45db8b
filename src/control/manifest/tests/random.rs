//! Texts that nobody would write: nothing panics, and nothing unknown is taken.

use proptest::prelude::*;

use super::*;

#[test]
fn deep_nesting_is_refused_and_not_followed() {
    let dotted = vec!["a"; 50_000].join(".");
    let texts = [
        format!("{dotted} = 1"),
        format!("[{dotted}]"),
        format!("a = {}", "[".repeat(50_000)),
        format!("a = {}", "{ a = ".repeat(50_000)),
    ];
    for text in texts {
        assert!(problems(&text).iter().any(|problem| problem.contains("not TOML")), "{text:.20}");
    }
    let path = vec!["a"; 79].join(".");
    let levels = format!("{path} = {{ ").repeat(79);
    let widest = format!("[{path}]\n{levels}b = 1{}", " }".repeat(79));
    assert_eq!(problems(&widest).len(), 1);
}

proptest! {
    #[test]
    fn any_unknown_key_is_named_with_its_line(
        key in "[a-z_][a-z0-9_-]{0,30}",
        section in prop::sample::select(vec!["", "serve", "limits", "agent.a", "agent.a.retry.llm"]),
        blank in 0usize..5,
    ) {
        let known = "name data serve limits llm agent listen public_url cors_origins shutdown_secs \
                     model system description stream retry tools timeout_secs max_retries \
                     backoff_base_secs backoff_max_secs";
        prop_assume!(known.split_whitespace().all(|known| known != key));
        let head = "agent.a.llm = \"demo\"\nagent.a.model = \"demo\"\n";
        let blank = "\n".repeat(blank);
        let full = if section.is_empty() { key } else { format!("{section}.{key}") };
        let text = format!("{head}{blank}{full} = 1\n");
        let line = 3 + blank.len();
        let Err(problems) = Manifest::parse(&text) else {
            return Err(TestCaseError::fail("taken"));
        };
        prop_assert_eq!(problems.len(), 1);
        prop_assert_eq!((problems[0].line, &problems[0].key), (line, &full));
        let unknown = matches!(problems[0].fault, Fault::UnknownKey { .. } | Fault::Later { .. });
        prop_assert!(unknown, "{:?}", problems[0].fault);
    }

    #[test]
    fn no_text_panics(text in "([a-z\\[\\]{}=.,\"'#0-9\n -]|llm|agent|serve|type|price|\u{e9}){0,200}") {
        let _ = Manifest::parse(&text);
    }

    #[test]
    fn no_damage_to_a_good_manifest_panics(at in any::<prop::sample::Index>(), with in ".{0,3}") {
        let mut damaged = example().as_bytes().to_vec();
        let at = at.index(damaged.len());
        damaged.splice(at..=at, with.bytes());
        let _ = Manifest::parse(&String::from_utf8_lossy(&damaged));
    }
}
