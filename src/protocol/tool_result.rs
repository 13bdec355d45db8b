//! What a call of a tool came to, in MCP's shape (S41).

use serde::{Deserialize, Serialize};

use super::blob::{BlobHash, MIME_UNKNOWN, Source, Uri, read_mime};
use super::content::{
    BlobAudio, BlobFile, BlobInfo, BlobUrl, Content, ContentPart, Intake, PARTS_MAX, audio_format,
};
use super::json::{DecodeError, Json, Node};
use super::tagged::tagged;

/// Most blocks in a result.
const BLOCKS_MAX: usize = 256;
/// Longest name or address in a block, in bytes.
const NAME_BYTES_MAX: usize = 8 * 1024;

/// What the content of a failure begins with. Of the result, the model reads nothing but the content.
const FAILED: &str = "error: ";

/// What a tool answered.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ToolResult {
    pub content: Vec<ToolContent>,
    #[serde(rename = "structuredContent", skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Json>,
    #[serde(rename = "isError", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

tagged! {
    /// A block of a result. Bytes are blobs, under the name that their base64 had (S15).
    ToolContent, "a block of a tool result", {
        "text" Text TextBlock,
        "image" Image MediaBlock,
        "audio" Audio MediaBlock,
        "resource" Resource ResourceBlock,
        "resource_link" ResourceLink ResourceLinkBlock,
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextBlock {
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaBlock {
    pub data: BlobHash,
    #[serde(rename = "mimeType")]
    pub mime_type: String,
    /// In bytes.
    pub size: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceBlock {
    pub resource: Resource,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    pub uri: String,
    #[serde(rename = "mimeType", skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blob: Option<BlobHash>,
    /// Of the blob, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLinkBlock {
    pub uri: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(rename = "mimeType", skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

impl ToolResult {
    /// A result that is one text.
    pub fn text(text: impl Into<String>) -> Self {
        let block = TextBlock { text: text.into() };
        Self { content: vec![ToolContent::Text(block)], ..Self::default() }
    }

    /// What a message says, as a result.
    pub fn of_message(content: Option<&Content>) -> Self {
        let parts = match content {
            None => return Self::text(""),
            Some(Content::Text(text)) => return Self::text(text),
            Some(Content::Parts(parts)) => parts,
        };
        let content = parts.iter().map(|part| match part {
            ContentPart::Text { text } => ToolContent::Text(TextBlock { text: text.clone() }),
            ContentPart::ImageUrl { image_url, mime, size } => ToolContent::Image(MediaBlock {
                data: image_url.url,
                mime_type: mime.clone(),
                size: *size,
            }),
            ContentPart::InputAudio { input_audio, mime, size } => ToolContent::Audio(MediaBlock {
                data: input_audio.data,
                mime_type: mime.clone(),
                size: *size,
            }),
            ContentPart::Link { uri, name, mime_type, .. } => {
                ToolContent::ResourceLink(ResourceLinkBlock {
                    uri: uri.to_string(),
                    name: name.clone(),
                    mime_type: mime_type.clone(),
                })
            }
            ContentPart::Attachment { id, mime, uri: Uri::Other(uri), .. } => {
                ToolContent::ResourceLink(ResourceLinkBlock {
                    uri: uri.clone(),
                    name: Some(id.clone()),
                    mime_type: Some(mime.clone()),
                })
            }
            ContentPart::File { file: BlobFile { filename, file_data }, mime, size } => {
                Resource::block(filename.clone(), *file_data, mime, *size)
            }
            ContentPart::VideoUrl { video_url: BlobUrl { url }, mime, size } => {
                Resource::block(url.to_string(), *url, mime, *size)
            }
            ContentPart::Blob { uri, mime, size } => {
                Resource::block(uri.to_string(), *uri, mime, *size)
            }
            ContentPart::Attachment { id, mime, size, uri: Uri::Blob(hash) } => {
                Resource::block(id.clone(), *hash, mime, *size)
            }
        });
        Self { content: content.collect(), ..Self::default() }
    }

    /// Every blob that it names, with what it says of it.
    pub fn blobs(&self) -> impl Iterator<Item = (BlobHash, BlobInfo)> {
        self.content.iter().filter_map(ToolContent::blob)
    }

    /// The result as the content of the tool message that the model reads.
    pub fn to_content(&self) -> Content {
        let said = match (self.content.as_slice(), &self.structured_content) {
            ([ToolContent::Text(TextBlock { text })], _) => text,
            ([], Some(value)) => value.text(),
            ([], None) => "",
            (_, _) => return Content::Parts(self.to_parts()),
        };
        Content::Text(if self.is_error { format!("{FAILED}{said}") } else { said.to_owned() })
    }

    fn to_parts(&self) -> Vec<ContentPart> {
        let mut parts: Vec<ContentPart> = self.content.iter().map(ToolContent::to_part).collect();
        if !self.is_error {
            return parts;
        }
        if let Some(ContentPart::Text { text }) = parts.first_mut() {
            text.insert_str(0, FAILED);
        } else {
            // A client that sends the message again may not send more.
            parts.truncate(PARTS_MAX - 1);
            parts.insert(0, ContentPart::Text { text: FAILED.trim_end().to_owned() });
        }
        parts
    }
}

impl Resource {
    fn block(uri: String, blob: BlobHash, mime: &str, size: u64) -> ToolContent {
        let mime_type = Some(mime.to_owned());
        let resource = Self { uri, mime_type, text: None, blob: Some(blob), size: Some(size) };
        ToolContent::Resource(ResourceBlock { resource })
    }
}

impl ToolContent {
    fn to_part(&self) -> ContentPart {
        match self {
            Self::Text(TextBlock { text }) => ContentPart::Text { text: text.clone() },
            Self::Image(MediaBlock { data, mime_type, size }) => ContentPart::ImageUrl {
                image_url: BlobUrl { url: *data },
                mime: mime_type.clone(),
                size: *size,
            },
            Self::Audio(MediaBlock { data, mime_type, size }) => ContentPart::InputAudio {
                input_audio: BlobAudio { data: *data, format: audio_format(mime_type).to_owned() },
                mime: mime_type.clone(),
                size: *size,
            },
            Self::Resource(ResourceBlock { resource }) => resource.to_part(),
            Self::ResourceLink(link) => ContentPart::Link {
                uri: link.uri.parse().map_or_else(|_| Uri::Other(link.uri.clone()), Uri::Blob),
                name: link.name.clone(),
                mime_type: link.mime_type.clone(),
                size: None,
            },
        }
    }

    /// The blob that the block names.
    pub fn blob(&self) -> Option<(BlobHash, BlobInfo)> {
        self.to_part().blob()
    }
}

impl Resource {
    fn to_part(&self) -> ContentPart {
        match (&self.blob, &self.text) {
            (Some(blob), _) => ContentPart::File {
                file: BlobFile { filename: self.uri.clone(), file_data: *blob },
                mime: self.mime_type.clone().unwrap_or_else(|| MIME_UNKNOWN.to_owned()),
                size: self.size.unwrap_or(0),
            },
            (None, Some(text)) => ContentPart::Text { text: text.clone() },
            (None, None) => ContentPart::Link {
                uri: Uri::Other(self.uri.clone()),
                name: None,
                mime_type: self.mime_type.clone(),
                size: None,
            },
        }
    }
}

impl Intake {
    /// Reads the result of a tool: MCP's shape, or any other value, which becomes one text.
    pub fn tool_result(&mut self, node: &Node<'_>) -> Result<ToolResult, DecodeError> {
        if !is_result(node)? {
            let text = match node.string() {
                Ok(text) => text.to_owned(),
                Err(_) => node.raw()?.compact(),
            };
            return Ok(ToolResult::text(text));
        }
        let [content, structured, is_error] =
            node.fields(["content", "structuredContent", "isError"])?;
        let blocks = content.as_ref().map(|content| content.items(BLOCKS_MAX)).transpose()?;
        let blocks = blocks.unwrap_or_default();
        Ok(ToolResult {
            content: blocks.iter().map(|block| self.block(block)).collect::<Result<_, _>>()?,
            structured_content: structured.map(|value| value.raw()).transpose()?,
            is_error: is_error.map_or(Ok(false), |flag| flag.bool())?,
        })
    }

    fn block(&mut self, node: &Node<'_>) -> Result<ToolContent, DecodeError> {
        let [kind, text] = node.fields(["type", "text"])?;
        match node.required("type", kind)?.string()? {
            "image" => self.media_block(node).map(ToolContent::Image),
            "audio" => self.media_block(node).map(ToolContent::Audio),
            "resource" => self.resource(node).map(ToolContent::Resource),
            "resource_link" => {
                let [uri, name, mime_type] = node.fields(["uri", "name", "mimeType"])?;
                let uri = node.required("uri", uri)?;
                if uri.parse(str::parse::<BlobHash>).is_ok() {
                    return Err(uri.range("must not be a blob:// reference"));
                }
                Ok(ToolContent::ResourceLink(ResourceLinkBlock {
                    uri: uri.text(NAME_BYTES_MAX)?,
                    name: name.map(|name| name.text(NAME_BYTES_MAX)).transpose()?,
                    mime_type: mime_type.map(|mime| mime.text(NAME_BYTES_MAX)).transpose()?,
                }))
            }
            _ => {
                let text = node.required("text", text)?.text(self.text_bytes_max)?;
                Ok(ToolContent::Text(TextBlock { text }))
            }
        }
    }

    fn media_block(&mut self, node: &Node<'_>) -> Result<MediaBlock, DecodeError> {
        let [data, mime] = node.fields(["data", "mimeType"])?;
        let mime = node.required("mimeType", mime)?;
        let mime_type =
            read_mime(mime.string()?).ok_or_else(|| mime.range("is not a media type"))?;
        let (data, size) = self.bytes(&node.required("data", data)?, &mime_type)?;
        Ok(MediaBlock { data, mime_type, size })
    }

    fn resource(&mut self, node: &Node<'_>) -> Result<ResourceBlock, DecodeError> {
        let [resource] = node.fields(["resource"])?;
        let resource = node.required("resource", resource)?;
        let [uri, mime, text, blob] = resource.fields(["uri", "mimeType", "text", "blob"])?;
        let mime_type = mime.map(|mime| mime.text(NAME_BYTES_MAX)).transpose()?;
        let mime = mime_type.as_deref().and_then(read_mime);
        let mime = mime.unwrap_or_else(|| MIME_UNKNOWN.to_owned());
        let (blob, size) = blob.map(|blob| self.bytes(&blob, &mime)).transpose()?.unzip();
        Ok(ResourceBlock {
            resource: Resource {
                uri: resource.required("uri", uri)?.text(NAME_BYTES_MAX)?,
                mime_type,
                text: text.map(|text| text.text(self.text_bytes_max)).transpose()?,
                blob,
                size,
            },
        })
    }

    /// Base64 in a result: it must be there, for a result names no blob of an earlier message.
    fn bytes(&mut self, node: &Node<'_>, mime: &str) -> Result<(BlobHash, u64), DecodeError> {
        let source = Source::read_bytes(node, mime)?;
        let Source::Upload(upload) = &source else {
            return Err(node.range("must be base64"));
        };
        let found = (upload.hash, upload.size());
        self.take(node, source)?;
        Ok(found)
    }
}

/// Whether a value is a result in MCP's shape: an object whose `content` is a list of blocks that
/// are known, or that has no content but `structuredContent`.
fn is_result(node: &Node<'_>) -> Result<bool, DecodeError> {
    let Ok([content, structured]) = node.fields(["content", "structuredContent"]) else {
        return Ok(false);
    };
    let Some(content) = content else { return Ok(structured.is_some()) };
    if !content.is_array() {
        return Ok(false);
    }
    let known = |block: &Node<'_>| {
        let Ok([Some(kind), text]) = block.fields(["type", "text"]) else { return false };
        match kind.string() {
            Ok("text") => text.is_some_and(|text| text.string().is_ok()),
            Ok("image" | "audio" | "resource" | "resource_link") => true,
            Ok(_) | Err(_) => false,
        }
    };
    Ok(content.items(usize::MAX)?.iter().all(known))
}

#[cfg(test)]
mod tests;
