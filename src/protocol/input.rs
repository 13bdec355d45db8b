//! What callers submit: client inputs (interface 2.3) and machine payloads (2.4).

use serde::{Deserialize, Serialize};

use super::blob::Upload;
use super::content::Intake;
use super::event::ResumeStatus;
use super::json::{DecodeError, Json, Node};
use super::message::Message;
use super::tagged::tagged;
use super::tool::ClientContext;
use super::tool_result::ToolResult;
use crate::ids::{AgentId, CallId, InterruptId, MessageId, OwnerId, Seq, SessionId, TurnId};

/// Longest metadata object of an identity, in bytes of its text.
const METADATA_BYTES_MAX: usize = 64 * 1024;
/// Most entries in a metadata object.
const METADATA_ENTRIES_MAX: usize = 256;
/// Most messages in one input: the whole of a long conversation fits.
pub const MESSAGES_MAX: usize = 20_000;
/// Longest name of an action, and longest reason, in bytes.
const NAME_BYTES_MAX: usize = 64 * 1024;

tagged! {
    /// What a turn is asked to answer.
    Input, "an input", {
        "client.message" Message MessageInput,
        "client.messages" Messages MessagesInput,
        "client.append" Append MessagesInput,
        "client.action" Action ActionInput,
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageInput {
    pub message: Message,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessagesInput {
    pub messages: Vec<Message>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientContext>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionInput {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Json>,
}

/// The answer to an interrupt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resume {
    pub interrupt_id: InterruptId,
    pub payload: Option<Json>,
    pub status: Option<ResumeStatus>,
}

/// The answer to a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    pub id: CallId,
    /// The attempt that it answers, where the caller says so (S38).
    pub attempt: Option<u32>,
    pub outcome: Result<ToolResult, ToolFailure>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolFailure {
    pub error: String,
    pub retryable: bool,
}

/// An end user as the customer's backend names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub id: OwnerId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
}

/// What must hold for a submit to be taken; 409 where it does not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Conditions {
    pub if_head: Option<MessageId>,
    pub if_seq: Option<Seq>,
}

/// A decoded submit, from either API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submit {
    pub session_id: Option<SessionId>,
    pub conditions: Conditions,
    pub body: SubmitBody,
    /// The bytes that came with it, under the names that its content has for them.
    pub uploads: Vec<Upload>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubmitBody {
    Turn(Box<TurnRequest>),
    /// The turn id labels the answer, for the turn that it continues keeps its own (S58).
    Resume {
        turn_id: Option<TurnId>,
        resume: Resume,
    },
    Settle(Settlement),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnRequest {
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

/// What addresses an input: in the body itself, or in its `input`.
struct Address {
    agent_id: Option<AgentId>,
    turn_id: Option<TurnId>,
    queue: bool,
    conditions: Conditions,
}

impl Address {
    fn read(node: &Node<'_>) -> Result<Self, DecodeError> {
        let [agent_id, turn_id, queue, if_head, if_seq] =
            node.fields(["agent_id", "turn_id", "queue", "if_head", "if_seq"])?;
        Ok(Self {
            agent_id: agent_id.map(|id| id.parse(AgentId::parse)).transpose()?,
            turn_id: turn_id.map(|id| id.parse(TurnId::parse)).transpose()?,
            queue: queue.map_or(Ok(false), |queue| queue.bool())?,
            conditions: Conditions {
                if_head: if_head.map(|id| id.parse(MessageId::parse)).transpose()?,
                if_seq: if_seq.map(|seq| seq.unsigned().map(Seq)).transpose()?,
            },
        })
    }
}

impl Submit {
    /// Body of `POST /api/client/sessions/input`.
    pub fn read_client(body: &Node<'_>, text_bytes_max: usize) -> Result<Self, DecodeError> {
        let [session_id, input, if_head, if_seq] =
            body.fields(["session_id", "input", "if_head", "if_seq"])?;
        let input = body.required("input", input)?;
        let session_id = session_id.map(|id| id.parse(SessionId::parse)).transpose()?;
        let mut address = Address::read(&input)?;
        if let Some(if_head) = if_head {
            address.conditions.if_head = Some(if_head.parse(MessageId::parse)?);
        }
        if let Some(if_seq) = if_seq {
            address.conditions.if_seq = Some(Seq(if_seq.unsigned()?));
        }
        let submit = Self::read(&input, &input, session_id, address, text_bytes_max)?;
        submit.check_session(body)
    }

    /// Body of `POST /api/machine/sessions/submit`, with the identity that it speaks for.
    pub fn read_machine(
        body: &Node<'_>,
        text_bytes_max: usize,
    ) -> Result<(Self, Identity), DecodeError> {
        let [agent_id, identity, session_id, payload] =
            body.fields(["agent_id", "identity", "session_id", "payload"])?;
        body.required("agent_id", agent_id)?;
        let session_id = session_id.map(|id| id.parse(SessionId::parse)).transpose()?;
        let address = Address::read(body)?;
        let payload = body.required("payload", payload)?;
        let submit = Self::read(body, &payload, session_id, address, text_bytes_max)?;
        let identity = Identity::read(&body.required("identity", identity)?)?;
        Ok((submit.check_session(body)?, identity))
    }

    /// Reads `input`, whose address stands in `addressed`.
    fn read(
        addressed: &Node<'_>,
        input: &Node<'_>,
        session_id: Option<SessionId>,
        address: Address,
        text_bytes_max: usize,
    ) -> Result<Self, DecodeError> {
        let mut intake = Intake::new(text_bytes_max);
        let [kind] = input.fields(["type"])?;
        let kind = input.required("type", kind)?;
        let Address { agent_id, turn_id, queue, conditions } = address;
        let body = match kind.string()? {
            "interrupt.resume" => SubmitBody::Resume { turn_id, resume: Resume::read(input)? },
            "tool.result" | "tool.error" => {
                SubmitBody::Settle(Settlement::read(input, &mut intake)?)
            }
            _ => SubmitBody::Turn(Box::new(TurnRequest {
                agent_id: match agent_id {
                    Some(agent_id) => agent_id,
                    None => addressed.required("agent_id", None)?.parse(AgentId::parse)?,
                },
                turn_id,
                queue,
                input: Input::read(input, &mut intake)?,
            })),
        };
        Ok(Self { session_id, conditions, body, uploads: intake.uploads })
    }

    /// Only an input that may begin a conversation may leave its id out.
    fn check_session(self, body: &Node<'_>) -> Result<Self, DecodeError> {
        match (&self.body, &self.session_id) {
            (SubmitBody::Turn(_), _) | (_, Some(_)) => Ok(self),
            (SubmitBody::Resume { .. } | SubmitBody::Settle(_), None) => {
                Err(body.missing("session_id"))
            }
        }
    }
}

impl Input {
    fn read(node: &Node<'_>, intake: &mut Intake) -> Result<Self, DecodeError> {
        let [kind, message, stream, name, args] =
            node.fields(["type", "message", "stream", "name", "args"])?;
        let kind = node.required("type", kind)?;
        let stream = stream.map(|stream| stream.bool()).transpose()?;
        match kind.string()? {
            "client.message" => Ok(Self::Message(MessageInput {
                message: Message::read(&node.required("message", message)?, intake)?,
                stream,
            })),
            "client.messages" => MessagesInput::read(node, stream, intake).map(Self::Messages),
            "client.append" => MessagesInput::read(node, stream, intake).map(Self::Append),
            "client.action" => Ok(Self::Action(ActionInput {
                name: read_name(&node.required("name", name)?)?,
                args: args.map(|args| args.raw()).transpose()?,
            })),
            other => Err(kind.shape(format!("`{other}` is not an input"))),
        }
    }

    /// The messages that it brings.
    pub fn messages(&self) -> &[Message] {
        match self {
            Self::Message(input) => std::slice::from_ref(&input.message),
            Self::Messages(input) | Self::Append(input) => &input.messages,
            Self::Action(_) => &[],
        }
    }

    /// What the front end said of itself.
    pub fn client(&self) -> Option<&ClientContext> {
        match self {
            Self::Messages(input) | Self::Append(input) => input.client.as_ref(),
            Self::Message(_) | Self::Action(_) => None,
        }
    }

    pub fn messages_mut(&mut self) -> &mut [Message] {
        match self {
            Self::Message(input) => std::slice::from_mut(&mut input.message),
            Self::Messages(input) | Self::Append(input) => &mut input.messages,
            Self::Action(_) => &mut [],
        }
    }
}

impl MessagesInput {
    fn read(
        node: &Node<'_>,
        stream: Option<bool>,
        intake: &mut Intake,
    ) -> Result<Self, DecodeError> {
        let [messages, client] = node.fields(["messages", "client"])?;
        let messages = node.required("messages", messages)?;
        let items = messages.items(MESSAGES_MAX)?;
        if items.is_empty() {
            return Err(messages.range("must hold a message"));
        }
        let read = items.iter().map(|message| Message::read(message, intake));
        Ok(Self {
            messages: read.collect::<Result<_, _>>()?,
            stream,
            client: client.map(|client| ClientContext::read(&client)).transpose()?,
        })
    }
}

impl Resume {
    fn read(node: &Node<'_>) -> Result<Self, DecodeError> {
        let [interrupt_id, payload, status] = node.fields(["interrupt_id", "payload", "status"])?;
        let status = match status {
            None => None,
            Some(status) => match status.string()? {
                "resolved" => None,
                "cancelled" => Some(ResumeStatus::Cancelled),
                other => return Err(status.shape(format!("`{other}` is not a status"))),
            },
        };
        Ok(Self {
            interrupt_id: node.required("interrupt_id", interrupt_id)?.parse(InterruptId::parse)?,
            payload: payload.map(|payload| payload.raw()).transpose()?,
            status,
        })
    }
}

impl Settlement {
    fn read(node: &Node<'_>, intake: &mut Intake) -> Result<Self, DecodeError> {
        let [kind, id, attempt, result, error, retryable] =
            node.fields(["type", "id", "attempt", "result", "error", "retryable"])?;
        let attempt = attempt.map(|attempt| {
            let number = attempt.unsigned()?;
            u32::try_from(number).map_err(|_| attempt.range("is not an attempt"))
        });
        let outcome = match node.required("type", kind)?.string()? {
            "tool.result" => Ok(match result {
                None if node.has("result") => ToolResult::text("null"),
                result => intake.tool_result(&node.required("result", result)?)?,
            }),
            _ => Err(ToolFailure {
                error: node.required("error", error)?.text(intake.text_bytes_max)?,
                retryable: node.required("retryable", retryable)?.bool()?,
            }),
        };
        Ok(Self {
            id: node.required("id", id)?.parse(CallId::parse)?,
            attempt: attempt.transpose()?,
            outcome,
        })
    }
}

/// Body of a cancel (S20).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CancelRequest {
    /// The turn to cancel; none for the one that runs.
    pub turn_id: Option<TurnId>,
    pub reason: Option<String>,
    /// Cancels the whole session for good.
    pub session: bool,
}

impl CancelRequest {
    pub fn read(body: &Node<'_>) -> Result<Self, DecodeError> {
        let [turn_id, reason, session] = body.fields(["turn_id", "reason", "session"])?;
        Ok(Self {
            turn_id: turn_id.map(|id| id.parse(TurnId::parse)).transpose()?,
            reason: reason.map(|reason| read_name(&reason)).transpose()?,
            session: session.map_or(Ok(false), |session| session.bool())?,
        })
    }
}

/// Body of `POST .../interrupt`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterruptRequest {
    pub interrupt_id: Option<InterruptId>,
    pub reason: String,
    pub payload: Option<Json>,
}

impl InterruptRequest {
    pub fn read(body: &Node<'_>) -> Result<Self, DecodeError> {
        let [interrupt_id, reason, payload] = body.fields(["interrupt_id", "reason", "payload"])?;
        Ok(Self {
            interrupt_id: interrupt_id.map(|id| id.parse(InterruptId::parse)).transpose()?,
            reason: read_name(&body.required("reason", reason)?)?,
            payload: payload.map(|payload| payload.raw()).transpose()?,
        })
    }
}

/// Longest title of a session, in bytes.
const TITLE_BYTES_MAX: usize = 1024;
/// Longest metadata of a session: they go with every row of a list.
const SESSION_METADATA_BYTES_MAX: usize = 4 * 1024;

/// Body of `PATCH .../sessions/{id}`: what is absent stays.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionPatch {
    pub title: Option<String>,
    pub metadata: Option<Json>,
}

