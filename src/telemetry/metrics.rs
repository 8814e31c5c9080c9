//! Metrics: their names, what they mean, and the recorder that `/metrics` renders.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use tokio_util::sync::CancellationToken;

use crate::domain::alarm::AlarmKind;

pub const SCANS: &str = "permit_notifier_scans_total";
pub const LAST_SUCCESSFUL_SCAN: &str = "permit_notifier_last_successful_scan_timestamp_seconds";
pub const NOTICES_CLAIMED: &str = "permit_notifier_notices_claimed_total";
pub const ATTEMPTS: &str = "permit_notifier_attempts_total";
pub const DELIVERIES: &str = "permit_notifier_deliveries";
pub const SEND_DURATION: &str = "permit_notifier_send_duration_seconds";
pub const OLDEST_PENDING: &str = "permit_notifier_oldest_pending_seconds";
pub const LAST_PURGE: &str = "permit_notifier_last_purge_timestamp_seconds";
pub const ALARM: &str = "permit_notifier_alarm";
pub const DATABASE_UP: &str = "permit_notifier_database_up";

/// Every pair is always shown, so that a state that emptied goes to zero instead of vanishing.
const CHANNELS: [&str; 2] = ["email", "letter"];
const DELIVERY_STATES: [&str; 11] = [
    "pending",
    "held",
    "sending",
    "sent",
    "ambiguous",
    "failed",
    "bounced",
    "superseded",
    "suppressed",
    "skipped",
    "cancelled",
];
const SCAN_OUTCOMES: [&str; 5] = ["completed", "failed", "abandoned", "held_elsewhere", "already_done"];
const ATTEMPT_OUTCOMES: [&str; 5] = ["accepted", "deferred", "rejected", "not_sent", "ambiguous"];

/// From a server next door to one that takes its time; a final reply may take ten minutes.
const SEND_DURATION_BUCKETS: [f64; 12] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 120.0, 600.0];

static STARTED: Mutex<Option<PrometheusHandle>> = Mutex::new(None);

/// The recorder is one per process; a second call gives the same one again (several services in
/// one test binary share it).
pub fn start() -> Result<PrometheusHandle, BuildError> {
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = started.as_ref() {
        return Ok(handle.clone());
    }
    let recorder = recorder()?;
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder)?;
    *started = Some(handle.clone());
    Ok(handle)
}

/// A recorder that knows our metrics, has every alarm at rest and every counter at zero: a counter that only
/// appears with its first event hides that event from rates.
pub fn recorder() -> Result<PrometheusRecorder, BuildError> {
    let recorder = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Full(SEND_DURATION.to_owned()), &SEND_DURATION_BUCKETS)?
        .build_recorder();
    metrics::with_local_recorder(&recorder, || {
        describe();
        for kind in AlarmKind::ALL {
            set_alarm(kind.as_str(), false);
        }
        for outcome in SCAN_OUTCOMES {
            counter!(SCANS, "outcome" => outcome).absolute(0);
        }
        for outcome in ATTEMPT_OUTCOMES {
            counter!(ATTEMPTS, "outcome" => outcome).absolute(0);
        }
        notices_claimed(0);
    });
    Ok(recorder)
}

/// Nobody may ever scrape; without this the samples of the histogram would then pile up.
pub async fn keep_small(handle: PrometheusHandle, stop: CancellationToken) {
    let mut interval = tokio::time::interval(Duration::from_secs(5));
    while stop.run_until_cancelled(interval.tick()).await.is_some() {
        handle.run_upkeep();
    }
}

fn describe() {
    describe_counter!(SCANS, "Scans that ended, by outcome");
    describe_gauge!(LAST_SUCCESSFUL_SCAN, "When the last completed scan ended, in Unix time");
    describe_counter!(NOTICES_CLAIMED, "Notices that scans and imports made pending or held");
    describe_counter!(ATTEMPTS, "Attempts to send that ended, by outcome");
    describe_gauge!(DELIVERIES, "Deliveries, by channel and state");
    describe_histogram!(SEND_DURATION, "How long one attempt took, in seconds");
    describe_gauge!(OLDEST_PENDING, "How long the oldest due email delivery has waited, in seconds");
    describe_gauge!(LAST_PURGE, "When the last removal of old data began that came to its end, in Unix time");
    describe_gauge!(DATABASE_UP, "1 when the database answered this scrape, else 0, and what comes from it is old");
    describe_gauge!(ALARM, "1 while an alarm of this kind stands, else 0");
}

pub fn scan_ended(outcome: &'static str) {
    counter!(SCANS, "outcome" => outcome).increment(1);
}

/// `at` in Unix seconds of business time.
pub fn scan_succeeded(at: i64) {
    gauge!(LAST_SUCCESSFUL_SCAN).set(at as f64);
}

/// `at` in Unix seconds of business time. Only processes that scan know it.
pub fn purge_completed(at: i64) {
    gauge!(LAST_PURGE).set(at as f64);
}

pub fn notices_claimed(count: u64) {
    counter!(NOTICES_CLAIMED).increment(count);
}

pub fn attempt_ended(outcome: &'static str, took: Duration) {
    counter!(ATTEMPTS, "outcome" => outcome).increment(1);
    histogram!(SEND_DURATION).record(took);
}

pub fn set_alarm(kind: &'static str, stands: bool) {
    gauge!(ALARM, "kind" => kind).set(f64::from(u8::from(stands)));
}

/// Whether the database answered when this scrape was counted; when not, what comes from it is as it was before.
pub fn set_database_up(up: bool) {
    gauge!(DATABASE_UP).set(f64::from(u8::from(up)));
}

pub fn set_oldest_pending(age: Duration) {
    gauge!(OLDEST_PENDING).set(age.as_secs_f64());
}

/// What a scrape counted, as `(channel, state, count)`; pairs that are not named are zero.
pub fn set_deliveries<'a>(counts: impl IntoIterator<Item = (&'a str, &'a str, u64)>) {
    let counts: Vec<_> = counts.into_iter().collect();
    for channel in CHANNELS {
        for state in DELIVERY_STATES {
            let count =
                counts.iter().filter(|(c, s, _)| *c == channel && *s == state).map(|(_, _, count)| count).sum::<u64>();
            gauge!(DELIVERIES, "channel" => channel, "state" => state).set(count as f64);
        }
    }
}
