//! What people and other processes do in these tests, as verbs.

use std::{sync::Arc, time::Duration};

use chrono::NaiveDate;
use permit_notifier::{
    domain::{
        permit::PermitStatus,
        recipient::EmailAddress,
        schedule::{Schedule, Step},
    },
    scan::{PATIENCE, ScanRequest, ScanRules, pass::run_once},
    store::{
        PgConnection,
        changes::{self, ChangeRules},
        permits::{Contact, PermitData},
        scans::Trigger,
    },
};
use sqlx::{AssertSqlSafe, Connection, SqlSafeStr};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{FOOD, Postbox, in_days};

pub fn address(text: &str) -> EmailAddress {
    text.parse().expect("an address")
}

/// What happens to a permit while its notice is on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    Renew,
    Revoke,
    Pause,
    Archive,
    Readdress,
    ChangeDate,
    ChangeDateAndBack,
    Rename,
    Suppress,
    RemoveStep,
}

/// Where a permit's notices go after [`Event::Readdress`].
pub const NEW_ADDRESS: &str = "new@holder.example";

impl Postbox {
    /// A permit whose `expires-30d` is due today and claimed; its holder has that address.
    pub async fn permit(&self, email: &str) -> Uuid {
        self.permit_expiring(email, in_days(30)).await
    }

    pub async fn permit_expiring(&self, email: &str, expires_on: NaiveDate) -> Uuid {
        self.permit_with(email, expires_on, &[]).await
    }

    pub async fn permit_with(&self, email: &str, expires_on: NaiveDate, contacts: &[&str]) -> Uuid {
        let contact = |email: &&str| Contact {
            name: format!("Agent at {email}"),
            email: Some(address(email)),
            role: format!("agent {email}"),
            language: "en".to_owned(),
        };
        let data = PermitData {
            permit_number: format!("F-{}", Uuid::now_v7().simple()).parse().expect("a number"),
            permit_type: FOOD.to_owned(),
            status: PermitStatus::Active,
            holder_name: "Corner Bakery".to_owned(),
            holder_email: Some(address(email)),
            holder_language: "en".to_owned(),
            contacts: contacts.iter().map(contact).collect(),
            site_address: None,
            description: None,
            issued_on: None,
            effective_on: None,
            expires_on,
            notices_from: None,
            notices_paused_until: None,
            external_id: None,
            custom: serde_json::json!({}),
        };
        let mut connection = self.pool.acquire().await.expect("a connection");
        let rules = ChangeRules::at(self.moment(), None);
        changes::create(&mut connection, &data, &rules).await.expect("a permit").id
    }

    /// Permits like the only one there is, with all its notices, for `holder001@x.example` and on up to `count` in all:
    /// copied row by row, which is faster than recording each.
    pub async fn more_of_the_same(&self, count: usize) {
        let mut session = self.session().await;
        let copied = sqlx::raw_sql(AssertSqlSafe(format!(
            "BEGIN;
             CREATE TEMPORARY TABLE made ON COMMIT DROP AS
                 SELECT p.id AS like_permit, gen_random_uuid() AS permit, lpad(i::text, greatest(3, length(i::text)), '0') AS number
                 FROM permits p, generate_series(1, {count} - 1) AS i;
             CREATE TEMPORARY TABLE owed ON COMMIT DROP AS
                 SELECT m.*, n.id AS like_notice, gen_random_uuid() AS notice,
                        concat_ws(':', m.permit, n.notice_type, n.expires_on) AS key
                 FROM made m JOIN notices n ON n.permit_id = m.like_permit;
             INSERT INTO permits SELECT (jsonb_populate_record(p, jsonb_build_object(
                 'id', permit, 'permit_number', 'F-' || number, 'number_key', 'f-' || number,
                 'holder_email', 'holder' || number || '@x.example'))).*
                 FROM made JOIN permits p ON p.id = like_permit;
             INSERT INTO terms SELECT (jsonb_populate_record(t, jsonb_build_object('permit_id', permit))).*
                 FROM made JOIN terms t ON t.permit_id = like_permit;
             INSERT INTO expiry_periods SELECT (jsonb_populate_record(e, jsonb_build_object('permit_id', permit))).*
                 FROM made JOIN expiry_periods e ON e.permit_id = like_permit;
             INSERT INTO notices SELECT (jsonb_populate_record(n, jsonb_build_object(
                 'id', notice, 'permit_id', permit, 'notice_key', key))).*
                 FROM owed JOIN notices n ON n.id = like_notice;
             INSERT INTO deliveries SELECT (jsonb_populate_record(d, jsonb_build_object(
                 'id', gen_random_uuid(), 'notice_id', notice, 'recipient', 'holder' || number || '@x.example',
                 'recipient_key', 'holder' || number || '@x.example'))).*
                 FROM owed JOIN deliveries d ON d.notice_id = like_notice;
             COMMIT"
        )));
        copied.execute(&mut session).await.expect("more permits");
    }

    /// What scans that reach the database at `url` go by.
    pub fn scan_rules(&self, url: &str) -> ScanRules {
        ScanRules {
            direct_url: url.to_owned(),
            clock: Arc::clone(&self.clock) as _,
            zone: chrono_tz::UTC,
            window: None,
            claim_limit: 0,
            boot_id: Uuid::now_v7(),
            patience: PATIENCE,
            stop: CancellationToken::new(),
            heartbeat: permit_notifier::outgoing::heartbeat::Heartbeat::default(),
        }
    }

    pub async fn scan(&self) {
        let request = ScanRequest { scheduled_for: None, trigger: Trigger::Manual, as_of: None };
        run_once(&self.scan_rules(&self.url), request).await.expect("a scan");
    }

