//! From nothing to a server that has greeted us, over TLS where it must be, signed in where there is a password.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use lettre::transport::smtp::{
    commands::{Ehlo, Starttls},
    extension::ClientId,
};
use secrecy::ExposeSecret as _;
use tokio::{
    net::{TcpStream, lookup_host},
    time::{Instant, timeout_at},
};

use super::{
    Server,
    connection::Connection,
    judge,
    reply::Reply,
    stream::{Stream, Wire},
};
use crate::{
    config::{SmtpCredentials, SmtpTls},
    domain::attempt::{Outcome, Phase},
    mail::Ended,
};

/// The host has no address.
pub const HOST_UNKNOWN: &str = "host_unknown";
/// No address of the host takes a connection.
pub const CONNECT_FAILED: &str = "connect_failed";
/// TLS is required and the server does not offer it.
pub const STARTTLS_MISSING: &str = "starttls_missing";
/// Somebody spoke in clear after the server had agreed to TLS.
pub const PLAINTEXT_AFTER_STARTTLS: &str = "plaintext_after_starttls";
/// There is a password, and no TLS to protect it.
pub const PASSWORD_NEEDS_TLS: &str = "password_needs_tls";
/// There is a password, and the server knows no way of ours to take it.
pub const AUTH_NOT_OFFERED: &str = "auth_not_offered";

/// What a server said it can do.
#[expect(clippy::struct_excessive_bools, reason = "each is a line of the server's reply, and they are independent")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Offers {
    pub(super) pipelining: bool,
    pub(super) smtputf8: bool,
    pub(super) starttls: bool,
    pub(super) auth_plain: bool,
    pub(super) auth_login: bool,
    /// With the largest message it takes, 0 for any.
    pub(super) size: Option<usize>,
}

impl Offers {
    fn read(reply: &Reply) -> Self {
        let mut offers = Self::default();
        for line in reply.lines.iter().skip(1) {
            // Old servers write `AUTH=PLAIN`.
            let line = String::from_utf8_lossy(line).to_ascii_uppercase().replace('=', " ");
            let mut words = line.split_ascii_whitespace();
            match words.next() {
                Some("PIPELINING") => offers.pipelining = true,
                Some("SMTPUTF8") => offers.smtputf8 = true,
                Some("STARTTLS") => offers.starttls = true,
                Some("SIZE") => offers.size = Some(words.next().and_then(|word| word.parse().ok()).unwrap_or(0)),
                Some("AUTH") => {
                    for word in words {
                        offers.auth_plain |= word == "PLAIN";
                        offers.auth_login |= word == "LOGIN";
                    }
                }
                _ => {}
            }
        }
        offers
    }
}

/// What a step of opening said, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The step.
    pub phase: Phase,
    /// The server's reply, or what was agreed.
    pub said: String,
}

/// Opens a connection; `steps` gets what was said on the way, also when it ends early. Every failure is a fault of
/// the transport.
pub(super) async fn open(server: &Server, steps: &mut Vec<Step>) -> Result<Connection, Ended> {
    let limits = &server.limits;
    let tcp = connect(&server.url.host, server.url.port, limits.connect).await?;
    let peer = tcp.peer_addr().map_or_else(|error| error.to_string(), |address| address.to_string());
    steps.push(Step { phase: Phase::Connect, said: peer });
    let mut opening = Opening { server, steps, stream: Stream::new(Wire::Plain(tcp)), tls: None };
    if server.url.tls == SmtpTls::Implicit {
        opening = opening.encrypt(true).await?;
    }
    let banner = opening.stream.reply(limits.banner).await.map_err(|error| judge::broken(Phase::Banner, error))?;
    opening.expect(Phase::Banner, 220, banner)?;
    let mut offers = opening.ehlo().await?;
    if matches!(server.url.tls, SmtpTls::Required | SmtpTls::Opportunistic) {
        (opening, offers) = opening.starttls(offers).await?;
    }
    if let Some(credentials) = &server.url.credentials {
        opening.sign_in(credentials, offers).await?;
    }
    opening.stream.quiet().await.map_err(|noise| judge::noise(Phase::Ehlo, noise))?;
    Ok(Connection::new(opening.stream, offers, opening.tls, *limits))
}

/// Tries the addresses one after another; each gets its share of the time that is left, so that one that does not
/// answer leaves some for the others.
async fn connect(host: &str, port: u16, limit: Duration) -> Result<TcpStream, Ended> {
    let failed = |reason: &'static str, detail: String| {
        Ended::new(Outcome::NotSent, Phase::Connect).because(reason).saying(detail).as_transport_fault()
    };
    let deadline = Instant::now() + limit;
    let addresses: Vec<_> = match timeout_at(deadline, lookup_host((host, port))).await {
        Ok(Ok(addresses)) => addresses.collect(),
        Ok(Err(error)) => return Err(failed(HOST_UNKNOWN, error.to_string())),
        Err(_) => return Err(failed(judge::TIMED_OUT, "the host's name was not found in time".to_owned())),
    };
    let mut last = failed(HOST_UNKNOWN, "the host has no address".to_owned());
    for (number, address) in addresses.iter().enumerate() {
        let now = Instant::now();
        let share = deadline.saturating_duration_since(now) / u32::try_from(addresses.len() - number).unwrap_or(1);
        match timeout_at(now + share, TcpStream::connect(address)).await {
            // Without NODELAY every message waits 40 ms for an acknowledgement.
            Ok(Ok(tcp)) => match tcp.set_nodelay(true) {
                Ok(()) => return Ok(tcp),
                Err(error) => last = failed(judge::CONNECTION_LOST, error.to_string()),
            },
            Ok(Err(error)) => last = failed(CONNECT_FAILED, format!("{address}: {error}")),
            Err(_) => last = failed(judge::TIMED_OUT, format!("{address} does not answer")),
        }
    }
    Err(last)
}

