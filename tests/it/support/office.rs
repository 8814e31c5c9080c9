//! An office with a migrated database of its own and a clock that stands still, told in verbs what to do.

use std::sync::{Arc, OnceLock};

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;
use permit_notifier::{
    clock::ManualClock,
    domain::{
        calendar::day_in,
        notice::NoticeClass,
        permit::PermitStatus,
        schedule::{Schedule, Step},
        window::SendWindow,
    },
    scan::{PATIENCE, ScanReport, ScanRequest, ScanRules, pass::run_once},
    store::{
        Moment, Result,
        changes::{self, ChangeRules},
        connect::pool,
        migrate::migrate,
        permit_types::create_permit_type,
        permits::{Contact, Permit, PermitData, get_permit},
        scans::Trigger,
    },
};
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool, pool::PoolConnection};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::cluster::{cluster, database_from};

/// The one permit type that every office starts with; it has the usual schedule.
pub const FOOD: &str = "food";

/// A database, a clock, and what scans and changes go by. Ends with [`TestOffice::close`].
pub struct TestOffice {
    pub url: String,
    pub clock: Arc<ManualClock>,
    pub pool: PgPool,
    pub rules: ScanRules,
    /// Days from now on which changes wait, and the like, as [`ChangeRules`] has them.
    pub delay: TimeDelta,
    pub claim_limit: u64,
    closed: bool,
}

impl TestOffice {
    /// Wednesday, 10 March 2027, nine in the morning in Chicago, two days before its clocks change.
    pub async fn new() -> Self {
        Self::at("2027-03-10T15:00:00Z", chrono_tz::America::Chicago).await
    }

    pub async fn at(now: &str, zone: Tz) -> Self {
        let url = database_from(template()).await;
        let clock = Arc::new(ManualClock::new(now.parse().expect("an instant")));
        let rules = ScanRules {
            direct_url: url.clone(),
            clock: clock.clone(),
            zone,
            window: None,
            claim_limit: 0,
            boot_id: Uuid::now_v7(),
            patience: PATIENCE,
            stop: CancellationToken::new(),
            heartbeat: permit_notifier::outgoing::heartbeat::Heartbeat::default(),
        };
        let pool = pool(&url, 12).expect("a pool");
        Self { url, clock, pool, rules, delay: TimeDelta::zero(), claim_limit: 0, closed: false }
    }

    /// Checks the whole database, and removes it.
    pub async fn close(mut self) {
        self.assert_consistent().await;
        self.closed = true;
        self.pool.close().await;
        let name = self.url.split(['/', '?']).nth(3).expect("its name").to_owned();
        let mut connection = PgConnection::connect(&cluster().url_for("permits")).await.expect("the test cluster");
        let statement = format!("DROP DATABASE {name} WITH (FORCE)");
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await.expect("the end of the database");
    }

    pub fn today(&self) -> NaiveDate {
        day_in(self.clock.now(), self.rules.zone)
    }

    pub fn in_days(&self, days: i64) -> NaiveDate {
        self.today() + TimeDelta::days(days)
    }

    pub fn days_pass(&self, days: i64) {
        self.clock.advance(TimeDelta::days(days));
    }

    pub fn now_is(&self, now: &str) {
        self.clock.set(now.parse().expect("an instant"));
    }

    pub fn moment(&self) -> Moment {
        Moment { now: self.clock.now(), today: self.today() }
    }

