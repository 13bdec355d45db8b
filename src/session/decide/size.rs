//! What one input may record: each event within its bound, and all of them within one append.

use super::admit::Plan;
use crate::protocol::event::ENVELOPE_BYTES_MAX;
use crate::protocol::json::encoded_len;
use crate::protocol::message::Message;
use crate::session::rejection::Rejection;

/// Most that one input can have recorded, in bytes: it is one append, and storage takes 16 MiB.
const STEP_BYTES_MAX: usize = 12 * 1024 * 1024;
/// What the event of a message holds beside it, in bytes, where there are thousands.
const MESSAGE_ENVELOPE_BYTES: usize = 512;

/// Refuses what no event could hold beside its envelope.
pub(super) fn check_event(bytes: usize, event_bytes_max: usize) -> Result<(), Rejection> {
    if bytes.saturating_add(ENVELOPE_BYTES_MAX) > event_bytes_max {
        let what = "the event of this input";
        return Err(Rejection::TooLarge { what, bytes_max: event_bytes_max });
    }
    Ok(())
}

/// As much of `text` as an event can hold: what was shown is kept, but its JSON may be longer than
/// what was counted while it came.
pub(super) fn fitting(text: &str, event_bytes_max: usize) -> &str {
    let bytes_max = event_bytes_max.saturating_sub(ENVELOPE_BYTES_MAX);
    if encoded_len(text) <= bytes_max {
        return text;
    }
    let mut bytes = 2;
    let cut = text.char_indices().find(|(_, letter)| {
        bytes += match letter {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            control if control.is_ascii_control() => 6,
            other => other.len_utf8(),
        };
        bytes > bytes_max
    });
    cut.and_then(|(at, _)| text.get(..at)).unwrap_or(text)
}

impl Plan {
    /// Looks at what is new in the input, and at nothing else. What may wait is one event if it has
    /// to, so it must be one event's size even where it need not.
    pub(super) fn check_size(&self, queue: bool, event_bytes_max: usize) -> Result<(), Rejection> {
        let client = self.client.as_ref().map_or(0, encoded_len);
        let action = self.action.as_ref().map_or(0, encoded_len);
        let news = || self.news.iter().map(encoded_len::<Message>);
        // An answer settles its call and is a message.
        let answers = || self.answers.iter().map(|(_, answer)| encoded_len(answer));
        let largest = if queue && self.waits.is_some() {
            client + news().sum::<usize>()
        } else {
            (client + action).max(news().max().unwrap_or_default())
        };
        let largest = largest.max(answers().max().unwrap_or_default());
        check_event(largest, event_bytes_max)?;
        let all = news().chain(answers()).chain(answers());
        let step = all.map(|bytes| bytes + MESSAGE_ENVELOPE_BYTES).sum::<usize>() + client + action;
        if step > STEP_BYTES_MAX {
            let what = "all that this input records";
            return Err(Rejection::TooLarge { what, bytes_max: STEP_BYTES_MAX });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
