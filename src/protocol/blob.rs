//! Bytes inside messages: stored once by their hash, named `blob://<hex>` wherever they stood (S15).

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

use super::json::{DecodeError, Node};

/// Most decoded bytes of one part.
pub const BLOB_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Longest address of a link.
const URI_BYTES_MAX: usize = 8 * 1024;
/// Longest media type.
const MIME_BYTES_MAX: usize = 127;
const SCHEME: &str = "blob://";
/// What bytes are when nobody says.
pub const MIME_UNKNOWN: &str = "application/octet-stream";

/// The SHA-256 of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobHash([u8; 32]);

impl BlobHash {
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Reads 64 lower-case hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return None;
        }
        let mut hash = [0; 32];
        for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
            for digit in pair {
                let value = match digit {
                    b'0'..=b'9' => digit - b'0',
                    b'a'..=b'f' => digit - b'a' + 10,
                    _ => return None,
                };
                *byte = *byte << 4 | value;
            }
        }
        Some(Self(hash))
    }

    /// As it stands in a path: lower-case hexadecimal digits.
    pub fn hex(&self) -> String {
        let digits = self.0.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        digits.filter_map(|digit| char::from_digit(u32::from(digit), 16)).collect()
    }
}

impl fmt::Display for BlobHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", self.hex())
    }
}

impl fmt::Debug for BlobHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a text is not a reference to a blob.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be `blob://` and 64 hexadecimal digits")]
pub struct BlobUriError;

impl FromStr for BlobHash {
    type Err = BlobUriError;

    fn from_str(uri: &str) -> Result<Self, BlobUriError> {
        uri.strip_prefix(SCHEME).and_then(Self::from_hex).ok_or(BlobUriError)
    }
}

impl Serialize for BlobHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for BlobHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let uri = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        uri.parse().map_err(serde::de::Error::custom)
    }
}

/// An address: a blob of the session, or anything that the engine passes on and never fetches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Uri {
    Blob(BlobHash),
    Other(String),
}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blob(hash) => hash.fmt(f),
            Self::Other(uri) => f.write_str(uri),
        }
    }
}

impl Serialize for Uri {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Blob(hash) => hash.serialize(serializer),
            Self::Other(uri) => serializer.serialize_str(uri),
        }
    }
}

impl<'de> Deserialize<'de> for Uri {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let uri = String::deserialize(deserializer)?;
        Ok(uri.parse().map_or(Self::Other(uri), Self::Blob))
    }
}

/// Bytes that came with a request, under the name that they will have.
#[derive(Clone, PartialEq, Eq)]
pub struct Upload {
    pub hash: BlobHash,
    pub mime: String,
    pub bytes: Bytes,
}

impl Upload {
    fn new(mime: String, bytes: Vec<u8>) -> Self {
        Self { hash: BlobHash::of(&bytes), mime, bytes: bytes.into() }
    }

    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, {} bytes)", self.hash, self.mime, self.bytes.len())
    }
}

/// What a caller put where bytes or an address may stand.
pub enum Source {
    Upload(Upload),
    Uri(Uri),
}

impl Source {
    /// Reads a data URI, a reference to a blob, or any other address.
    pub fn read(node: &Node<'_>) -> Result<Self, DecodeError> {
        let text = node.string()?;
        if let Some(data) = strip_data_scheme(text) {
            return data_uri(data).map(Self::Upload).map_err(|problem| node.range(problem));
        }
        if text.starts_with(SCHEME) {
            return node.parse(str::parse).map(|hash| Self::Uri(Uri::Blob(hash)));
        }
        if text.is_empty() || text.len() > URI_BYTES_MAX || text.chars().any(char::is_control) {
            return Err(node.range(format!(
                "must be an address of 1 to {URI_BYTES_MAX} bytes without control characters"
            )));
        }
        Ok(Self::Uri(Uri::Other(text.to_owned())))
    }

    /// As [`Source::read`], where plain base64 may stand too: its bytes are of the type `mime`.
    pub fn read_bytes(node: &Node<'_>, mime: &str) -> Result<Self, DecodeError> {
        let text = node.string()?;
        let is_address = text.starts_with(SCHEME)
            || text.starts_with("http://")
            || text.starts_with("https://")
            || strip_data_scheme(text).is_some();
        if is_address {
            return Self::read(node);
        }
        let bytes = base64(text).map_err(|problem| node.range(problem))?;
        Ok(Self::Upload(Upload::new(mime.to_owned(), bytes)))
    }
}

/// Why bytes in a message are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum DataError {
    #[error("must be a data URI of the form data:<mime>;base64,<data>")]
    Form,
    #[error("is not base64")]
    Base64,
    #[error("holds more than {BLOB_BYTES_MAX} bytes")]
    TooLarge,
}

fn strip_data_scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_at_checked(5)?;
    scheme.eq_ignore_ascii_case("data:").then_some(rest)
}

/// Reads what stands behind `data:` (RFC 2397), of which only the base64 form is taken.
fn data_uri(rest: &str) -> Result<Upload, DataError> {
    let (head, data) = rest.split_once(',').ok_or(DataError::Form)?;
    let (kind, encoding) = head.rsplit_once(';').ok_or(DataError::Form)?;
    if !encoding.eq_ignore_ascii_case("base64") {
        return Err(DataError::Form);
    }
    let mime = match kind.split(';').next().unwrap_or_default() {
        "" => "text/plain".to_owned(),
        mime => read_mime(mime).ok_or(DataError::Form)?,
    };
    Ok(Upload::new(mime, base64(data)?))
}

fn base64(text: &str) -> Result<Vec<u8>, DataError> {
    if text.len() / 4 * 3 > BLOB_BYTES_MAX + 3 {
        return Err(DataError::TooLarge);
    }
    let bytes = STANDARD.decode(text).map_err(|_| DataError::Base64)?;
    if bytes.len() > BLOB_BYTES_MAX {
        return Err(DataError::TooLarge);
    }
    Ok(bytes)
}

/// A media type without parameters, in lower case.
pub fn read_mime(text: &str) -> Option<String> {
    let token = |part: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+*".contains(&byte);
        !part.is_empty() && part.bytes().all(allowed)
    };
    let (kind, subtype) = text.split_once('/')?;
    let sound = text.len() <= MIME_BYTES_MAX && token(kind) && token(subtype);
    sound.then(|| text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests;
