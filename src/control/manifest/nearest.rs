//! What a misspelled name was meant to be.

/// Names longer than this are not misspelled keys; comparing them would cost time for nothing.
const CHARS_MAX: usize = 64;

/// The candidate that `name` is most like, if it is near enough to be a slip.
pub(super) fn nearest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let letters: Vec<char> = name.chars().take(CHARS_MAX + 1).collect();
    if letters.len() > CHARS_MAX {
        return None;
    }
    let slips_max = letters.len().div_ceil(3);
    candidates
        .into_iter()
        .map(|candidate| (distance(&letters, candidate), candidate))
        .filter(|(slips, _)| *slips <= slips_max)
        .min_by_key(|(slips, _)| *slips)
        .map(|(_, candidate)| candidate.to_owned())
}

/// Levenshtein: the fewest letters to add, drop or change.
fn distance(from: &[char], to: &str) -> usize {
    let mut row: Vec<usize> = (0..=from.len()).collect();
    for (index, letter) in to.chars().enumerate() {
        let mut diagonal = index;
        let mut left = index + 1;
        for (cell, other) in row.iter_mut().skip(1).zip(from) {
            let changed = diagonal + usize::from(*other != letter);
            diagonal = *cell;
            left = changed.min(diagonal + 1).min(left + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = index + 1;
        }
    }
    row.last().copied().unwrap_or(usize::MAX)
}