    pub fn change_rules(&self) -> ChangeRules<'_> {
        ChangeRules {
            delay: self.delay,
            claim_limit: self.claim_limit,
            ..ChangeRules::at(self.moment(), self.rules.window.as_ref())
        }
    }

    /// Mail may go only then.
    pub fn set_window(&mut self, text: &str) {
        self.rules.window = Some(text.parse::<SendWindow>().expect("a window"));
    }

    pub async fn connection(&self) -> PoolConnection<sqlx::Postgres> {
        self.pool.acquire().await.expect("a connection")
    }

    // Changes.

    /// An active permit of a holder with an address, expiring in a year unless `edit` says otherwise.
    pub fn permit_data(&self, edit: impl FnOnce(&mut PermitData)) -> PermitData {
        let mut data = PermitData {
            permit_number: format!("F-{}", Uuid::now_v7()).parse().expect("a number"),
            permit_type: FOOD.to_owned(),
            status: PermitStatus::Active,
            holder_name: "Ada Holder".to_owned(),
            holder_email: Some("ada@example.org".parse().expect("an address")),
            holder_language: "en".to_owned(),
            contacts: Vec::new(),
            site_address: None,
            description: None,
            issued_on: None,
            effective_on: None,
            expires_on: self.in_days(365),
            notices_from: None,
            notices_paused_until: None,
            external_id: None,
            custom: serde_json::json!({}),
        };
        edit(&mut data);
        data
    }

    pub async fn try_create(&self, edit: impl FnOnce(&mut PermitData)) -> Result<Permit> {
        changes::create(&mut *self.connection().await, &self.permit_data(edit), &self.change_rules()).await
    }

    pub async fn create_permit(&self, edit: impl FnOnce(&mut PermitData)) -> Uuid {
        self.try_create(edit).await.expect("a new permit").id
    }

    /// A permit that expires in so many days.
    pub async fn permit_expiring_in(&self, days: i64) -> Uuid {
        self.create_permit(|p| p.expires_on = self.in_days(days)).await
    }

    pub async fn try_correct(
        &self,
        permit: Uuid,
        seen: Option<i64>,
        edit: impl FnOnce(&mut PermitData) + Send,
    ) -> Result<Permit> {
        changes::correct(&mut *self.connection().await, permit, seen, edit, &self.change_rules()).await
    }

    pub async fn correct(&self, permit: Uuid, edit: impl FnOnce(&mut PermitData) + Send) -> Permit {
        self.try_correct(permit, None, edit).await.expect("a correction")
    }

    pub async fn set_status(&self, permit: Uuid, status: PermitStatus) {
        self.correct(permit, |p| p.status = status).await;
    }

    pub async fn pause(&self, permit: Uuid, until: Option<NaiveDate>) {
        self.correct(permit, |p| p.notices_paused_until = until).await;
    }

    pub async fn try_renew(&self, permit: Uuid, expires_on: NaiveDate) -> Result<Permit> {
        changes::renew(&mut *self.connection().await, permit, None, expires_on, None, &self.change_rules()).await
    }

    pub async fn renew(&self, permit: Uuid, expires_on: NaiveDate) -> Permit {
        self.try_renew(permit, expires_on).await.expect("a renewal")
    }

    pub async fn archive(&self, permit: Uuid) -> Permit {
        let connection = &mut *self.connection().await;
        changes::archive(connection, permit, None, &self.change_rules()).await.expect("archiving")
    }

    pub async fn restore(&self, permit: Uuid) -> Permit {
        let connection = &mut *self.connection().await;
        changes::restore(connection, permit, None, &self.change_rules()).await.expect("restoring")
    }

    pub async fn permit(&self, permit: Uuid) -> Permit {
        get_permit(&mut *self.connection().await, permit).await.expect("the permit")
    }

    pub async fn create_type(&self, code: &str, schedule: Schedule) {
        let mut connection = self.connection().await;
        let code = code.parse().expect("a code");
        create_permit_type(&mut connection, &code, code.as_str(), self.clock.now()).await.expect("a type");
        drop(connection);
        self.reschedule(code.as_str(), schedule).await;
    }

    pub async fn reschedule(&self, code: &str, schedule: Schedule) {
        let connection = &mut *self.connection().await;
        changes::reschedule(connection, code, &schedule, &self.change_rules()).await.expect("a changed schedule");
    }

    /// `class` is `all` or `courtesy`.
    pub async fn suppress(&self, address: &str, class: &str) {
        let now = self.clock.now().to_rfc3339();
        self.sql(&format!(
            "INSERT INTO suppressions VALUES ('{}', '{address}', '{class}', 'it bounced', 'bounce', '{now}')",
            Uuid::now_v7()
        ))
        .await;
    }

    // Scans.

    pub async fn try_scan(&self, rules: &ScanRules, request: ScanRequest) -> Result<ScanReport> {
        run_once(rules, request).await
    }

    pub async fn scan(&self) -> ScanReport {
        self.try_scan(&self.rules, by_hand(None)).await.expect("a scan")
    }

    pub async fn scan_as_of(&self, day: NaiveDate) -> ScanReport {
        self.try_scan(&self.rules, by_hand(Some(day))).await.expect("a scan")
    }

    /// Plain SQL of a test's own: several statements, no result.
    pub async fn sql(&self, text: &str) {
        self.try_sql(text).await.unwrap_or_else(|error| panic!("{error}: {text}"));
    }

    pub async fn try_sql(&self, text: &str) -> Result<(), sqlx::Error> {
        sqlx::raw_sql(AssertSqlSafe(text)).execute(&mut *self.connection().await).await.map(|_| ())
    }

    pub async fn text(&self, query: &str) -> Vec<String> {
        let found = sqlx::query_scalar(AssertSqlSafe(query)).fetch_all(&mut *self.connection().await).await;
        found.unwrap_or_else(|error| panic!("{error}: {query}"))
    }
}

