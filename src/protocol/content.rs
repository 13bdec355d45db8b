//! What a message says.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::blob::{BlobHash, MIME_UNKNOWN, Source, Upload, Uri, read_mime};
use super::json::{DecodeError, Node};

/// Most parts in one message.
pub const PARTS_MAX: usize = 256;
/// Most different blobs that one request brings. An append names those of a whole batch, and storage
/// takes four times as many.
pub const UPLOADS_MAX: usize = 256;
/// Longest name of a link, a file or an attachment, in bytes.
const NAME_BYTES_MAX: usize = 1024;

/// A plain text, or parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Content {
    Text(String),
    Parts(Vec<ContentPart>),
}

/// A part as it is recorded: no bytes, but `blob://` with the type and size of what it names (S15). A
/// plain address in a part that takes bytes makes it a `link`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentPart {
    Text {
        text: String,
    },
    ImageUrl {
        image_url: BlobUrl,
        mime: String,
        size: u64,
    },
    File {
        file: BlobFile,
        mime: String,
        size: u64,
    },
    InputAudio {
        input_audio: BlobAudio,
        mime: String,
        size: u64,
    },
    VideoUrl {
        video_url: BlobUrl,
        mime: String,
        size: u64,
    },
    Blob {
        uri: BlobHash,
        mime: String,
        size: u64,
    },
    Link {
        uri: Uri,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        #[serde(rename = "mimeType", skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        /// Of a blob.
        #[serde(skip_serializing_if = "Option::is_none")]
        size: Option<u64>,
    },
    Attachment {
        id: String,
        mime: String,
        size: u64,
        uri: Uri,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobUrl {
    pub url: BlobHash,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobFile {
    pub filename: String,
    pub file_data: BlobHash,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobAudio {
    pub data: BlobHash,
    pub format: String,
}

/// What the bytes behind a hash are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobInfo {
    pub mime: String,
    /// In bytes.
    pub size: u64,
}

/// The blobs that are known by name.
pub type Blobs = BTreeMap<BlobHash, BlobInfo>;

impl Content {
    /// All text of the message, its parts joined by a blank line.
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Parts(parts) => {
                let texts: Vec<&str> = parts.iter().filter_map(ContentPart::as_text).collect();
                texts.join("\n\n")
            }
        }
    }

    /// Whether it holds anything but white space.
    pub fn says_something(&self) -> bool {
        let blank = |text: &str| text.trim().is_empty();
        match self {
            Self::Text(text) => !blank(text),
            Self::Parts(parts) => {
                parts.iter().any(|part| part.as_text().is_none_or(|text| !blank(text)))
            }
        }
    }

    fn parts(&self) -> &[ContentPart] {
        match self {
            Self::Text(_) => &[],
            Self::Parts(parts) => parts,
        }
    }

    /// Every blob that it names, with what it says of it.
    pub fn blobs(&self) -> impl Iterator<Item = (BlobHash, BlobInfo)> {
        self.parts().iter().filter_map(ContentPart::blob)
    }

    /// Says of every blob what `known` knows of it: a caller's word does not count. The error is a
    /// blob that is not known.
    pub fn describe_blobs(
        &mut self,
        known: impl Fn(&BlobHash) -> Option<BlobInfo>,
    ) -> Result<(), BlobHash> {
        let Self::Parts(parts) = self else { return Ok(()) };
        for part in parts {
            if let Some((hash, _)) = part.blob() {
                part.describe(known(&hash).ok_or(hash)?);
            }
        }
        Ok(())
    }

    /// Whether both say the same, however a client spells a single text.
    pub fn same_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(text), Self::Parts(parts)) | (Self::Parts(parts), Self::Text(text)) => {
                matches!(parts.as_slice(), [ContentPart::Text { text: part }] if part == text)
            }
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Parts(a), Self::Parts(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same_as(b))
            }
        }
    }
}

