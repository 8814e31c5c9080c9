//! Alarms: who hears of them, whether the ways there are open, what stands, and what could not be told.

use super::{Check, ok, warning};
use crate::{
    config::Config,
    outgoing,
    store::{
        PgConnection,
        alarms::{list_standing, list_undelivered},
    },
};

const NAME: &str = "alarms";

/// Who hears of alarms. Nothing is called: somebody would be woken.
pub(super) async fn check_ways(config: &Config, is_wrong: impl Fn(&str) -> bool) -> Vec<Check> {
    let alerts = &config.alerts;
    let urls = [
        (
            "ALERT_WEBHOOK_URL",
            &alerts.webhook,
            "a mail server that is away hides every alarm",
            "set it to whatever tells the operator without mail",
        ),
        (
            "HEARTBEAT_URL",
            &alerts.heartbeat,
            "nobody outside notices when all is gone",
            "set it to a check of a watcher outside, such as Healthchecks",
        ),
    ];
    let mut checks = Vec::new();
    if !is_wrong("ALERT_EMAIL") {
        checks.push(match &alerts.email {
            Some(email) => ok(NAME, format!("ALERT_EMAIL is {email}")),
            None => {
                unset(config, "ALERT_EMAIL", "nobody gets a mail about an alarm", "set it to the operator's address")
            }
        });
    }
    for (variable, url, why, advice) in urls.into_iter().filter(|(variable, ..)| !is_wrong(variable)) {
        checks.push(match url {
            None => unset(config, variable, why, advice),
            Some(url) => match outgoing::look(url).await {
                Ok(()) => ok(NAME, format!("{variable}: something listens at {}", url.origin())),
                Err(error) => {
                    let advice = format!("correct {variable}, or look at what should listen there");
                    warning(NAME, format!("{variable} leads to {}, and {error}", url.origin()), advice)
                }
            },
        });
    }
    checks
}

/// Only the real service needs an operator.
fn unset(config: &Config, variable: &str, why: &str, advice: &str) -> Check {
    let found = format!("{variable} is not set, so {why}");
    if config.is_production() { warning(NAME, found, advice) } else { ok(NAME, found) }
}

/// What stands, and what could not be told of it; nothing to say before the first start.
pub(super) async fn check_standing(connection: &mut PgConnection) -> Vec<Check> {
    let (Ok(standing), Ok(undelivered)) = (list_standing(connection).await, list_undelivered(connection).await) else {
        return Vec::new();
    };
    let mut checks: Vec<Check> = standing
        .iter()
        .map(|alarm| {
            let since = alarm.raised_at.format("%Y-%m-%d %H:%M:%S UTC");
            warning(NAME, format!("{} since {since}: {}", alarm.kind, alarm.detail), alarm.kind.advice())
        })
        .collect();
    if checks.is_empty() {
        checks.push(ok(NAME, "none stands"));
    }
    checks.extend(undelivered.into_iter().map(|(surface, count, error)| {
        let found = format!("messages about alarms that {surface} has not taken so far: {count}; {error}");
        let advice = match surface.as_str() {
            "email" => "look at the mail server, SMTP_URL and ALERT_EMAIL",
            _ => "look at ALERT_WEBHOOK_URL and at what listens there",
        };
        warning(NAME, found, advice)
    }));
    checks
}
