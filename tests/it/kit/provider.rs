//! A model provider that answers when the test says so (Chat Completions).

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use serde_json::{Value, json};

use super::HANG;

pub struct Provider {
    port: u16,
    calls: Receiver<Call>,
}

/// A request that waits for its answer. Dropping it breaks the connection.
pub struct Call {
    pub head: String,
    pub request: Value,
    socket: TcpStream,
}

impl Provider {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let port = listener.local_addr().unwrap().port();
        let (calls, received) = sync_channel(64);
        std::thread::spawn(move || {
            while let Ok((socket, _)) = listener.accept() {
                let calls = calls.clone();
                std::thread::spawn(move || receive(socket, &calls));
            }
        });
        Self { port, calls: received }
    }

    /// The manifest of an agent `demo` that runs on this provider.
    pub fn manifest(&self) -> String {
        format!(
            "[llm.local]\ntype = \"openai\"\nbase_url = \"http://127.0.0.1:{}/v1\"\n\
             [agent.demo]\nllm = \"local\"\nmodel = \"test-model\"\n\
             retry.llm = {{ max_retries = 2, backoff_base_secs = 0.05, backoff_max_secs = 0.05 }}\n",
            self.port
        )
    }

    pub fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// The next call.
    pub fn call(&self) -> Call {
        self.calls.recv_timeout(HANG).expect("the server calls its model")
    }

    /// Whether nothing has called.
    pub fn is_idle(&self) -> bool {
        self.calls.try_recv().is_err()
    }
}

fn receive(socket: TcpStream, calls: &SyncSender<Call>) {
    let mut reader = BufReader::new(socket.try_clone().unwrap());
    let mut head = String::new();
    let mut length = 0;
    loop {
        let start = head.len();
        if reader.read_line(&mut head).is_ok_and(|read| read > 2) {
            let line = head[start..].to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        } else {
            break;
        }
    }
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let request = serde_json::from_slice(&body).unwrap_or(Value::Null);
    // A test that has ended takes no more calls.
    drop(calls.send(Call { head, request, socket }));
}

impl Call {
    /// What the user said last.
    pub fn last_message(&self) -> String {
        let last = self.request["messages"].as_array().and_then(|messages| messages.last());
        last.map(|message| super::text_of(message).to_owned()).unwrap_or_default()
    }

    /// Starts a streamed answer.
    pub fn begin(&mut self) {
        self.write(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n",
        );
    }

    pub fn piece(&mut self, text: &str) {
        let chunk = json!({ "choices": [{ "index": 0, "delta": { "content": text } }] });
        self.write(&format!("data: {chunk}\n\n"));
    }

    pub fn end(mut self) {
        let last = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
        self.write(&format!("data: {last}\n\ndata: [DONE]\n\n"));
    }

    /// Answers with a text.
    pub fn answer(mut self, text: &str) {
        self.begin();
        self.piece(text);
        self.end();
    }

    /// Answers with an error.
    pub fn fail(mut self, status: &str, body: &Value) {
        let body = body.to_string();
        self.write(&format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            body.len()
        ));
    }

    /// Waits until the server has let go of the call.
    pub fn until_abandoned(mut self) {
        self.socket.set_read_timeout(Some(HANG)).unwrap();
        let read = self.socket.read(&mut [0]);
        assert!(!matches!(read, Ok(1)), "the server says more");
        let timed_out = read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
        assert!(!timed_out, "the server keeps the call");
    }

    /// The server may have given up meanwhile.
    fn write(&mut self, text: &str) {
        drop(self.socket.write_all(text.as_bytes()));
    }
}
