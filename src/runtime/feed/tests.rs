use std::task::{Context, Poll, Waker};

use proptest::prelude::*;

use super::*;

fn feed(last_seq: u64) -> Arc<Feed> {
    Arc::new(Feed::new(SessionId::parse("s").unwrap(), Seq(last_seq)))
}

fn turn(name: &str) -> TurnId {
    TurnId::parse(name).unwrap()
}

fn event(seq: u64, turn_id: &str, ends_turn: bool) -> Frame {
    let bytes = Bytes::from(format!("<{seq}>"));
    Frame { bytes, seq: Some(Seq(seq)), turn_id: Some(turn(turn_id)), ends_turn }
}

fn call() -> CallId {
    CallId::parse("c1").unwrap()
}

fn open(feed: &Feed, attempt: u32) {
    feed.open_call(call(), attempt, MessageId::parse("m1").unwrap(), Some(turn("t1")));
}

fn attach(watcher: &mut Watcher, delivered: u64, turn: Option<&TurnId>) -> Option<String> {
    match attach_after_reading(watcher, 0, delivered, turn) {
        Poll::Ready(attached) => attached,
        Poll::Pending => panic!("nothing was read that is not published"),
    }
}

fn attach_after_reading(
    watcher: &mut Watcher,
    read: u64,
    delivered: u64,
    turn: Option<&TurnId>,
) -> Poll<Option<String>> {
    let mut out = Vec::new();
    let context = Context::from_waker(Waker::noop());
    let attached = watcher.attach(&context, Seq(read), Seq(delivered), turn, &mut out);
    let text = String::from_utf8(out).unwrap();
    attached.map(|attached| (attached != Attached::Behind).then_some(text))
}

fn poll(watcher: &mut Watcher, turn: Option<&TurnId>) -> Poll<(Option<End>, String)> {
    let mut out = Vec::new();
    let end = watcher.poll(&Context::from_waker(Waker::noop()), turn, &mut out);
    end.map(|end| (end, String::from_utf8(out).unwrap()))
}

fn frames(text: &str) -> Poll<(Option<End>, String)> {
    Poll::Ready((None, text.to_owned()))
}

/// `seq`, `text` and `snapshot` of every delta frame in `text`.
fn deltas(text: &str) -> Vec<(u64, String, bool)> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| {
        let delta: serde_json::Value = serde_json::from_str(data).unwrap();
        let text = delta["text"].as_str().unwrap_or_default().to_owned();
        (delta["seq"].as_u64().unwrap(), text, delta["snapshot"] == true)
    })
    .collect()
}

#[test]
fn a_watcher_reads_the_log_until_the_ring_has_the_rest() {
    let feed = feed(0);
    let mut first = feed.watch();
    assert_eq!(attach(&mut first, 0, None).unwrap(), "");
    feed.publish((1..=3).map(|seq| event(seq, "t1", false)), &[]);
    let mut second = feed.watch();
    assert_eq!(attach(&mut second, 1, None).unwrap(), "<2><3>");
    assert_eq!(poll(&mut first, None), frames("<1><2><3>"));
    assert!(poll(&mut second, None).is_pending());
}

#[test]
fn little_is_kept_for_nobody() {
    let feed = feed(0);
    let large = Bytes::from(vec![b'x'; UNWATCHED_BYTES_MAX]);
    feed.publish([Frame { bytes: large, ..event(1, "t1", false) }, event(2, "t1", false)], &[]);
    let mut watcher = feed.watch();
    assert_eq!(attach(&mut watcher, 0, None), None, "the log has what the ring has not");
    assert_eq!(attach(&mut watcher, 1, None).unwrap(), "<2>");
}

#[test]
fn an_event_read_from_the_log_before_it_is_published_is_not_shown_twice() {
    let feed = feed(0);
    let mut watcher = feed.watch();
    assert_eq!(attach(&mut watcher, 2, None).unwrap(), "");
    feed.publish((1..=3).map(|seq| event(seq, "t1", false)), &[]);
    assert_eq!(poll(&mut watcher, None), frames("<3>"));
}

#[test]
fn a_position_past_the_end_waits() {
    let feed = feed(0);
    let mut watcher = feed.watch();
    assert_eq!(attach(&mut watcher, 9, None).unwrap(), "");
    feed.publish((1..=9).map(|seq| event(seq, "t1", false)), &[]);
    assert!(poll(&mut watcher, None).is_pending());
    feed.publish([event(10, "t1", false)], &[]);
    assert_eq!(poll(&mut watcher, None), frames("<10>"));
}

