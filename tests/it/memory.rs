//! A memory that went back: whatever was sent after the state that is there now must not go again by itself.

use std::{path::PathBuf, process::Command};

use chrono::TimeDelta;
use nix::sys::signal::Signal;
use permit_notifier::{
    domain::permit::PermitStatus,
    store::{
        Moment,
        changes::{ChangeRules, correct},
        memory::{Mark, compare_marks, confirm, difference, hold_pending, record_marks, went_back},
        permits::PermitData,
    },
};
use serde_json::Value;
use sqlx::{Connection, PgConnection};

use crate::support::{
    cluster::empty_database,
    postbox::{Postbox, mailer::Point},
    program::{Desk, get},
};

const HEAD: &str = "permit_number,permit_type,holder_name,holder_email,expires_on\n";
/// A day on which more falls due than on the first one.
const LATER: &str = "2026-12-10";

/// An office on that database, with its own folder for mail.
fn desk(url: &str) -> Desk {
    let desk = Desk::new().with("DATABASE_URL", url).with("CLOCK", "2026-12-01T09:00:00Z");
    desk.with("MAIL_FROM", "Office <office@example.org>")
}

/// Loads permits whose notices are claimed at once.
fn import(desk: &Desk, rows: &str) -> u64 {
    std::fs::write(desk.folder().join("permits.csv"), format!("{HEAD}{rows}")).expect("written");
    desk.json(&["import", "permits.csv", "--catch-up", "--json"])["notices_claimed"].as_u64().expect("a number")
}

fn accepted(desk: &Desk, day: &str) -> u64 {
    let sent = desk.json(&["dispatch", "--as-of", day, "--json"]);
    assert_eq!(sent["transport"], "ok", "{sent}");
    sent["accepted"].as_u64().expect("a number")
}

/// The doctor's line about the memory.
fn doctor(desk: &Desk) -> String {
    let done = desk.run(&["doctor"]);
    let line = done.out.lines().find(|line| line.contains(" memory: "));
    line.unwrap_or_else(|| panic!("{done:?}")).to_owned()
}

fn mails(desk: &Desk) -> usize {
    std::fs::read_dir(desk.data().join("mail")).map_or(0, Iterator::count)
}

/// A program that came with the server: one of another version may not understand it.
async fn postgres_program(url: &str, name: &str) -> Command {
    let folder = texts(url, "SELECT setting FROM pg_config WHERE name = 'BINDIR'").await;
    Command::new(PathBuf::from(&folder[0]).join(name))
}

async fn dump(url: &str) -> PathBuf {
    let file = crate::support::run_folder::run_folder().join(format!("dump-{}.sql", uuid::Uuid::now_v7()));
    let done = postgres_program(url, "pg_dump").await.arg("--file").arg(&file).arg(url).status().expect("pg_dump");
    assert!(done.success());
    file
}

/// A new database with what was dumped.
async fn restore(file: &PathBuf) -> String {
    let url = empty_database().await;
    let mut psql = postgres_program(&url, "psql").await;
    psql.args(["-q", "-X", "-v", "ON_ERROR_STOP=1", "-o", "/dev/null", "-f"]).arg(file).arg(&url);
    assert!(psql.status().expect("psql").success());
    url
}

async fn texts(url: &str, query: &'static str) -> Vec<String> {
    let mut connection = PgConnection::connect(url).await.expect("a connection");
    sqlx::query_scalar(query).fetch_all(&mut connection).await.expect("the texts")
}

/// An office that sent two, was dumped with two more pending, and then sent these and two of a later day.
async fn restored() -> (Desk, String) {
    let url = empty_database().await;
    let before = desk(&url);
    assert_eq!(import(&before, "1,Food,Ada,ada@example.org,2026-12-31\n2,Food,Bo,bo@example.org,2026-12-31\n"), 2);
    assert_eq!(accepted(&before, "2026-12-01"), 2);
    // Of these two are pending now, and two fall due on the later day.
    let rows = "3,Food,Cy,cy@example.org,2026-12-31\n4,Food,Di,di@example.org,2026-12-31\n";
    assert_eq!(import(&before, rows), 2);
    std::fs::write(
        before.folder().join("later.csv"),
        format!("{HEAD}5,Food,Ed,ed@example.org,2026-12-24\n6,Food,Flo,flo@example.org,2026-12-24\n"),
    )
    .expect("written");
    before.json(&["import", "later.csv", "--json"]);
    let file = dump(&url).await;
    assert_eq!(accepted(&before, "2026-12-01"), 2);
    assert_eq!(before.json(&["scan", "--as-of", LATER, "--json"])["claimed"], 2);
    assert_eq!(accepted(&before, LATER), 2);
    assert_eq!(mails(&before), 6);
    assert!(doctor(&before).starts_with("ok"));
    let url = restore(&file).await;
    (desk(&url), url)
}

