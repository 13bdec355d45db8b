//! Somebody with a credential.

use std::io;
use std::net::SocketAddr;

use serde_json::{Value, json};

use super::{Connection, Response, Stream, request};

#[derive(Debug, Clone)]
pub struct Caller {
    pub address: SocketAddr,
    /// What stands after `Bearer`; none sends no credential.
    pub bearer: Option<String>,
    /// Which API the credential is for: `client` or `machine`.
    pub api: &'static str,
}

/// A `client.message` of a user, as the client API takes it.
pub fn message(session: &str, turn: &str, text: &str) -> Value {
    json!({
        "session_id": session,
        "input": {
            "type": "client.message",
            "agent_id": "demo",
            "turn_id": turn,
            "message": { "role": "user", "content": text },
        },
    })
}

/// An input for agent `demo` with these fields beside its address.
pub fn input(session: &str, turn: &str, fields: Value) -> Value {
    let mut input = fields;
    input["agent_id"] = "demo".into();
    input["turn_id"] = turn.into();
    json!({ "session_id": session, "input": input })
}

/// The text of a message of a session view.
pub fn text_of(message: &Value) -> &str {
    message["content"].as_str().unwrap_or_default()
}

impl Caller {
    /// Sends one request on a connection of its own.
    pub fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Response {
        self.try_send(method, path, headers, body).expect("the server answers")
    }

    pub fn try_send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Response> {
        let mut connection = Connection::try_open(self.address)?;
        connection.try_send(&self.request(method, path, headers, body))?;
        connection.try_response()
    }

    /// The bytes of a request with the caller's credential.
    pub fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Vec<u8> {
        let bearer = self.bearer.as_ref().map(|bearer| format!("Bearer {bearer}"));
        let mut all: Vec<(&str, &str)> = Vec::new();
        all.extend(bearer.iter().map(|bearer| ("Authorization", bearer.as_str())));
        all.extend(headers);
        request(method, path, &all, body)
    }

    pub fn get(&self, path: &str) -> Response {
        self.send("GET", path, &[], &[])
    }

    pub fn post(&self, path: &str, body: &Value) -> Response {
        self.post_text(path, body.to_string())
    }

    pub fn post_text(&self, path: &str, body: impl AsRef<[u8]>) -> Response {
        self.send("POST", path, &[("Content-Type", "application/json")], body.as_ref())
    }

    pub fn patch(&self, path: &str, body: &Value) -> Response {
        let headers = [("Content-Type", "application/json")];
        self.send("PATCH", path, &headers, body.to_string().as_bytes())
    }

    pub fn delete(&self, path: &str) -> Response {
        self.send("DELETE", path, &[], &[])
    }

    /// The path of a session, and what stands below it, in the caller's API.
    pub fn path(&self, session: &str, below: &str) -> String {
        format!("/api/{}/sessions/{session}{below}", self.api)
    }

    /// Submits through the client API.
    pub fn input(&self, body: &Value) -> Response {
        self.post("/api/client/sessions/input", body)
    }

    /// Submits through the machine API.
    pub fn submit(&self, body: &Value) -> Response {
        self.post("/api/machine/sessions/submit", body)
    }

    /// Starts a turn of agent `demo` and returns at once.
    pub fn say(&self, session: &str, turn: &str, text: &str) {
        let accepted = self.input(&message(session, turn, text)).expect(202);
        assert_eq!(accepted["turn_id"], turn, "{accepted}");
        assert_eq!(
            (&accepted["session_id"], &accepted["queued"]),
            (&session.into(), &false.into())
        );
    }

    /// The path of a session's stream in the caller's API.
    pub fn stream_path(&self, session: &str, query: &str) -> String {
        format!("/api/{}/sessions/{session}/events/stream{query}", self.api)
    }

    pub fn stream(&self, session: &str, query: &str) -> Stream {
        self.stream_with(session, query, &[])
    }

    pub fn stream_with(&self, session: &str, query: &str, headers: &[(&str, &str)]) -> Stream {
        let opened = self.try_stream(session, query, headers).expect("the server answers");
        opened.unwrap_or_else(|response| panic!("{}: {}", response.status, response.text()))
    }

    /// A stream that is refused.
    pub fn no_stream(&self, session: &str, query: &str, headers: &[(&str, &str)]) -> Response {
        let opened = self.try_stream(session, query, headers).expect("the server answers");
        opened.err().expect("the stream is refused")
    }

    pub fn try_stream(
        &self,
        session: &str,
        query: &str,
        headers: &[(&str, &str)],
    ) -> io::Result<Result<Stream, Response>> {
        let connection = Connection::try_open(self.address)?;
        let path = self.stream_path(session, query);
        let mut all = vec![("Accept", "text/event-stream")];
        all.extend(headers);
        Stream::try_open(connection, &self.request("GET", &path, &all, &[]))
    }

    /// Waits until a turn is complete, then returns what the log says of it.
    pub fn watch_turn(&self, session: &str, turn: &str) -> Vec<super::Frame> {
        self.stream(session, &format!("?turn_id={turn}")).rest()
    }

    /// The session, as its owner reads it.
    pub fn session(&self, session: &str) -> Value {
        self.get(&format!("/api/client/sessions/{session}")).expect(200)
    }

    /// What was said in a session: role and text of each message.
    pub fn conversation(&self, session: &str) -> Vec<(String, String)> {
        let session = self.session(session);
        let messages = session["messages"].as_array().expect("messages are a list");
        let said = |message: &Value| {
            (message["role"].as_str().unwrap_or_default().to_owned(), text_of(message).to_owned())
        };
        messages.iter().map(said).collect()
    }
}
