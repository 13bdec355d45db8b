use super::*;

fn rates(per_second: u32) -> Rates {
    let limits = Limits {
        inputs_per_second: per_second,
        mints_per_second: per_second,
        reads_per_second: per_second,
        ..Limits::default()
    };
    Rates::new(&limits)
}

/// How many of `tries` are let through at `now`.
fn let_through(rates: &Rates, class: Class, who: &str, now: i64, tries: usize) -> usize {
    let now = Timestamp::from_millis(now);
    (0..tries).filter(|_| rates.take(class, who, now).is_ok()).count()
}

#[test]
fn a_bucket_gives_its_burst_and_then_its_rate() {
    for (class, burst) in [(Class::Input, 40), (Class::Mint, 10), (Class::Read, 10)] {
        let rates = rates(10);
        assert_eq!(let_through(&rates, class, "a", 0, 1000), burst);
        assert_eq!(let_through(&rates, class, "a", 99, 1000), 0);
        assert_eq!(let_through(&rates, class, "a", 100, 1000), 1);
        assert_eq!(let_through(&rates, class, "a", 1100, 1000), 10);
        assert_eq!(let_through(&rates, class, "a", 1_000_000, 1000), burst, "full again, no more");
    }
}

#[test]
fn callers_and_classes_do_not_share_a_bucket() {
    let rates = rates(10);
    assert_eq!(let_through(&rates, Class::Mint, "a", 0, 1000), 10);
    assert_eq!(let_through(&rates, Class::Mint, "b", 0, 1000), 10);
    assert_eq!(let_through(&rates, Class::Read, "a", 0, 1000), 10);
    assert!(rates.take(Class::Mint, ("a", "b"), Timestamp::default()).is_ok());
}

#[test]
fn a_refusal_says_when_to_come_back() {
    let rates = rates(1);
    let now = Timestamp::from_secs(100);
    rates.take(Class::Read, "a", now).unwrap();
    let refused = rates.take(Class::Read, "a", now);
    assert_eq!(refused, Err(TooMany { retry_after_secs: 1 }));
    assert!(rates.take(Class::Read, "a", Timestamp::from_secs(101)).is_ok());
}

#[test]
fn zero_turns_a_rate_off() {
    let rates = rates(0);
    assert_eq!(let_through(&rates, Class::Input, "a", 0, 10_000), 10_000);
    assert!(rates.inputs.full_at_micros.lock().unwrap().is_empty());
}

#[test]
fn an_extreme_rate_neither_blocks_nor_overflows() {
    let rates = rates(u32::MAX);
    assert_eq!(let_through(&rates, Class::Input, "a", 253_402_207_199_999, 10_000), 10_000);
}

#[test]
fn a_clock_that_was_set_back_locks_nobody_out() {
    let rates = rates(10);
    assert_eq!(let_through(&rates, Class::Mint, "a", 1_000_000, 1000), 10);
    assert_eq!(let_through(&rates, Class::Mint, "a", 0, 1000), 0);
    assert_eq!(let_through(&rates, Class::Mint, "a", 100, 1000), 1);
    assert_eq!(let_through(&rates, Class::Mint, "a", 2000, 1000), 10);
}

#[test]
fn memory_is_bounded_and_full_buckets_go_first() {
    let buckets = Buckets::new(1, 4);
    let now = |secs| Timestamp::from_secs(secs);
    for who in 0..BUCKETS_MAX - 1 {
        buckets.take(who, now(0)).unwrap();
    }
    for _ in 0..4 {
        buckets.take("busy", now(3)).unwrap();
    }
    buckets.take("one more", now(3)).unwrap();
    assert_eq!(buckets.full_at_micros.lock().unwrap().len(), 2);
    assert!(buckets.take("busy", now(3)).is_err());
    for who in 0..2 * BUCKETS_MAX {
        buckets.take(who, now(4)).unwrap();
    }
    assert!(buckets.full_at_micros.lock().unwrap().len() <= BUCKETS_MAX);
}

#[test]
fn bad_credentials_are_counted_by_address_and_not_on_loopback() {
    let rates = rates(1);
    let now = Timestamp::default();
    let failed = |address: &str, times: usize| {
        let address = address.parse().unwrap();
        (0..times).filter(|_| rates.failed_credential(address, now).is_ok()).count()
    };
    assert_eq!(failed("192.0.2.1", 50), 10);
    assert_eq!(failed("192.0.2.2", 50), 10);
    assert_eq!(failed("2001:db8::1", 50), 10);
    assert_eq!(failed("2001:db8::2", 50), 0, "the same /64");
    assert_eq!(failed("127.0.0.1", 50), 50);
}
