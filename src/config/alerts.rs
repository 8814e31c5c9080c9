//! Who hears of alarms, and the limits beyond which there is one.

use chrono::TimeDelta;

use super::reader::Reader;
use crate::{domain::recipient::EmailAddress, outgoing::CallUrl};

const EMAIL_ALLOWED: &str = "one email address, such as `operator@example.org`";

/// Where alarms go besides pages, metrics and logs.
#[derive(Clone, Debug)]
pub struct Alerts {
    /// Gets a mail for each alarm, and one when it is over.
    pub email: Option<EmailAddress>,
    /// Is called likewise, so that a mail server that is away cannot hide an alarm.
    pub webhook: Option<CallUrl>,
    /// Hears of each scan; its silence is noticed outside.
    pub heartbeat: Option<CallUrl>,
    /// A mail that has been due for longer is an alarm.
    pub oldest_pending: TimeDelta,
}

pub(super) fn read(reader: &mut Reader<'_>) -> Alerts {
    Alerts {
        email: reader.parsed("ALERT_EMAIL", EMAIL_ALLOWED, |text| text.parse().ok()),
        webhook: read_url(reader, "ALERT_WEBHOOK_URL"),
        heartbeat: read_url(reader, "HEARTBEAT_URL"),
        oldest_pending: TimeDelta::hours(reader.number("OLDEST_PENDING_HOURS", 24, 1..=8760)),
    }
}

/// The value is not repeated in a fault: such URLs hold secrets.
fn read_url(reader: &mut Reader<'_>, variable: &str) -> Option<CallUrl> {
    let text = reader.text(variable)?;
    match CallUrl::parse(&text) {
        Ok(url) => Some(url),
        Err(error) => {
            reader.fault(variable, error.to_string());
            None
        }
    }
}
