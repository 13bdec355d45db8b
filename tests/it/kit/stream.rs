//! A reader of event streams that keeps the bytes of every frame.

use std::io;

use serde_json::Value;

use super::{Connection, Response};

/// Pings come every 15 s: so many in a row are a minute without an event.
const PINGS_MAX: usize = 5;

/// One frame, or a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// With the blank line that ends it.
    pub bytes: String,
    pub id: Option<u64>,
    /// The event type; empty for a comment.
    pub event: String,
    pub data: Value,
}

impl Frame {
    fn parse(bytes: &str) -> Self {
        let mut frame =
            Self { bytes: bytes.to_owned(), id: None, event: String::new(), data: Value::Null };
        for line in bytes.lines() {
            match line.split_once(": ") {
                Some(("id", id)) => frame.id = Some(id.parse().expect("an id is a number")),
                Some(("event", event)) => event.clone_into(&mut frame.event),
                Some(("data", data)) => {
                    frame.data = serde_json::from_str(data).expect("data is JSON");
                }
                Some(("", _)) | None => {}
                Some((field, _)) => panic!("a frame has no field {field:?}: {bytes:?}"),
            }
        }
        frame
    }

    pub fn is_comment(&self) -> bool {
        self.bytes.starts_with(':')
    }

    pub fn is_delta(&self) -> bool {
        self.event == "llm.token.delta"
    }

    /// Whether this is the `turn.completed` of a turn.
    pub fn completes(&self, turn_id: &str) -> bool {
        self.event == "turn.completed" && self.payload()["turn_id"] == turn_id
    }

    pub fn payload(&self) -> &Value {
        &self.data["payload"]
    }
}

/// The bytes of all recorded events among `frames`, in order.
pub fn recorded(frames: &[Frame]) -> String {
    let recorded = frames.iter().filter(|frame| frame.id.is_some());
    recorded.map(|frame| frame.bytes.as_str()).collect()
}

/// What the deltas among `frames` add up to; a snapshot stands for everything before it.
pub fn shown_text(frames: &[Frame]) -> String {
    let mut text = String::new();
    for delta in frames.iter().filter(|frame| frame.is_delta()) {
        if delta.data["snapshot"] == true {
            text.clear();
        }
        text.push_str(delta.data["text"].as_str().unwrap_or_default());
    }
    text
}

pub struct Stream {
    connection: Connection,
    head: Response,
    buffer: Vec<u8>,
}

impl Stream {
    /// Sends a request that is answered by a stream; the error is any other answer.
    pub fn try_open(
        mut connection: Connection,
        request: &[u8],
    ) -> io::Result<Result<Self, Response>> {
        connection.try_send(request)?;
        let head = connection.try_head()?;
        if head.status == 200 && head.header("transfer-encoding") == Some("chunked") {
            return Ok(Ok(Self { connection, head, buffer: Vec::new() }));
        }
        let mut response = head;
        let length = response.header("content-length").unwrap_or("0");
        response.body = connection.exactly(length.parse().map_err(io::Error::other)?)?;
        Ok(Err(response))
    }

    pub fn head(&self) -> &Response {
        &self.head
    }

    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The next frame or comment but pings; none when the stream has ended in good order.
    pub fn try_next(&mut self) -> io::Result<Option<Frame>> {
        let mut pings = 0;
        loop {
            if let Some(end) = self.buffer.windows(2).position(|pair| pair == b"\n\n") {
                let bytes: Vec<u8> = self.buffer.drain(..end + 2).collect();
                let frame = Frame::parse(std::str::from_utf8(&bytes).map_err(io::Error::other)?);
                if frame.bytes != ": ping\n\n" {
                    return Ok(Some(frame));
                }
                pings += 1;
                assert!(pings < PINGS_MAX, "the stream says nothing");
                continue;
            }
            match self.connection.chunk()? {
                Some(chunk) => self.buffer.extend_from_slice(&chunk),
                None if self.buffer.is_empty() => return Ok(None),
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
    }

    pub fn next(&mut self) -> Option<Frame> {
        self.try_next().expect("the stream does not break off")
    }

    /// Frames up to and including the first that is `wanted`.
    pub fn until(&mut self, wanted: impl Fn(&Frame) -> bool) -> Vec<Frame> {
        let mut frames = Vec::new();
        loop {
            let frame = self.next().expect("the stream goes on");
            let found = wanted(&frame);
            frames.push(frame);
            if found {
                return frames;
            }
        }
    }

    pub fn until_completed(&mut self, turn_id: &str) -> Vec<Frame> {
        self.until(|frame| frame.completes(turn_id))
    }

    /// Everything up to the end.
    pub fn rest(&mut self) -> Vec<Frame> {
        std::iter::from_fn(|| self.next()).collect()
    }
}
