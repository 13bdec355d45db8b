use proptest::prelude::*;

use super::*;

#[test]
fn a_time_in_seconds_is_written_as_the_shortest_number() {
    for (millis, text) in [(0, "0"), (2000, "2"), (250, "0.25"), (1001, "1.001")] {
        let secs = Seconds::from_millis(millis);
        assert_eq!(serde_json::to_string(&secs).unwrap(), text);
        assert_eq!(serde_json::from_str::<Seconds>(text).unwrap(), secs);
    }
}

#[test]
fn a_time_below_zero_or_beyond_all_numbers_is_refused() {
    for text in ["-1", "-0.001", "1e300", "\"2\"", "null"] {
        assert!(serde_json::from_str::<Seconds>(text).is_err(), "{text}");
    }
}

#[test]
fn policies_are_the_published_defaults() {
    let policy = |policy: RetryPolicy| serde_json::to_string(&policy).unwrap();
    assert_eq!(
        policy(RetryPolicy::MODEL_CALL),
        r#"{"timeout_secs":180,"max_retries":4,"backoff_base_secs":2,"backoff_max_secs":30}"#
    );
    let tool = RetryPolicy::WORKER_TOOL;
    assert_eq!((tool.timeout_secs, tool.max_retries), (Some(Seconds::whole(120)), 1));
}

proptest! {
    /// A replayed policy times as the live one did. A century is longer than any timer.
    #[test]
    fn a_time_survives_its_stored_form(millis in 0..100 * 366 * 86_400_000_u64) {
        let secs = Seconds::from_millis(millis);
        let text = serde_json::to_string(&secs).unwrap();
        prop_assert_eq!(serde_json::from_str::<Seconds>(&text).unwrap(), secs, "{}", text);
    }
}
