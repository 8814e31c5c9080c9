//! `audit` and `release` as a person runs them, against a database in which every kind of difference is made.

use permit_notifier::{
    domain::attempt::{Outcome, Resolution},
    store::actions::{Posting, Resolving, posted, resolve},
};

use super::{Office, TODAY, day, today};
use crate::support::program::{Desk, Done};

struct Auditor {
    office: Office,
    desk: Desk,
}

impl Auditor {
    async fn new() -> Self {
        let office = Office::new().await;
        let desk = Desk::new().with("DATABASE_URL", office.url.clone());
        Self { office, desk }
    }

    /// The Message-ID of a notice whose one attempt ended so.
    async fn sent(&self, number: &str, outcome: Outcome) -> String {
        let notice = self.office.ended(number, outcome).await;
        self.office.ask(&format!("SELECT message_id FROM deliveries WHERE notice_id = '{notice}'")).await
    }

    fn audit(&self, ledger: &str) -> Done {
        std::fs::write(self.desk.folder().join("ledger"), ledger).expect("written");
        self.desk.run(&["audit", "ledger"])
    }
}

fn json(ids: &[&str]) -> String {
    let lines: Vec<String> = ids.iter().map(|id| format!("{{\"message_id\": \"{id}\", \"to\": \"x\"}}\n")).collect();
    lines.concat()
}

/// What a Postfix writes about one message.
fn postfix(queue_id: &str, id: &str, fate: &str) -> String {
    format!(
        "Nov 29 10:00:00 mail postfix/smtpd[41]: {queue_id}: client=localhost[127.0.0.1]\n\
         Nov 29 10:00:00 mail postfix/cleanup[42]: {queue_id}: message-id={id}\n\
         Nov 29 10:00:00 mail postfix/qmgr[43]: {queue_id}: from=<office@example.org>, size=900, nrcpt=1 (queue active)\n\
         Nov 29 10:00:01 mail postfix/smtp[44]: {queue_id}: to=<a@example.com>, relay=mx[192.0.2.1]:25, delay=0.4, \
         delays=0.1/0/0.1/0.2, dsn=2.0.0, status={fate}\n\
         Nov 29 10:00:01 mail postfix/qmgr[43]: {queue_id}: removed\n"
    )
}

