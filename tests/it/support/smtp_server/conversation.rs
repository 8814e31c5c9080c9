//! One connection of the scripted server.

mod acts;

use std::{
    io,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use sha2::{Digest as _, Sha256};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
    sync::mpsc,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{self, ServerConfig},
};

use super::{Accepted, Act, At, Certificate, PASSWORD, Poke, Shared, Tls, USER, delay::precisely, hex};

trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// The end of a conversation.
struct Over;

impl From<io::Error> for Over {
    fn from(_: io::Error) -> Self {
        Self
    }
}

type Result<T> = std::result::Result<T, Over>;

pub(super) struct Conversation {
    shared: Arc<Shared>,
    number: usize,
    io: Box<dyn Io>,
    /// The bare connection below, to reset it.
    fd: std::os::fd::OwnedFd,
    poked: mpsc::UnboundedReceiver<Poke>,
    input: Vec<u8>,
    output: Vec<u8>,
    encrypted: bool,
    signed_in: bool,
    /// How many MAIL commands came.
    message: usize,
    has_sender: bool,
    recipient: Option<String>,
}

impl Conversation {
    pub(super) async fn run(shared: Arc<Shared>, number: usize, tcp: TcpStream, poked: mpsc::UnboundedReceiver<Poke>) {
        let fd = std::os::fd::AsFd::as_fd(&tcp).try_clone_to_owned().expect("a second handle");
        let mut conversation = Self {
            shared,
            number,
            io: Box::new(tcp),
            fd,
            poked,
            input: Vec::new(),
            output: Vec::new(),
            encrypted: false,
            signed_in: false,
            message: 0,
            has_sender: false,
            recipient: None,
        };
        let _ = conversation.talk().await;
        let (shared, encrypted) = (Arc::clone(&conversation.shared), conversation.encrypted);
        // Closed first, so that whoever waits for the end finds it.
        drop(conversation);
        shared.hear(number, "(end)", encrypted);
    }

    async fn talk(&mut self) -> Result<()> {
        self.answer(At::Connect, "").await?;
        if let Some((Tls::Implicit, certificate)) = self.shared.behaviour.tls.clone() {
            self.encrypt(&certificate).await?;
        }
        self.answer(At::Banner, "220 mail.test ready\r\n").await?;
        loop {
            let line = self.line().await?;
            if self.shared.behaviour.drops_pipelined {
                self.input.clear();
            }
            let verb = line.split([' ', ':']).next().unwrap_or_default().to_ascii_uppercase();
            let may_have_more = self.shared.behaviour.pipelining && matches!(&*verb, "MAIL" | "RCPT" | "RSET");
            if !may_have_more && !self.input.is_empty() {
                self.shared.hasty.fetch_add(1, Ordering::SeqCst);
            }
            self.command(&verb, &line).await?;
        }
    }

    async fn command(&mut self, verb: &str, line: &str) -> Result<()> {
        match verb {
            "EHLO" => {
                self.forget();
                let offers = self.offers();
                self.answer(At::Ehlo, &offers).await
            }
            "STARTTLS" => {
                let fine = self.answer(At::Starttls, "220 go\r\n").await?;
                match self.shared.behaviour.tls.clone() {
                    Some((Tls::Starttls, certificate)) if fine => {
                        self.flush().await?;
                        self.encrypt(&certificate).await?;
                        self.forget();
                        self.signed_in = false;
                    }
                    _ => {}
                }
                return Ok(());
            }
            "AUTH" => return self.auth(line).await,
            "MAIL" if self.has_sender => self.say("503 5.5.1 nested MAIL\r\n").await.map(|()| false),
            "MAIL" if self.shared.behaviour.auth.is_some() && !self.signed_in => {
                self.say("530 5.7.0 sign in first\r\n").await.map(|()| false)
            }
            "MAIL" => {
                self.message += 1;
                let fine = self.answer(At::Mail, "250 2.1.0 ok\r\n").await?;
                self.has_sender = fine;
                Ok(fine)
            }
            "RCPT" if !self.has_sender => self.say("503 5.5.1 MAIL first\r\n").await.map(|()| false),
            "RCPT" => {
                let address = line.split(['<', '>']).nth(1).unwrap_or_default().to_owned();
                self.recipient = Some(address);
                let fine = self.answer(At::Rcpt, "250 2.1.5 ok\r\n").await?;
                if !fine {
                    self.recipient = None;
                }
                Ok(fine)
            }
            "DATA" => {
                let act = self.act(At::Data);
                let nobody = self.recipient.is_none() && act.is_none();
                let usual = if nobody { "554 5.5.1 no valid recipients\r\n" } else { "354 go ahead\r\n" };
                let fine = self.perform(act, usual).await? && !nobody;
                if fine { self.body().await.map(|()| true) } else { Ok(false) }
            }
            "RSET" => {
                self.forget();
                self.answer(At::Rset, "250 2.0.0 ok\r\n").await
            }
            "QUIT" => {
                self.say("221 2.0.0 bye\r\n").await?;
                self.flush().await?;
                Err(Over)
            }
            _ => self.say("500 5.5.2 what?\r\n").await.map(|()| false),
        }
        .map(drop)
    }

    fn forget(&mut self) {
        (self.has_sender, self.recipient) = (false, None);
    }

    fn offers(&self) -> String {
        let behaviour = &self.shared.behaviour;
        let mut lines = vec!["mail.test".to_owned()];
        if behaviour.pipelining {
            lines.push("PIPELINING".to_owned());
        }
        if behaviour.smtputf8 {
            lines.push("SMTPUTF8".to_owned());
        }
        lines.extend(behaviour.size.map(|size| format!("SIZE {size}")));
        lines.extend(behaviour.auth.map(|words| format!("AUTH {words}")));
        if matches!(behaviour.tls, Some((Tls::Starttls, _))) && !self.encrypted {
            lines.push("STARTTLS".to_owned());
        }
        lines.push("8BITMIME".to_owned());
        let last = lines.len() - 1;
        let line = |(at, text): (usize, &String)| format!("250{}{text}\r\n", if at < last { '-' } else { ' ' });
        lines.iter().enumerate().map(line).collect()
    }

