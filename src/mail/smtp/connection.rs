//! One connection: the envelope, the body and the dot, one command at a time or, where the server takes it,
//! several in one write (RFC 2920). Says after each message whether the connection can still be trusted.

use lettre::{
    Address,
    transport::smtp::{
        commands::{Data, Mail, Quit, Rcpt, Rset},
        extension::MailParameter,
    },
};
use tokio::time::{Instant, timeout};

use super::{
    Limits,
    came_to::{After, Refusal, Sent, Stage, is_parting},
    connect::Offers,
    judge,
    reply::Reply,
    stream::{Broken, Stream, Unfinished, Why},
};
use crate::{
    domain::{
        attempt::{Outcome, Phase},
        recipient::EmailAddress,
    },
    mail::{Ended, Envelope, MayFinish, compose::unfit},
};

/// The server does not take addresses beyond ASCII.
pub const SMTPUTF8_NOT_OFFERED: &str = "smtputf8_not_offered";
/// The server said that it takes no message of this size.
pub const TOO_LARGE: &str = "too_large_for_server";
/// An address that cannot be written in a command.
pub const ADDRESS_UNUSABLE: &str = "address_unusable";
/// The message is not what every server takes: 7-bit lines ending in CRLF.
pub const MESSAGE_UNFIT: &str = "message_unfit";

/// Written at once, at most; a server that stops reading is noticed block by block.
const BLOCK: usize = 16 * 1024;

#[derive(Debug)]
pub(super) struct Connection {
    stream: Stream,
    offers: Offers,
    pub(super) tls: Option<String>,
    limits: Limits,
    messages: u32,
    /// A sender was named on it before.
    used: bool,
    /// MAIL was taken and no message followed: RSET is due before the next.
    in_transaction: bool,
    idle_since: Instant,
}

impl Connection {
    pub(super) fn new(stream: Stream, offers: Offers, tls: Option<String>, limits: Limits) -> Self {
        let idle_since = Instant::now();
        Self { stream, offers, tls, limits, messages: 0, used: false, in_transaction: false, idle_since }
    }

    /// Waits for the next message from now on.
    pub(super) fn rest(&mut self) {
        self.idle_since = Instant::now();
    }

    pub(super) fn idle_since(&self) -> Instant {
        self.idle_since
    }

    pub(super) fn pipelines(&self) -> bool {
        self.offers.pipelining
    }

    /// Whether it has carried as many messages, or waited as long, as one connection should.
    pub(super) fn is_worn(&self) -> bool {
        self.messages >= self.limits.messages || self.idle_since.elapsed() >= self.limits.idle
    }

    /// Whether no other message should follow the one that is under way.
    pub(super) fn is_last(&self) -> bool {
        self.messages + 1 >= self.limits.messages
    }

    /// Whether the next message may begin: the server is still there, has said nothing meanwhile, and no
    /// transaction is open.
    pub(super) async fn is_ready(&mut self) -> bool {
        self.stream.quiet().await.is_ok() && (!self.in_transaction || self.reset().await)
    }

    /// Takes back what was named. `false`: the connection must be dropped.
    pub(super) async fn reset(&mut self) -> bool {
        let reply = self.command(Phase::Mail, &Rset.to_string(), self.limits.ehlo).await;
        self.in_transaction = false;
        reply.is_ok_and(|reply| reply.code == 250)
    }

    /// Leaves, politely if the server has time for it.
    pub(super) async fn quit(mut self) {
        let limit = self.limits.quit;
        let parting = async {
            if self.stream.quiet().await.is_ok() && self.stream.write(Quit.to_string().as_bytes(), limit).await.is_ok()
            {
                let _ = self.stream.reply(limit).await;
            }
        };
        let _ = timeout(limit, parting).await;
    }

