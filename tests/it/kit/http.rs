//! A client of HTTP/1.1 that sends exactly the bytes it is given.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

use super::HANG;

/// One connection.
pub struct Connection {
    reader: BufReader<TcpStream>,
}

impl Connection {
    pub fn open(address: SocketAddr) -> Self {
        Self::try_open(address).expect("the server takes connections")
    }

    pub fn try_open(address: SocketAddr) -> io::Result<Self> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(HANG))?;
        socket.set_write_timeout(Some(HANG))?;
        Ok(Self { reader: BufReader::new(socket) })
    }

    /// Sends bytes as they are. That the server has closed already is seen when it is read.
    pub fn send(&mut self, bytes: &[u8]) {
        drop(self.try_send(bytes));
    }

    pub fn try_send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.reader.get_mut().write_all(bytes)
    }

    /// The next response, head and body.
    pub fn response(&mut self) -> Response {
        self.try_response().expect("the server answers")
    }

    pub fn try_response(&mut self) -> io::Result<Response> {
        let mut response = self.try_head()?;
        if response.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk()? {
                response.body.extend_from_slice(&chunk);
            }
        } else if let Some(length) = response.header("content-length") {
            response.body = self.exactly(length.parse().map_err(io::Error::other)?)?;
        } else if !matches!(response.status, 204 | 304) {
            self.reader.read_to_end(&mut response.body)?;
        }
        Ok(response)
    }

    /// The next response without its body.
    pub fn try_head(&mut self) -> io::Result<Response> {
        let status_line = self.line()?;
        let status = status_line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(format!("{status_line:?}")))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        Ok(Response { status, headers, body: Vec::new() })
    }

    /// So many bytes.
    pub fn exactly(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.reader.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// The next chunk of a chunked body; none after the last.
    pub fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let line = self.line()?;
        let length = usize::from_str_radix(&line, 16).map_err(io::Error::other)?;
        let mut chunk = self.exactly(length + 2)?;
        chunk.truncate(length);
        Ok((length > 0).then_some(chunk))
    }

    /// Whether the server has closed in good order.
    pub fn is_closed(&mut self) -> bool {
        self.reader.fill_buf().is_ok_and(<[u8]>::is_empty)
    }

    pub fn socket(&self) -> &TcpStream {
        self.reader.get_ref()
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        line.truncate(line.trim_end_matches(['\r', '\n']).len());
        Ok(line)
    }
}

/// A whole request. `Host` and, for a body, its length are added.
pub fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: turnd.test\r\n");
    for (name, value) in headers {
        text.extend([name, ": ", value, "\r\n"]);
    }
    if !body.is_empty() || method == "POST" {
        text.extend(["Content-Length: ", &body.len().to_string(), "\r\n"]);
    }
    text.push_str("\r\n");
    [text.as_bytes(), body].concat()
}

#[derive(Debug, Clone)]
pub struct Response {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    /// The value of a header that stands at most once.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(found, _)| found == name);
        let value = values.next().map(|(_, value)| value.as_str());
        assert!(values.next().is_none(), "`{name}` stands twice: {self:?}");
        value
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
        serde_json::from_slice(&self.body).expect("the body is JSON")
    }

    /// The text of `{ "error": .. }`, after a look at the status.
    pub fn refusal(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(self.header("cache-control"), Some("no-store"));
        assert_eq!(self.header("x-content-type-options"), Some("nosniff"));
        self.json()["error"].as_str().expect("`error` is a string").to_owned()
    }

    /// The JSON of an answer with this status.
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        self.json()
    }
}
