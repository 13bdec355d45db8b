//! A socket that is not patient for ever, and says goodbye properly.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

use super::Patience;
use super::progress::{Phase, Progress};

/// How long and how much is still read after the last response. A socket that is closed with
/// unread bytes resets the connection, and the peer may lose the response (RFC 9112 9.6).
const LINGER_MAX: Duration = Duration::from_secs(2);
const LINGER_BYTES_MAX: usize = 16 * 1024 * 1024;

pub struct Guarded {
    socket: TcpStream,
    patience: Patience,
    progress: Arc<Progress>,
    reading: Alarm,
    /// Which phase `reading` was set in.
    reading_count: u64,
    writing: Alarm,
    lingering: Option<usize>,
}

impl Guarded {
    pub fn new(socket: TcpStream, patience: Patience, progress: Arc<Progress>) -> Self {
        Self {
            socket,
            patience,
            progress,
            reading: Alarm::default(),
            reading_count: 0,
            writing: Alarm::default(),
            lingering: None,
        }
    }

    /// Ready when the peer has had its time for the next request.
    fn poll_request_late(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let now = self.progress.now();
        let patience = match now.phase {
            Phase::Busy => return Poll::Pending,
            // The last response is still being taken, which the writing side times.
            Phase::Waiting | Phase::Head if self.writing.is_set() => return Poll::Pending,
            Phase::Waiting if !now.fresh => self.patience.keep_alive,
            Phase::Waiting | Phase::Head => self.patience.head,
        };
        if !self.reading.is_set() || self.reading_count != now.count {
            self.reading.set(patience);
            self.reading_count = now.count;
        }
        self.reading.poll(cx)
    }

    /// What a write came to, and whether the reader has had its time.
    fn after_write(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match written {
            Poll::Ready(result) => {
                self.writing.clear();
                Poll::Ready(result)
            }
            Poll::Pending => {
                if !self.writing.is_set() {
                    self.writing.set(self.patience.write);
                }
                ready!(self.writing.poll(cx));
                self.progress.cut();
                self.check_cut()?;
                Poll::Pending
            }
        }
    }

    /// An error once the connection is to be cut; dropping the socket then sends a reset.
    fn check_cut(&self) -> io::Result<()> {
        if !self.progress.is_cut() {
            return Ok(());
        }
        self.socket.set_zero_linger()?;
        Err(io::Error::new(io::ErrorKind::TimedOut, "the reader does not keep up"))
    }

    /// Reads and drops what the peer still sends, until it closes or has had its time.
    fn poll_linger(&mut self, cx: &mut Context<'_>, mut bytes_left: usize) -> Poll<()> {
        let mut scratch = [0; 4096];
        loop {
            let mut dropped = ReadBuf::new(&mut scratch);
            match Pin::new(&mut self.socket).poll_read(cx, &mut dropped) {
                Poll::Ready(Ok(())) if !dropped.filled().is_empty() => {
                    bytes_left = bytes_left.saturating_sub(dropped.filled().len());
                    self.lingering = Some(bytes_left);
                    if bytes_left == 0 {
                        return Poll::Ready(());
                    }
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return self.reading.poll(cx),
            }
        }
    }
}

impl AsyncRead for Guarded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        if let Poll::Ready(result) = Pin::new(&mut self.socket).poll_read(cx, buf) {
            if let Some(bytes) = buf.filled().get(before..) {
                self.progress.received(bytes);
            }
            return Poll::Ready(result);
        }
        ready!(self.poll_request_late(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "no request in time")))
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check_cut()?;
        let written = Pin::new(&mut self.socket).poll_write(cx, bytes);
        self.after_write(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check_cut()?;
        let written = Pin::new(&mut self.socket).poll_write_vectored(cx, slices);
        self.after_write(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // hyper may not read again once a response is flushed, so the wait starts here. Should it
        // be over already, the next read says so.
        if self.poll_request_late(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check_cut()?;
        if self.lingering.is_none() {
            ready!(Pin::new(&mut self.socket).poll_shutdown(cx))?;
            self.reading.set(LINGER_MAX);
        }
        let bytes_left = *self.lingering.get_or_insert(LINGER_BYTES_MAX);
        self.poll_linger(cx, bytes_left).map(Ok)
    }
}

/// A timer that is cheap to move: it is registered again only when it would ring too late, or
/// when it has rung too early.
#[derive(Default)]
struct Alarm {
    due: Option<Instant>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    fn is_set(&self) -> bool {
        self.due.is_some()
    }

    fn set(&mut self, after: Duration) {
        self.due = Some(Instant::now() + after);
    }

    fn clear(&mut self) {
        self.due = None;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(due) = self.due else {
            return Poll::Pending;
        };
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due)));
        if sleep.deadline() > due {
            sleep.as_mut().reset(due);
        }
        loop {
            ready!(sleep.as_mut().poll(cx));
            if sleep.deadline() >= due {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(due);
        }
    }
}