impl ContentPart {
    /// A link, of whose bytes nothing is known.
    pub fn link(uri: Uri, name: Option<String>, mime_type: Option<String>) -> Self {
        Self::Link { uri, name, mime_type, size: None }
    }

    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text { text } = self { Some(text) } else { None }
    }

    /// The blob that the part names, with what it says of it.
    pub fn blob(&self) -> Option<(BlobHash, BlobInfo)> {
        let (hash, mime, size) = match self {
            Self::Text { .. } => return None,
            Self::ImageUrl { image_url: BlobUrl { url }, mime, size }
            | Self::VideoUrl { video_url: BlobUrl { url }, mime, size } => (url, mime, size),
            Self::File { file, mime, size } => (&file.file_data, mime, size),
            Self::InputAudio { input_audio, mime, size } => (&input_audio.data, mime, size),
            Self::Blob { uri, mime, size } => (uri, mime, size),
            Self::Attachment { uri: Uri::Blob(hash), mime, size, .. } => (hash, mime, size),
            Self::Link { uri: Uri::Blob(hash), mime_type, size, .. } => {
                let mime = mime_type.clone().unwrap_or_else(|| MIME_UNKNOWN.to_owned());
                return Some((*hash, BlobInfo { mime, size: size.unwrap_or(0) }));
            }
            Self::Attachment { uri: Uri::Other(_), .. } | Self::Link { uri: Uri::Other(_), .. } => {
                return None;
            }
        };
        Some((*hash, BlobInfo { mime: mime.clone(), size: *size }))
    }

    fn describe(&mut self, info: BlobInfo) {
        match self {
            Self::Text { .. } => {}
            Self::ImageUrl { mime, size, .. }
            | Self::VideoUrl { mime, size, .. }
            | Self::File { mime, size, .. }
            | Self::InputAudio { mime, size, .. }
            | Self::Blob { mime, size, .. }
            | Self::Attachment { mime, size, .. } => (*mime, *size) = (info.mime, info.size),
            Self::Link { mime_type, size, .. } => {
                (*mime_type, *size) = (Some(info.mime), Some(info.size));
            }
        }
    }

    /// Equal but for what the engine alone knows of a blob.
    fn same_as(&self, other: &Self) -> bool {
        if self.blob().is_none() {
            return self == other;
        }
        let (mut a, mut b) = (self.clone(), other.clone());
        for part in [&mut a, &mut b] {
            part.describe(BlobInfo { mime: MIME_UNKNOWN.to_owned(), size: 0 });
        }
        a == b
    }
}

/// Reads the messages of one request: bounds its texts and gathers the bytes that come with it.
#[derive(Debug)]
pub struct Intake {
    /// Longest text of a message or a part, in bytes.
    pub text_bytes_max: usize,
    pub uploads: Vec<Upload>,
    hashes: BTreeSet<BlobHash>,
}

impl Intake {
    pub fn new(text_bytes_max: usize) -> Self {
        Self { text_bytes_max, uploads: Vec::new(), hashes: BTreeSet::new() }
    }

    /// What is known of the bytes that came with the request.
    pub fn blobs(uploads: &[Upload]) -> Blobs {
        let info = |upload: &Upload| BlobInfo { mime: upload.mime.clone(), size: upload.size() };
        uploads.iter().map(|upload| (upload.hash, info(upload))).collect()
    }

    /// A plain text or an array of parts.
    pub fn content(&mut self, node: &Node<'_>) -> Result<Content, DecodeError> {
        if !node.is_array() {
            return match node.string() {
                Ok(_) => node.text(self.text_bytes_max).map(Content::Text),
                Err(_) => Err(node.shape("must be a string or an array of content parts")),
            };
        }
        let parts = node.items(PARTS_MAX)?;
        parts.iter().map(|part| self.part(part)).collect::<Result<_, _>>().map(Content::Parts)
    }

    fn part(&mut self, node: &Node<'_>) -> Result<ContentPart, DecodeError> {
        let [kind] = node.fields(["type"])?;
        let kind = node.required("type", kind)?;
        match kind.string()? {
            "text" => {
                let [text] = node.fields(["text"])?;
                let text = node.required("text", text)?.text(self.text_bytes_max)?;
                Ok(ContentPart::Text { text })
            }
            "image_url" => self.media(node, "image_url", "image/*", |url, mime, size| {
                ContentPart::ImageUrl { image_url: BlobUrl { url }, mime, size }
            }),
            "video_url" => self.media(node, "video_url", "video/*", |url, mime, size| {
                ContentPart::VideoUrl { video_url: BlobUrl { url }, mime, size }
            }),
            "file" => self.file(node),
            "input_audio" => self.audio(node),
            "blob" => self.blob(node),
            "link" => self.link(node),
            "attachment" => self.attachment(node),
            other => Err(kind.shape(format!("`{other}` is not a content type"))),
        }
    }

    /// `{ <field>: { url } }`.
    fn media(
        &mut self,
        node: &Node<'_>,
        field: &'static str,
        any_mime: &str,
        part: impl FnOnce(BlobHash, String, u64) -> ContentPart,
    ) -> Result<ContentPart, DecodeError> {
        let [inner] = node.fields([field])?;
        let inner = node.required(field, inner)?;
        let [url] = inner.fields(["url"])?;
        match self.address(&inner.required("url", url)?)? {
            Uri::Blob(hash) => Ok(part(hash, MIME_UNKNOWN.to_owned(), 0)),
            uri @ Uri::Other(_) => Ok(ContentPart::link(uri, None, Some(any_mime.to_owned()))),
        }
    }

    fn file(&mut self, node: &Node<'_>) -> Result<ContentPart, DecodeError> {
        let [file] = node.fields(["file"])?;
        let file = node.required("file", file)?;
        let [filename, data] = file.fields(["filename", "file_data"])?;
        let filename = file.required("filename", filename)?.text(NAME_BYTES_MAX)?;
        let data = file.required("file_data", data)?;
        match self.bytes_at(&data, mime_of_name(&filename))? {
            Uri::Blob(file_data) => Ok(ContentPart::File {
                file: BlobFile { filename, file_data },
                mime: MIME_UNKNOWN.to_owned(),
                size: 0,
            }),
            uri @ Uri::Other(_) => Ok(ContentPart::link(uri, Some(filename), None)),
        }
    }

