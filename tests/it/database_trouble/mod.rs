//! A database that restarts, crashes, drops connections, cuts them at any byte, answers late or never, and one in which
//! somebody holds an old snapshot. Scans and dispatches over the real thing go on by themselves, and then everything is
//! claimed and sent once: the mail server's ledger says what the database says.

mod cuts;
mod dropped;
mod killed;
mod read_only;
mod restarts;
mod silent;
mod snapshot;

use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;
use permit_notifier::{
    scan::{ScanRules, schedule::ScanSchedule, supervisor},
    store::connect,
};
use tokio::{sync::Notify, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{
    sending::{agrees, holder},
    support::{
        postbox::{Postbox, Replica, in_days, until_within},
        smtp_server::SmtpServer,
    },
};

/// Longer than all limits of the product that one trouble can cost, one after another.
const PATIENT: Duration = Duration::from_secs(90);

/// Somebody's scan that waits for a lock.
const PARKED_SCANS: &str = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
     AND application_name = 'permit-notifier scan' AND wait_event_type = 'Lock'";
const NOTICES: &str = "SELECT count(*) FROM notices";

/// Permits whose `expires-90d` is due, and no notice yet.
async fn owing(post: &Postbox, count: usize) {
    post.permit_expiring(&holder(0), in_days(100)).await;
    post.more_of_the_same(count).await;
    post.clock.advance(TimeDelta::days(11));
}

/// The service's loop around the scan, with a tick of our own.
struct Scanning {
    poke: Arc<Notify>,
    stop: CancellationToken,
    running: JoinSet<()>,
}

impl Scanning {
    /// It begins to scan at once.
    fn start(rules: ScanRules) -> Self {
        let schedule = ScanSchedule::new("0 0 6 * * *", chrono_tz::UTC).expect("a schedule");
        let pool = connect::pool(&rules.direct_url, 4).expect("a pool");
        let (poke, stop) = (Arc::new(Notify::new()), rules.stop.clone());
        poke.notify_one();
        let running = JoinSet::from_iter([supervisor::run(rules, schedule, pool, Arc::clone(&poke), stop.clone())]);
        Self { poke, stop, running }
    }

    /// Minutes go by until a scan has completed; then each of so many permits has its notice, once.
    async fn completes(self, post: &Postbox, permits: i64) {
        until_within(PATIENT, "a scan completes", async || {
            post.clock.advance(TimeDelta::minutes(1));
            self.poke.notify_one();
            tokio::time::sleep(Duration::from_millis(100)).await;
            post.count("SELECT count(*) FROM scans WHERE outcome = 'completed'").await == 1
        })
        .await;
        self.stop.cancel();
        self.running.join_all().await;
        claimed(post, permits).await;
    }
}

/// Each of so many permits has its notice and its copy, once.
async fn claimed(post: &Postbox, permits: i64) {
    assert_eq!(post.count(NOTICES).await, permits);
    assert_eq!(post.count("SELECT count(DISTINCT permit_id) FROM notices").await, permits);
    let waiting = "SELECT count(DISTINCT notice_id) FROM deliveries WHERE state = 'pending'";
    assert_eq!(post.count(waiting).await, permits);
    assert_eq!(post.count("SELECT count(*) FROM deliveries").await, permits);
    post.check_states().await;
}

const UNSENT: &str = "SELECT count(*) FROM deliveries WHERE state <> 'sent'";

/// The replica sends everything, now, and what is to wait for another try without waiting.
async fn sends_the_rest(post: &Postbox, replica: &Replica) {
    let wake = replica.dispatcher.wake();
    until_within(PATIENT, "all is sent", async || {
        post.hurry().await;
        wake.notify_one();
        tokio::time::sleep(Duration::from_millis(10)).await;
        post.count(UNSENT).await == 0
    })
    .await;
}

/// That, and then all was sent once, and the ledger says so.
async fn sends_all(post: &Postbox, server: &SmtpServer, replica: Replica, notices: usize) {
    sends_the_rest(post, &replica).await;
    replica.leave().await;
    sent_once(post, server, notices).await;
}

/// So many were sent, each once, and nothing else became of any.
async fn sent_once(post: &Postbox, server: &SmtpServer, notices: usize) {
    agrees(post, server).await;
    assert_eq!(server.accepted().len(), notices);
    assert_eq!(post.count("SELECT count(*) FROM deliveries WHERE state = 'sent'").await, notices as i64);
    assert_eq!(post.count("SELECT count(*) FROM deliveries").await, notices as i64);
}
