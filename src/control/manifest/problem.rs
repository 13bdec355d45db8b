//! What can be wrong with a manifest. Every message for a key is written here; none quotes a value
//! that could be a secret.

use std::fmt;

use crate::ids::IdError;

/// One thing that is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// From 1.
    pub line: usize,
    /// The full key, as in `agent.support.model`; empty when the text is not TOML.
    pub key: String,
    pub fault: Fault,
}

impl fmt::Display for Problem {
    /// `<line>: <key>: <problem>`; whoever prints it puts the file's name in front.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.line)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        self.fault.fmt(f)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The parser's own words.
    #[error("not TOML: {0}")]
    Syntax(String),
    #[error("set twice")]
    Duplicate,
    #[error("unknown key{}", one_of(nearest.as_deref(), known))]
    UnknownKey { nearest: Option<String>, known: Vec<&'static str> },
    #[error("`{name}` needs the {capability} capability, which this version does not have")]
    Later { name: String, capability: &'static str },
    #[error("must be {expected}, not {found}")]
    Type { expected: &'static str, found: &'static str },
    #[error("must be {min} to {max}")]
    Range { min: u64, max: u64 },
    #[error("must be a number of seconds from {min} to {max}")]
    Seconds { min: &'static str, max: u64 },
    #[error("must be a number of seconds, or \"never\"")]
    SecondsOrNever,
    #[error("must be a number of dollars from 0 to {max}")]
    Dollars { max: u32 },
    #[error("must not be empty")]
    Empty,
    #[error("must be at most {chars_max} characters without control characters")]
    Text { chars_max: usize },
    #[error(transparent)]
    Id(#[from] IdError),
    #[error("missing: {0}")]
    Missing(&'static str),
    #[error("no such {what}{}", one_of(nearest.as_deref(), known))]
    UnknownName { what: &'static str, nearest: Option<String>, known: Vec<String> },
    #[error("must be 1 to {bytes_max} characters of A-Z a-z 0-9 _ -")]
    ToolName { bytes_max: usize },
    #[error("must be \"client\": the tools that a worker handles come from the worker")]
    ToolHandler,
    #[error("must not hold a date, a time, inf or nan, which JSON does not have")]
    NotJson,
    #[error("must not be nested deeper than {max}")]
    Depth { max: usize },
    #[error("must be at most {max} bytes long")]
    Bytes { max: usize },
    #[error("must hold at most {max}")]
    Items { max: usize },
    #[error("must be an address and a port, such as 127.0.0.1:7171")]
    Address,
    #[error("must be an http:// or https:// URL, without a query")]
    Url,
    #[error("must not hold a user name or password")]
    UserInfo,
    #[error("must be \"*\" or an origin such as https://example.com, without a path")]
    Origin,
    #[error("listed twice")]
    ListedTwice,
    #[error("must be the name of an environment variable: A-Z, 0-9 and _")]
    Variable,
    #[error("a secret must not be in the file; {}", instead(*named_by))]
    Secret { named_by: Option<&'static str> },
    #[error("has no use with type \"demo\"")]
    UselessWithDemo,
    #[error("must be \"demo\": this block is the built-in model")]
    DemoBlock,
}

/// What to write in the place of a name that is none. A long list would help nobody.
fn one_of<T: AsRef<str>>(nearest: Option<&str>, known: &[T]) -> String {
    const LISTED_MAX: usize = 6;
    let names: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
    match nearest {
        Some(nearest) => format!("; did you mean `{nearest}`?"),
        None if names.len() <= LISTED_MAX => format!("; known: `{}`", names.join("`, `")),
        None => String::new(),
    }
}

fn instead(named_by: Option<&str>) -> String {
    match named_by {
        Some(key) => format!("name its environment variable with `{key}`"),
        None => "set it in the environment".to_owned(),
    }
}
