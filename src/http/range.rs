//! Parts of a body: one range of bytes, as a browser asks for them (RFC 9110 14).

use std::ops::Range;

use http::HeaderMap;
use http::header::{IF_NONE_MATCH, IF_RANGE, RANGE};

/// What a request asks for of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    Whole,
    Part(Range<usize>),
    /// No byte of the range is there.
    Nothing,
}

/// Reads `Range` for a body of `length` bytes under `etag`. What asks for several ranges, or is no
/// range of bytes, asks for the whole.
pub fn wanted(headers: &HeaderMap, etag: &str, length: usize) -> Wanted {
    let current = headers.get(IF_RANGE).is_none_or(|value| value.as_bytes() == etag.as_bytes());
    let range = headers.get(RANGE).filter(|_| current).and_then(|range| range.to_str().ok());
    let spec = range.and_then(|range| {
        let (unit, spec) = range.split_once('=')?;
        unit.eq_ignore_ascii_case("bytes").then_some(spec)
    });
    spec.and_then(|spec| part(spec.trim(), length)).unwrap_or(Wanted::Whole)
}

fn part(spec: &str, length: usize) -> Option<Wanted> {
    let (first, last) = spec.split_once('-')?;
    let part = match (first, last) {
        ("", suffix) => length.saturating_sub(number(suffix)?)..length,
        (first, "") => number(first)?..length,
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            if last < first {
                return None;
            }
            first..last.saturating_add(1).min(length)
        }
    };
    Some(if part.is_empty() { Wanted::Nothing } else { Wanted::Part(part) })
}

/// A number that no machine holds is the largest there is.
fn number(digits: &str) -> Option<usize> {
    let all = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    all.then(|| digits.parse().unwrap_or(usize::MAX))
}

/// Whether the caller has the body already.
pub fn is_known(headers: &HeaderMap, etag: &str) -> bool {
    let values = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut tags = values.flat_map(|value| value.split(',')).map(str::trim);
    tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}

#[cfg(test)]
mod tests;