    /// Names the sender and nothing else.
    pub(super) async fn name_sender(&mut self, sender: &EmailAddress) -> Result<Reply, Ended> {
        let mail = Mail::new(Some(address(sender, Outcome::NotSent, Phase::Mail)?), Vec::new()).to_string();
        let reply = self.command(Phase::Mail, &mail, self.limits.mail).await?;
        if reply.code == 250 { Ok(reply) } else { Err(judge::refusal(Phase::Mail, &reply)) }
    }

    /// Everything before the gate. `together`: in one write, DATA too.
    pub(super) async fn offer(&mut self, envelope: &Envelope, together: bool) -> Result<Stage, Refusal> {
        let (mail, rcpt) = self.commands(envelope).map_err(Refusal::idle)?;
        let used = std::mem::replace(&mut self.used, true);
        if together {
            let group = format!("{mail}{rcpt}{Data}");
            let written = self.stream.write(group.as_bytes(), self.limits.block).await;
            written.map_err(|error| Refusal::gone(judge::broken(Phase::Mail, error)).at_mail(used))?;
            return self.envelope_replies(true, used).await.map(|()| Stage::Data);
        }
        let reply = self.command(Phase::Mail, &mail, self.limits.mail).await;
        let reply = reply.map_err(|ended| Refusal::gone(ended).at_mail(used))?;
        if reply.code != 250 {
            return Err(Refusal::by(Phase::Mail, &reply).at_mail(used));
        }
        self.in_transaction = true;
        let reply = self.command(Phase::Rcpt, &rcpt, self.limits.rcpt).await.map_err(Refusal::gone)?;
        if is_rcpt_taken(&reply) { Ok(Stage::Named) } else { Err(Refusal::by(Phase::Rcpt, &reply)) }
    }

    /// Writes one command and reads its reply, whatever it is.
    async fn command(&mut self, phase: Phase, command: &str, limit: std::time::Duration) -> Result<Reply, Ended> {
        self.stream.quiet().await.map_err(|noise| judge::noise(phase, noise))?;
        let written = self.stream.write(command.as_bytes(), self.limits.block).await;
        written.map_err(|error| judge::broken(phase, error))?;
        self.stream.reply(limit).await.map_err(|error| judge::broken(phase, error))
    }

    /// MAIL and RCPT of an envelope, if the server can take it at all.
    fn commands(&self, envelope: &Envelope) -> Result<(String, String), Ended> {
        let rejected = |phase, reason: &'static str| Ended::new(Outcome::Rejected, phase).because(reason);
        let mut parameters = Vec::new();
        if envelope.needs_smtputf8() {
            if !self.offers.smtputf8 {
                return Err(rejected(Phase::Rcpt, SMTPUTF8_NOT_OFFERED));
            }
            parameters.push(MailParameter::SmtpUtfEight);
        }
        if let (Some(size), Some(limit)) = (envelope.size, self.offers.size) {
            // Said here: as a refused MAIL it would look like a fault of the transport.
            if limit > 0 && size > limit {
                return Err(rejected(Phase::Mail, TOO_LARGE).saying(format!("the server takes {limit} bytes")));
            }
            parameters.push(MailParameter::Size(size));
        }
        let sender = address(&envelope.sender, Outcome::NotSent, Phase::Mail)?;
        let recipient = address(&envelope.recipient, Outcome::Rejected, Phase::Rcpt)?;
        Ok((Mail::new(Some(sender), parameters).to_string(), Rcpt::new(recipient, Vec::new()).to_string()))
    }