    fn audio(&mut self, node: &Node<'_>) -> Result<ContentPart, DecodeError> {
        let [audio] = node.fields(["input_audio"])?;
        let audio = node.required("input_audio", audio)?;
        let [data, format] = audio.fields(["data", "format"])?;
        let format_node = audio.required("format", format)?;
        let format = format_node.text(NAME_BYTES_MAX)?;
        let mime = match format.as_str() {
            "mp3" => Some("audio/mpeg".to_owned()),
            other => read_mime(&format!("audio/{other}")),
        };
        let mime = mime.ok_or_else(|| format_node.range("is not the name of a format"))?;
        match self.bytes_at(&audio.required("data", data)?, &mime)? {
            Uri::Blob(data) => Ok(ContentPart::InputAudio {
                input_audio: BlobAudio { data, format },
                mime: MIME_UNKNOWN.to_owned(),
                size: 0,
            }),
            uri @ Uri::Other(_) => Ok(ContentPart::link(uri, None, Some(mime))),
        }
    }

    fn blob(&mut self, node: &Node<'_>) -> Result<ContentPart, DecodeError> {
        let [uri] = node.fields(["uri"])?;
        let uri = node.required("uri", uri)?;
        match self.address(&uri)? {
            Uri::Blob(hash) => {
                Ok(ContentPart::Blob { uri: hash, mime: MIME_UNKNOWN.to_owned(), size: 0 })
            }
            Uri::Other(_) => Err(uri.range("must be a blob:// reference or a data URI")),
        }
    }

    fn link(&mut self, node: &Node<'_>) -> Result<ContentPart, DecodeError> {
        let [uri, name, mime_type] = node.fields(["uri", "name", "mimeType"])?;
        let uri = self.address(&node.required("uri", uri)?)?;
        let name = name.map(|name| name.text(NAME_BYTES_MAX)).transpose()?;
        let mime_type = mime_type.map(|mime| mime.text(NAME_BYTES_MAX)).transpose()?;
        Ok(ContentPart::link(uri, name, mime_type))
    }

    fn attachment(&mut self, node: &Node<'_>) -> Result<ContentPart, DecodeError> {
        let [id, mime, size, uri] = node.fields(["id", "mime", "size", "uri"])?;
        let mime = node.required("mime", mime)?;
        Ok(ContentPart::Attachment {
            id: node.required("id", id)?.text(NAME_BYTES_MAX)?,
            mime: read_mime(mime.string()?).ok_or_else(|| mime.range("is not a media type"))?,
            size: node.required("size", size)?.unsigned()?,
            uri: self.address(&node.required("uri", uri)?)?,
        })
    }

    fn address(&mut self, node: &Node<'_>) -> Result<Uri, DecodeError> {
        self.take(node, Source::read(node)?)
    }

    /// As [`Intake::address`], where plain base64 of the type `mime` may stand too.
    fn bytes_at(&mut self, node: &Node<'_>, mime: &str) -> Result<Uri, DecodeError> {
        self.take(node, Source::read_bytes(node, mime)?)
    }

    /// Keeps the bytes that stand at a place and leaves their name.
    pub(super) fn take(&mut self, node: &Node<'_>, source: Source) -> Result<Uri, DecodeError> {
        let upload = match source {
            Source::Uri(uri) => return Ok(uri),
            Source::Upload(upload) => upload,
        };
        let hash = upload.hash;
        if self.hashes.insert(hash) {
            if self.uploads.len() >= UPLOADS_MAX {
                let problem = format!("is one of more than {UPLOADS_MAX} different blobs");
                return Err(node.range(problem));
            }
            self.uploads.push(upload);
        }
        Ok(Uri::Blob(hash))
    }
}

/// The format that `input_audio` names audio of this type with.
pub fn audio_format(mime: &str) -> &str {
    match mime {
        "audio/mpeg" => "mp3",
        "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => "wav",
        other => other.strip_prefix("audio/").unwrap_or(other),
    }
}

/// The type of a file whose bytes come without one.
fn mime_of_name(filename: &str) -> &'static str {
    let extension = filename.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    match extension.as_deref() {
        Some("pdf") => "application/pdf",
        Some("txt" | "md" | "csv" | "log") => "text/plain",
        Some("json") => "application/json",
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("webp") => "image/webp",
        Some("gif") => "image/gif",
        Some(_) | None => MIME_UNKNOWN,
    }
}

/// From our own log. Hand-written because an untagged enum would report neither place nor cause.
impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Content;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a string or an array of content parts")
            }

            fn visit_str<E>(self, text: &str) -> Result<Content, E> {
                Ok(Content::Text(text.to_owned()))
            }

            fn visit_string<E>(self, text: String) -> Result<Content, E> {
                Ok(Content::Text(text))
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, seq: A) -> Result<Content, A::Error> {
                Vec::deserialize(serde::de::value::SeqAccessDeserializer::new(seq))
                    .map(Content::Parts)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests;
