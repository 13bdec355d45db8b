use proptest::prelude::*;

use super::*;

fn whole(text: &[u8]) -> Vec<(Option<String>, String)> {
    decode([text]).unwrap().into_iter().map(|event| (event.name, event.data)).collect()
}

fn data(text: &str) -> Vec<String> {
    whole(text.as_bytes()).into_iter().map(|(_, data)| data).collect()
}

#[test]
fn lines_end_with_lf_cr_or_crlf() {
    for end in ["\n", "\r", "\r\n"] {
        let text = "event: a\ndata: 1\ndata: 2\n\ndata: 3\n\n".replace('\n', end);
        let expected = vec![(Some("a".to_owned()), "1\n2".to_owned()), (None, "3".to_owned())];
        assert_eq!(whole(text.as_bytes()), expected, "{end:?}");
    }
    assert_eq!(data("data: 1\r\n\rdata: 2\n\r\n"), ["1", "2"]);
}

#[test]
fn comments_unknown_fields_and_events_without_data_give_nothing() {
    assert_eq!(data(": keep-alive\n\nid: 7\nretry: 10\nfoo\n\nevent: ping\n\n"), [""; 0]);
    // The name of an event without data is not the next one's.
    assert_eq!(whole(b"event: ping\n\ndata: 1\n\n"), [(None, "1".to_owned())]);
}

#[test]
fn one_space_after_the_colon_is_not_data() {
    assert_eq!(
        data("data:x\n\ndata:  y\n\ndata\n\ndata:\n\ndata: a:b\n\n"),
        ["x", " y", "", "", "a:b"]
    );
}

#[test]
fn a_byte_order_mark_is_ignored_at_the_start_alone() {
    assert_eq!(data("\u{feff}data: 1\n\n\u{feff}data: 2\n\n"), ["1"]);
    let bytes = "\u{feff}data: 1\n\n".as_bytes();
    assert_eq!(decode(bytes.chunks(1)).unwrap().len(), 1);
}

#[test]
fn an_event_counts_at_the_end_without_its_blank_line() {
    assert_eq!(data("data: 1"), ["1"]);
    assert_eq!(data("data: 1\n"), ["1"]);
    assert_eq!(data("data: 1\r"), ["1"]);
    assert_eq!(data("data: 1\n\n"), ["1"]);
    assert_eq!(data(""), [""; 0]);
}

#[test]
fn bytes_that_are_not_utf8_are_replaced() {
    assert_eq!(whole(b"data: a\xffb\n\n"), [(None, "a\u{fffd}b".to_owned())]);
}

#[test]
fn a_line_and_a_stream_have_bounds() {
    let longest = vec![b':'; LINE_BYTES_MAX];
    assert_eq!(decode([&longest[..], b"\n"]), Ok(vec![]));
    assert_eq!(decode([&longest[..], b":"]), Err(Overflow::Line));
    assert_eq!(decode([&[&longest[..], b":\n"].concat()[..]]), Err(Overflow::Line));

    let line = [&longest[1..], b"\n"].concat();
    let lines = STREAM_BYTES_MAX / line.len();
    assert_eq!(decode(std::iter::repeat_n(&line[..], lines)), Ok(vec![]));
    assert_eq!(decode(std::iter::repeat_n(&line[..], lines + 1)), Err(Overflow::Stream));
}

/// Text made of what matters to the decoder.
fn texts() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"\n".to_vec()),
        Just(b"\r".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"data".to_vec()),
        Just(b"data: ".to_vec()),
        Just(b"event:".to_vec()),
        Just(b":".to_vec()),
        Just(BYTE_ORDER_MARK.to_vec()),
        proptest::collection::vec(any::<u8>(), 0..4),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn splits_do_not_change_the_events(
        text in texts(),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..20),
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let chunks = cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]);
        prop_assert_eq!(decode(chunks), decode([&text[..]]));
        prop_assert_eq!(decode(text.chunks(1)), decode([&text[..]]));
    }
}