    /// The replies to MAIL, RCPT and DATA that were sent together. `first`: nothing was sent before them in the
    /// same write, so a MAIL without a reply says nothing about sending together. `used`: a sender was named before.
    async fn envelope_replies(&mut self, first: bool, used: bool) -> Result<(), Refusal> {
        let lost = |phase, error: Broken, late: bool| {
            let mixed_up = late && error.why != Why::Lost;
            Refusal { mixed_up, ..Refusal::gone(judge::broken(phase, error)) }
        };
        // A server may refuse and leave. If it stays and owes us a reply, the refusal may have been that reply.
        let broken_off = |refusal: Option<Refusal>, phase, error: Broken| match refusal {
            None => lost(phase, error, true),
            Some(refusal) if error.why == Why::Lost => refusal.dropped(),
            Some(refusal) => refusal.mixed_up(),
        };
        let mail = self.stream.reply(self.limits.mail).await;
        let mail = mail.map_err(|error| Refusal { silent: true, ..lost(Phase::Mail, error, !first) }.at_mail(used))?;
        let mut refusal = (mail.code != 250).then(|| Refusal::by(Phase::Mail, &mail));
        if let Some(refusal) = refusal.take_if(|refusal| refusal.after == After::Gone) {
            let refusal = if is_parting(mail.code) { refusal } else { Refusal { silent: true, ..refusal.mixed_up() } };
            return Err(refusal.at_mail(used));
        }
        self.in_transaction = true;
        // After a refusal the other replies are only read to stay in step.
        let rcpt = match self.stream.reply(self.limits.rcpt).await {
            Ok(rcpt) => rcpt,
            Err(error) => return Err(broken_off(refusal, Phase::Rcpt, error)),
        };
        match refusal {
            Some(refusal) if !rcpt.is_class(4) && !rcpt.is_class(5) => return Err(refusal.mixed_up()),
            Some(_) => {}
            None if is_rcpt_taken(&rcpt) => {}
            None => refusal = Some(Refusal::by(Phase::Rcpt, &rcpt)),
        }
        if let Some(refusal) = refusal.take_if(|refusal| refusal.after == After::Gone || rcpt.code == 421) {
            return Err(if rcpt.code == 421 { refusal.dropped() } else { refusal.mixed_up() });
        }
        let data = match self.stream.reply(self.limits.data).await {
            Ok(data) => data,
            Err(error) => return Err(broken_off(refusal, Phase::Data, error)),
        };
        match refusal {
            None if data.code == 354 => Ok(()),
            None => {
                let refusal = Refusal::by(Phase::Data, &data);
                Err(if refusal.after == After::Idle || data.code == 421 { refusal } else { refusal.mixed_up() })
            }
            Some(refusal) if (data.is_class(4) || data.is_class(5)) && data.code != 421 => Err(refusal),
            // Some servers want a body although nobody may have it; the dot that would end it is not ours to send.
            Some(refusal) if data.code == 354 || data.code == 421 => Err(refusal.dropped()),
            Some(refusal) => Err(refusal.mixed_up()),
        }
    }

    /// DATA if it is not said yet, the body, the dot with the next envelope, and the reply, which is `heard` before
    /// anything of the next message is waited for.
    pub(super) async fn transmit(
        &mut self,
        stage: Stage,
        bytes: &[u8],
        next: Option<&Envelope>,
        may_finish: &MayFinish,
        heard: &mut Option<Ended>,
    ) -> Sent {
        if let Some(fault) = unfit(bytes).or((!bytes.ends_with(b"\r\n")).then_some("an unfinished last line")) {
            let ended = Ended::new(Outcome::Rejected, Phase::Body).because(MESSAGE_UNFIT).saying(fault);
            return Sent::new(ended, if stage == Stage::Named { After::Idle } else { After::Gone });
        }
        if stage == Stage::Named
            && let Err(refusal) = self.data().await
        {
            return Sent::new(refusal.ended, refusal.after);
        }
        // Known to be impossible: nothing of it travels.
        let commands = next.map(|next| self.commands(next));
        let (tail, refused) = match commands {
            Some(Ok((mail, rcpt))) => (Some(format!("{mail}{rcpt}{Data}")), None),
            Some(Err(ended)) => (None, Some(ended)),
            None => (None, None),
        };
        let mut sent = self.body(bytes, tail.as_deref(), may_finish, heard).await;
        if sent.after == After::Idle && sent.next.is_none() {
            sent.next = refused.map(Err);
        }
        sent
    }

    async fn data(&mut self) -> Result<(), Refusal> {
        let reply = self.command(Phase::Data, &Data.to_string(), self.limits.data).await.map_err(Refusal::gone)?;
        if reply.code == 354 { Ok(()) } else { Err(Refusal::by(Phase::Data, &reply)) }
    }

