//! Set-ups that are broken, each on real things, with the line that says so and what to do.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::lines;
use crate::support::cluster::empty_database;
use crate::support::program::Desk;
use crate::support::smtp_server::{Act, At, Behaviour, Rule, SmtpServer};

/// That there is a line with this name and level whose words and advice have these in them.
pub(super) fn says(checks: &[Value], name: &str, level: &str, found: &str, advice: &str) {
    let text = |check: &Value, field: &str| check[field].as_str().unwrap_or_default().to_owned();
    let said = checks.iter().any(|check| {
        check["check"] == name
            && check["level"] == level
            && text(check, "found").contains(found)
            && text(check, "advice").contains(advice)
    });
    assert!(said, "no {level} {name} with {found:?} and {advice:?} in {checks:#?}");
}

pub(super) async fn run(url: &str, statement: &str) {
    let mut connection = PgConnection::connect(url).await.expect("a connection");
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await.expect("the statement");
}

/// On the database of all tests, whose server does not survive a power cut.
pub(super) async fn on_a_database() -> (Desk, String) {
    let url = empty_database().await;
    (Desk::new().with("DATABASE_URL", &url), url)
}

#[tokio::test]
async fn wrong_variables_are_lines_beside_all_the_others() {
    let (desk, _) = on_a_database().await;
    let desk = desk.with("TIME_ZONE", "Europe/Nowhere").with("SCAN_SCHEDULE", "0 6 * *").with("LEASE_SECONDS", "soon");
    let (checks, code) = lines(&desk);
    assert_eq!(code, Some(1));
    says(&checks, "TIME_ZONE", "fault", "not `Europe/Nowhere`", "correct it");
    says(&checks, "SCAN_SCHEDULE", "fault", "this has 4", "correct it");
    says(&checks, "LEASE_SECONDS", "fault", "from 3 to 3600", "correct it");
    says(&checks, "migrations", "warning", "not up to date", "permit-notifier migrate");
    assert!(checks.iter().all(|check| check["check"] != "schedule"), "of a zone that nobody knows: {checks:#?}");
    let done = desk.run(&["doctor"]);
    assert!(done.out.contains("fault   TIME_ZONE: must be a name of the IANA time zone database"), "{done:?}");
}

#[tokio::test]
async fn with_wrong_ways_to_mail_or_database_neither_is_looked_at() {
    let desk = Desk::new().with("DATABASE_URL", "mysql://hunter2@host/db").with("SMTP_URL", "smtp://ann:@mail");
    let (checks, _) = lines(&desk);
    says(&checks, "DATABASE_URL", "fault", "must be a URL such as `postgres://", "correct it");
    says(&checks, "SMTP_URL", "fault", "must have a user and a password", "correct it");
    assert!(!format!("{checks:?}").contains("hunter2"));
    assert!(!desk.data().exists(), "no private database was made instead of the one that is meant");
    assert!(checks.iter().all(|check| check["check"] != "mail" && check["check"] != "database"), "{checks:#?}");

    std::fs::write(desk.folder().join(".env"), "TIME_ZONE='Europe/Berlin\n").expect("written");
    let (checks, _) = lines(&desk);
    says(&checks, ".env", "fault", "not NAME=value", "correct it");
}

