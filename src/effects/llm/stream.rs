//! Server-sent events to data: LF, CR and CRLF, split anywhere, with bounds.
//!
//! Pure: bytes go in, events come out. Follows the event stream rules of the HTML standard, except
//! that an event without its blank line counts at the end of the stream: some servers leave it out.

/// Longest line (reliability L12).
pub const LINE_BYTES_MAX: usize = 1024 * 1024;
/// Largest stream (reliability L12).
pub const STREAM_BYTES_MAX: usize = 32 * 1024 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One event. `id` and `retry` are not kept: no provider resumes a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub name: Option<String>,
    pub data: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Overflow {
    #[error("a line longer than {LINE_BYTES_MAX} bytes")]
    Line,
    #[error("a stream longer than {STREAM_BYTES_MAX} bytes")]
    Stream,
}

#[derive(Debug, Default)]
pub struct Decoder {
    bytes: usize,
    /// The start of a line whose end has not come.
    line: Vec<u8>,
    lines: usize,
    /// A line ended with CR: a LF that follows belongs to it.
    after_cr: bool,
    name: Option<String>,
    data: Option<String>,
}

impl Decoder {
    /// Adds the events that `chunk` completes to `events`.
    pub fn push(&mut self, chunk: &[u8], events: &mut impl Extend<Event>) -> Result<(), Overflow> {
        self.bytes = self.bytes.saturating_add(chunk.len());
        if self.bytes > STREAM_BYTES_MAX {
            return Err(Overflow::Stream);
        }
        let mut rest = chunk;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, after) = rest.split_at(end);
            self.grow_line(line)?;
            events.extend(self.end_line());
            rest = match after {
                [b'\r', b'\n', rest @ ..] => rest,
                [b'\r'] => {
                    self.after_cr = true;
                    &[]
                }
                [_, rest @ ..] => rest,
                [] => &[],
            };
        }
        self.grow_line(rest)
    }

    /// The event that the end of the stream leaves behind, if any.
    pub fn finish(mut self) -> Option<Event> {
        let last = if self.line.is_empty() { None } else { self.end_line() };
        last.or_else(|| self.dispatch())
    }

    fn grow_line(&mut self, piece: &[u8]) -> Result<(), Overflow> {
        if self.line.len() + piece.len() > LINE_BYTES_MAX {
            return Err(Overflow::Line);
        }
        self.line.extend_from_slice(piece);
        Ok(())
    }

    fn end_line(&mut self) -> Option<Event> {
        let bytes = std::mem::take(&mut self.line);
        let mut line = bytes.as_slice();
        if self.lines == 0 {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        self.lines += 1;
        if line.is_empty() {
            return self.dispatch();
        }
        let line = String::from_utf8_lossy(line);
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            "event" => self.name = Some(value.to_owned()),
            // Comments have an empty field name; unknown fields are ignored.
            _ => {}
        }
        None
    }

    fn dispatch(&mut self) -> Option<Event> {
        let name = self.name.take();
        self.data.take().map(|data| Event { name, data })
    }
}

/// All events of a stream that comes in `chunks`: the same wherever it is split.
pub fn decode<'c>(chunks: impl IntoIterator<Item = &'c [u8]>) -> Result<Vec<Event>, Overflow> {
    let mut decoder = Decoder::default();
    let mut events = Vec::new();
    for chunk in chunks {
        decoder.push(chunk, &mut events)?;
    }
    events.extend(decoder.finish());
    Ok(events)
}

#[cfg(test)]
mod tests;