#[tokio::test]
async fn a_restored_dump_mails_nothing_by_itself() {
    let (desk, url) = restored().await;
    let found = doctor(&desk);
    assert!(found.starts_with("fault") && found.contains("oid of the table of notices was"), "{found}");
    let done = desk.run(&["dispatch", "--json"]);
    let sent: Value = serde_json::from_str(&done.out).expect("one object");
    assert_eq!((done.code, &sent["transport"], &sent["accepted"]), (Some(0), &Value::from("paused"), &Value::from(0)));
    assert!(done.err.contains("permit-notifier resume --reason TEXT"), "{done:?}");
    let said = desk.run(&["dispatch"]);
    assert!(said.out.contains("permit-notifier resume --reason TEXT"), "{said:?}");
    let looked = desk.json(&["scan", "--as-of", LATER, "--dry-run", "--json"]);
    assert_eq!((&looked["claimed"], &looked["held"]), (&Value::from(2), &Value::from(2)), "{looked}");
    let scanned = desk.run(&["scan", "--as-of", LATER]);
    assert_eq!(scanned.code, Some(0));
    assert!(
        scanned.out.contains("2 claimed (2 held)") && scanned.out.contains("permit-notifier resume"),
        "{scanned:?}"
    );
    let held = "SELECT DISTINCT n.state || ' ' || d.state || ' ' || n.reason_code || ' ' || d.reason_code
                FROM notices n JOIN deliveries d ON d.notice_id = n.id WHERE d.state NOT IN ('sent')";
    assert_eq!(texts(&url, held).await, ["held held memory_went_back memory_went_back"]);
    desk.json(&["dispatch", "--as-of", LATER, "--json"]);
    assert_eq!(mails(&desk), 0);
}

#[tokio::test]
async fn after_resume_the_work_goes_on_and_what_may_have_been_sent_waits_for_a_release() {
    let (desk, url) = restored().await;
    assert_eq!(desk.run(&["resume"]).code, Some(2), "a reason is needed");
    assert_eq!(desk.run(&["resume", "--reason", " "]).code, Some(1), "in words");
    assert!(doctor(&desk).starts_with("fault"));
    // The scan that holds is run by `resume` itself, if nobody ran one.
    let desk = desk.with("CLOCK", "2026-12-10T09:00:00Z");
    let confirmed = desk.run(&["resume", "--reason", "restored after the fire"]);
    assert_eq!(confirmed.code, Some(0), "{confirmed:?}");
    assert!(
        confirmed.out.contains("4 notices are held") && confirmed.out.contains("release --restored"),
        "{confirmed:?}"
    );
    assert!(doctor(&desk).starts_with("ok"));
    assert_eq!(
        texts(&url, "SELECT concat_ws(' ', held, reason) FROM memory_lapses").await,
        ["2 restored after the fire"]
    );
    desk.json(&["scan", "--json"]);
    assert_eq!(accepted(&desk, LATER), 0, "what may have been sent is not sent again");
    assert_eq!(import(&desk, "7,Food,Gil,gil@example.org,2026-12-31\n"), 1);
    assert_eq!(accepted(&desk, LATER), 1, "what is new goes");
    assert_eq!(mails(&desk), 1);
    let released = desk.run(&["release", "--restored", "--reason", "the log of the mail server knows none of them"]);
    assert!(released.out.contains("Released 4 notices"), "{released:?}");
    assert_eq!(accepted(&desk, LATER), 4, "a person said so");
    let again = desk.run(&["resume", "--reason", "once more"]);
    assert!(again.code == Some(0) && again.out.contains("nothing to confirm"), "{again:?}");
}