#[tokio::test]
async fn a_database_that_may_lose_what_it_said_is_a_fault() {
    let (desk, url) = on_a_database().await;
    assert_eq!(desk.run(&["migrate"]).code, Some(0));
    let (checks, _) = lines(&desk);
    says(&checks, "durability", "fault", "fsync", "switch them on");
    says(&checks, "migrations", "ok", "up to date", "");
    let (checks, _) = lines(&desk.again().with("CLOCK", "2030-01-01T00:00:00Z"));
    says(&checks, "schedule", "ok", " 2030-01-01 ", "");
    let (checks, _) = lines(&desk);
    says(&checks, "memory", "ok", "the database that wrote it", "");

    run(&url, "UPDATE memory_marks SET notices_oid = notices_oid + 1").await;
    let (checks, _) = lines(&desk);
    says(&checks, "memory", "fault", "the oid of the table of notices was", "permit-notifier resume --reason");

    run(&url, "UPDATE _sqlx_migrations SET checksum = '\\x00' WHERE version = 20261129100000").await;
    let (checks, _) = lines(&desk);
    says(&checks, "migrations", "fault", "20261129100000 was applied with another text", "install the release");

    run(&url, "UPDATE installation SET min_binary = '99.0.0'").await;
    let (checks, _) = lines(&desk);
    says(&checks, "migrations", "fault", "needs version 99.0.0", "install that version");

    let other = empty_database().await;
    run(&url, "UPDATE installation SET min_binary = '0.1.0'").await;
    assert_eq!(Desk::new().with("DATABASE_URL", &other).run(&["migrate"]).code, Some(0));
    let (checks, _) = lines(&desk.with("DATABASE_DIRECT_URL", &other));
    says(&checks, "connections", "fault", "different databases", "let both lead to the same");
}

#[tokio::test]
async fn a_database_that_does_not_answer_or_is_not_there_is_a_fault() {
    for (url, said) in [
        ("postgres://permits:hunter2@127.0.0.1:1/permits".to_owned(), "refused"),
        (empty_database().await.replace("/test_", "/nobody_made_"), "does not exist"),
    ] {
        let (checks, _) = lines(&Desk::new().with("DATABASE_URL", url));
        says(&checks, "database", "fault", said, "DATABASE_URL");
        assert!(!format!("{checks:?}").contains("hunter2"));
        assert!(!format!("{checks:?}").contains(" at line "), "of the source of PostgreSQL: {checks:#?}");
    }
}

#[tokio::test]
async fn pages_that_nobody_reaches_or_in_clear_are_a_fault_in_production() {
    let (desk, _) = on_a_database().await;
    let desk = desk.with("ENVIRONMENT", "production");
    for (url, level, found, advice) in [
        ("", "fault", "PUBLIC_URL is not set", "https://"),
        ("http://permits.example.org", "fault", "is not https", "certificate"),
        ("https://localhost:8443", "fault", "their own machine", "PUBLIC_URL"),
        ("https://127.0.0.1", "fault", "their own machine", "PUBLIC_URL"),
        ("https://permits.example.org", "ok", "https://permits.example.org/", ""),
    ] {
        let (checks, _) = lines(&desk.again().with("PUBLIC_URL", url));
        says(&checks, "public URL", level, found, advice);
    }
    let elsewhere = desk.with("ENVIRONMENT", "staging").with("LISTEN_ADDR", "127.0.0.1:8080");
    let elsewhere = elsewhere.with("PUBLIC_URL", "http://permits.example.org:9090");
    let (checks, _) = lines(&elsewhere);
    says(&checks, "public URL", "warning", "LISTEN_ADDR is 127.0.0.1:8080", "make the ports agree");
    let (checks, _) = lines(&elsewhere.with("PUBLIC_URL", "http://permits.example.org:8080"));
    says(&checks, "public URL", "warning", "which only this machine reaches", "proxy");
}