    pub async fn correct(&self, permit: Uuid, edit: impl FnOnce(&mut PermitData) + Send) {
        let mut connection = self.session().await;
        let rules = self.change_rules();
        changes::correct(&mut connection, permit, None, edit, &rules).await.expect("a correction");
    }

    pub async fn renew(&self, permit: Uuid, expires_on: NaiveDate) {
        let mut connection = self.session().await;
        let rules = self.change_rules();
        changes::renew(&mut connection, permit, None, expires_on, None, &rules).await.expect("a renewal");
    }

    pub async fn archive(&self, permit: Uuid) {
        let mut connection = self.session().await;
        let rules = self.change_rules();
        changes::archive(&mut connection, permit, None, &rules).await.expect("an archived permit");
    }

    pub async fn restore(&self, permit: Uuid) {
        let mut connection = self.session().await;
        let rules = self.change_rules();
        changes::restore(&mut connection, permit, None, &rules).await.expect("a permit that is not archived");
    }

    pub async fn suppress(&self, email: &str) {
        let mut connection = self.session().await;
        sqlx::query(
            "INSERT INTO suppressions (id, address, class, reason, source, created_at)
             VALUES ($1, $2, 'all', 'it complained', 'person', $3)",
        )
        .bind(Uuid::now_v7())
        .bind(address(email).key())
        .bind(self.clock.now())
        .execute(&mut connection)
        .await
        .expect("a suppression");
    }

    /// `expires-30d` is switched off.
    pub async fn remove_step(&self) {
        let off = |step: &Step| Step { enabled: step.notice_type.as_str() != "expires-30d", ..step.clone() };
        self.reschedule(Schedule::usual().steps().iter().map(off).collect()).await;
    }

    /// All steps are switched on again.
    pub async fn bring_step_back(&self) {
        self.reschedule(Schedule::usual().steps().to_vec()).await;
    }

    async fn reschedule(&self, steps: Vec<Step>) {
        let mut connection = self.session().await;
        let schedule = Schedule::new(steps).expect("a schedule");
        let rules = self.change_rules();
        changes::reschedule(&mut connection, FOOD, &schedule, &rules).await.expect("another schedule");
    }

    /// Lets it happen to a permit made by [`Postbox::permit`], whose holder has the address `email`.
    pub async fn happen(&self, event: Event, permit: Uuid, email: &str) {
        match event {
            Event::Renew => self.renew(permit, in_days(395)).await,
            Event::Revoke => self.correct(permit, |p| p.status = PermitStatus::Revoked).await,
            Event::Pause => self.correct(permit, |p| p.notices_paused_until = Some(in_days(5))).await,
            Event::Archive => self.archive(permit).await,
            Event::Readdress => self.correct(permit, |p| p.holder_email = Some(address(NEW_ADDRESS))).await,
            Event::ChangeDate => self.correct(permit, |p| p.expires_on = in_days(300)).await,
            Event::ChangeDateAndBack => {
                self.correct(permit, |p| p.expires_on = in_days(300)).await;
                self.correct(permit, |p| p.expires_on = in_days(30)).await;
            }
            Event::Rename => self.correct(permit, |p| "Village Bakery".clone_into(&mut p.holder_name)).await,
            Event::Suppress => self.suppress(email).await,
            Event::RemoveStep => self.remove_step().await,
        }
    }

    /// Makes every process look as if it had not renewed its row for an hour.
    pub async fn age_processes(&self) {
        self.execute("UPDATE processes SET renewed_at = renewed_at - interval '1 hour' WHERE ended_at IS NULL").await;
    }

    /// What waits for its next try, such as after a gate that got no answer, is due at once.
    pub async fn hurry(&self) {
        self.execute(
            "UPDATE deliveries SET next_attempt_at = created_at
             WHERE state = 'pending' AND lease_token IS NULL AND next_attempt_at > created_at",
        )
        .await;
    }

    /// The next pass may try the transport again, however short ago it failed.
    pub async fn breaker_lets_probe(&self) {
        self.execute("UPDATE transport SET paused_until = clock_timestamp() WHERE paused_until IS NOT NULL").await;
    }

    /// A statement without parameters in a session of its own.
    pub async fn execute(&self, statement: &'static str) {
        sqlx::raw_sql(statement).execute(&mut self.session().await).await.expect("the statement");
    }

    pub async fn count(&self, query: &'static str) -> i64 {
        sqlx::query_scalar(query).fetch_one(&mut self.session().await).await.expect("a count")
    }

    /// Begins a transaction in a session of its own that has run `statement`, which locks something.
    pub async fn lock(&self, statement: impl SqlSafeStr) -> Lock {
        let mut session = self.session().await;
        sqlx::raw_sql("BEGIN").execute(&mut session).await.expect("a transaction");
        sqlx::raw_sql(statement).execute(&mut session).await.expect("the lock");
        let pid = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut session).await.expect("its number");
        Lock { session, pid, watch: self.session().await }
    }
}

/// A lock, until it is released or dropped.
pub struct Lock {
    session: PgConnection,
    pid: i32,
    watch: PgConnection,
}

impl Lock {
    /// Does `work` while the lock is held, and fails as soon as anybody waits for it.
    pub async fn waited_for_by_nobody<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))";
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = tokio::time::sleep(Duration::from_millis(5)) => {}
            }
            let waiting: i64 =
                sqlx::query_scalar(waiting).bind(self.pid).fetch_one(&mut self.watch).await.expect("who waits");
            assert_eq!(waiting, 0, "somebody waits for the lock");
        }
    }

    pub async fn release(mut self) {
        sqlx::raw_sql("ROLLBACK").execute(&mut self.session).await.expect("the end of the lock");
        self.session.close().await.expect("the end of the session");
    }
}