#[tokio::test]
async fn a_service_says_so_once_and_what_a_scan_held_is_released_with_it() {
    let (desk, _) = restored().await;
    let desk = desk.with("CLOCK", "2026-12-10T09:00:00Z").with("LOG_FORMAT", "json");
    let mut serve = desk.start(&["serve"]);
    let line = serve.wait_for("This is not the database that wrote its memory");
    assert!(line.contains("\"ERROR\""), "{line}");
    let listening = serve.wait_for("Listening on http://");
    let url = listening.split_whitespace().last().expect("an address");
    serve.wait_for("scan completed");
    let alarm = |url: &str| {
        let (_, metrics) = get(&format!("{url}metrics"));
        let line =
            metrics.lines().find(|line| line.contains("kind=\"memory_went_back\"")).expect("the alarm").to_owned();
        line.ends_with(" 1")
    };
    assert!(alarm(url));
    // By hand, after the one that the service runs as soon as it starts.
    let scans = desk.json(&["scan", "--json"]);
    assert_eq!(scans["held"], 0, "nothing is claimed twice: {scans}");
    let resumed = desk.run(&["resume", "--reason", "restored"]);
    assert!(resumed.out.contains("4 notices are held"), "{resumed:?}");
    serve.signal(Signal::SIGTERM);
    assert_eq!(serve.wait(), Some(0));
    let told = serve.rest().into_iter().filter(|line| line.contains("This is not the database")).count();
    assert_eq!(told, 1, "once, and the doctor and the metrics from then on");
    assert_eq!(mails(&desk), 0);
}

#[tokio::test]
async fn what_a_person_releases_before_it_is_confirmed_goes_with_the_confirmation() {
    let (desk, url) = restored().await;
    let desk = desk.with("CLOCK", "2026-12-10T09:00:00Z");
    let scan = desk.json(&["scan", "--json"]);
    let id = scan["id"].as_str().expect("an id");
    let released = desk.run(&["release", "--scan", id, "--reason", "never sent"]);
    assert!(released.out.contains("Released 2 notices"), "{released:?}");
    desk.json(&["dispatch", "--as-of", LATER, "--json"]);
    assert_eq!(mails(&desk), 0, "not before");
    desk.run(&["resume", "--reason", "looked at"]);
    assert_eq!(accepted(&desk, LATER), 2);
    let held = texts(&url, "SELECT DISTINCT state FROM notices WHERE reason_code = 'memory_went_back'").await;
    assert_eq!(held, ["held"], "the others stay");
}

#[tokio::test]
async fn all_that_was_held_is_not_released_before_it_is_confirmed() {
    let (desk, url) = restored().await;
    let desk = desk.with("CLOCK", "2026-12-10T09:00:00Z");
    desk.json(&["scan", "--json"]);
    for end in [&["--reason", "too early"][..], &["--reason", "too early", "--cancel"]] {
        let refused = desk.run(&[&["release", "--restored"][..], end].concat());
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.err.contains("first confirm with permit-notifier resume --reason TEXT"), "{refused:?}");
    }
    let held = "SELECT state || ' ' || count(*) FROM notices WHERE reason_code = 'memory_went_back' GROUP BY state";
    assert_eq!(texts(&url, held).await, ["held 4"]);
    desk.run(&["resume", "--reason", "looked at"]);
    assert_eq!(accepted(&desk, LATER), 0);
    let released = desk.run(&["release", "--restored", "--reason", "the log knows none"]);
    assert!(released.out.contains("Released 4 notices"), "{released:?}");
}

#[tokio::test]
async fn what_is_changed_in_a_restored_database_stays_held_and_so_does_what_a_change_makes() {
    let (desk, url) = restored().await;
    let now: chrono::DateTime<chrono::Utc> = "2026-12-10T09:00:00Z".parse().expect("a time");
    let rules = ChangeRules::at(Moment { now, today: now.date_naive() }, None);
    let mut connection = PgConnection::connect(&url).await.expect("a connection");
    let ids: Vec<uuid::Uuid> =
        sqlx::query_scalar("SELECT id FROM permits ORDER BY permit_number").fetch_all(&mut connection).await.unwrap();
    // It may have fallen due, and gone, since the backup.
    let due = |data: &mut PermitData| data.expires_on = "2026-12-24".parse().expect("a day");
    correct(&mut connection, ids[0], None, due, &rules).await.expect("corrected");
    let desk = desk.with("CLOCK", "2026-12-10T09:00:00Z");
    desk.json(&["scan", "--json"]);
    for until in [Some(rules.moment.today), None] {
        let pause = |data: &mut PermitData| data.notices_paused_until = until;
        correct(&mut connection, ids[2], None, pause, &rules).await.expect("corrected");
        let status = if until.is_some() { PermitStatus::Suspended } else { PermitStatus::Active };
        correct(&mut connection, ids[4], None, |data| data.status = status, &rules).await.expect("corrected");
    }
    let resumed = desk.run(&["resume", "--reason", "looked at"]);
    assert!(resumed.out.contains("5 notices are held"), "{resumed:?}");
    assert_eq!(accepted(&desk, LATER), 0, "nothing goes twice");
    let held = "SELECT DISTINCT n.state || ' ' || n.reason_code || ' ' || d.state FROM notices n
                JOIN deliveries d ON d.notice_id = n.id WHERE d.state NOT IN ('sent')";
    assert_eq!(texts(&url, held).await, ["held memory_went_back held"]);
}