impl Drop for TestOffice {
    fn drop(&mut self) {
        assert!(
            self.closed || std::thread::panicking(),
            "a test ends with `office.close()`, which checks the database"
        );
    }
}

/// What a person asks for.
pub fn by_hand(as_of: Option<NaiveDate>) -> ScanRequest {
    ScanRequest { scheduled_for: None, trigger: Trigger::Command, as_of }
}

/// What the loop asks for.
pub fn expected_at(time: DateTime<Utc>) -> ScanRequest {
    ScanRequest { scheduled_for: Some(time), trigger: Trigger::Schedule, as_of: None }
}

/// Somebody besides the holder.
pub fn contact(role: &str, address: &str) -> Contact {
    Contact {
        name: format!("the {role}"),
        email: Some(address.parse().expect("an address")),
        role: role.to_owned(),
        language: "en".to_owned(),
    }
}

/// A statutory step.
pub fn step(name: &str, offset_days: i32) -> Step {
    Step {
        notice_type: name.parse().expect("a notice type"),
        offset_days: Some(offset_days),
        class: NoticeClass::Statutory,
        late_by_days: 7,
        enabled: true,
    }
}

/// The usual schedule after `edit`.
pub fn usual_but(edit: impl FnOnce(&mut Vec<Step>)) -> Schedule {
    let mut steps = Schedule::usual().steps().to_vec();
    edit(&mut steps);
    Schedule::new(steps).expect("a schedule")
}

/// A migrated database with one permit type, made once and copied for every office.
fn template() -> &'static str {
    static TEMPLATE: OnceLock<String> = OnceLock::new();
    TEMPLATE.get_or_init(|| {
        // A thread of its own, because a runtime cannot block on another one.
        let made = std::thread::spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let url = super::cluster::empty_database().await;
                migrate(&url).await.expect("the migrations");
                let mut connection = PgConnection::connect(&url).await.expect("the template");
                let at = "2026-01-01T00:00:00Z".parse().expect("an instant");
                let code = FOOD.parse().expect("a code");
                create_permit_type(&mut connection, &code, "Food", at).await.expect("a permit type");
                // A copy is another database than the one on record; these are all as good as new.
                let forget = "DELETE FROM memory_marks";
                sqlx::raw_sql(forget).execute(&mut connection).await.expect("no marks on record");
                connection.close().await.expect("the end of the connection");
                url.split(['/', '?']).nth(3).expect("its name").to_owned()
            })
        });
        made.join().expect("the template database")
    })
}
