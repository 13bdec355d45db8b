//! The only reader of wall time.
//!
//! Time moves with the monotonic clock from one reading of the wall at start, so that a step of the
//! wall clock (NTP, suspend) does not fire or stall timers. [`wall`] is for credentials alone.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::time::Timestamp;

/// The clock of one process; cheap to copy.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    started: Instant,
    started_at: Timestamp,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the clocks")]
    pub fn start() -> Self {
        Self { started: Instant::now(), started_at: wall() }
    }

    pub fn now(&self) -> Timestamp {
        self.started_at.plus(self.started.elapsed())
    }

    /// How long until `at`; zero when it has passed.
    pub fn until(&self, at: Timestamp) -> Duration {
        at.since(self.now())
    }
}

/// What the wall says: the lifetimes of tokens are agreed with others by it.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the clocks")]
pub fn wall() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