#[tokio::test]
async fn letters_wait_for_a_person_as_before_and_end_with_no_mail() {
    let url = empty_database().await;
    let before = desk(&url);
    assert_eq!(import(&before, "1,Food,Ada,ada@example.org,2026-12-31\n2,Food,Lena,,2026-12-31\n"), 2);
    // Its letter falls due after the backup.
    std::fs::write(before.folder().join("later.csv"), format!("{HEAD}3,Food,Lou,,2026-12-24\n")).expect("written");
    before.json(&["import", "later.csv", "--json"]);
    let url = restore(&dump(&url).await).await;
    let desk = desk(&url).with("CLOCK", "2026-12-10T09:00:00Z");
    let resumed = desk.run(&["resume", "--reason", "restored"]);
    assert!(resumed.out.contains("2 notices are held"), "a mail, and what was found since: {resumed:?}");
    let letters =
        "SELECT state || ' ' || count(*) FROM deliveries WHERE channel = 'letter' GROUP BY state ORDER BY state";
    assert_eq!(texts(&url, letters).await, ["held 1", "pending 1"]);
    let ended = desk.run(&["release", "--restored", "--cancel", "--reason", "the log has it"]);
    assert!(ended.out.contains("Cancelled 1 notice") && ended.out.contains("letters of 1 "), "{ended:?}");
    assert_eq!(texts(&url, letters).await, ["pending 2"]);
    let log = "SELECT after::text FROM office_log WHERE action = 'cancelled-held'";
    let log = texts(&url, log).await;
    assert!(log.len() == 1 && log[0].contains("\"cancelled\": 1") && log[0].contains("\"released\": 1"), "{log:?}");
    let states = "SELECT state FROM notices WHERE state <> 'superseded' ORDER BY id";
    assert_eq!(texts(&url, states).await, ["cancelled", "pending", "pending"]);
}

#[tokio::test]
async fn another_timeline_is_noticed() {
    let desk = Desk::new().with("CLOCK", "2026-12-01T09:00:00Z");
    assert_eq!(import(&desk, "1,Food,Ada,ada@example.org,2026-12-31\n"), 1);
    let data = find(&desk.data(), "PG_VERSION").expect("the data of the private server");
    let data = data.parent().expect("its folder");
    // As after a recovery to a point in time, or when a standby took over.
    std::fs::write(data.join("recovery.signal"), "").expect("written");
    let settings = "restore_command = 'false'\nhot_standby = off\n";
    let path = data.join("postgresql.auto.conf");
    std::fs::write(&path, std::fs::read_to_string(&path).unwrap_or_default() + settings).expect("written");
    let found = doctor(&desk);
    assert!(found.starts_with("fault") && found.contains("the timeline was 1 and is 2"), "{found}");
    let done = desk.run(&["dispatch", "--json"]);
    assert!(done.code == Some(0) && done.out.contains("\"paused\""), "{done:?}");
    assert_eq!(mails(&desk), 0);
}

/// The first file of that name in a folder, or in one inside it.
pub fn find(folder: &std::path::Path, name: &str) -> Option<PathBuf> {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            if let Some(found) = find(&path, name) {
                return Some(found);
            }
        } else if path.file_name().is_some_and(|file| file == name) {
            return Some(path);
        }
    }
    None
}

