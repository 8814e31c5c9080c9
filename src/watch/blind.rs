//! What a process does that cannot look, because the database is away or takes no writing: then nothing can be written
//! down, and nobody else can tell.
//!
//! When a scan was expected since the last look and its grace is over, the log, `HEARTBEAT_URL` and `ALERT_WEBHOOK_URL`
//! hear of it from here, once for each expected time: from every process, and with one `Idempotency-Key`. The host's clock
//! decides, for want of another.

use chrono::{DateTime, SecondsFormat, Utc};
use url::Url;
use uuid::Uuid;

use super::{WatchRules, words};
use crate::{
    domain::{
        alarm::{AlarmEvent, AlarmKind, AlarmSurface},
        saying::counted,
    },
    outgoing::{CallUrl, Caller, heartbeat::Beat},
    store::alarms::{Alarm, AlarmMessage},
};

/// A webhook that is called past the outbox.
#[derive(Debug, Clone)]
pub struct DirectCall {
    pub caller: Caller,
    pub url: CallUrl,
    /// Where the pages are.
    pub pages: Url,
}

/// Since when a process has not looked, and what it told meanwhile.
#[derive(Debug, Default)]
pub(super) struct Blind {
    /// Business time by the host's clock of the last look, or of the start.
    seen_at: Option<DateTime<Utc>>,
    /// The expected time that was told last.
    told: Option<DateTime<Utc>>,
    /// What was told and is not over.
    standing: Vec<Alarm>,
}

impl Blind {
    /// Business time, as the host's clock has it.
    #[expect(clippy::disallowed_methods, reason = "the database, whose clock counts, is away")]
    fn now(rules: &WatchRules) -> DateTime<Utc> {
        rules.clock.business(Utc::now())
    }

    /// It looked: what it told while it could not is over. Whether the scan ran is told by itself.
    pub(super) async fn sees_again(&mut self, rules: &WatchRules) {
        self.sees(rules);
        for alarm in std::mem::take(&mut self.standing) {
            tracing::info!(alarm = alarm.kind.as_str(), "alarm over: the database can be used again");
            let over = Alarm { cleared_at: Some(Self::now(rules)), ..alarm };
            call(rules, over, AlarmEvent::Cleared).await;
        }
    }

    /// It begins to look.
    pub(super) fn sees(&mut self, rules: &WatchRules) {
        self.seen_at = Some(Self::now(rules));
    }

    /// It could not look, for this reason.
    pub(super) async fn cannot_look(&mut self, rules: &WatchRules, why: &str) {
        let now = Self::now(rules);
        let since = *self.seen_at.get_or_insert(now);
        let expected = rules.schedule.last_expected(now - rules.grace);
        // A schedule of seconds must not tell of each of them.
        let is_new = |at: DateTime<Utc>| self.told.is_none_or(|told| at > told && at - told >= rules.grace);
        let Some(expected) = expected.filter(|at| *at > since && is_new(*at)) else { return };
        self.told = Some(expected);
        let alarm = unseen(expected, since, now, why);
        tracing::error!(alarm = alarm.kind.as_str(), "alarm: {}: {}", alarm.kind.title(), alarm.detail);
        rules.heartbeat.beat(Beat::Failed, alarm.id).await;
        call(rules, alarm.clone(), AlarmEvent::Raised).await;
        self.standing.push(alarm);
    }
}

/// Calls the webhook past the outbox.
async fn call(rules: &WatchRules, alarm: Alarm, event: AlarmEvent) {
    let Some(DirectCall { caller, url, pages }) = &rules.webhook else { return };
    let key = match event {
        AlarmEvent::Raised => format!("unseen-{}", alarm.subject),
        AlarmEvent::Cleared => format!("unseen-{}-over", alarm.subject),
    };
    let message = AlarmMessage { id: 0, alarm, event, surface: AlarmSurface::Webhook };
    let body = words::webhook(&message, rules.zone, pages);
    if let Err(error) = caller.post(url, &key, &body).await {
        tracing::warn!("ALERT_WEBHOOK_URL did not hear about the database: {error}");
    }
}

/// The alarm that nobody can write down. Each process gives it the same id.
fn unseen(expected: DateTime<Utc>, since: DateTime<Utc>, now: DateTime<Utc>, why: &str) -> Alarm {
    let subject = expected.to_rfc3339_opts(SecondsFormat::Secs, true);
    let minutes = counted((now - since).num_minutes(), "minute");
    Alarm {
        id: Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("unseen {subject}").as_bytes()),
        kind: AlarmKind::MissingRun,
        detail: format!(
            "Nobody can see whether the scan of {subject} ran: for {minutes} the database could not be used: {why}."
        ),
        subject,
        raised_at: now,
        cleared_at: None,
    }
}
