//! What only shows when a time of the server's own has passed. Early in the alphabet: tests start
//! in its order, and others run meanwhile.

use serde_json::json;

use crate::kit::{HANG, Patience, Place, Stream, recorded, shown_text, wait_for};
use crate::streams::ids;
use crate::tokens::{is_refused, token, with_bearer};

#[test]
fn a_token_ends_and_a_minute_later_so_do_its_streams() {
    let server = Place::new().serve_once();
    let body = json!({ "identity": { "id": "ann" }, "ttl_seconds": 1 });
    let ann = with_bearer(&server, "client", &token(&server, &body));
    ann.say("s1", "t1", "hello");
    let mut streams = [ann.stream("s1", ""), server.machine().stream("s1", "")];
    for stream in &mut streams {
        stream.until_completed("t1");
    }
    let refused = wait_for("the token to end", || {
        let answer = ann.get("/api/client/sessions/s1");
        (answer.status != 200).then_some(answer)
    });
    is_refused(&refused);
    // A stream that is open goes on for a while.
    let later = server.client("ann");
    later.say("s1", "t2", "hello");
    let [mut by_token, mut by_key] = streams;
    by_token.until_completed("t2");
    let end = by_token.rest();
    assert_eq!(end.len(), 1, "{end:?}");
    assert_eq!(end[0].bytes, ": token expired\n\n");
    // The key's streams do not end.
    by_key.until_completed("t2");
    later.say("s1", "t3", "hello");
    by_key.until_completed("t3");
}

#[test]
fn a_watcher_that_never_reads_is_cut_off_and_nobody_waits_for_it() {
    let manifest = "[limits]\ninputs_per_second = 0\nreads_per_second = 0\n";
    let server = Place::with_manifest(manifest).serve_once();
    let ann = server.client("ann");
    ann.say("s1", "t0", "first");
    ann.watch_turn("s1", "t0");
    let stuck = ann.stream("s1", "");
    let mut reader = ann.stream("s1", "");
    reader.until_completed("t0");
    // What the kernel, the connection and the ring hold together is less than this.
    let mut shown = 0;
    let mut number = 0;
    let patience = Patience::new(2 * HANG);
    let is_cut = |stream: &Stream| stream.connection().socket().take_error().unwrap().is_some();
    while shown < 24 << 20 || !is_cut(&stuck) {
        assert!(!patience.is_over(), "the stuck watcher is never cut off");
        number += 1;
        let turn = format!("t{number}");
        let words = if shown < 24 << 20 { 20_000 } else { 10 };
        ann.say("s1", &turn, &format!("/long {words}"));
        let frames = reader.until_completed(&turn);
        shown += frames.iter().map(|frame| frame.bytes.len()).sum::<usize>();
        let last = format!("word{words}");
        assert!(shown_text(&frames).ends_with(&last), "the reader misses nothing");
    }
    // It resumes where it stood, without a gap.
    let mut stuck = stuck;
    let mut seen = Vec::new();
    while let Ok(Some(frame)) = stuck.try_next() {
        seen.push(frame);
    }
    let after = ids(&seen).last().copied().unwrap_or(0);
    let last = format!("t{number}");
    let resumed = ann.stream("s1", &format!("?after_seq={after}")).until_completed(&last);
    let whole = recorded(&ann.stream("s1", "").until_completed(&last));
    assert!(whole == recorded(&seen) + &recorded(&resumed), "a gap after {after}");
}
