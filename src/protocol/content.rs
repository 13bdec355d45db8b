//! What a message says.

use serde::{Deserialize, Serialize};

use super::json::{DecodeError, Node};

/// Most parts in one message.
pub const PARTS_MAX: usize = 256;

/// A plain text, or parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Content {
    Text(String),
    Parts(Vec<ContentPart>),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentPart {
    Text { text: String },
}

impl Content {
    /// All text of the message, its parts joined by a blank line.
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Parts(parts) => {
                let texts: Vec<&str> =
                    parts.iter().map(|ContentPart::Text { text }| text.as_str()).collect();
                texts.join("\n\n")
            }
        }
    }

    /// Reads a caller's content; each text is at most `text_bytes_max` bytes.
    pub fn read(node: &Node<'_>, text_bytes_max: usize) -> Result<Self, DecodeError> {
        if !node.is_array() {
            return match node.string() {
                Ok(_) => node.text(text_bytes_max).map(Self::Text),
                Err(_) => Err(node.shape("must be a string or an array of content parts")),
            };
        }
        let parts = node.items(PARTS_MAX)?;
        parts
            .iter()
            .map(|part| ContentPart::read(part, text_bytes_max))
            .collect::<Result<_, _>>()
            .map(Self::Parts)
    }
}

impl ContentPart {
    fn read(node: &Node<'_>, text_bytes_max: usize) -> Result<Self, DecodeError> {
        let [kind, text] = node.fields(["type", "text"])?;
        let kind = node.required("type", kind)?;
        match kind.string()? {
            "text" => {
                let text = node.required("text", text)?.text(text_bytes_max)?;
                Ok(Self::Text { text })
            }
            other => Err(kind.shape(format!("`{other}` is not a content type that is taken here"))),
        }
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
