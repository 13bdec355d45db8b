//! What the tests share: a place for a server, callers, streams, and waits that only a hang ends.

mod caller;
mod http;
mod place;
mod provider;
mod stream;

use std::time::{Duration, Instant};

pub use caller::{Caller, input, message, text_of};
pub use http::{Connection, Response, request};
pub use place::{API_KEY, Exit, Place, Server};
pub use provider::Provider;
pub use stream::{Frame, Stream, recorded, shown_text};

/// No wait of a test means anything but "it hangs" when it ends.
pub const HANG: Duration = Duration::from_mins(1);

/// A moment after which a wait is given up.
pub struct Patience(Instant);

impl Patience {
    #[expect(clippy::disallowed_methods, reason = "a hang is told from slowness by a clock alone")]
    pub fn new(longest: Duration) -> Self {
        Self(Instant::now() + longest)
    }

    #[expect(clippy::disallowed_methods, reason = "as above")]
    pub fn is_over(&self) -> bool {
        Instant::now() >= self.0
    }
}

/// A short rest between two looks at something that changes by itself.
#[expect(clippy::disallowed_methods, reason = "what another process does is looked at in a loop")]
pub fn rest() {
    std::thread::sleep(Duration::from_millis(5));
}

/// Looks until there is something to see.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let patience = Patience::new(HANG);
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(!patience.is_over(), "waited too long for {what}");
        rest();
    }
}

/// A number from the environment of the tests.
pub fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// A new seed, or the one that is to be repeated.
pub fn seed() -> u64 {
    variable("TURND_TORTURE_SEED").unwrap_or_else(|| {
        let mut random = [0; 8];
        getrandom::fill(&mut random).unwrap();
        u64::from_ne_bytes(random) % 1_000_000_007
    })
}

/// Numbers from a seed: small, repeatable, good enough to vary a test (`SplitMix64`).
#[derive(Clone)]
pub struct Draw(u64);

impl Draw {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to `bound`, which it does not reach.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
