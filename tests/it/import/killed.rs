//! Imports that end in the middle: nothing of them is left.

use std::env;
use std::process::{Command, Stdio};

use permit_notifier::files::{self, ImportError, Input};
use sqlx::{Connection, PgConnection};

use super::{Desk, HEADER, all_or_nothing, catch_up};

/// Set in a process that a test starts to import, and to be killed.
const CHILD_URL: &str = "IMPORT_CHILD_URL";
const CHILD_FILE: &str = "IMPORT_CHILD_FILE";

const LINES: [&str; 3] = ["1,Food,Ann,ann@example.org,2027-06-20", "2,Bar,Bob,,2026-06-20", "2,Bar,Bob,,2025-06-20"];

async fn known_permit() -> (Desk, String) {
    let desk = Desk::new().await;
    desk.import(HEADER, &["1,Food,Ann,ann@example.org,2026-06-20"], &catch_up()).await;
    let dump = desk.dump().await;
    (desk, dump)
}

/// Stops an import after its permits are written and before their terms, for as long as this lasts.
async fn stop_at_terms(connection: &mut PgConnection) -> sqlx::Transaction<'_, sqlx::Postgres> {
    let mut lock = connection.begin().await.unwrap();
    sqlx::query("LOCK TABLE terms IN SHARE MODE").execute(&mut *lock).await.unwrap();
    lock
}

async fn until_no_import(desk: &Desk) {
    let alive = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                 AND application_name = 'permit-notifier bulk'";
    for _ in 0..1500 {
        if desk.ask(alive).await == "0" {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("the connection of the import does not end");
}

/// The same import again finds what it would have found at first, and clears away what the dead one staged.
async fn then_all_is_as_ever(desk: &Desk) {
    let report = desk.import(HEADER, &LINES, &catch_up()).await;
    assert_eq!((report.permits_created, report.permits_renewed, report.history_terms), (1, 1, 1));
    assert_eq!(desk.ask("SELECT count(*) FROM import_rows").await, "0");
    assert_eq!(desk.ask("SELECT count(*) FROM imports").await, "2");
}

fn without_staging(dump: &str) -> &str {
    dump.split("import_rows").next().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_cut_while_applying_leaves_nothing() {
    let (desk, before) = known_permit().await;
    let path = desk.file("more.csv", &format!("{HEADER}\n{}\n", LINES.join("\n")));
    let mut other = desk.connect().await;
    let lock = stop_at_terms(&mut other).await;
    let (options, rules) = (all_or_nothing(), catch_up());
    let import = desk.try_import(&path, &options, &rules);
    let cut = async {
        desk.until_import_waits().await;
        let cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                   WHERE datname = current_database() AND application_name = 'permit-notifier bulk'";
        assert_eq!(desk.ask(cut).await, "1");
    };
    let (report, ()) = tokio::join!(import, cut);
    let error = report.unwrap_err();
    assert!(matches!(error, ImportError::Away(_)), "{error:?}");
    lock.rollback().await.unwrap();
    assert_eq!(without_staging(&desk.dump().await), without_staging(&before));
    then_all_is_as_ever(&desk).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_killed_while_applying_leaves_nothing() {
    let (desk, before) = known_permit().await;
    let path = desk.file("more.csv", &format!("{HEADER}\n{}\n", LINES.join("\n")));
    let mut other = desk.connect().await;
    let lock = stop_at_terms(&mut other).await;
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "import::killed::child_imports_until_killed", "--nocapture"])
        .env(CHILD_URL, &desk.url)
        .env(CHILD_FILE, &path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    desk.until_import_waits().await;
    child.kill().unwrap();
    child.wait().unwrap();
    lock.rollback().await.unwrap();
    until_no_import(&desk).await;
    assert_eq!(without_staging(&desk.dump().await), without_staging(&before));
    assert_eq!(desk.ask("SELECT count(*) FROM import_rows").await, "3", "its rows are staged and nobody's");
    then_all_is_as_ever(&desk).await;
}

/// Not a test by itself: the role that the test above gives to this program.
#[tokio::test(flavor = "multi_thread")]
async fn child_imports_until_killed() {
    let (Ok(url), Ok(file)) = (env::var(CHILD_URL), env::var(CHILD_FILE)) else { return };
    let _ = files::import(&url, Input::Path(file.into()), &all_or_nothing(), &catch_up(), |_| {}).await;
}
