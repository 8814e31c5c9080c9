//! Files applied to a real database: what becomes of permits, terms and notices, and that it is all or nothing.

mod addresses;
mod complete;
mod contradictions;
mod crowd;
mod errors_file;
mod exported;
mod held;
mod killed;
mod notices;
mod patience;
mod permits;
mod sheets;
mod struck;
mod whole;

use std::path::{Path, PathBuf};

use chrono::NaiveDate;
use permit_notifier::files::{self, ImportError, ImportOptions, ImportReport, ImportRules, Input};
use permit_notifier::store::changes::{self, ChangeRules};
use permit_notifier::store::permits::{PermitData, find_permit, get_permit};
use permit_notifier::store::{Moment, migrate::migrate};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tempfile::TempDir;
use uuid::Uuid;

use crate::support::cluster::empty_database;

const HEADER: &str = "permit_number,permit_type,holder_name,holder_email,expires_on";
/// The day of every import that says no other.
const TODAY: &str = "2026-06-01";

fn day(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

fn moment(today: &str) -> Moment {
    Moment { now: format!("{today}T09:00:00Z").parse().unwrap(), today: day(today) }
}

fn rules() -> ImportRules<'static> {
    ImportRules {
        moment: moment(TODAY),
        zone: chrono_tz::UTC,
        window: None,
        claim_limit: 5000,
        catch_up: false,
        complete: false,
        dry_run: false,
        by: "import",
    }
}

fn catch_up() -> ImportRules<'static> {
    ImportRules { catch_up: true, ..rules() }
}

fn all_or_nothing() -> ImportOptions {
    ImportOptions::default()
}

fn keep_good_rows() -> ImportOptions {
    ImportOptions::new(Vec::new(), Vec::new(), None, None, true).unwrap()
}

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/samples/chicago_sample.csv")
}

/// A database with all migrations, and a folder for files.
struct Desk {
    url: String,
    folder: TempDir,
}

impl Desk {
    async fn new() -> Self {
        let url = empty_database().await;
        migrate(&url).await.unwrap();
        Self { url, folder: tempfile::tempdir().unwrap() }
    }

    async fn connect(&self) -> PgConnection {
        PgConnection::connect(&self.url).await.unwrap()
    }

    fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    async fn try_import(
        &self,
        path: &Path,
        options: &ImportOptions,
        rules: &ImportRules<'_>,
    ) -> Result<ImportReport, ImportError> {
        files::import(&self.url, Input::Path(path.to_owned()), options, rules, |_| {}).await
    }

    /// Imports lines below a header.
    async fn import(&self, header: &str, lines: &[&str], rules: &ImportRules<'_>) -> ImportReport {
        let path = self.file("permits.csv", &format!("{header}\n{}\n", lines.join("\n")));
        self.try_import(&path, &all_or_nothing(), rules).await.unwrap()
    }

    async fn permit(&self, number: &str) -> PermitData {
        let mut connection = self.connect().await;
        let id = self.id(number).await;
        get_permit(&mut connection, id).await.unwrap().data
    }

    async fn id(&self, number: &str) -> Uuid {
        find_permit(&mut self.connect().await, &number.to_lowercase()).await.unwrap().expect("the permit")
    }

    /// A change by hand, on the day of the imports.
    async fn correct(&self, number: &str, edit: impl FnOnce(&mut PermitData) + Send) {
        let id = self.id(number).await;
        let rules = ChangeRules::at(moment(TODAY), None);
        changes::correct(&mut self.connect().await, id, None, edit, &rules).await.unwrap();
    }

    async fn archive(&self, number: &str) {
        let id = self.id(number).await;
        let rules = ChangeRules::at(moment(TODAY), None);
        changes::archive(&mut self.connect().await, id, None, &rules).await.unwrap();
    }

    /// One value as text; empty for null.
    async fn ask(&self, query: &str) -> String {
        let text = format!("SELECT coalesce(({query})::text, '')");
        sqlx::query_scalar(AssertSqlSafe(text)).fetch_one(&mut self.connect().await).await.unwrap()
    }

    /// The rows of a query, each as `a,b,c`, apart by blanks.
    async fn rows(&self, query: &str) -> String {
        self.ask(&format!("SELECT string_agg(trim(both '()' from r::text), ' ') FROM ({query}) AS r")).await
    }

    /// The terms of a permit: number, start, end.
    async fn terms(&self, number: &str) -> String {
        let key = number.to_lowercase();
        self.rows(&format!(
            "SELECT t.number, t.effective_on, t.expires_on FROM terms t JOIN permits p ON p.id = t.permit_id
             WHERE p.number_key = '{key}' ORDER BY t.number"
        ))
        .await
    }

    /// Notices of a permit in order of their days: type, state, reason.
    async fn notices(&self, number: &str) -> String {
        let key = number.to_lowercase();
        self.rows(&format!(
            "SELECT n.notice_type, n.state, n.reason_code FROM notices n JOIN permits p ON p.id = n.permit_id
             WHERE p.number_key = '{key}' ORDER BY n.expires_on, n.due_on, n.notice_type"
        ))
        .await
    }

    /// Everything but the rows of imports.
    async fn dump(&self) -> String {
        let mut dump = String::new();
        for table in [
            "permit_types",
            "schedule_steps",
            "permits",
            "contacts",
            "terms",
            "expiry_periods",
            "notices",
            "deliveries",
            "import_rows",
            "import_permits",
            "import_rejected_rows",
        ] {
            let rows = format!("SELECT string_agg(t::text, E'\\n' ORDER BY t::text) FROM {table} t");
            dump.extend([table, "\n", &self.ask(&rows).await, "\n"]);
        }
        dump
    }

    /// Waits until a connection of an import waits for a lock.
    async fn until_import_waits(&self) {
        let mut connection = self.connect().await;
        for _ in 0..1500 {
            let waits: bool = sqlx::query_scalar(
                "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database()
                                AND application_name = 'permit-notifier bulk' AND wait_event_type = 'Lock')",
            )
            .fetch_one(&mut connection)
            .await
            .unwrap();
            if waits {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        panic!("the import never waited");
    }
}
