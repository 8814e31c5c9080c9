//! What every page says of a service that does not send mail as the real one.

use crate::config::Config;

/// In what way mail is not sent as by a real service.
#[derive(Debug, Clone)]
pub struct Unsent {
    /// The most important thing about it, as a sentence.
    pub headline: &'static str,
    /// The reason, as a sentence.
    pub why: String,
    /// Whether mail goes to everybody all the same.
    pub to_everybody: bool,
}

impl Unsent {
    /// What is to be said with these settings, if anything is.
    pub fn of(config: &Config) -> Option<Self> {
        if config.smtp_url.is_none() {
            let why = "SMTP_URL is not set, so mail is kept as files on the server.";
            return Some(Self { headline: "No mail is really sent.", why: why.to_owned(), to_everybody: false });
        }
        let name = config.environment.as_ref().filter(|_| !config.is_production())?;
        let to_everybody = config.mail_allowlist.is_everybody();
        let (headline, whom) = if to_everybody {
            ("Mail is really sent.", "mail goes to everybody, with a mark in its subject")
        } else {
            ("Not everybody is mailed.", "mail goes only to addresses that MAIL_ALLOWLIST allows")
        };
        Some(Self { headline, why: format!("This is {name}: {whom}."), to_everybody })
    }
}
