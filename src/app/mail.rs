//! What mails are made of and sent by.

use std::sync::Arc;

use anyhow::{Result, anyhow};
use chrono::NaiveDate;
use tokio::sync::Notify;
use url::Url;

use super::App;
use crate::{
    config::{Environment, MailAllowlist},
    dispatch::{DispatchRules, preview},
    domain::alarm::AlarmSurface,
    mail::{
        FileMailer, Mailer, Office, Preview,
        smtp::{Limits, SmtpMailer},
    },
    outgoing::Caller,
    store::leases::Leased,
    watch::messages::{Messenger, Way},
    web::api::Mails,
};

impl App<'_> {
    /// What tells of alarms on one surface, if it is set: by mail only where mail leaves from (`mails`), by webhook
    /// wherever somebody watches.
    pub fn messenger(
        &self,
        surface: AlarmSurface,
        mails: bool,
        pages: &Url,
        poke: &Arc<Notify>,
    ) -> Result<Option<Messenger>> {
        let alerts = &self.config.alerts;
        let way = match (surface, alerts.email.clone(), alerts.webhook.clone()) {
            (AlarmSurface::Email, Some(address), _) if mails => {
                let office = Arc::new(self.office()?);
                let mailer = self.mailer(&office)?;
                Way::Email { address, office, mailer }
            }
            (AlarmSurface::Webhook, _, Some(url)) => Way::Webhook { url, caller: Caller::new() },
            _ => return Ok(None),
        };
        Ok(Some(Messenger {
            direct_url: self.database.direct_url.clone(),
            way,
            clock: Arc::clone(&self.clock),
            zone: self.config.time_zone,
            pages: pages.clone(),
            poke: Arc::clone(poke),
        }))
    }

    /// Whom the mail is from.
    pub(super) fn office(&self) -> Result<Office> {
        let config = &self.config;
        let reply_to = config.mail_reply_to.as_ref().map(ToString::to_string);
        let bounce = config.bounce_address.as_ref().map(ToString::to_string);
        let mut office = Office::parse(&config.mail_from.to_string(), reply_to.as_deref(), bounce.as_deref())
            .map_err(|error| anyhow!("{} {}", error.variable, error.fault))?;
        if let Some(Environment::Named(name)) = &config.environment {
            office.subject_tag = Some(name.clone());
        }
        Ok(office)
    }

    /// What dispatches of this process go by.
    pub fn dispatch_rules(&self, as_of: Option<NaiveDate>) -> Result<DispatchRules> {
        let (config, office) = (&self.config, self.office()?);
        let mailer = self.mailer(&office)?;
        Ok(DispatchRules {
            pool: self.pool.clone(),
            direct_url: self.database.direct_url.clone(),
            clock: Arc::clone(&self.clock),
            zone: config.time_zone,
            window: config.send_window.clone(),
            office: Arc::new(office),
            mailer,
            allowlist: self.allowlist(),
            rate: config.mail_rate_per_second,
            policy: config.ambiguous_policy,
            concurrency: config.mail_concurrency,
            max_attempts: config.max_attempts,
            lease: config.lease,
            as_of,
        })
    }

    /// What carries the mail: the server that is set, else files.
    pub fn mailer(&self, office: &Office) -> Result<Arc<dyn Mailer>> {
        Ok(match &self.config.smtp_url {
            Some(url) => Arc::new(SmtpMailer::new(url.clone(), Limits::default(), office.from.address())),
            None => Arc::new(FileMailer::new(self.mail_folder()?)),
        })
    }

    /// Outside production only these addresses are mailed.
    fn allowlist(&self) -> Option<MailAllowlist> {
        let guarded = self.config.smtp_url.is_some() && !self.config.is_production();
        guarded.then(|| self.config.mail_allowlist.clone())
    }
}

/// Mails of this office, for whoever wants to see one before it goes.
#[derive(Debug)]
pub(super) struct OfficeMails(pub(super) Office);

impl Mails for OfficeMails {
    fn preview(&self, copy: &Leased, today: NaiveDate) -> Result<Preview, String> {
        preview(&self.0, copy, today)
    }
}
