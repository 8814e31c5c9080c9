//! The guarded stream: one reply for each command and no byte more, a limit for every wait, and a last write that
//! is refused when the message may no longer be finished.

use std::{
    future::poll_fn,
    io,
    os::fd::AsRawFd as _,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use nix::{
    errno::Errno,
    sys::socket::{MsgFlags, recv},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf},
    net::TcpStream,
    task::coop::unconstrained,
    time::{Instant, timeout, timeout_at},
};
use tokio_rustls::client::TlsStream;

use super::reply::{Inbox, Malformed, Reply};
use crate::mail::MayFinish;

/// Why no complete reply came, or why something could not be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Broken {
    pub(super) why: Why,
    /// What is known beyond that: the system's word, or half a reply.
    pub(super) detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    TimedOut,
    Lost,
    /// The server said what is no reply.
    Malformed,
}

impl Broken {
    fn new(why: Why, detail: impl Into<String>) -> Self {
        Self { why, detail: detail.into() }
    }
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::new(Why::Lost, error.to_string())
    }
}

impl From<Malformed> for Broken {
    fn from(malformed: Malformed) -> Self {
        Self::new(Why::Malformed, malformed.0)
    }
}

/// The server spoke, or left, although nothing was asked.
#[derive(Debug)]
pub(super) struct Noise {
    /// What it said, if that is a reply.
    pub(super) reply: Option<Reply>,
    pub(super) detail: String,
}

/// Why the last write of a message did not end well.
#[derive(Debug)]
pub(super) enum Unfinished {
    /// The message may no longer be finished; no byte of the dot was written.
    Refused,
    /// Broken before the first byte of the dot was written.
    Before(Broken),
    /// Broken when the dot may have gone out.
    After,
}

/// The connection below.
#[derive(Debug)]
pub(super) enum Wire {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Wire {
    fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(tcp) => tcp,
            Self::Tls(tls) => tls.get_ref().0,
        }
    }

    fn reader(&mut self) -> &mut (dyn AsyncRead + Send + Unpin) {
        match self {
            Self::Plain(tcp) => tcp,
            Self::Tls(tls) => tls,
        }
    }

    fn writer(&mut self) -> &mut (dyn AsyncWrite + Send + Unpin) {
        match self {
            Self::Plain(tcp) => tcp,
            Self::Tls(tls) => tls,
        }
    }
}

#[derive(Debug)]
pub(super) struct Stream {
    wire: Wire,
    inbox: Inbox,
}

impl Stream {
    pub(super) fn new(wire: Wire) -> Self {
        Self { wire, inbox: Inbox::default() }
    }

    /// The bare connection, for the handshake after STARTTLS; `Err` with what the server sent too early, which
    /// anybody on the way could have put there.
    pub(super) fn into_tcp(self) -> Result<TcpStream, String> {
        match self.wire {
            Wire::Plain(tcp) if self.inbox.is_empty() => Ok(tcp),
            _ => Err(self.inbox.unread()),
        }
    }

