//! Events: the log's record, the stream's payload (interface 2.6, S13, S16).

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess};
use serde::{Deserialize, Deserializer, Serialize};

use super::agent::RetryPolicy;
use super::error::ErrorInfo;
use super::input::{Identity, Input};
use super::json::Json;
use super::llm::{Cost, LlmResponse, Usage};
use super::message::Message;
use crate::ids::{AgentId, CallId, LlmId, MessageId, Seq, SessionId, TurnId};
use crate::time::Timestamp;

/// What an event holds beside its one large part (a message, an answer), in bytes: ids, times, names.
pub const ENVELOPE_BYTES_MAX: usize = 4096;

/// A recorded fact. The session it belongs to is known from where it is kept, and is written out by
/// [`Event::encode`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Event {
    pub seq: Seq,
    pub occurred_at: Timestamp,
    /// The turn that was running when it happened.
    pub turn_id: Option<TurnId>,
    pub payload: Payload,
}

impl Event {
    /// The stored form, which is what every stream sends (S13).
    pub fn encode(&self, session_id: &SessionId) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(512);
        self.encode_into(session_id, &mut bytes);
        bytes
    }

    /// As [`Event::encode`], at the end of `out`.
    pub fn encode_into(&self, session_id: &SessionId, out: &mut Vec<u8>) {
        #[derive(Serialize)]
        struct Stored<'a> {
            session_id: &'a SessionId,
            seq: Seq,
            occurred_at: Timestamp,
            #[serde(skip_serializing_if = "Option::is_none")]
            turn_id: Option<&'a TurnId>,
            payload: &'a Payload,
        }
        let stored = Stored {
            session_id,
            seq: self.seq,
            occurred_at: self.occurred_at,
            turn_id: self.turn_id.as_ref(),
            payload: &self.payload,
        };
        // Every field is a string, a number or validated JSON, and a Vec takes any write.
        let encoded = serde_json::to_writer(out, &stored);
        debug_assert!(encoded.is_ok(), "an event always encodes: {encoded:?}");
    }

    /// Reads what [`Event::encode`] wrote.
    pub fn decode(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }
}

/// What a stream needs to know of a stored event without reading all of it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Envelope<'a> {
    #[serde(borrow)]
    pub turn_id: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "payload")]
    kind: Kind<'a>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Kind<'a> {
    #[serde(borrow, rename = "type")]
    name: Cow<'a, str>,
}

impl<'a> Envelope<'a> {
    /// Reads the outside of what [`Event::encode`] wrote.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    /// The event type.
    pub fn kind(&self) -> &str {
        &self.kind.name
    }
}

/// One list of the event types gives the enum, the names and the reader.
macro_rules! payloads {
    ($($name:literal $variant:ident $body:ty,)*) => {
        /// What happened, tagged by `type`.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
        #[serde(tag = "type")]
        pub enum Payload {
            $(#[serde(rename = $name)] $variant($body),)*
        }

        impl Payload {
            /// The event type, as in `event:` of a frame.
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)* }
            }
        }

        /// The type comes first because our own writer puts it there.
        impl<'de> Deserialize<'de> for Payload {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl<'de> serde::de::Visitor<'de> for Visitor {
                    type Value = Payload;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("an event payload that starts with its type")
                    }

                    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Payload, A::Error> {
                        match map.next_entry::<&str, &str>()? {
                            $(Some(("type", $name)) => <$body>::deserialize(
                                MapAccessDeserializer::new(map)).map(Payload::$variant),)*
                            Some(("type", other)) => Err(A::Error::custom(
                                format_args!("unknown event type `{other}`"))),
                            _ => Err(A::Error::custom("the type of the event does not come first")),
                        }
                    }
                }
                deserializer.deserialize_map(Visitor)
            }
        }
    };
}

payloads! {
    "session.created" SessionCreated SessionCreated,
    "message.new" MessageNew MessageNew,
    "turn.queued" TurnQueued TurnQueued,
    "turn.started" TurnStarted TurnStarted,
    "turn.completed" TurnCompleted TurnCompleted,
    "llm.call.requested" LlmCallRequested LlmCallRequested,
    "llm.call.dispatched" LlmCallDispatched CallDispatched,
    "llm.call.completed" LlmCallCompleted LlmCallCompleted,
    "llm.call.errored" LlmCallErrored CallErrored,
    "tool.call.requested" ToolCallRequested ToolCallRequested,
    "tool.call.errored" ToolCallErrored CallErrored,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionCreated {
    pub agent_id: AgentId,
    pub identity: Identity,
    /// Parent sessions, root first.
    pub ancestry: Vec<SessionId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageNew {
    pub message: Arc<Message>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<MessageId>,
}

/// A turn that waits for the running one, with all that starting it needs (S16).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnQueued {
    pub turn_id: TurnId,
    pub input: Input,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnStarted {
    pub turn_id: TurnId,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnCompleted {
    pub turn_id: TurnId,
    /// What the turn came to: for an engine-decided agent the text of its last reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Json>,
    pub cost: Cost,
    pub usage: Usage,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorInfo>,
}

/// Who performs a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Handler {
    Server,
    Worker,
}

/// Names the head that it prompts from; never embeds the conversation (S14).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LlmCallRequested {
    pub id: CallId,
    pub llm: LlmId,
    pub model: String,
    pub handler: Handler,
    pub stream: bool,
    pub head_id: MessageId,
    pub retry: RetryPolicy,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallDispatched {
    pub id: CallId,
    pub attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LlmCallCompleted {
    pub id: CallId,
    pub attempt: u32,
    pub response: LlmResponse,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallErrored {
    pub id: CallId,
    pub attempt: u32,
    pub error: ErrorInfo,
    pub retryable: bool,
    pub will_retry: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
    /// The attempt had shown text, so a later one speaks under another message id (S50).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub streamed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCallRequested {
    pub id: CallId,
    pub name: String,
    /// The model's raw text.
    pub arguments: String,
    pub handler: Handler,
    pub retry: RetryPolicy,
}

#[cfg(test)]
mod tests;
