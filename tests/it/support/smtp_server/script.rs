//! What a script can say: at which phase, of which message, the server does what.

use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum At {
    /// Before anything is said, and before TLS.
    Connect,
    Banner,
    Ehlo,
    Starttls,
    Auth,
    Mail,
    Rcpt,
    Data,
    /// When the first bytes of a body have come.
    Body,
    Dot,
    Rset,
}

/// What the server does instead of its usual answer. Texts are sent as they stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Closes the connection.
    Cut,
    /// Resets the connection.
    Reset,
    /// Does nothing until released, and then goes on as usual.
    Stall,
    /// Does nothing until released, and then says this instead; at the dot, a 250 is written down at once.
    StallThenSay(&'static str),
    /// Goes on as usual after a while.
    Late(Duration),
    /// Says this instead. At the dot, a 250 is written down as accepted.
    Say(&'static str),
    SayThenCut(&'static str),
    /// The usual answer, and this behind it in the same write.
    Add(&'static str),
    /// The usual answer, and then the end.
    AnswerThenCut,
    /// At the dot: writes the message down as accepted, and closes without a word.
    AcceptThenCut,
    /// At the dot: writes the message down as accepted, and says this.
    AcceptThenSay(&'static str),
}

#[derive(Debug, Clone)]
pub struct Rule {
    at: At,
    connection: Option<usize>,
    message: Option<usize>,
    recipient: Option<String>,
    times: usize,
    pub(super) used: usize,
    pub(super) act: Act,
}

impl Rule {
    /// Every time, on every connection.
    pub fn new(at: At, act: Act) -> Self {
        Self { at, connection: None, message: None, recipient: None, times: usize::MAX, used: 0, act }
    }

    /// Only the first time.
    pub fn once(self) -> Self {
        Self { times: 1, ..self }
    }

    /// Only on this connection, counted from 0.
    pub fn on_connection(self, number: usize) -> Self {
        Self { connection: Some(number), ..self }
    }

    /// Only for this message of a connection, counted from 0.
    pub fn for_message(self, number: usize) -> Self {
        Self { message: Some(number), ..self }
    }

    /// Only for messages to this address.
    pub fn for_recipient(self, address: &str) -> Self {
        Self { recipient: Some(address.to_owned()), ..self }
    }

    pub(super) fn fits(&self, at: At, connection: usize, message: usize, recipient: &str) -> bool {
        self.at == at
            && self.used < self.times
            && self.connection.is_none_or(|wanted| wanted == connection)
            && self.message.is_none_or(|wanted| wanted == message)
            && self.recipient.as_deref().is_none_or(|wanted| wanted == recipient)
    }
}
