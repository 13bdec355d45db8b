use http::HeaderValue;
use http::header::HeaderName;

use super::*;

const ETAG: &str = "\"ab\"";

fn headers(of: &[(HeaderName, &'static str)]) -> HeaderMap {
    let pairs = of.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
    pairs.collect()
}

#[test]
fn one_range_of_bytes_is_a_part() {
    for (range, part) in [
        ("bytes=0-0", Wanted::Part(0..1)),
        ("bytes=2-5", Wanted::Part(2..6)),
        ("Bytes=2-5", Wanted::Part(2..6)),
        ("bytes= 2-5 ", Wanted::Part(2..6)),
        ("bytes=2-", Wanted::Part(2..10)),
        ("bytes=-3", Wanted::Part(7..10)),
        ("bytes=-99", Wanted::Part(0..10)),
        ("bytes=9-99999999999999999999999", Wanted::Part(9..10)),
        ("bytes=10-", Wanted::Nothing),
        ("bytes=10-12", Wanted::Nothing),
        ("bytes=-0", Wanted::Nothing),
        ("bytes=0-1,3-4", Wanted::Whole),
        ("bytes=5-2", Wanted::Whole),
        ("bytes=", Wanted::Whole),
        ("bytes=-", Wanted::Whole),
        ("bytes=a-b", Wanted::Whole),
        ("bytes=+1-2", Wanted::Whole),
        ("items=0-1", Wanted::Whole),
        ("0-1", Wanted::Whole),
    ] {
        assert_eq!(wanted(&headers(&[(RANGE, range)]), ETAG, 10), part, "{range}");
    }
    assert_eq!(wanted(&HeaderMap::new(), ETAG, 10), Wanted::Whole);
    assert_eq!(wanted(&headers(&[(RANGE, "bytes=0-")]), ETAG, 0), Wanted::Nothing);
}

#[test]
fn a_range_of_another_version_is_the_whole() {
    for (if_range, part) in [("\"ab\"", Wanted::Part(0..1)), ("\"cd\"", Wanted::Whole)] {
        let headers = headers(&[(RANGE, "bytes=0-0"), (IF_RANGE, if_range)]);
        assert_eq!(wanted(&headers, ETAG, 10), part);
    }
}

#[test]
fn what_the_caller_has_is_known_by_its_tag() {
    for (value, known) in [
        ("\"ab\"", true),
        ("W/\"ab\"", true),
        ("\"cd\", \"ab\"", true),
        ("*", true),
        ("\"cd\"", false),
        ("ab", false),
        ("", false),
    ] {
        assert_eq!(is_known(&headers(&[(IF_NONE_MATCH, value)]), ETAG), known, "{value}");
    }
    assert!(!is_known(&HeaderMap::new(), ETAG));
}
