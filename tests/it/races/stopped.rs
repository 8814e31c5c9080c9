//! A process that was stopped while it held the lock gives it back, and when it goes on it cannot write.

use std::{
    env,
    io::Read,
    process::{Child, Command, Stdio},
    sync::Arc,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use permit_notifier::{
    clock::ManualClock,
    scan::{PATIENCE, ScanRules, pass::run_once},
    store::scan_lock::ScanLock,
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    Blocker, NO_SCAN_LEFT, PARKED_SCAN,
    lost_lock::{LOCK_LAST_PERMIT, fill},
    until,
};
use crate::support::office::{TestOffice, expected_at};

/// Set in a process that scans this database and may be stopped.
const CHILD_URL: &str = "SCAN_CHILD_URL";
/// The instant that is now for that process.
const CHILD_NOW: &str = "SCAN_CHILD_NOW";

fn spawn(office: &TestOffice) -> Child {
    // Half a minute and a minute in the product; what a database URL says in its options stands.
    let limits = "&options[idle_in_transaction_session_timeout]=500ms&options[idle_session_timeout]=500ms";
    Command::new(env::current_exe().expect("our own program"))
        .args(["--exact", "races::stopped::child_scans_and_may_be_stopped", "--nocapture"])
        .env(CHILD_URL, format!("{}{limits}", office.url))
        .env(CHILD_NOW, office.clock.now().to_rfc3339())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child process")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_stopped_holder_gives_the_lock_back_and_writes_nothing_when_it_goes_on() {
    let office = TestOffice::new().await;
    fill(&office, 1500).await;
    office.days_pass(11);
    let blocker = Blocker::begin(&office, LOCK_LAST_PERMIT).await;
    let mut child = spawn(&office);
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid"));
    until(&office, PARKED_SCAN).await;
    kill(pid, Signal::SIGSTOP).expect("to stop the child");
    blocker.release().await;

    // The server ends the silent session, and only then is the lock free.
    until(&office, NO_SCAN_LEFT).await;
    let lock = ScanLock::try_take(&office.url).await.expect("a connection");
    lock.expect("the lock, given back by the server").release().await;

    office.clock.advance(chrono::TimeDelta::minutes(1));
    let report = run_once(&office.rules, expected_at(office.clock.now())).await.expect("the next scan");
    assert_eq!((report.counts.claimed, report.counts.already_claimed), (500, 1000));
    let before = office.dump().await;
    kill(pid, Signal::SIGCONT).expect("to let the child go on");
    let mut said = String::new();
    child.stdout.take().expect("its output").read_to_string(&mut said).expect("what it said");
    child.wait().expect("its end");
    assert!(said.contains("child-failed"), "{said}");
    assert_eq!(office.dump().await, before);
    let outcomes = office.text("SELECT outcome FROM scans ORDER BY started_at").await;
    assert_eq!(outcomes, ["abandoned", "completed"]);
    office.close().await;
}

/// Not a test by itself: the role that [`spawn`] gives to this program.
#[tokio::test]
async fn child_scans_and_may_be_stopped() {
    let (Ok(url), Ok(now)) = (env::var(CHILD_URL), env::var(CHILD_NOW)) else {
        return;
    };
    let now = now.parse().expect("an instant");
    let rules = ScanRules {
        direct_url: url,
        clock: Arc::new(ManualClock::new(now)),
        zone: chrono_tz::America::Chicago,
        window: None,
        claim_limit: 0,
        boot_id: Uuid::now_v7(),
        patience: PATIENCE,
        stop: CancellationToken::new(),
        heartbeat: permit_notifier::outgoing::heartbeat::Heartbeat::default(),
    };
    match run_once(&rules, expected_at(now)).await {
        Ok(report) => println!("child-completed {report:?}"),
        Err(error) => println!("child-failed {error}"),
    }
    std::process::exit(0);
}
