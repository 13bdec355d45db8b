//! Forms of text that several sections share.

use http::Uri;

use super::problem::Fault;

/// Longest name of a model or a project, in characters.
const NAME_CHARS_MAX: usize = 256;

/// A name for people or providers: short and printable.
pub(super) fn name_text(text: &str) -> Result<String, Fault> {
    if text.is_empty() {
        return Err(Fault::Empty);
    }
    if text.chars().count() > NAME_CHARS_MAX || text.contains(char::is_control) {
        return Err(Fault::Text { chars_max: NAME_CHARS_MAX });
    }
    Ok(text.to_owned())
}

/// An http or https URL that other paths can be put behind: without user name, query, and the slash
/// at its end.
pub fn http_url(text: &str) -> Result<String, Fault> {
    let lower = text.to_ascii_lowercase();
    let rest = ["https://", "http://"].iter().find_map(|scheme| lower.strip_prefix(scheme));
    let rest = rest.ok_or(Fault::Url)?;
    if rest.split(['/', '?', '#']).next().is_some_and(|authority| authority.contains('@')) {
        return Err(Fault::UserInfo);
    }
    let uri: Uri = text.parse().map_err(|_| Fault::Url)?;
    if uri.host().is_none_or(str::is_empty) || text.contains(['?', '#']) {
        return Err(Fault::Url);
    }
    Ok(text.trim_end_matches('/').to_owned())
}

/// What a browser sends in `Origin`, or `*`.
pub(super) fn origin(text: &str) -> Result<String, Fault> {
    if text == "*" {
        return Ok(text.to_owned());
    }
    let Some((scheme, authority)) = text.split_once("://") else {
        return Err(Fault::Origin);
    };
    let scheme_fits = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let authority_fits = !authority.is_empty()
        && authority.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte));
    if !scheme_fits || !authority_fits {
        return Err(Fault::Origin);
    }
    Ok(text.to_ascii_lowercase())
}
