//! The server's own log: lines to stderr, JSON where a program reads them.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;

/// What is logged when `TURND_LOG` says nothing else.
const FILTER: &str = "info";

/// Starts the log, once per process; a later call changes nothing.
///
/// `TURND_LOG` filters (`info`, `turnd=debug,warn`); `TURND_LOG_FORMAT` is `json` or `text`, by
/// default `text` on a terminal and `json` elsewhere.
pub fn init() {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let wanted = variable("TURND_LOG");
    let parsed = EnvFilter::try_new(wanted.as_deref().unwrap_or(FILTER));
    let refused = parsed.is_err();
    let filter = parsed.unwrap_or_else(|_| EnvFilter::new(FILTER));
    let terminal = io::stderr().is_terminal();
    let log = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_ansi(terminal)
        .with_env_filter(filter);
    let started = if is_json(variable("TURND_LOG_FORMAT").as_deref(), terminal) {
        log.json().flatten_event(true).try_init()
    } else {
        log.try_init()
    };
    if refused && started.is_ok() {
        tracing::warn!("TURND_LOG is not a filter, such as `info` or `turnd=debug`; taking `info`");
    }
}

fn is_json(format: Option<&str>, terminal: bool) -> bool {
    match format {
        Some("json") => true,
        Some("text") => false,
        _ => !terminal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_goes_to_programs_and_text_to_people() {
        assert!(is_json(None, false));
        assert!(!is_json(None, true));
        assert!(is_json(Some("json"), true));
        assert!(!is_json(Some("text"), false));
    }

    #[test]
    fn a_second_start_is_harmless() {
        init();
        init();
    }
}
