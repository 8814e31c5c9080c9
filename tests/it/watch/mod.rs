//! Alarms: what raises each, that each is told once on each surface, and who hears of scans.

mod advice;
mod conditions;
mod guard;
mod heartbeat;
mod messages;
mod processes;
mod raising;
mod trouble;

use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;
use permit_notifier::{
    domain::alarm::{AlarmKind, AlarmSurface},
    outgoing::{CallUrl, heartbeat::Heartbeat},
    scan::schedule::ScanSchedule,
    store::{
        PgConnection,
        alarms::Alarm,
        connect::{Purpose, connect},
        watched::HeldLimits,
    },
    watch::{Watch, WatchRules, conditions::conditions},
};
use uuid::Uuid;

use crate::support::office::TestOffice;

/// What a watch of this office goes by: a scan is expected each day at six, and may be half an hour late.
fn rules(office: &TestOffice) -> WatchRules {
    WatchRules {
        direct_url: office.url.clone(),
        clock: office.clock.clone(),
        zone: office.rules.zone,
        schedule: ScanSchedule::new("0 0 6 * * *", office.rules.zone).expect("a schedule"),
        grace: TimeDelta::minutes(30),
        window: office.rules.window.clone(),
        oldest_pending: TimeDelta::hours(24),
        mails_everybody: true,
        held_limits: HeldLimits { any: Duration::from_mins(5), bulk: Duration::from_mins(30) },
        surfaces: vec![AlarmSurface::Email, AlarmSurface::Webhook],
        heartbeat: Heartbeat::default(),
        webhook: None,
    }
}

fn heartbeat(url: &str) -> Heartbeat {
    Heartbeat::new(Some(CallUrl::parse(url).expect("a URL")))
}

/// One process that watches, and its connection.
struct Watcher {
    watch: Watch,
    connection: PgConnection,
}

impl Watcher {
    async fn new(rules: WatchRules) -> Self {
        let connection = connect(&rules.direct_url, Purpose::Watch).await.expect("a connection");
        Self { watch: Watch::new(rules, Uuid::now_v7(), vec![Arc::default()]), connection }
    }

    /// Looks once; what it raised.
    async fn look(&mut self) -> Vec<Alarm> {
        self.watch.look(&mut self.connection).await.expect("a look")
    }
}

/// What is wrong at this moment, and the sentence about it.
async fn wrong(office: &TestOffice, rules: &WatchRules) -> Vec<(AlarmKind, String)> {
    let mut connection = connect(&office.url, Purpose::Watch).await.expect("a connection");
    let found = conditions(rules, &mut connection, office.moment()).await.expect("an answer");
    assert_eq!(found.unanswered, []);
    found.conditions.into_iter().map(|condition| (condition.kind, condition.detail)).collect()
}

/// The messages in the outbox, in order.
async fn outbox(office: &TestOffice) -> Vec<String> {
    office
        .text(
            "SELECT concat_ws(' ', a.kind, event, surface, CASE WHEN delivered_at IS NULL THEN 'waits' ELSE 'told' END)
             FROM alarm_messages m JOIN alarms a ON a.id = m.alarm_id ORDER BY m.id",
        )
        .await
}
