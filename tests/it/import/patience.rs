//! What is said while an import takes its time.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use permit_notifier::files::{self, Input, Phase, Progress};
use sqlx::Connection;
use tracing_subscriber::fmt::MakeWriter;

use super::{Desk, HEADER, all_or_nothing, rules};

/// What was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn who_waits_for_another_import_hears_so_and_no_log_repeats_its_statements() {
    let desk = Desk::new().await;
    let log = Log::default();
    let logged = tracing_subscriber::fmt().with_writer(log.clone()).finish();
    // While there is but one, what other threads log first decides what is logged here.
    let _second = tracing::Dispatch::new(tracing_subscriber::fmt().with_writer(std::io::sink).finish());
    let _logging = tracing::subscriber::set_default(logged);
    let mut other = desk.connect().await;
    let mut held = other.begin().await.unwrap();
    sqlx::query("SELECT pg_advisory_xact_lock(8099005319141944951)").execute(&mut *held).await.unwrap();
    let path = desk.file("one.csv", &format!("{HEADER}\n1,Food,Ann,,2026-12-31\n"));
    let mut told = Vec::new();
    let (options, rules) = (all_or_nothing(), rules());
    let import = files::import(&desk.url, Input::Path(path), &options, &rules, |at| told.push(at));
    let let_go = async {
        desk.until_import_waits().await;
        // As long as a statement must take to be called slow.
        tokio::time::sleep(Duration::from_millis(1200)).await;
        held.commit().await.unwrap();
    };
    let (report, ()) = tokio::join!(import, let_go);
    assert!(report.unwrap().committed);
    let of = |phase, done| Progress { phase, done, total: 1 };
    let end = [of(Phase::Applying, 0), of(Phase::Waiting, 0), of(Phase::Applying, 0), of(Phase::Applying, 1)];
    assert!(told.ends_with(&end), "{told:?}");
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("imported 1 row") && !log.contains("slow statement"), "{log}");
}

#[tokio::test]
async fn who_looks_through_a_large_file_says_how_much_of_it_is_done() {
    let desk = Desk::new().await;
    let row = |i: u32| format!("{i},Food,Ann,,2026-12-31,{}\n", "x".repeat(300_000));
    let rows: String = (0..20).map(row).collect();
    let path = desk.file("large.csv", &format!("{HEADER},notes of the office\n{rows}"));
    let size = std::fs::metadata(&path).unwrap().len();
    let mut told = Vec::new();
    let (options, rules) = (all_or_nothing(), rules());
    files::import(&desk.url, Input::Path(path), &options, &rules, |at| told.push(at)).await.unwrap();
    let looked: Vec<&Progress> = told.iter().filter(|at| at.phase == Phase::Looking).collect();
    assert!(looked.len() > 3 && looked[0].done == 0, "{told:?}");
    assert!(looked.is_sorted_by_key(|at| at.done) && looked.iter().all(|at| at.total == size), "{told:?}");
}
