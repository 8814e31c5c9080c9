//! The main job from file to mail, by commands alone.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::support::program::Desk;

const PERMITS: &str = "\
permit_number,permit_type,holder_name,holder_email,site_address,expires_on
0017,Food,José García,jose@example.com,1 Main St,2026-12-30
0018,Food,Ann Baker,ann@example.com,2 Main St,2026-12-08
0019,Tavern,The Anchor,,3 Main St,2026-12-08
";

fn desk() -> Desk {
    let desk = Desk::new().with("CLOCK", "2026-11-01T09:00:00Z").with("MAIL_FROM", "Office <office@example.org>");
    std::fs::write(desk.folder().join("permits.csv"), PERMITS).expect("written");
    desk
}

fn mails(desk: &Desk) -> BTreeMap<String, String> {
    let files = std::fs::read_dir(desk.data().join("mail")).into_iter().flatten().flatten();
    files
        .filter(|file| file.path().extension().is_some_and(|ending| ending == "eml"))
        .map(|file| {
            let text = std::fs::read_to_string(file.path()).expect("7-bit text");
            (file.file_name().to_string_lossy().into_owned(), text)
        })
        .collect()
}

#[test]
fn permits_in_notices_owed_claimed_once_written_out() {
    let desk = desk();
    let imported = desk.json(&["import", "permits.csv", "--json"]);
    assert_eq!((&imported["committed"], &imported["permits_created"]), (&Value::from(true), &Value::from(3)));
    // Loading mails nobody: what was due before the day of the import is not owed.
    assert_eq!(desk.json(&["scan", "--json"])["claimed"], 0);
    let due = ["--as-of", "2026-12-01", "--json"];
    let looked = desk.json(&[&["scan", "--dry-run"], &due[..]].concat());
    assert_eq!((looked["claimed"].as_u64(), looked["items"].as_array().map(Vec::len)), (Some(3), Some(7)), "{looked}");
    let scanned = desk.json(&[&["scan"], &due[..]].concat());
    assert_eq!(scanned["claimed"], 3, "{scanned}");
    let again = desk.json(&[&["scan"], &due[..]].concat());
    assert_eq!(again["claimed"], 0);
    assert_eq!(again["already_claimed"], 7, "{again}");
    let sent = desk.json(&[&["dispatch"], &due[..]].concat());
    assert_eq!((&sent["transport"], &sent["accepted"]), (&Value::from("ok"), &Value::from(2)), "{sent}");
    let sent = desk.json(&[&["dispatch"], &due[..]].concat());
    assert_eq!(sent["accepted"], 0, "a second dispatch sends nothing");
    let mails = mails(&desk);
    assert_eq!(mails.len(), 2);
    let ann = mails.values().find(|mail| mail.contains("ann@example.com")).expect("Ann's mail");
    assert!(ann.contains("X-Notice-Key: ") && ann.contains("expires-7d:2026-12-08"), "{ann}");
    assert!(ann.contains("Subject: Permit 0018 expires on 8 December 2026"), "{ann}");
}

#[test]
fn five_days_over_two_years_send_each_notice_once() {
    let desk = desk();
    desk.json(&["import", "permits.csv", "--json"]);
    let mut seen = 0;
    for day in ["2026-12-01", "2026-12-08", "2026-12-20", "2027-01-05", "2027-02-01"] {
        desk.json(&["scan", "--as-of", day, "--json"]);
        let sent = desk.json(&["dispatch", "--as-of", day, "--json"]);
        assert_eq!(sent["rejected"], 0, "{sent}");
        seen += sent["accepted"].as_u64().expect("a number");
        assert_eq!(mails(&desk).len() as u64, seen, "one file for each message");
    }
    assert!(seen >= 6, "{seen}");
}

#[test]
fn no_log_line_shows_an_address_or_a_body() {
    let desk = desk().with("LOG_FORMAT", "json").with("RUST_LOG", "debug");
    desk.json(&["import", "permits.csv", "--json"]);
    let mut said = String::new();
    for command in [["scan", "--as-of", "2026-12-01"], ["dispatch", "--as-of", "2026-12-01"]] {
        let done = desk.run(&command);
        assert_eq!(done.code, Some(0), "{done:?}");
        said += &done.err;
    }
    assert_eq!(mails(&desk).len(), 2, "something was sent");
    assert!(said.contains("\"notice_key\""), "attempts are logged: {said}");
    for secret in ["ann@example.com", "jose@example.com", "Ann Baker", "García", "Main St"] {
        assert!(!said.contains(secret), "a log line shows {secret}");
    }
}