    async fn body(
        &mut self,
        bytes: &[u8],
        tail: Option<&str>,
        may_finish: &MayFinish,
        heard: &mut Option<Ended>,
    ) -> Sent {
        let mut text = stuffed(bytes);
        let dot_at = text.len();
        text.extend_from_slice(b".\r\n");
        text.extend_from_slice(tail.unwrap_or_default().as_bytes());
        let blocks = (dot_at.saturating_sub(1) / BLOCK) * BLOCK;
        for block in text[..blocks].chunks(BLOCK) {
            if let Err(noise) = self.stream.quiet().await {
                return Sent::new(judge::noise(Phase::Body, noise), After::Gone);
            }
            if let Err(error) = self.stream.write(block, self.limits.block).await {
                return Sent::new(self.body_broken(error).await, After::Gone);
            }
        }
        // Whatever the server says before the dot is no answer to it.
        if let Err(noise) = self.stream.quiet().await {
            return Sent::new(judge::noise(Phase::Body, noise), After::Gone);
        }
        let end = &text[blocks..];
        let whole = match self.stream.write_end(end, dot_at - blocks, may_finish, self.limits.block).await {
            Ok(()) => true,
            Err(Unfinished::After) => false,
            Err(Unfinished::Refused) => return Sent::new(Ended::lease_too_old(), After::Gone),
            Err(Unfinished::Before(error)) => return Sent::new(self.body_broken(error).await, After::Gone),
        };
        let sent = self.dot_reply().await;
        *heard = Some(sent.ended.clone());
        match (sent.after, tail) {
            (After::Idle, _) if !whole => Sent { after: After::Gone, ..sent },
            (After::Idle, Some(_)) => self.next_replies(sent).await,
            _ => sent,
        }
    }

    /// A server that breaks off often says why first.
    async fn body_broken(&mut self, error: Broken) -> Ended {
        match self.stream.quiet().await {
            Err(noise) if noise.reply.is_some() => judge::noise(Phase::Body, noise),
            _ => judge::broken(Phase::Body, error),
        }
    }

    async fn dot_reply(&mut self) -> Sent {
        let reply = match self.stream.reply(self.limits.dot).await {
            Ok(reply) => reply,
            Err(error) => return Sent::new(judge::unknown(error), After::Gone),
        };
        let ended = judge::verdict(&reply);
        self.messages += 1;
        self.in_transaction = false;
        let after = if ended.outcome == Outcome::Ambiguous || reply.code == 421 { After::Gone } else { After::Idle };
        Sent::new(ended, after)
    }

    async fn next_replies(&mut self, sent: Sent) -> Sent {
        let limit = self.limits.next;
        let Ok(replies) = timeout(limit, self.envelope_replies(false, true)).await else {
            return Sent { after: After::Gone, slow: true, ..sent };
        };
        match replies {
            Ok(()) => Sent { next: Some(Ok(())), after: After::Offered, ..sent },
            Err(Refusal { ended, after, mixed_up, silent, parted: _ }) => {
                Sent { next: (!silent).then_some(Err(ended)), after, mixed_up, ..sent }
            }
        }
    }
}

fn is_rcpt_taken(reply: &Reply) -> bool {
    matches!(reply.code, 250 | 251)
}

/// As lettre's commands write it. The sender's is a fault of the setup, not of the message.
fn address(address: &EmailAddress, outcome: Outcome, phase: Phase) -> Result<Address, Ended> {
    Address::new(address.local(), address.domain()).map_err(|error| Ended {
        transport_fault: outcome == Outcome::NotSent,
        ..Ended::new(outcome, phase).because(ADDRESS_UNUSABLE).saying(error.to_string())
    })
}

/// The body with a second dot before each line that begins with one.
fn stuffed(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes.len() + bytes.len() / 64 + 256);
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(b".") {
            text.push(b'.');
        }
        text.extend_from_slice(line);
    }
    text
}