#[tokio::test]
async fn weak_and_open_secrets_are_warned_of_and_not_shown() {
    let (desk, _) = on_a_database().await;
    let url = desk.setting("DATABASE_URL");
    let with_password = url.replacen("permits@", "permits:Permits123456@", 1);
    assert_ne!(url, with_password, "the user stands in the URL");
    let desk = desk
        .with("DATABASE_URL", with_password)
        .with("DATABASE_DIRECT_URL", url.replacen("permits@", "permits:Zq9-x7Kd@", 1))
        .with("ADMIN_EMAIL", "ann.baker@office.example")
        .with("SMTP_URL", "smtp://permits:Sw0rdfish-and-Chips@127.0.0.1:1?tls=none")
        .with("MAIL_FROM", "Office <office@example.org>")
        .with("ENVIRONMENT", "staging");
    for password in ["Password1234", "ann.baker.2026", "aaaaabbbbbaaaaab"] {
        let desk = desk.again().with("ADMIN_PASSWORD", password);
        let (checks, _) = lines(&desk);
        says(&checks, "secrets", "warning", "ADMIN_PASSWORD ", "choose another");
        says(&checks, "secrets", "warning", "the password in DATABASE_URL is made of", "another password");
        says(
            &checks,
            "secrets",
            "warning",
            "the password in DATABASE_DIRECT_URL has fewer than 12",
            "another password",
        );
        says(&checks, "secrets", "warning", "goes to the mail server in clear", "smtps://");
        says(&checks, "settings", "warning", "MAIL_ALLOWLIST is unset", "unless it is meant so");
        let all = format!("{checks:?}");
        for secret in [password, "Permits123456", "Zq9-x7Kd", "Sw0rdfish"] {
            assert!(!all.contains(secret), "{secret} is shown: {all}");
        }
    }
    let desk = desk.with("ADMIN_PASSWORD", "kettle drum orchard 9").with("SMTP_URL", "");
    let file = desk.folder().join(".env");
    std::fs::write(&file, "LOG_FORMAT=pretty\n").expect("written");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("open to all");
    let (checks, _) = lines(&desk);
    says(&checks, "secrets", "warning", "everybody on this machine may read .env", "chmod");
    assert!(!format!("{checks:?}").contains("ADMIN_PASSWORD"), "{checks:#?}");
}

#[tokio::test]
async fn a_mail_server_that_is_away_or_refuses_the_sender_is_a_fault() {
    let (desk, _) = on_a_database().await;
    let desk = desk.with("MAIL_FROM", "Office <office@example.org>").with("ENVIRONMENT", "staging");
    let (checks, _) = lines(&desk.again().with("SMTP_URL", "smtp://127.0.0.1:1"));
    says(&checks, "mail", "fault", "connect failed", "correct SMTP_URL or MAIL_FROM");
    let refusing = SmtpServer::with([Rule::new(At::Mail, Act::Say("550 5.7.1 you may not send\r\n"))]);
    let (checks, _) = lines(&desk.again().with("SMTP_URL", refusing.url()));
    says(&checks, "mail", "fault", "mail failed: ", "correct SMTP_URL or MAIL_FROM");
    says(&checks, "mail", "fault", "you may not send", "look at the mail server");
    let choosy = SmtpServer::with([Rule::new(At::Rcpt, Act::Say("550 5.1.1 nobody of that name\r\n"))]);
    let asked = desk.again().with("SMTP_URL", choosy.url());
    let done = asked.run(&["doctor", "--send-test", "ann@example.org", "--json"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    let said: Value = serde_json::from_str(&done.out).expect("JSON");
    let checks = said["checks"].as_array().expect("the checks");
    says(checks, "mail", "warning", "takes mail from office@example.org, in clear", "STARTTLS");
    says(checks, "test mail", "fault", "nobody of that name", "look at the mail server");
    let strict = SmtpServer::start(Behaviour { auth: Some("PLAIN"), ..Behaviour::default() });
    let wrong = format!("smtp://permits:wrong-password-9@127.0.0.1:{}?tls=none", strict.port());
    let (checks, _) = lines(&desk.with("SMTP_URL", wrong));
    says(&checks, "mail", "fault", "auth failed", "correct SMTP_URL");
    assert!(!format!("{checks:?}").contains("wrong-password-9"));
}

#[tokio::test]
async fn a_folder_in_which_mail_cannot_be_kept_is_a_fault() {
    let (desk, _) = on_a_database().await;
    std::fs::write(desk.data(), "a file in the way").expect("a file");
    let (checks, _) = lines(&desk);
    says(&checks, "data folder", "fault", "cannot be written", "set DATA_DIR");
    let (checks, _) = lines(&desk.with("DATA_DIR", "/proc/permit-notifier"));
    says(&checks, "data folder", "fault", "/proc/permit-notifier cannot be written", "set DATA_DIR");
}
