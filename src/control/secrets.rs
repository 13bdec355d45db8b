//! Secrets, read by name from the environment or a systemd credential, never from the manifest.
//!
//! Every value is a `SecretString`, whose `Debug` shows nothing. No error holds a value (A10).

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use secrecy::SecretString;

/// Looks up a variable of the environment. An argument, so that tests need no process environment.
pub type Lookup<'a> = dyn Fn(&str) -> Option<OsString> + 'a;

/// Longest secret, in bytes; no key of any vendor comes near it.
pub const SECRET_BYTES_MAX: u64 = 16 * 1024;

/// Why a secret that is set cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error("cannot read the credential file of this name")]
    Unreadable(#[source] io::Error),
    #[error("must be at most {SECRET_BYTES_MAX} bytes long")]
    TooLong,
    #[error("must be {chars_min} or more printable ASCII characters without spaces")]
    Form { chars_min: usize },
}

/// Where secrets come from: the environment first, then the credentials folder (S66).
pub struct Secrets<'a> {
    environment: &'a Lookup<'a>,
    credentials: Option<PathBuf>,
}

impl<'a> Secrets<'a> {
    pub fn new(environment: &'a Lookup<'a>) -> Self {
        let credentials = environment("CREDENTIALS_DIRECTORY")
            .filter(|folder| !folder.is_empty())
            .map(PathBuf::from);
        Self { environment, credentials }
    }

    /// The secret called `name`, without a newline at its end; `None` when it is set nowhere or empty.
    ///
    /// `name` is used as a file name: it comes from the program or from [`is_variable_name`].
    pub fn read(&self, name: &str, chars_min: usize) -> Result<Option<SecretString>, SecretError> {
        let form = SecretError::Form { chars_min };
        let text = match (self.environment)(name).filter(|value| !value.is_empty()) {
            Some(value) => value.into_string().map_err(|_| SecretError::Form { chars_min })?,
            None => match self.credential(name)? {
                Some(bytes) => String::from_utf8(bytes).map_err(|_| form)?,
                None => return Ok(None),
            },
        };
        let value = text.trim_end_matches(['\r', '\n']);
        if value.is_empty() {
            return Ok(None);
        }
        if value.len() < chars_min || !value.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(SecretError::Form { chars_min });
        }
        Ok(Some(SecretString::from(value)))
    }

    fn credential(&self, name: &str) -> Result<Option<Vec<u8>>, SecretError> {
        let Some(folder) = &self.credentials else {
            return Ok(None);
        };
        let file = match File::open(folder.join(name)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(SecretError::Unreadable(error)),
        };
        let mut bytes = Vec::new();
        file.take(SECRET_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(SecretError::Unreadable)?;
        if bytes.len() as u64 > SECRET_BYTES_MAX {
            return Err(SecretError::TooLong);
        }
        Ok(Some(bytes))
    }
}

/// Whether `name` can name a secret: upper case, as variables of the environment are spelled. A key
/// pasted in the place of its variable's name does not pass.
pub fn is_variable_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    name.starts_with(|first: char| first.is_ascii_uppercase() || first == '_')
        && name.len() <= 64
        && name.bytes().all(allowed)
}

/// Whether a text is plainly a credential: the prefix of a well-known kind, then no space.
pub fn looks_like_secret(text: &str) -> bool {
    const PREFIXES: [&str; 18] = [
        "sk-",
        "sk_",
        "rk_",
        "tk_",
        "whsec_",
        "xoxb-",
        "xoxp-",
        "ghp_",
        "gho_",
        "ghs_",
        "github_pat_",
        "glpat-",
        "AKIA",
        "AIza",
        "hf_",
        "gsk_",
        "xai-",
        "eyJ",
    ];
    const CHARS_MIN: usize = 16;
    text.starts_with("-----BEGIN ")
        || text.len() >= CHARS_MIN
            && !text.contains(char::is_whitespace)
            && PREFIXES.iter().any(|prefix| text.starts_with(prefix))
}

#[cfg(test)]
mod tests;
