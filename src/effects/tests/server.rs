//! A provider that says what it is told to, byte for byte.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// What happens after the last byte.
#[derive(Debug, Clone, Copy)]
pub enum Ending {
    Close,
    Hang,
}

/// Answers the first request, then goes away.
pub struct Provider {
    pub url: String,
    called: Arc<AtomicBool>,
    request: oneshot::Receiver<String>,
    task: JoinHandle<()>,
}

impl Provider {
    pub async fn start(answer: impl AsRef<[u8]>, ending: Ending) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let answer = answer.as_ref().to_vec();
        let called = Arc::new(AtomicBool::new(false));
        let (seen, request) = oneshot::channel();
        let was_called = Arc::clone(&called);
        let task = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            was_called.store(true, Ordering::SeqCst);
            drop(seen.send(read_request(&mut stream).await));
            // The caller may hang up on a flood.
            drop(stream.write_all(&answer).await);
            if matches!(ending, Ending::Hang) {
                // Until the caller closes.
                let mut rest = Vec::new();
                drop(stream.read_to_end(&mut rest).await);
            }
        });
        Self { url, called, request, task }
    }

    pub fn was_called(&self) -> bool {
        self.called.load(Ordering::SeqCst)
    }

    /// Head and body of the request.
    pub async fn request(self) -> String {
        self.request.await.unwrap()
    }

    /// Returns once the caller of a hanging provider has closed the connection.
    pub async fn closed(&mut self) {
        (&mut self.task).await.unwrap();
    }
}

/// The head of an answer that ends with the connection.
pub fn head(status: u16, content_type: &str) -> String {
    format!("HTTP/1.1 {status} Some\r\ncontent-type: {content_type}\r\nconnection: close\r\n\r\n")
}

async fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.split("content-length: ").nth(1).unwrap_or("0");
            let length: usize = length.lines().next().unwrap().parse().unwrap();
            if body.len() >= length {
                return String::from_utf8(bytes).unwrap();
            }
        }
        if stream.read_buf(&mut bytes).await.unwrap() == 0 {
            return String::from_utf8(bytes).unwrap();
        }
    }
}