impl SessionPatch {
    pub fn read(body: &Node<'_>) -> Result<Self, DecodeError> {
        let [title, metadata] = body.fields(["title", "metadata"])?;
        let read = |metadata: &Node<'_>| read_metadata(metadata, SESSION_METADATA_BYTES_MAX);
        Ok(Self {
            title: title.map(|title| read_title(&title)).transpose()?,
            metadata: metadata.map(|metadata| read(&metadata)).transpose()?,
        })
    }
}

/// One line; an empty one takes the title back.
fn read_title(node: &Node<'_>) -> Result<String, DecodeError> {
    let title = node.text(TITLE_BYTES_MAX)?;
    if title.chars().any(char::is_control) {
        return Err(node.range("must not hold control characters"));
    }
    Ok(title)
}

fn read_name(node: &Node<'_>) -> Result<String, DecodeError> {
    let name = node.text(NAME_BYTES_MAX)?;
    if name.is_empty() {
        return Err(node.range("must not be empty"));
    }
    Ok(name)
}

impl Identity {
    fn read(node: &Node<'_>) -> Result<Self, DecodeError> {
        let [id, metadata] = node.fields(["id", "metadata"])?;
        Ok(Self {
            id: node.required("id", id)?.parse(OwnerId::parse)?,
            metadata: metadata
                .map(|metadata| read_metadata(&metadata, METADATA_BYTES_MAX))
                .transpose()?,
        })
    }
}

/// Metadata is a map of strings.
fn read_metadata(node: &Node<'_>, bytes_max: usize) -> Result<Json, DecodeError> {
    let members = node.members()?;
    if members.len() > METADATA_ENTRIES_MAX {
        return Err(node.range(format!("holds more than {METADATA_ENTRIES_MAX} entries")));
    }
    for (_, value) in &members {
        value.string()?;
    }
    let raw = node.raw()?;
    if raw.text().len() > bytes_max {
        return Err(node.range(format!("is longer than {bytes_max} bytes")));
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
