//! What a person can do with notices, on a real database: allowed and refused states, input, effects, and races.

mod advance;
mod audit;
mod copies;
mod holds;
mod in_part;
mod posted;
mod races;
mod release;
mod resolve;
mod retry;
mod states;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use permit_notifier::{
    domain::attempt::{Outcome, Phase, Transport},
    domain::permit::PermitStatus,
    store::{
        Moment, Result, StoreError,
        actions::ActionRules,
        changes::{self, ChangeRules},
        gate::{GateAnswer, GateRequest, open_gates},
        leases::{Kind, give_back, lease_due, read_leased},
        migrate::migrate,
        permit_types::create_permit_type,
        permits::PermitData,
        processes::{NewProcess, register_process},
        settle::{Settlement, settle},
    },
};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use uuid::Uuid;

use crate::support::cluster::empty_database;

/// The day of everything that says no other.
const TODAY: &str = "2026-06-01";
/// Thirty days on: a permit that expires then owes `expires-30d` today, which may go until 16 June.
const EXPIRES: &str = "2026-07-01";
const ZONE: chrono_tz::Tz = chrono_tz::Europe::Berlin;

fn day(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

fn moment(today: &str) -> Moment {
    Moment { now: format!("{today}T09:00:00Z").parse().unwrap(), today: day(today) }
}

fn on(today: &str) -> ActionRules<'static> {
    ActionRules { moment: moment(today), window: None, zone: ZONE }
}

fn today() -> ActionRules<'static> {
    on(TODAY)
}

/// A database with one permit type and the usual schedule.
struct Office {
    url: String,
}

/// A delivery that is through the gate.
#[derive(Clone, Copy)]
struct Flight {
    attempt_id: Uuid,
    delivery_id: Uuid,
}

impl Office {
    async fn new() -> Self {
        let url = empty_database().await;
        migrate(&url).await.unwrap();
        let office = Self { url };
        let code = "food".parse().unwrap();
        create_permit_type(&mut office.connect().await, &code, "Food", moment(TODAY).now).await.unwrap();
        office
    }

    async fn connect(&self) -> PgConnection {
        PgConnection::connect(&self.url).await.unwrap()
    }

    fn data(number: &str) -> PermitData {
        PermitData {
            permit_number: number.parse().unwrap(),
            permit_type: "food".to_owned(),
            status: PermitStatus::Active,
            holder_name: "Ann Baker".to_owned(),
            holder_email: Some(format!("holder-{}@example.com", number.to_lowercase()).parse().unwrap()),
            holder_language: "en".to_owned(),
            contacts: Vec::new(),
            site_address: None,
            description: None,
            issued_on: None,
            effective_on: None,
            expires_on: day(EXPIRES),
            notices_from: None,
            notices_paused_until: None,
            external_id: None,
            custom: serde_json::json!({}),
        }
    }

    /// A permit with `expires-30d` pending.
    async fn permit(&self, number: &str) -> Uuid {
        self.permit_with(number, |_| {}).await
    }

    async fn permit_with(&self, number: &str, edit: impl FnOnce(&mut PermitData)) -> Uuid {
        let mut data = Self::data(number);
        edit(&mut data);
        let rules = ChangeRules::at(moment(TODAY), None);
        changes::create(&mut self.connect().await, &data, &rules).await.unwrap().id
    }

    /// The one notice of a permit that is due today.
    async fn notice(&self, permit: Uuid) -> Uuid {
        self.notice_of(permit, "expires-30d").await
    }

    async fn notice_of(&self, permit: Uuid, notice_type: &str) -> Uuid {
        let query = format!("SELECT id FROM notices WHERE permit_id = '{permit}' AND notice_type = '{notice_type}'");
        self.ask(&query).await.parse().unwrap()
    }

    /// A pending notice of a permit of its own.
    async fn pending(&self, number: &str) -> Uuid {
        let permit = self.permit(number).await;
        self.notice(permit).await
    }

    async fn correct_on(&self, today: &str, permit: Uuid, edit: impl FnOnce(&mut PermitData) + Send) {
        let rules = ChangeRules::at(moment(today), None);
        changes::correct(&mut self.connect().await, permit, None, edit, &rules).await.unwrap();
    }

    async fn permit_of(&self, notice: Uuid) -> Uuid {
        self.ask(&format!("SELECT permit_id FROM notices WHERE id = '{notice}'")).await.parse().unwrap()
    }

    /// Brings the pending delivery of a notice through the gate, as a dispatcher of its own does.
    async fn send(&self, notice: Uuid) -> Flight {
        self.try_send(notice, TODAY).await.unwrap()
    }

    async fn try_send(&self, notice: Uuid, today: &str) -> std::result::Result<Flight, GateAnswer> {
        let mut connection = self.connect().await;
        let boot_id = self.boot(&mut connection).await;
        let mut tries = 0;
        let request = loop {
            // Somebody whose connection is just closing may hold the row a moment longer; a lease does not wait.
            match self.request(&mut connection, boot_id, notice, moment(today).now).await {
                Some(request) => break request,
                None => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
            }
            tries += 1;
            assert!(tries < 500, "a lease");
        };
        let flight = Flight { attempt_id: request.attempt_id, delivery_id: request.delivery_id };
        let answers = open_gates(&mut connection, boot_id, &[request], moment(today)).await.unwrap();
        match answers[0] {
            GateAnswer::Open(_) => Ok(flight),
            other => Err(other),
        }
    }