#[tokio::test]
async fn one_that_goes_back_between_lease_and_gate_lets_nothing_through() {
    let post = Postbox::open().await;
    post.permit("ada@x.example").await;
    post.permit("bo@x.example").await;
    let mut stop = post.mailer.stop("ada@x.example", Point::Offered);
    let replica = post.replica(1).await;
    let pass = replica.begin_once();
    stop.arrived().await;
    // As if the connections were to another server from here on.
    post.execute("UPDATE memory_marks SET timeline = timeline + 1").await;
    stop.release();
    let (report, _) = pass.done().await;
    assert_eq!((report.accepted, report.left_pending), (0, 2));
    assert_eq!(post.count("SELECT count(*) FROM attempts").await, 0);
    assert_eq!(post.count("SELECT count(*) FROM deliveries WHERE lease_token IS NOT NULL").await, 0);
    post.execute("UPDATE memory_marks SET timeline = timeline - 1").await;
    assert_eq!(replica.run_once().await.0.accepted, 2);
    replica.leave().await;
    post.check().await;
}

#[tokio::test]
async fn what_ended_unknown_before_is_never_sent_again_by_the_policy() {
    let post = Postbox::open().await;
    for (email, lapse) in [("ada@x.example", true), ("bo@x.example", false)] {
        post.permit(email).await;
        post.execute(
            "INSERT INTO attempts (id, delivery_id, number, notice_key, boot_id, transport, outcome, reason, started_at,
                                   finished_at)
             SELECT gen_random_uuid(), d.id, 1, n.notice_key, gen_random_uuid(), 'smtp', 'ambiguous', 'owner_lost',
                    d.created_at, d.created_at
             FROM deliveries d JOIN notices n ON n.id = d.notice_id WHERE d.state = 'pending';
             UPDATE deliveries SET state = 'ambiguous' WHERE state = 'pending';
             UPDATE notices SET state = 'ambiguous' WHERE state = 'pending'",
        )
        .await;
        if lapse {
            hold_pending(&mut post.session().await, post.clock.now()).await.expect("a lapse");
            post.clock.advance(TimeDelta::minutes(1));
        }
    }
    post.clock.advance(TimeDelta::hours(5));
    let rules =
        permit_notifier::store::actions::ActionRules { moment: post.moment(), window: None, zone: chrono_tz::UTC };
    let mut session = post.session().await;
    let after = TimeDelta::hours(4);
    let resolved = permit_notifier::store::actions::resolve_by_policy(&mut session, after, &rules).await;
    assert_eq!(resolved.expect("an answer"), 1);
    assert_eq!(post.copy_to("ada@x.example").await.end(), "ambiguous");
    assert_eq!(post.copy_to("bo@x.example").await.end(), "pending");
}

#[tokio::test]
async fn what_an_account_may_not_read_guards_nothing_and_the_rest_does() {
    let post = Postbox::open().await;
    let mut session = post.session().await;
    let lines = "DO $$ BEGIN CREATE ROLE plain; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
         GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO plain;
         REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC;
         REVOKE EXECUTE ON FUNCTION pg_current_wal_lsn() FROM PUBLIC;
         DELETE FROM memory_marks;
         SET ROLE plain";
    sqlx::raw_sql(lines).execute(&mut session).await.expect("an ordinary account");
    record_marks(&mut session).await.expect("the marks that it may read");
    let known = |marks: &[Mark]| marks.iter().filter(|m| m.recorded.is_some() && m.present.is_some()).count();
    let marks = compare_marks(&mut session).await.expect("the marks");
    assert_eq!((marks.len(), known(&marks), difference(&marks)), (4, 2, None));
    assert!(!went_back(&mut session).await.expect("an answer"));
    // What can be read later is recorded then.
    sqlx::raw_sql("RESET ROLE").execute(&mut session).await.expect("another account");
    record_marks(&mut session).await.expect("the rest");
    assert_eq!(known(&compare_marks(&mut session).await.expect("the marks")), 4);
    sqlx::raw_sql("UPDATE memory_marks SET notices_oid = 1; SET ROLE plain")
        .execute(&mut session)
        .await
        .expect("a copy");
    assert!(went_back(&mut session).await.expect("an answer"));
    record_marks(&mut session).await.expect("nothing to record");
    assert!(went_back(&mut session).await.expect("an answer"), "recording is not confirming");
    sqlx::raw_sql("RESET ROLE").execute(&mut session).await.expect("another account");
    hold_pending(&mut session, post.clock.now()).await.expect("nothing to hold");
    confirm(&mut session, "moved", post.clock.now()).await.expect("a confirmation");
    assert!(!went_back(&mut session).await.expect("an answer"));
}