    async fn auth(&mut self, line: &str) -> Result<()> {
        let decode = |text: &str| STANDARD.decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let right = if let Some(secret) = line.strip_prefix("AUTH PLAIN ") {
            decode(secret).as_deref() == Some(&format!("\0{USER}\0{PASSWORD}"))
        } else {
            self.say("334 VXNlcm5hbWU6\r\n").await?;
            let user = self.line().await?;
            self.say("334 UGFzc3dvcmQ6\r\n").await?;
            let password = self.line().await?;
            (decode(&user).as_deref(), decode(&password).as_deref()) == (Some(USER), Some(PASSWORD))
        };
        let usual = if right { "235 2.7.0 welcome\r\n" } else { "535 5.7.8 wrong\r\n" };
        self.signed_in = self.answer(At::Auth, usual).await? && right;
        Ok(())
    }

    /// Reads a body to its dot and answers.
    async fn body(&mut self) -> Result<()> {
        self.flush().await?;
        if self.input.is_empty() {
            self.fill().await?;
        }
        self.shared.hear(self.number, "(body)", self.encrypted);
        self.answer(At::Body, "").await?;
        let mut message = Vec::new();
        loop {
            let line = self.raw_line().await?;
            if line == b".\r\n" {
                break;
            }
            message.extend_from_slice(line.strip_prefix(b".").unwrap_or(&line));
        }
        self.shared.hear(self.number, ".", self.encrypted);
        if !self.shared.behaviour.final_reply.is_zero() && !self.shared.hurries.load(Ordering::SeqCst) {
            self.flush().await?;
            precisely(self.shared.behaviour.final_reply).await;
        }
        let act = self.act(At::Dot);
        let takes = match &act {
            Some(Act::Cut | Act::Reset) => false,
            Some(Act::Say(text) | Act::SayThenCut(text) | Act::StallThenSay(text)) => text.starts_with("250"),
            _ => true,
        };
        if takes {
            self.accept(&message);
        }
        self.forget();
        self.perform(act, "250 2.0.0 queued\r\n").await.map(drop)
    }

    #[expect(clippy::disallowed_methods, reason = "the ledger is the outside world, with its own clock")]
    fn accept(&self, message: &[u8]) {
        let text = String::from_utf8_lossy(message);
        let id = text.lines().find_map(|line| line.strip_prefix("Message-ID: ")).unwrap_or_default();
        self.shared.accept(Accepted {
            message_id: id.trim().to_owned(),
            recipient: self.recipient.clone().unwrap_or_default(),
            sha256: hex(&Sha256::digest(message)),
            connection: self.number,
            at: chrono::Utc::now(),
        });
    }

    fn index(&self) -> usize {
        self.message.saturating_sub(1)
    }

    /// Replies leave when there is nothing more to read, as with real servers.
    async fn say(&mut self, text: &str) -> Result<()> {
        self.output.extend_from_slice(text.as_bytes());
        if self.input.is_empty() { self.flush().await } else { Ok(()) }
    }

    async fn flush(&mut self) -> Result<()> {
        if self.output.is_empty() {
            return Ok(());
        }
        if !self.shared.behaviour.round_trip.is_zero() {
            precisely(self.shared.behaviour.round_trip).await;
        }
        let output = std::mem::take(&mut self.output);
        self.io.write_all(&output).await?;
        Ok(self.io.flush().await?)
    }

    async fn line(&mut self) -> Result<String> {
        let line = self.raw_line().await?;
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        self.shared.hear(self.number, &line, self.encrypted);
        Ok(line)
    }

    async fn raw_line(&mut self) -> Result<Vec<u8>> {
        let mut searched = 0;
        loop {
            if let Some(at) = self.input[searched..].iter().position(|byte| *byte == b'\n') {
                return Ok(self.input.drain(..=searched + at).collect());
            }
            searched = self.input.len();
            self.fill().await?;
        }
    }

    /// More input, after saying what is left to say; what is asked from outside is said meanwhile.
    async fn fill(&mut self) -> Result<()> {
        self.flush().await?;
        let mut bytes = vec![0; 16 * 1024];
        loop {
            tokio::select! {
                Some(poke) = self.poked.recv() => {
                    self.io.write_all(poke.text.as_bytes()).await?;
                    self.io.flush().await?;
                    if poke.then_cut {
                        let _ = self.io.shutdown().await;
                    }
                    let _ = poke.done.send(());
                    if poke.then_cut {
                        return Err(Over);
                    }
                }
                count = self.io.read(&mut bytes) => match count? {
                    0 => return Err(Over),
                    count => {
                        self.input.extend_from_slice(&bytes[..count]);
                        return Ok(());
                    }
                },
            }
        }
    }

    async fn encrypt(&mut self, certificate: &Certificate) -> Result<()> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let chain = vec![certificate.der.clone().into()];
        let key = rustls::pki_types::PrivatePkcs8KeyDer::from(certificate.key.clone());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(chain, key.into())
            .expect("a certificate and its key");
        let placeholder: Box<dyn Io> = Box::new(tokio::io::empty());
        let io = std::mem::replace(&mut self.io, placeholder);
        self.io = Box::new(TlsAcceptor::from(Arc::new(config)).accept(Pin::new(io)).await?);
        self.input.clear();
        self.encrypted = true;
        Ok(())
    }
}
