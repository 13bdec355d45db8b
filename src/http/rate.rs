//! Token buckets for inputs, mints and reads (L7), and for failed credentials (A4).
//!
//! A bucket is one number: the time at which it will be full again. Taking a token moves that time
//! on by one interval; a bucket whose time has passed is full and needs no memory.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use super::connection::address_group;
use crate::control::limits::Limits;
use crate::time::Timestamp;

/// Buckets kept for each class. Over it, those that are full go; if none is, all go: the rates
/// protect the server from one caller's flood, and that many callers at once are none.
const BUCKETS_MAX: usize = 64 * 1024;
const FAILURES_PER_SECOND: u32 = 10;
/// How many seconds' worth of inputs may come at once.
const INPUT_BURST_SECS: u32 = 4;
const MICROS_PER_SEC: i64 = 1_000_000;

/// Too much; wait so many seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many requests; try again in {retry_after_secs} s")]
pub struct TooMany {
    pub retry_after_secs: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    Input,
    Mint,
    Read,
}

/// Every rate of the server.
#[derive(Debug)]
pub struct Rates {
    inputs: Buckets,
    mints: Buckets,
    reads: Buckets,
    failures: Buckets,
}

impl Rates {
    pub fn new(limits: &Limits) -> Self {
        Self {
            inputs: Buckets::new(limits.inputs_per_second, INPUT_BURST_SECS),
            mints: Buckets::new(limits.mints_per_second, 1),
            reads: Buckets::new(limits.reads_per_second, 1),
            failures: Buckets::new(FAILURES_PER_SECOND, 1),
        }
    }

    /// Counts one request of `who`: (tenant, owner) or (tenant, key id).
    pub fn take(&self, class: Class, who: impl Hash, now: Timestamp) -> Result<(), TooMany> {
        let buckets = match class {
            Class::Input => &self.inputs,
            Class::Mint => &self.mints,
            Class::Read => &self.reads,
        };
        buckets.take(who, now)
    }

    /// Counts a credential that was no good. Only failures are counted and refused: a stranger's
    /// guesses must not lock out the callers who share an address (a proxy's) with them.
    pub fn failed_credential(&self, from: IpAddr, now: Timestamp) -> Result<(), TooMany> {
        let from = address_group(from);
        if from.is_loopback() {
            return Ok(());
        }
        self.failures.take(from, now)
    }
}

#[derive(Debug)]
struct Buckets {
    /// Between two tokens; `None` when the rate is off.
    interval_micros: Option<i64>,
    /// From empty to full.
    capacity_micros: i64,
    hasher: RandomState,
    /// By hash: two callers that share one share a bucket, which random keys make unlikely.
    full_at_micros: Mutex<HashMap<u64, i64>>,
}

impl Buckets {
    fn new(per_second: u32, burst_secs: u32) -> Self {
        let interval_micros = MICROS_PER_SEC.checked_div(i64::from(per_second));
        let burst = i64::from(per_second) * i64::from(burst_secs);
        Self {
            interval_micros: interval_micros.map(|micros| micros.max(1)),
            capacity_micros: interval_micros.map_or(0, |micros| micros.max(1) * burst),
            hasher: RandomState::new(),
            full_at_micros: Mutex::default(),
        }
    }

    fn take(&self, who: impl Hash, now: Timestamp) -> Result<(), TooMany> {
        let Some(interval) = self.interval_micros else {
            return Ok(());
        };
        let now = now.millis() * 1000;
        let mut full_at = self.full_at_micros.lock().unwrap_or_else(PoisonError::into_inner);
        if full_at.len() >= BUCKETS_MAX {
            full_at.retain(|_, full_at| *full_at > now);
            if full_at.len() >= BUCKETS_MAX {
                full_at.clear();
            }
        }
        let full_at = full_at.entry(self.hasher.hash_one(who)).or_insert(now);
        // Within what a bucket can owe: a clock that was set back must not lock its owner out.
        *full_at = (*full_at).clamp(now, now + self.capacity_micros);
        let over = *full_at + interval - now - self.capacity_micros;
        if over > 0 {
            let retry_after_secs = over.cast_unsigned().div_ceil(MICROS_PER_SEC.cast_unsigned());
            return Err(TooMany { retry_after_secs });
        }
        *full_at += interval;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