    /// The next reply, whole, within `limit`.
    pub(super) async fn reply(&mut self, limit: Duration) -> Result<Reply, Broken> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(reply) = self.inbox.next_reply()? {
                return Ok(reply);
            }
            match timeout_at(deadline, self.read_more()).await {
                Ok(Ok(0)) => return Err(self.half(Why::Lost, "the server closed the connection")),
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return Err(self.half(Why::Lost, &error.to_string())),
                Err(_) => return Err(self.half(Why::TimedOut, "no reply in time")),
            }
        }
    }

    fn half(&self, why: Why, what: &str) -> Broken {
        if self.inbox.is_empty() {
            return Broken::new(why, what);
        }
        Broken::new(why, format!("{what}, after {}", self.inbox.unread()))
    }

    async fn read_more(&mut self) -> io::Result<usize> {
        let mut bytes = [0; 4096];
        let count = self.wire.reader().read(&mut bytes).await?;
        self.inbox.push(&bytes[..count]);
        Ok(count)
    }

    /// Fails if the server said anything that was not asked for, or left. To be called before every write, so that
    /// no reply is ever taken for the answer to another command. It asks the system itself: what tokio knows of a
    /// socket may be older.
    pub(super) async fn quiet(&mut self) -> Result<(), Noise> {
        // Under TLS there may be bytes that say nothing, such as session tickets.
        for _ in 0..32 {
            if !self.inbox.is_empty() {
                return Err(self.noise("the server spoke without being asked"));
            }
            let mut byte = [0];
            let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
            match recv(self.wire.tcp().as_raw_fd(), &mut byte, flags) {
                Err(Errno::EAGAIN) => return Ok(()),
                Err(Errno::EINTR) => {}
                Err(error) => return Err(self.noise(&error.to_string())),
                Ok(0) => return Err(self.noise("the server closed the connection")),
                Ok(_) => {
                    let readable = self.wire.tcp().readable();
                    let _ = timeout(Duration::from_secs(1), unconstrained(readable)).await;
                    if let Err(error) = unconstrained(poll_fn(|cx| self.poll_once(cx))).await {
                        return Err(self.noise(&error.to_string()));
                    }
                }
            }
        }
        Err(self.noise("the server does not stop speaking"))
    }

    /// Reads what is there now; ready in any case.
    fn poll_once(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut bytes = [0; 4096];
        let mut buffer = ReadBuf::new(&mut bytes);
        match Pin::new(self.wire.reader()).poll_read(cx, &mut buffer) {
            Poll::Pending => return Poll::Ready(Ok(())),
            Poll::Ready(read) => read?,
        }
        if buffer.filled().is_empty() {
            return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
        }
        self.inbox.push(buffer.filled());
        Poll::Ready(Ok(()))
    }

    fn noise(&mut self, what: &str) -> Noise {
        let detail = self.half(Why::Lost, what).detail;
        Noise { reply: self.inbox.next_reply().ok().flatten(), detail }
    }

    /// Writes `bytes` and sees them off, within `limit`.
    pub(super) async fn write(&mut self, bytes: &[u8], limit: Duration) -> Result<(), Broken> {
        let writing = async {
            self.wire.writer().write_all(bytes).await?;
            self.wire.writer().flush().await
        };
        match timeout(limit, writing).await {
            Ok(written) => Ok(written?),
            Err(_) => Err(Broken::new(Why::TimedOut, "the server does not read")),
        }
    }

    /// Writes the end of a message: `bytes` with the dot at `dot_at`, and perhaps the next envelope behind it.
    /// `may_finish` is asked before every try to hand over bytes up to the dot, however long the server keeps us
    /// waiting between them. What the system has taken cannot be taken back; that is why a lease is given up long
    /// before it runs out.
    pub(super) async fn write_end(
        &mut self,
        bytes: &[u8],
        dot_at: usize,
        may_finish: &MayFinish,
        limit: Duration,
    ) -> Result<(), Unfinished> {
        let mut written = 0;
        let wire = &mut self.wire;
        let writing = poll_fn(|cx| {
            while written < bytes.len() {
                if written <= dot_at && !may_finish.ask() {
                    return Poll::Ready(Ok(false));
                }
                match ready!(Pin::new(wire.writer()).poll_write(cx, &bytes[written..])) {
                    Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    Ok(count) => written += count,
                    Err(error) => return Poll::Ready(Err(error)),
                }
            }
            Pin::new(wire.writer()).poll_flush(cx).map_ok(|()| true)
        });
        let broken = match timeout(limit, writing).await {
            Ok(Ok(true)) => return Ok(()),
            Ok(Ok(false)) => return Err(Unfinished::Refused),
            Ok(Err(error)) => error.into(),
            Err(_) => Broken::new(Why::TimedOut, "the server does not read"),
        };
        Err(if written <= dot_at { Unfinished::Before(broken) } else { Unfinished::After })
    }
}
