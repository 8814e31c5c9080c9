//! The mail server, tried out up to naming the sender; and one mail, if somebody asks for it.

use anyhow::Result;

use super::{Check, fault, ok, warning};
use crate::{
    config::{Config, SmtpUrl},
    domain::{attempt::Outcome, recipient::EmailAddress},
    mail::{
        Ended, Mailer, MayFinish, Office, compose_test,
        smtp::{Limits, SmtpMailer},
    },
};

/// Tries the mail server out, up to naming the sender; nothing is sent.
pub(super) async fn check(config: &Config) -> Vec<Check> {
    let Some(url) = &config.smtp_url else {
        let found = format!("from {}; kept on disk, nothing is really sent", config.mail_from);
        return vec![warning("mail", found, "set SMTP_URL on the real service")];
    };
    let sender: Result<EmailAddress, _> = config.mail_from.email.to_string().parse();
    let Ok(sender) = sender else {
        return vec![fault("mail", format!("MAIL_FROM {} cannot be used", config.mail_from), "correct MAIL_FROM")];
    };
    let tried = SmtpMailer::new(url.clone(), Limits::for_a_look(), &sender).check(&sender).await;
    let mut checks: Vec<Check> =
        tried.steps.iter().map(|step| ok("mail", format!("{}: {}", step.phase, step.said))).collect();
    match &tried.fault {
        Some(ended) => {
            let said = ended.response.as_deref().or(ended.reason.as_deref()).unwrap_or("no answer");
            let found = format!("{} failed: {said}", ended.phase);
            checks.push(fault("mail", found, "correct SMTP_URL or MAIL_FROM, or look at the mail server"));
        }
        None => checks.push(match &tried.tls {
            Some(tls) => ok("mail", format!("{} takes mail from {sender}; {tls}", url.server())),
            None => warning(
                "mail",
                format!("{} takes mail from {sender}, in clear", url.server()),
                "use smtps:// or STARTTLS",
            ),
        }),
    }
    checks
}

/// Sends one mail to `address` and shows the server's words.
pub(super) async fn send_test(config: &Config, address: &EmailAddress) -> Check {
    let Some(url) = &config.smtp_url else {
        return fault("test mail", "SMTP_URL is not set", "set it; mail on disk needs no test");
    };
    match test_mail(config, url, address).await {
        Ok(ended) if ended.outcome == Outcome::Accepted => {
            ok("test mail", format!("accepted for {address}: {}", ended.response.unwrap_or_default()))
        }
        Ok(ended) => {
            let said = ended.response.or(ended.reason.map(Into::into)).unwrap_or_default();
            fault("test mail", format!("{} at {}: {said}", ended.outcome, ended.phase), "look at the mail server")
        }
        Err(error) => fault("test mail", format!("{error:#}"), "correct MAIL_FROM or SMTP_URL"),
    }
}

async fn test_mail(config: &Config, url: &SmtpUrl, address: &EmailAddress) -> Result<Ended> {
    let office = Office::parse(&config.mail_from.to_string(), None, None)?;
    #[expect(clippy::disallowed_methods, reason = "a test mail is outside the office's business time")]
    let message = compose_test(&office, address, chrono::Utc::now())?;
    let sender = office.from.address();
    let mut session = SmtpMailer::new(url.clone(), Limits::for_a_look(), sender).session();
    if let Err(ended) = session.offer(&message.envelope).await {
        return Ok(ended);
    }
    let sent = session.transmit(&message.envelope, &message, None, &MayFinish::always()).await;
    session.close().await;
    Ok(sent.ended)
}