    async fn boot(&self, connection: &mut PgConnection) -> Uuid {
        let boot_id = Uuid::new_v4();
        let process = NewProcess {
            boot_id,
            host: "test".to_owned(),
            roles: "dispatch".to_owned(),
            fingerprint: String::new(),
            lease_seconds: 600,
        };
        register_process(connection, &process).await.unwrap();
        boot_id
    }

    /// Leases a delivery of the notice and makes what a sender would bring to the gate.
    async fn request(
        &self,
        connection: &mut PgConnection,
        boot_id: Uuid,
        notice: Uuid,
        now: DateTime<Utc>,
    ) -> Option<GateRequest> {
        let leases = lease_due(connection, boot_id, now, Kind::Usual, 1000).await.unwrap();
        let read = read_leased(connection, &leases).await.unwrap();
        let mine = read.into_iter().flatten().find(|work| work.notice_id == notice);
        let is_mine = |id: Uuid| mine.as_ref().is_some_and(|mine| mine.delivery_id == id);
        let others: Vec<_> = leases.into_iter().filter(|lease| !is_mine(lease.delivery_id)).collect();
        give_back(connection, &others, None).await.unwrap();
        let mine = mine?;
        let key = mine.key.to_string();
        let message_id = format!("<{}.{}.{}@example.org>", key.replace(':', "."), mine.recipient.role, mine.copy);
        Some(GateRequest {
            delivery_id: mine.delivery_id,
            token: mine.token,
            permit_id: mine.key.permit_id,
            version: mine.version,
            type_version: mine.type_version,
            today: now.date_naive(),
            attempt_id: Uuid::now_v7(),
            transport: Transport::File,
            message_id,
            payload_sha256: vec![7; 32],
            content: b"text\r\n".to_vec(),
            probe: None,
        })
    }

    async fn settle(&self, flight: Flight, outcome: Outcome) {
        let settlement = Settlement {
            attempt_id: flight.attempt_id,
            delivery_id: flight.delivery_id,
            outcome,
            transport_fault: false,
            reason: None,
            phase: Phase::Dot,
            smtp_code: None,
            enhanced_code: None,
            response: Some("as told".to_owned()),
            retry_after: None,
            probe: None,
        };
        let mut connection = self.connect().await;
        // Somebody else may be at the rows just now.
        while settle(&mut connection, std::slice::from_ref(&settlement), 16, moment(TODAY).now).await.unwrap() == [None]
        {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }

    /// A notice of a permit of its own whose one attempt ended so.
    async fn ended(&self, number: &str, outcome: Outcome) -> Uuid {
        let notice = self.pending(number).await;
        let flight = self.send(notice).await;
        self.settle(flight, outcome).await;
        notice
    }

    /// One value as text; empty for null.
    async fn ask(&self, query: &str) -> String {
        let text = format!("SELECT coalesce(({query})::text, '')");
        sqlx::query_scalar(AssertSqlSafe(text)).fetch_one(&mut self.connect().await).await.unwrap()
    }

    async fn run(&self, statement: &str) {
        sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut self.connect().await).await.unwrap();
    }

    /// State and reason code of a notice.
    async fn state(&self, notice: Uuid) -> String {
        let query = format!("SELECT trim(concat_ws(' ', state, reason_code)) FROM notices WHERE id = '{notice}'");
        self.ask(&query).await
    }

    /// Its copies as `recipient_key#copy state reason`, in order.
    async fn copies(&self, notice: Uuid) -> String {
        self.ask(&format!(
            "SELECT string_agg(concat_ws(' ', recipient_key || '#' || copy, state, reason_code), ', ' ORDER BY id)
             FROM deliveries WHERE notice_id = '{notice}'"
        ))
        .await
    }

    /// Its attempts as `number outcome resolution`, in order.
    async fn attempts(&self, notice: Uuid) -> String {
        self.ask(&format!(
            "SELECT string_agg(concat_ws(' ', a.number, a.outcome, a.resolution), ', ' ORDER BY a.id)
             FROM attempts a JOIN deliveries d ON d.id = a.delivery_id WHERE d.notice_id = '{notice}'"
        ))
        .await
    }

    async fn next_attempt(&self, notice: Uuid) -> String {
        self.ask(&format!(
            "SELECT min(next_attempt_at AT TIME ZONE 'UTC') FROM deliveries
             WHERE notice_id = '{notice}' AND state = 'pending'"
        ))
        .await
    }
}

/// The sentence of a refusal because of the state.
#[track_caller]
fn wrong_state<T: std::fmt::Debug>(result: Result<T>) -> String {
    match result {
        Err(StoreError::WrongState { why, .. }) => why,
        other => panic!("no wrong state: {other:?}"),
    }
}

/// The field that was refused.
#[track_caller]
fn invalid<T: std::fmt::Debug>(result: Result<T>) -> &'static str {
    match result {
        Err(StoreError::Invalid { field, .. }) => field,
        other => panic!("not invalid: {other:?}"),
    }
}

fn hours(n: i64) -> TimeDelta {
    TimeDelta::hours(n)
}
