//! What callers submit: client inputs (interface 2.3) and machine payloads (2.4).

use serde::{Deserialize, Serialize};

use super::json::{DecodeError, Json, Node};
use super::message::Message;
use crate::ids::{AgentId, OwnerId, SessionId, TurnId};

/// Longest metadata object, in bytes of its text.
const METADATA_BYTES_MAX: usize = 64 * 1024;
/// Most entries in a metadata object.
const METADATA_ENTRIES_MAX: usize = 256;

/// What a turn is asked to answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum Input {
    #[serde(rename = "client.message")]
    Message {
        message: Message,
        #[serde(skip_serializing_if = "Option::is_none")]
        stream: Option<bool>,
    },
}

/// An end user as the customer's backend names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub id: OwnerId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
}

/// A decoded submit, from either API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submit {
    pub session_id: Option<SessionId>,
    pub agent_id: AgentId,
    pub turn_id: Option<TurnId>,
    pub queue: bool,
    pub input: Input,
}

/// A decoded request for a client token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRequest {
    pub identity: Identity,
    pub ttl_secs: Option<u64>,
}

impl Submit {
    /// Body of `POST /api/client/sessions/input`.
    pub fn read_client(body: &Node<'_>, text_bytes_max: usize) -> Result<Self, DecodeError> {
        let [session_id, input] = body.fields(["session_id", "input"])?;
        let input = body.required("input", input)?;
        let [agent_id, turn_id, queue] = input.fields(["agent_id", "turn_id", "queue"])?;
        Ok(Self {
            session_id: session_id.map(|id| id.parse(SessionId::parse)).transpose()?,
            agent_id: input.required("agent_id", agent_id)?.parse(AgentId::parse)?,
            turn_id: turn_id.map(|id| id.parse(TurnId::parse)).transpose()?,
            queue: queue.map_or(Ok(false), |queue| queue.bool())?,
            input: Input::read(&input, text_bytes_max)?,
        })
    }

    /// Body of `POST /api/machine/sessions/submit`, with the identity that it speaks for.
    pub fn read_machine(
        body: &Node<'_>,
        text_bytes_max: usize,
    ) -> Result<(Self, Identity), DecodeError> {
        let [agent_id, identity, session_id, turn_id, queue, payload] =
            body.fields(["agent_id", "identity", "session_id", "turn_id", "queue", "payload"])?;
        let submit = Self {
            agent_id: body.required("agent_id", agent_id)?.parse(AgentId::parse)?,
            session_id: session_id.map(|id| id.parse(SessionId::parse)).transpose()?,
            turn_id: turn_id.map(|id| id.parse(TurnId::parse)).transpose()?,
            queue: queue.map_or(Ok(false), |queue| queue.bool())?,
            input: Input::read(&body.required("payload", payload)?, text_bytes_max)?,
        };
        let identity = Identity::read(&body.required("identity", identity)?)?;
        Ok((submit, identity))
    }
}

impl Input {
    fn read(node: &Node<'_>, text_bytes_max: usize) -> Result<Self, DecodeError> {
        let [kind, message, stream] = node.fields(["type", "message", "stream"])?;
        let kind = node.required("type", kind)?;
        match kind.string()? {
            "client.message" => Ok(Self::Message {
                message: Message::read(&node.required("message", message)?, text_bytes_max)?,
                stream: stream.map(|stream| stream.bool()).transpose()?,
            }),
            other => Err(kind.shape(format!("`{other}` is not an input that is taken here"))),
        }
    }
}

impl Identity {
    fn read(node: &Node<'_>) -> Result<Self, DecodeError> {
        let [id, metadata] = node.fields(["id", "metadata"])?;
        Ok(Self {
            id: node.required("id", id)?.parse(OwnerId::parse)?,
            metadata: metadata.map(|metadata| read_metadata(&metadata)).transpose()?,
        })
    }
}

/// Metadata is a map of strings.
fn read_metadata(node: &Node<'_>) -> Result<Json, DecodeError> {
    let members = node.members()?;
    if members.len() > METADATA_ENTRIES_MAX {
        return Err(node.range(format!("holds more than {METADATA_ENTRIES_MAX} entries")));
    }
    for (_, value) in &members {
        value.string()?;
    }
    let raw = node.raw()?;
    if raw.text().len() > METADATA_BYTES_MAX {
        return Err(node.range(format!("is longer than {METADATA_BYTES_MAX} bytes")));
    }
    Ok(raw)
}

impl TokenRequest {
    /// Body of `POST /api/machine/client-tokens`.
    pub fn read(body: &Node<'_>) -> Result<Self, DecodeError> {
        let [identity, ttl] = body.fields(["identity", "ttl_seconds"])?;
        Ok(Self {
            identity: Identity::read(&body.required("identity", identity)?)?,
            ttl_secs: ttl.map(|ttl| read_ttl(&ttl)).transpose()?,
        })
    }
}

/// Longest life of a client token, in seconds (S6).
pub const TOKEN_TTL_SECS_MAX: u64 = 86_400;

fn read_ttl(node: &Node<'_>) -> Result<u64, DecodeError> {
    match node.unsigned()? {
        secs @ 1..=TOKEN_TTL_SECS_MAX => Ok(secs),
        _ => Err(node.range(format!("must be 1 to {TOKEN_TTL_SECS_MAX}"))),
    }
}

#[cfg(test)]
mod tests;