#[test]
fn a_watcher_of_one_turn_sees_that_turn_and_its_end() {
    let feed = feed(0);
    let mut watcher = feed.watch();
    let second = turn("t2");
    attach(&mut watcher, 0, Some(&second)).unwrap();
    let events = [event(1, "t1", true), event(2, "t2", false), event(3, "t2", true)];
    feed.publish(events.into_iter().chain([event(4, "t3", true)]), &[]);
    let ended = (Some(End::TurnCompleted), "<2><3>".to_owned());
    assert_eq!(poll(&mut watcher, Some(&second)), Poll::Ready(ended));
}

#[test]
fn a_late_watcher_gets_what_was_said_so_far_and_then_the_rest() {
    let feed = feed(1);
    open(&feed, 1);
    feed.delta(&call(), 1, &Delta::Text("Good "));
    feed.delta(&call(), 1, &Delta::Text("morning"));
    let mut watcher = feed.watch();
    let snapshot = attach(&mut watcher, 1, None).unwrap();
    assert_eq!(deltas(&snapshot), [(2, "Good morning".to_owned(), true)]);
    feed.delta(&call(), 1, &Delta::Text(", Ann"));
    let Poll::Ready((_, live)) = poll(&mut watcher, None) else { panic!("nothing live") };
    assert_eq!(deltas(&live), [(3, ", Ann".to_owned(), false)]);
}

#[test]
fn no_snapshot_of_a_call_comes_after_the_event_that_ended_it() {
    let feed = feed(1);
    open(&feed, 1);
    feed.delta(&call(), 1, &Delta::Text("all of it"));
    let mut watcher = feed.watch();
    assert_eq!(attach_after_reading(&mut watcher, 2, 2, None), Poll::Pending);
    feed.publish([event(2, "t1", false)], &[call()]);
    assert_eq!(attach_after_reading(&mut watcher, 2, 2, None), Poll::Ready(Some(String::new())));
}

#[test]
fn a_call_without_output_has_no_snapshot() {
    let feed = feed(1);
    open(&feed, 1);
    assert_eq!(attach(&mut feed.watch(), 1, None).unwrap(), "");
    assert!(!feed.has_streamed(&call()));
}

#[test]
fn no_delta_comes_after_the_end_of_its_attempt() {
    let feed = feed(0);
    let mut watcher = feed.watch();
    attach(&mut watcher, 0, None).unwrap();
    open(&feed, 1);
    feed.delta(&call(), 1, &Delta::Text("a"));
    feed.publish([event(1, "t1", false)], &[call()]);
    feed.delta(&call(), 1, &Delta::Text("late"));
    open(&feed, 2);
    feed.delta(&call(), 1, &Delta::Text("later"));
    feed.delta(&call(), 2, &Delta::Text("b"));
    let Poll::Ready((_, seen)) = poll(&mut watcher, None) else { panic!("nothing") };
    assert_eq!(deltas(&seen), [(1, "a".to_owned(), false), (1, "b".to_owned(), false)]);
    assert_eq!(feed.close_calls(&[call()]), [(call(), "b".to_owned())].into());
    feed.delta(&call(), 2, &Delta::Text("after the gate"));
    assert!(poll(&mut watcher, None).is_pending());
}

#[test]
fn who_falls_out_of_the_ring_is_cut_off_and_nobody_else() {
    let feed = feed(0);
    let (mut slow, mut quick) = (feed.watch(), feed.watch());
    attach(&mut slow, 0, None).unwrap();
    attach(&mut quick, 0, None).unwrap();
    let large = Bytes::from(vec![b'x'; RING_BYTES_MAX / 4]);
    for seq in 1..=6 {
        let frame = Frame { bytes: large.clone(), ..event(seq, "t1", false) };
        feed.publish([frame], &[]);
        assert!(matches!(poll(&mut quick, None), Poll::Ready((None, _))));
    }
    assert_eq!(poll(&mut slow, None), Poll::Ready((Some(End::Lagged), String::new())));
}