struct Opening<'a> {
    server: &'a Server,
    steps: &'a mut Vec<Step>,
    stream: Stream,
    tls: Option<String>,
}

impl Opening<'_> {
    /// Writes one command and reads its reply, whatever it is.
    async fn ask(&mut self, phase: Phase, command: &str, limit: Duration) -> Result<Reply, Ended> {
        self.stream.quiet().await.map_err(|noise| judge::noise(phase, noise))?;
        let written = self.stream.write(command.as_bytes(), self.server.limits.block).await;
        written.map_err(|error| judge::broken(phase, error))?;
        self.stream.reply(limit).await.map_err(|error| judge::broken(phase, error))
    }

    fn expect(&mut self, phase: Phase, code: u16, reply: Reply) -> Result<Reply, Ended> {
        self.steps.push(Step { phase, said: reply.text() });
        if reply.code == code { Ok(reply) } else { Err(judge::refusal(phase, &reply)) }
    }

    fn fail(&mut self, phase: Phase, reason: &'static str, detail: &str) -> Ended {
        self.steps.push(Step { phase, said: detail.to_owned() });
        Ended::new(Outcome::NotSent, phase).because(reason).saying(detail).as_transport_fault()
    }

    async fn ehlo(&mut self) -> Result<Offers, Ended> {
        let command = Ehlo::new(ClientId::Domain(self.server.hello.clone())).to_string();
        let reply = self.ask(Phase::Ehlo, &command, self.server.limits.ehlo).await?;
        Ok(Offers::read(&self.expect(Phase::Ehlo, 250, reply)?))
    }

    /// The way to TLS, and what the server offers there; what it offered before is forgotten.
    async fn starttls(mut self, offers: Offers) -> Result<(Self, Offers), Ended> {
        let required = self.server.url.tls == SmtpTls::Required;
        if !offers.starttls {
            if required {
                let detail = "the server does not offer STARTTLS, or somebody on the way took the offer out";
                return Err(self.fail(Phase::Tls, STARTTLS_MISSING, detail));
            }
            return Ok((self, offers));
        }
        let reply = self.ask(Phase::Tls, &Starttls.to_string(), self.server.limits.ehlo).await?;
        if !required && reply.code != 220 && reply.code != 421 {
            self.steps.push(Step { phase: Phase::Tls, said: reply.text() });
            return Ok((self, offers));
        }
        self.expect(Phase::Tls, 220, reply)?;
        self = self.encrypt(required).await?;
        let offers = self.ehlo().await?;
        Ok((self, offers))
    }

    async fn encrypt(self, check: bool) -> Result<Self, Ended> {
        let Self { server, steps, stream, .. } = self;
        let tcp = stream.into_tcp().map_err(|early| {
            Ended::new(Outcome::NotSent, Phase::Tls)
                .because(PLAINTEXT_AFTER_STARTTLS)
                .saying(early)
                .as_transport_fault()
        })?;
        let tls = server.trust.handshake(tcp, &server.url.host, check, server.limits.tls).await?;
        let session = tls.get_ref().1;
        let version = session.protocol_version().map_or("TLS", |version| version.as_str().unwrap_or("TLS"));
        let suite = session.negotiated_cipher_suite().and_then(|suite| suite.suite().as_str()).unwrap_or("");
        let checked = if check { "certificate checked" } else { "certificate not checked" };
        let said = format!("{version} {suite}, {checked}");
        steps.push(Step { phase: Phase::Tls, said: said.clone() });
        Ok(Self { server, steps, stream: Stream::new(Wire::Tls(Box::new(tls))), tls: Some(said) })
    }

    async fn sign_in(&mut self, credentials: &SmtpCredentials, offers: Offers) -> Result<(), Ended> {
        // Opportunistic with a password is only what goes no further than this machine.
        let may_be_plain = matches!(self.server.url.tls, SmtpTls::Never | SmtpTls::Opportunistic);
        if self.tls.is_none() && !may_be_plain {
            let detail = "without TLS the password would go in clear; ?tls=none allows that";
            return Err(self.fail(Phase::Auth, PASSWORD_NEEDS_TLS, detail));
        }
        let limit = self.server.limits.auth;
        let (user, password) = (credentials.user.as_str(), credentials.password.expose_secret());
        let reply = if offers.auth_plain {
            let secret = STANDARD.encode(format!("\0{user}\0{password}"));
            self.ask(Phase::Auth, &format!("AUTH PLAIN {secret}\r\n"), limit).await?
        } else if offers.auth_login {
            let mut reply = self.ask(Phase::Auth, "AUTH LOGIN\r\n", limit).await?;
            for answer in [user, password] {
                self.expect(Phase::Auth, 334, reply)?;
                reply = self.ask(Phase::Auth, &format!("{}\r\n", STANDARD.encode(answer)), limit).await?;
            }
            reply
        } else {
            let detail = "the server offers neither AUTH PLAIN nor AUTH LOGIN";
            return Err(self.fail(Phase::Auth, AUTH_NOT_OFFERED, detail));
        };
        self.expect(Phase::Auth, 235, reply).map(drop)
    }
}
