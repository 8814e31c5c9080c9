//! How long each step of a conversation may take.

use std::time::Duration;

use crate::domain::attempt::REPLY_LIMIT;

/// A limit for every phase. The defaults are those of RFC 5321, 4.5.3.2; too short a limit after the dot makes
/// outcomes that nobody can know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Finding the host and connecting, over all its addresses together.
    pub connect: Duration,
    /// The TLS handshake.
    pub tls: Duration,
    /// The server's greeting.
    pub banner: Duration,
    /// EHLO, STARTTLS and RSET, each.
    pub ehlo: Duration,
    /// Each step of signing in.
    pub auth: Duration,
    /// The reply to MAIL.
    pub mail: Duration,
    /// The reply to RCPT.
    pub rcpt: Duration,
    /// The reply to DATA.
    pub data: Duration,
    /// Writing one block of the body, or one command.
    pub block: Duration,
    /// The reply to the final dot.
    pub dot: Duration,
    /// The replies to the next envelope, after the one to the dot: what is known of a message is not kept waiting for
    /// what is said of another.
    pub next: Duration,
    /// QUIT and its reply; nothing depends on them.
    pub quit: Duration,
    /// How long a connection may wait for the next message.
    pub idle: Duration,
    /// How many messages one connection carries.
    pub messages: u32,
}

impl Default for Limits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            connect: seconds(30),
            tls: seconds(30),
            banner: seconds(300),
            ehlo: seconds(300),
            auth: seconds(300),
            mail: seconds(300),
            rcpt: seconds(300),
            data: seconds(120),
            block: seconds(180),
            dot: REPLY_LIMIT,
            next: seconds(5),
            quit: seconds(2),
            idle: seconds(10),
            messages: 500,
        }
    }
}

impl Limits {
    /// The same limit for everything.
    pub fn of(limit: Duration) -> Self {
        Self {
            connect: limit,
            tls: limit,
            banner: limit,
            ehlo: limit,
            auth: limit,
            mail: limit,
            rcpt: limit,
            data: limit,
            block: limit,
            dot: limit,
            next: limit,
            quit: limit,
            idle: limit,
            ..Self::default()
        }
    }

    /// For a person who waits for an answer.
    pub fn for_a_look() -> Self {
        let Self { quit, idle, .. } = Self::default();
        Self { dot: Duration::from_mins(1), quit, idle, ..Self::of(Duration::from_secs(10)) }
    }
}