#[test]
fn a_step_larger_than_the_ring_cuts_nobody_off_who_was_at_its_end() {
    let feed = feed(0);
    let (mut at_the_end, mut behind) = (feed.watch(), feed.watch());
    attach(&mut behind, 0, None).unwrap();
    feed.publish([event(1, "t1", false)], &[]);
    attach(&mut at_the_end, 1, None).unwrap();
    let large = Bytes::from(vec![b'x'; RING_BYTES_MAX / 2]);
    let step = (2..=4).map(|seq| Frame { bytes: large.clone(), ..event(seq, "t1", false) });
    feed.publish(step, &[]);
    for _ in 2..=4 {
        assert!(matches!(poll(&mut at_the_end, None), Poll::Ready((None, _))));
    }
    assert!(poll(&mut at_the_end, None).is_pending());
    assert_eq!(poll(&mut behind, None), Poll::Ready((Some(End::Lagged), String::new())));
}

#[test]
fn much_that_is_missing_comes_from_the_log() {
    let feed = feed(0);
    attach(&mut feed.watch(), 0, None).unwrap();
    let mut other = feed.watch();
    attach(&mut other, 0, None).unwrap();
    let large = Bytes::from(vec![b'x'; ATTACH_BYTES_MAX]);
    feed.publish([Frame { bytes: large, ..event(1, "t1", false) }, event(2, "t1", false)], &[]);
    let mut late = feed.watch();
    assert_eq!(attach(&mut late, 0, None), None);
    assert_eq!(attach(&mut late, 1, None).unwrap(), "<2>");
}

#[test]
fn the_end_of_a_turn_ends_its_stream_also_past_the_position_asked_for() {
    let feed = feed(0);
    let first = turn("t1");
    let mut watcher = feed.watch();
    attach(&mut watcher, 99, Some(&first)).unwrap();
    feed.publish([event(1, "t1", true)], &[]);
    let ended = (Some(End::TurnCompleted), String::new());
    assert_eq!(poll(&mut watcher, Some(&first)), Poll::Ready(ended));
}

#[test]
fn a_closed_feed_is_read_to_its_end() {
    let feed = feed(0);
    let mut watcher = feed.watch();
    attach(&mut watcher, 0, None).unwrap();
    feed.publish([event(1, "t1", false)], &[]);
    feed.close(End::Stopped);
    assert_eq!(poll(&mut watcher, None), frames("<1>"));
    assert_eq!(poll(&mut watcher, None), Poll::Ready((Some(End::Stopped), String::new())));
    assert!(feed.is_watched());
    drop(watcher);
    assert!(!feed.is_watched());
}

/// What the log holds from one event to another.
fn log(first: u64, last: u64) -> String {
    let events: Vec<String> = (first..=last).map(|seq| format!("<{seq}>")).collect();
    events.concat()
}

proptest! {
    /// `stream(0..n) ++ stream(after n) == stream(0..)`, whatever the moments of publishing,
    /// attaching and reading; the log is what was published so far.
    #[test]
    fn invariant_no_gap_and_no_duplicate(
        steps in prop::collection::vec((0..4_u8, 1..5_u64), 1..60),
        resume_after in 0..20_u64,
    ) {
        let feed = feed(0);
        let mut watcher = feed.watch();
        let (mut published, mut delivered) = (0, resume_after);
        let mut live = false;
        let mut seen = String::new();
        for (step, count) in steps {
            match step {
                0 | 1 => {
                    feed.publish((1..=count).map(|n| event(published + n, "t1", false)), &[]);
                    published += count;
                }
                2 if live => {
                    if let Poll::Ready((_, text)) = poll(&mut watcher, None) {
                        seen.push_str(&text);
                    }
                }
                _ if !live => {
                    if let Some(text) = attach(&mut watcher, delivered, None) {
                        live = true;
                        seen.push_str(&text);
                    } else {
                        let page = published.min(delivered + count);
                        seen.push_str(&log(delivered + 1, page));
                        delivered = page.max(delivered);
                    }
                }
                _ => {}
            }
        }
        if live && let Poll::Ready((_, text)) = poll(&mut watcher, None) {
            seen.push_str(&text);
        }
        let until = if live { published } else { delivered.min(published) };
        prop_assert_eq!(seen, log(resume_after + 1, until));
    }
}

#[test]
fn the_first_reason_to_close_stays() {
    let feed = feed(0);
    let mut watcher = feed.watch();
    attach(&mut watcher, 0, None).unwrap();
    feed.publish([event(1, "t1", false)], &[]);
    assert!(!watcher.is_erased());
    feed.close(End::Erased);
    feed.close(End::Stopped);
    assert!(watcher.is_erased());
    assert_eq!(poll(&mut watcher, None), frames("<1>"), "what is there comes first");
    assert_eq!(poll(&mut watcher, None), Poll::Ready((Some(End::Erased), String::new())));
}