const SENT: &str = "sent (250 2.0.0 Ok: queued as 9A)";

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_that_agrees_has_no_difference_and_leaves_nothing_behind() {
    let auditor = Auditor::new().await;
    let one = auditor.sent("1", Outcome::Accepted).await;
    let two = auditor.sent("2", Outcome::Accepted).await;
    let flying = auditor.office.pending("3").await;
    auditor.office.send(flying).await;
    let flying = auditor.office.ask("SELECT message_id FROM deliveries WHERE state = 'sending'").await;
    // With and without brackets; a message in flight may have been accepted already; an alarm is no notice.
    let done = auditor.audit(&json(&[&one, two.trim_matches(['<', '>']), &flying, "<operator.00ff@example.org>"]));
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.contains("4 messages in the ledger, 1 of them about alarms and tests: 0 differences"), "{done:?}");
    assert!(!done.out.contains("operator."), "{done:?}");
    let log = postfix("4F2A01", &one, SENT) + postfix("4F2A02", &two, "sent (delivered to maildir)").as_str();
    let done = auditor.audit(&log);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(
        auditor.office.ask("SELECT (SELECT count(*) FROM audit_lines) + (SELECT count(*) FROM audit_messages)").await,
        "0"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_difference_is_named() {
    let auditor = Auditor::new().await;
    let good = auditor.sent("1", Outcome::Accepted).await;
    let missing = auditor.sent("2", Outcome::Accepted).await;
    let twice = auditor.sent("3", Outcome::Accepted).await;
    let rejected = auditor.sent("4", Outcome::Rejected).await;
    let unresolved = auditor.sent("5", Outcome::Ambiguous).await;
    let denied = auditor.office.ended("6", Outcome::Ambiguous).await;
    let resolving = Resolving { delivery: None, outcome: Resolution::NotDelivered, reason: "x", by: "ann" };
    resolve(&mut auditor.office.connect().await, denied, resolving, &today()).await.unwrap();
    let denied = auditor.office.ask(&format!("SELECT message_id FROM deliveries WHERE notice_id = '{denied}'")).await;
    let permit = auditor.office.permit_with("7", |data| data.holder_email = None).await;
    let letter = auditor.office.notice(permit).await;
    let posting = Posting { delivery: None, posted_on: day(TODAY), tracking: None, by: "ann" };
    posted(&mut auditor.office.connect().await, letter, posting, &today()).await.unwrap();
    let done = auditor.audit(&json(&[&good, &twice, "<stranger@x>", &rejected, &twice, &denied, &unresolved]));
    assert_eq!(done.code, Some(1), "{done:?}");
    let line = |kind: &str, id: &str, word: &str| {
        let found = done.out.lines().any(|line| line.starts_with(kind) && line.contains(id) && line.contains(word));
        assert!(found, "{kind} {id} {word}: {}", done.out);
    };
    line("unknown", "<stranger@x>", "line 3");
    line("not accepted", &rejected, "failed");
    line("not accepted", &denied, "pending");
    line("twice", &twice, "2 times");
    line("missing", &missing, "file");
    line("unresolved", &unresolved, "the ledger has it");
    assert!(done.out.contains("5 differences, 1 unresolved"), "{}", done.out);
    assert!(!done.out.contains(&good), "{}", done.out);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unresolved_attempt_alone_is_no_difference() {
    let auditor = Auditor::new().await;
    let unresolved = auditor.sent("1", Outcome::Ambiguous).await;
    for ledger in [json(&[&unresolved]), String::new()] {
        let done = auditor.audit(&ledger);
        assert_eq!(done.code, Some(0), "{done:?}");
        assert!(done.out.contains(&unresolved), "{done:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_ledger_misses_everything() {
    let auditor = Auditor::new().await;
    let sent = auditor.sent("1", Outcome::Accepted).await;
    let done = auditor.audit("");
    assert_eq!(done.code, Some(1));
    assert!(done.out.contains("missing") && done.out.contains(&sent), "{done:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_uses_queue_ids_again_and_keeps_messages_that_wait() {
    let auditor = Auditor::new().await;
    let one = auditor.sent("1", Outcome::Accepted).await;
    let two = auditor.sent("2", Outcome::Accepted).await;
    let waits = auditor.sent("3", Outcome::Accepted).await;
    // One queue id for two messages after each other; a message that reaches two mailboxes was accepted once.
    let second = "Nov 29 10:00:01 mail postfix/smtp[44]: AA01: to=<b@example.com>, relay=x, status=sent (250 ok)\n";
    let log = postfix("AA01", &one, SENT)
        + second
        + postfix("AA01", &two, SENT).as_str()
        + postfix("AA02", &waits, "deferred (451)").as_str();
    let done = auditor.audit(&(log.clone() + "garbage \u{0}\u{fffd}\n"));
    assert_eq!(done.code, Some(0), "{done:?}");
    let done = auditor.audit(&(log + postfix("AA03", &one, SENT).as_str()));
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.out.contains("twice") && done.out.contains("1 difference,"), "{done:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ledgers_that_are_none_are_one_sentence() {
    let auditor = Auditor::new().await;
    for (ledger, word) in [
        ("{\"message_id\": 5}\n", "line 1"),
        ("{\"message_id\": \"<a@b>\"}\n{broken\n", "line 2"),
        ("a,b\n1,2\n", "none of its 2 lines"),
    ] {
        let done = auditor.audit(ledger);
        assert_eq!((done.code, done.err.lines().count()), (Some(1), 1), "{done:?}");
        assert!(done.err.contains(word) && done.err.contains("ledger"), "{done:?}");
    }
    let done = auditor.desk.run(&["audit", "nowhere"]);
    assert_eq!(done.code, Some(1));
    assert!(done.err.contains("nowhere"), "{done:?}");
    assert_eq!(auditor.desk.run(&["audit"]).code, Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn releasing_by_command() {
    let auditor = Auditor::new().await;
    let desk = &auditor.desk;
    let nil = "00000000-0000-0000-0000-000000000000";
    for wrong in [
        &["release", "--reason", "x"][..],
        &["release", "--scan", nil],
        &["release", "--scan", nil, "--import", nil, "--reason", "x"],
        &["release", "--scan", "5", "--reason", "x"],
    ] {
        assert_eq!(desk.run(wrong).code, Some(2), "{wrong:?}");
    }
    let done = desk.run(&["release", "--scan", nil, "--reason", "x"]);
    assert_eq!(done.code, Some(1));
    assert!(done.err.contains("no such scan"), "{done:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_brake_of_a_scan_held_is_released_by_command() {
    let office = Office::new().await;
    for number in ["1", "2", "3"] {
        office.permit_with(number, |data| data.expires_on = day("2026-08-01")).await;
    }
    let desk = Desk::new()
        .with("DATABASE_URL", office.url.clone())
        .with("CLOCK", "2026-07-02T08:00:00Z")
        .with("SCAN_CLAIM_LIMIT", "2");
    let scan = desk.json(&["scan", "--json"]);
    assert_eq!((&scan["claimed"], &scan["held"]), (&3.into(), &3.into()), "{scan}");
    let id = scan["id"].as_str().unwrap();
    let done = desk.run(&["release", "--scan", id, "--reason", "checked by Ann"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.contains("Released 3 notices"), "{done:?}");
    assert_eq!(office.ask("SELECT count(*) FROM deliveries WHERE state = 'pending'").await, "3");
    let done = desk.run(&["release", "--scan", id, "--cancel", "--reason", "too late"]);
    assert!(done.code == Some(0) && done.out.contains("Nothing of it is held, so nothing was cancelled."), "{done:?}");
}
