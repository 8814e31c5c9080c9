//! The doctor: a line for each check, what to do, and exit code 1 on a fault.

mod account;
mod broken;
mod parts;

use serde_json::Value;

use crate::support::own_server::OwnServer;
use crate::support::program::Desk;
use crate::support::run_folder::TestDir;
use crate::support::smtp_server::{Authority, Behaviour, SmtpServer, Tls};

/// What a doctor says, and its exit code.
fn lines(desk: &Desk) -> (Vec<Value>, Option<i32>) {
    let done = desk.run(&["doctor", "--json"]);
    let found: Value = serde_json::from_str(&done.out).unwrap_or_else(|error| panic!("{error}: {done:?}"));
    let checks = found["checks"].as_array().expect("checks").clone();
    let broken = checks.iter().any(|check| check["level"] == "fault");
    assert_eq!((found["ok"].as_bool(), done.code), (Some(!broken), Some(i32::from(broken))), "{done:?}");
    (checks, done.code)
}

#[test]
fn a_sound_set_up_has_no_fault() {
    let desk = Desk::new().with("TIME_ZONE", "Europe/Berlin");
    let (checks, code) = lines(&desk);
    assert_eq!(code, Some(0), "{checks:#?}");
    let found = |name: &str| {
        let check =
            checks.iter().find(|check| check["check"] == name).unwrap_or_else(|| panic!("no {name}: {checks:#?}"));
        check["found"].as_str().expect("text").to_owned()
    };
    assert_eq!(found("schedule").matches("06:00:00 CE").count(), 5, "five local times: {}", found("schedule"));
    assert!(found("zone data").contains("agree on Europe/Berlin; the clocks change next on Sun 20"), "{checks:#?}");
    assert!(found("room for the database").contains("MiB are free"), "{checks:#?}");
}

#[test]
fn a_service_as_it_should_be_has_neither_faults_nor_warnings() {
    let server = OwnServer::start();
    let (authority, folder) = (Authority::new(), TestDir::new());
    let trusted = folder.path().join("trusted.pem");
    std::fs::write(&trusted, authority.pem()).expect("written");
    let mail = SmtpServer::start(Behaviour {
        tls: Some((Tls::Implicit, authority.certify("127.0.0.1"))),
        auth: Some("PLAIN LOGIN"),
        ..Behaviour::default()
    });
    let outside = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let outside = format!("http://{}/ping", outside.local_addr().expect("its address"));
    let desk = Desk::new()
        .with("ALERT_EMAIL", "operator@example.org")
        .with("ALERT_WEBHOOK_URL", &outside)
        .with("HEARTBEAT_URL", &outside)
        .with("DATABASE_URL", &server.url)
        .with("ENVIRONMENT", "production")
        .with("PUBLIC_URL", "https://permits.example.org")
        .with("MAIL_FROM", "Office <office@example.org>")
        .with("SMTP_URL", format!("smtps://permits:correct%20horse@127.0.0.1:{}", mail.port()))
        .with("SSL_CERT_FILE", trusted.display().to_string());
    assert_eq!(desk.run(&["migrate"]).code, Some(0));
    let (checks, _) = lines(&desk);
    let doubts: Vec<_> = checks.iter().filter(|check| check["level"] != "ok").collect();
    assert!(doubts.is_empty(), "{doubts:#?}");
    for name in [
        "environment",
        "public URL",
        "secrets",
        "mail",
        "data folder",
        "connections",
        "database",
        "durability",
        "migrations",
        "memory",
        "encoding",
        "changes",
        "rights",
        "room for connections",
        "alarms",
        "purge",
        "clock",
        "zone data",
        "schedule",
    ] {
        assert!(checks.iter().any(|check| check["check"] == name), "no line {name}: {checks:#?}");
    }
}

#[test]
fn an_unreachable_database_is_a_fault() {
    let desk = Desk::new().with("DATABASE_URL", "postgres://permits:hunter2@127.0.0.1:1/permits");
    let done = desk.run(&["doctor"]);
    assert_eq!(done.code, Some(1));
    assert!(done.out.contains("fault   database"), "{done:?}");
    assert!(!format!("{done:?}").contains("hunter2"));
}

#[test]
fn a_fault_gives_its_reason_once() {
    let desk = Desk::new();
    std::fs::write(desk.data(), "a file in the way").expect("a file");
    let done = desk.run(&["doctor"]);
    assert_eq!(done.code, Some(1));
    assert_eq!(done.out.matches("Not a directory").count(), 1, "{done:?}");
}
