use super::*;

#[test]
fn a_time_is_written_with_milliseconds_and_z() {
    for (millis, text) in [
        (0, "\"1970-01-01T00:00:00.000Z\""),
        (1_790_000_000_000, "\"2026-09-21T14:13:20.000Z\""),
        (1_790_000_000_007, "\"2026-09-21T14:13:20.007Z\""),
        (i64::MAX, "\"9999-12-30T21:59:59.999Z\""),
    ] {
        let time = Timestamp::from_millis(millis);
        assert_eq!(serde_json::to_string(&time).unwrap(), text);
        assert_eq!(serde_json::from_str::<Timestamp>(text).unwrap(), time);
    }
    assert!(serde_json::from_str::<Timestamp>("\"yesterday\"").is_err());
}

#[test]
fn arithmetic_saturates() {
    let end = Timestamp::from_millis(i64::MAX);
    assert_eq!(end.plus(Duration::MAX), end);
    assert_eq!(Timestamp::from_millis(5).since(Timestamp::from_millis(9)), Duration::ZERO);
}
