use std::collections::VecDeque;

use super::*;

/// A body that comes in pieces, and after them never ends or breaks off if so asked.
struct Pieces {
    pieces: VecDeque<&'static str>,
    end: End,
}

#[derive(Clone, Copy)]
enum End {
    Here,
    Never,
    Broken,
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        match (self.pieces.pop_front(), self.end) {
            (Some(piece), _) => {
                Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(piece.as_bytes())))))
            }
            (None, End::Here) => Poll::Ready(None),
            (None, End::Never) => Poll::Pending,
            (None, End::Broken) => Poll::Ready(Some(Err("broken"))),
        }
    }
}

fn pieces<const N: usize>(pieces: [&'static str; N], end: End) -> Pieces {
    Pieces { pieces: pieces.into(), end }
}

fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(*name, value.parse().unwrap());
    }
    headers
}

#[tokio::test]
async fn a_body_is_the_same_in_one_piece_and_in_many() {
    let json = headers(&[("content-type", "application/json")]);
    for parts in [["{\"a\":1}", "", ""], ["{", "\"a\"", ":1}"], ["", "{\"a\"", ":1}"]] {
        let body = pieces(parts, End::Here);
        assert_eq!(read_json(&json, body, 7).await.unwrap(), "{\"a\":1}");
    }
}

#[tokio::test]
async fn a_body_may_be_as_large_as_the_limit_and_no_larger() {
    let json = headers(&[("content-type", "application/json")]);
    for parts in [["123456", ""], ["123", "456"]] {
        let refused = read_json(&json, pieces(parts, End::Never), 5).await;
        assert_eq!(refused, Err(ApiError::TooLarge { what: "the body", bytes_max: 5 }));
        assert!(read_json(&json, pieces(parts, End::Here), 6).await.is_ok());
    }
}

#[tokio::test]
async fn a_body_that_does_not_come_in_time_is_refused() {
    let body = pieces(["{"], End::Never);
    assert_eq!(collect(body, 10, Duration::from_millis(1)).await, Err(ApiError::Timeout));
}

#[tokio::test]
async fn a_body_that_breaks_off_is_a_bad_request() {
    let body = pieces(["{"], End::Broken);
    let refused = collect(body, 10, READ_MAX).await;
    assert!(matches!(refused, Err(ApiError::BadRequest(_))), "{refused:?}");
}

#[tokio::test]
async fn length_is_checked_before_type_and_both_before_the_body() {
    let never = || pieces([], End::Never);
    let large = headers(&[("content-length", "11"), ("content-type", "text/plain")]);
    let refused = read_json(&large, never(), 10).await;
    assert_eq!(refused, Err(ApiError::TooLarge { what: "the body", bytes_max: 10 }));
    let other = headers(&[("content-length", "10"), ("content-type", "text/plain")]);
    assert_eq!(read_json(&other, never(), 10).await, Err(ApiError::UnsupportedMediaType));
}

#[test]
fn only_json_in_utf_8_is_taken() {
    for content_type in [
        "application/json",
        "Application/JSON",
        "application/json;charset=utf-8",
        "application/json; charset=\"UTF-8\"",
        "application/json ; charset=utf8;",
    ] {
        assert_eq!(check_type(&headers(&[("content-type", content_type)])), Ok(()));
    }
    for fields in [
        &[][..],
        &[("content-type", "text/plain")],
        &[("content-type", "application/jsonp")],
        &[("content-type", "application/x-www-form-urlencoded")],
        &[("content-type", "multipart/form-data; boundary=application/json")],
        &[("content-type", "application/json; charset=latin1")],
        &[("content-type", "application/json; q=1")],
        &[("content-type", "application/json"), ("content-type", "application/json")],
        &[("content-type", "application/json"), ("content-encoding", "gzip")],
        &[("content-type", "application/json"), ("content-encoding", "identity, gzip")],
    ] {
        let refused = check_type(&headers(fields));
        assert_eq!(refused, Err(ApiError::UnsupportedMediaType), "{fields:?}");
    }
    let identity = [("content-type", "application/json"), ("content-encoding", "Identity")];
    assert_eq!(check_type(&headers(&identity)), Ok(()));
}
