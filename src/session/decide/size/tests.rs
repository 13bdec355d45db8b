use super::*;

#[test]
fn text_that_was_shown_is_cut_only_where_no_event_could_hold_it() {
    let bytes_max = ENVELOPE_BYTES_MAX + 10;
    for (text, kept) in [
        ("", ""),
        ("12345678", "12345678"),
        ("123456789", "12345678"),
        ("\u{1}\u{1}", "\u{1}"),
        ("\"\"\"\"\"", "\"\"\"\""),
        ("\n\t\r\u{8}\u{c}", "\n\t\r\u{8}"),
        ("\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}", "\u{e9}\u{e9}\u{e9}\u{e9}"),
    ] {
        let fits = fitting(text, bytes_max);
        assert_eq!(fits, kept, "{text:?}");
        assert!(encoded_len(fits) <= 10, "{text:?}");
    }
}
