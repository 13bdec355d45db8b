//! `turnd compact`: files that hold what is live and nothing else.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use turnd_storage::Compacted;

use super::{Place, StartError};
use crate::clock::Clock;
use crate::config::{Config, process_environment};
use crate::time::Timestamp;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: Place,
}

/// Compacts the data folder of a server that is stopped, and says what that came to.
pub fn run(args: Args) -> Result<ExitCode, StartError> {
    let config = Config::load(&args.place.into(), &process_environment)?;
    let mut meter = Meter::new(&config.data);
    let options = turnd_storage::Options::default();
    let compacted =
        turnd_storage::compact(&config.data, &options, &mut |copied| meter.show(copied));
    drop(meter);
    let compacted = compacted.map_err(StartError::Compact)?;
    let text = if args.json { json(compacted) } else { text(compacted) };
    // A reader that went away has seen enough.
    writeln!(io::stdout().lock(), "{text}").ok();
    Ok(ExitCode::SUCCESS)
}

fn text(Compacted { bytes_before, bytes_after }: Compacted) -> String {
    format!("{} before, {} after", size(bytes_before), size(bytes_after))
}

fn json(Compacted { bytes_before, bytes_after }: Compacted) -> String {
    serde_json::json!({ "bytes_before": bytes_before, "bytes_after": bytes_after }).to_string()
}

/// The line on a terminal that tells how far the copy is.
struct Meter {
    clock: Clock,
    started: Timestamp,
    /// Bytes to copy at most.
    bytes_max: u64,
}

impl Meter {
    fn new(data: &Path) -> Self {
        let archive = std::fs::metadata(data.join("archive.redb"));
        let clock = Clock::start();
        Self { clock, started: clock.now(), bytes_max: archive.map_or(0, |archive| archive.len()) }
    }

    fn show(&mut self, copied: u64) {
        let mut stderr = io::stderr().lock();
        if stderr.is_terminal() {
            let elapsed = self.clock.now().since(self.started);
            // A closed stderr leaves nobody to tell.
            write!(stderr, "\r\x1b[K{}", progress(copied, self.bytes_max, elapsed)).ok();
            stderr.flush().ok();
        }
    }
}

/// What it wrote makes room for the outcome.
impl Drop for Meter {
    fn drop(&mut self) {
        let mut stderr = io::stderr().lock();
        if stderr.is_terminal() {
            write!(stderr, "\r\x1b[K").ok();
        }
    }
}

/// How much is copied, how quickly, and how long it goes on at most.
fn progress(copied: u64, bytes_max: u64, elapsed: Duration) -> String {
    let mut line = format!("{} of at most {}", size(copied), size(bytes_max.max(copied)));
    let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    let rate = copied.saturating_mul(1000).checked_div(millis).unwrap_or(0);
    if let Some(left) = bytes_max.saturating_sub(copied).checked_div(rate) {
        // Writing to a String cannot fail.
        let _ = write!(line, ", {}/s, at most {left} s left", size(rate));
    }
    line
}

fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    for (unit, of) in UNITS {
        if bytes >= of {
            return format!("{}.{} {unit}", bytes / of, bytes % of * 10 / of);
        }
    }
    format!("{bytes} bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_told_in_its_largest_unit() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1024, "1.0 KiB"),
            (1_600_000, "1.5 MiB"),
            (5 << 30, "5.0 GiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn progress_tells_the_rate_and_the_time_left() {
        let mib = 1 << 20;
        let line = progress(64 * mib, 256 * mib, Duration::from_secs(2));
        assert_eq!(line, "64.0 MiB of at most 256.0 MiB, 32.0 MiB/s, at most 6 s left");
        assert_eq!(progress(0, 0, Duration::ZERO), "0 bytes of at most 0 bytes");
    }
}
