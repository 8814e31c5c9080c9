//! What a message about an alarm says.

use chrono_tz::Tz;
use serde_json::{Value, json};
use url::Url;

use crate::{
    domain::{alarm::AlarmEvent, calendar::day_in},
    store::alarms::{Alarm, AlarmMessage},
};

/// Subject and text of a mail.
pub(super) fn mail(message: &AlarmMessage, zone: Tz, pages: &Url) -> (String, String) {
    let alarm = &message.alarm;
    let title = alarm.kind.title();
    let subject = match message.event {
        AlarmEvent::Raised => format!("Alarm: {title}"),
        AlarmEvent::Cleared => format!("Over: {title}"),
    };
    let what_to_do = match message.event {
        AlarmEvent::Raised => format!("\nWhat to do: {}\n", alarm.kind.advice()),
        AlarmEvent::Cleared => String::new(),
    };
    let text = format!("{title}.\n\n{}\n\n{}\n{what_to_do}\n{pages}\n", alarm.detail, times(alarm, zone));
    (subject, text)
}

fn times(alarm: &Alarm, zone: Tz) -> String {
    let raised = alarm.raised_at.with_timezone(&zone);
    let written = raised.format("%H:%M %Z on %A, %-d %B %Y");
    match alarm.cleared_at {
        None => format!("It has stood since {written}."),
        Some(cleared) => {
            let same_day = day_in(cleared, zone) == raised.date_naive();
            let cleared = cleared.with_timezone(&zone);
            let end = if same_day { cleared.format("%H:%M") } else { cleared.format("%H:%M on %A, %-d %B %Y") };
            format!("It stood from {written} until {end}.")
        }
    }
}

/// What the webhook gets. `text` is for chat programs that show one field of that name.
pub(super) fn webhook(message: &AlarmMessage, zone: Tz, pages: &Url) -> Value {
    let alarm = &message.alarm;
    let (subject, _) = mail(message, zone, pages);
    json!({
        "id": alarm.id,
        "event": message.event,
        "alarm": alarm.kind,
        "subject": subject_of(alarm),
        "title": alarm.kind.title(),
        "detail": alarm.detail,
        "what_to_do": alarm.kind.advice(),
        "raised_at": alarm.raised_at,
        "cleared_at": alarm.cleared_at,
        "url": pages.as_str(),
        "text": format!("{subject}. {} {pages}", alarm.detail),
    })
}

/// What exactly: the expected time of a missing run, the day or the cause of what people work off.
fn subject_of(alarm: &Alarm) -> Option<&str> {
    (!alarm.subject.is_empty()).then_some(alarm.subject.as_str())
}
