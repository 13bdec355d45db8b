//! What stands in messages beside text, as far as any provider can be sent it; the rest in words.

use std::borrow::Cow;
use std::fmt;

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Serialize, Serializer};

use crate::effects::BlobBytes;
use crate::protocol::blob::Uri;
use crate::protocol::content::{Content, ContentPart};

/// A part of a message.
pub enum Piece<'m> {
    /// Its text, or words about what cannot be sent.
    Text(Cow<'m, str>),
    /// With the part that it comes from, for a provider that does not take it.
    Media(Media<'m>, &'m ContentPart),
}

pub enum Media<'m> {
    Image {
        mime: &'static str,
        bytes: &'m Bytes,
    },
    ImageAt(&'m str),
    Audio {
        format: &'static str,
        bytes: &'m Bytes,
    },
    Pdf {
        name: &'m str,
        bytes: &'m Bytes,
    },
    /// Never blank: some providers refuse that.
    TextFile {
        name: &'m str,
        text: &'m str,
    },
}

impl<'m> Piece<'m> {
    pub fn text(text: &'m str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    /// What a message says, part by part.
    pub fn of(content: Option<&'m Content>, blobs: &'m BlobBytes) -> Vec<Self> {
        match content {
            None => Vec::new(),
            Some(Content::Text(text)) => vec![Self::text(text)],
            Some(Content::Parts(parts)) => {
                parts.iter().map(|part| Self::of_part(part, blobs)).collect()
            }
        }
    }

    fn of_part(part: &'m ContentPart, blobs: &'m BlobBytes) -> Self {
        match (part.as_text(), Media::of(part, blobs)) {
            (Some(text), _) => Self::text(text),
            (None, Some(media)) => Self::Media(media, part),
            (None, None) => Self::Text(not_sent(part).into()),
        }
    }

    /// For those who take nothing but text.
    pub fn into_words(self) -> Cow<'m, str> {
        match self {
            Self::Text(text) => text,
            Self::Media(_, part) => not_sent(part).into(),
        }
    }

    /// All of `pieces` as one text.
    pub fn join(pieces: Vec<Self>) -> String {
        let texts: Vec<Cow<'_, str>> = pieces.into_iter().map(Self::into_words).collect();
        texts.join("\n\n")
    }
}

impl<'m> Media<'m> {
    /// Nothing but what providers are known to take: the message is sent again with every later call,
    /// so one part that is refused would end the session.
    fn of(part: &'m ContentPart, blobs: &'m BlobBytes) -> Option<Self> {
        let (name, hash, mime) = match part {
            ContentPart::ImageUrl { image_url, mime, .. } => (None, &image_url.url, mime),
            ContentPart::InputAudio { input_audio, mime, .. } => (None, &input_audio.data, mime),
            ContentPart::Blob { uri, mime, .. } => (Some("file"), uri, mime),
            ContentPart::File { file, mime, .. } => {
                let name = Some(file.filename.as_str()).filter(|name| !name.trim().is_empty());
                (name.or(Some("file")), &file.file_data, mime)
            }
            ContentPart::Link { uri: Uri::Other(url), mime_type: Some(mime), .. } => {
                let is_image = mime.starts_with("image/") && is_web(url);
                return is_image.then_some(Self::ImageAt(url));
            }
            ContentPart::Text { .. }
            | ContentPart::VideoUrl { .. }
            | ContentPart::Link { .. }
            | ContentPart::Attachment { .. } => return None,
        };
        let bytes = blobs.get(hash).filter(|bytes| !bytes.is_empty())?;
        if let Some(mime) = image_type(mime, bytes) {
            return Some(Self::Image { mime, bytes });
        }
        if let Some(format) = audio_format(mime) {
            return Some(Self::Audio { format, bytes });
        }
        let name = name?;
        if mime == "application/pdf" {
            return Some(Self::Pdf { name, bytes });
        }
        let text = is_text(mime).then(|| std::str::from_utf8(bytes).ok()).flatten()?;
        (!text.trim().is_empty()).then_some(Self::TextFile { name, text })
    }
}

fn is_web(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}

fn is_text(mime: &str) -> bool {
    mime.starts_with("text/") || mime == "application/json"
}

/// The type of an image that every provider with images takes. Its first bytes tell, not its sender:
/// providers refuse an image whose type is not the declared one.
fn image_type(mime: &str, bytes: &[u8]) -> Option<&'static str> {
    if !mime.starts_with("image/") {
        return None;
    }
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

fn audio_format(mime: &str) -> Option<&'static str> {
    match mime {
        "audio/mpeg" | "audio/mp3" => Some("mp3"),
        "audio/wav" | "audio/wave" | "audio/x-wav" | "audio/vnd.wave" => Some("wav"),
        _ => None,
    }
}

/// What a part that is no text is, in a few words.
pub fn words(part: &ContentPart) -> String {
    let described = |name: &str, mime: &str, size: &u64| format!("{name}, {mime}, {size} bytes");
    match part {
        ContentPart::Text { text } => text.clone(),
        ContentPart::ImageUrl { mime, size, .. }
        | ContentPart::VideoUrl { mime, size, .. }
        | ContentPart::InputAudio { mime, size, .. }
        | ContentPart::Blob { mime, size, .. } => format!("{mime}, {size} bytes"),
        ContentPart::File { file, mime, size } => described(&file.filename, mime, size),
        ContentPart::Attachment { id, mime, size, uri } => match uri {
            Uri::Blob(_) => described(id, mime, size),
            Uri::Other(uri) => format!("{} at {uri}", described(id, mime, size)),
        },
        ContentPart::Link { uri, name, mime_type, .. } => {
            let named = [name, mime_type].into_iter().flatten();
            named.fold(format!("link: {uri}"), |words, more| words + ", " + more)
        }
    }
}

/// What the model reads in the place of a part. A link says all that there is of it.
fn not_sent(part: &ContentPart) -> String {
    let is_link = matches!(part, ContentPart::Link { .. });
    format!("[{}{}]", words(part), if is_link { "" } else { ", not sent" })
}

/// Bytes in base64, written straight into the request.
pub struct Encoded<'m>(pub &'m [u8]);

impl Serialize for Encoded<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Base64Display::new(self.0, &STANDARD))
    }
}

pub struct DataUri<'m> {
    pub mime: &'m str,
    pub bytes: &'m [u8],
}

impl fmt::Display for DataUri<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let data = Base64Display::new(self.bytes, &STANDARD);
        write!(f, "data:{};base64,{data}", self.mime)
    }
}

impl Serialize for DataUri<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests;
