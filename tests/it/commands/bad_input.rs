//! Bad input of every kind: one sentence that names the thing and what is allowed, the right exit code, no trace
//! of the inside, nothing written.

use crate::support::program::Desk;

/// Runs and checks the form of the refusal; gives what was said.
fn refused(desk: &Desk, arguments: &[&str], code: i32, words: &[&str]) -> String {
    let done = desk.run(arguments);
    assert_eq!(done.code, Some(code), "{arguments:?}: {done:?}");
    assert_eq!(done.out, "", "{arguments:?}");
    for word in words {
        assert!(done.err.contains(word), "{arguments:?} does not say {word:?}: {}", done.err);
    }
    for inside in ["panicked", "backtrace", "Error {", "src/"] {
        assert!(!done.err.contains(inside), "{arguments:?} shows the inside: {}", done.err);
    }
    done.err
}

#[test]
fn a_wrong_command_line_ends_with_two() {
    let desk = Desk::new();
    refused(&desk, &["skan"], 2, &["skan"]);
    refused(&desk, &["scan", "--sideways"], 2, &["--sideways"]);
    refused(&desk, &["scan", "--as-of", "2026-02-30"], 2, &["--as-of", "YYYY-MM-DD"]);
    refused(&desk, &["scan", "--as-of", "1.3.2026"], 2, &["--as-of", "YYYY-MM-DD"]);
    for date in ["2026-3-1", "+2026-3-01", " 2026-3-01", "-999-01-01"] {
        refused(&desk, &["dispatch", &format!("--as-of={date}")], 2, &["--as-of", "YYYY-MM-DD"]);
    }
    refused(&desk, &["serve", "--roles", "web,cook"], 2, &["cook", "web, scan, dispatch"]);
    refused(&desk, &["import"], 2, &["FILE"]);
    refused(&desk, &["import", "x.csv", "--map", "nonsense"], 2, &["--map"]);
    refused(&desk, &["import", "x.csv", "--map", "no_such_field=A"], 2, &["no_such_field", "permit_number"]);
    refused(&desk, &["import", "x.csv", "--status", "OK=great"], 2, &["great", "active"]);
    refused(&desk, &["import", "x.csv", "--date-format", "%Q"], 2, &["--date-format"]);
    assert!(!desk.data().exists(), "nothing is written");
}

#[test]
fn a_wrong_variable_ends_with_one_and_names_itself() {
    let wrong = [
        ("TIME_ZONE", "Mars/Olympus", "Europe/Berlin"),
        ("SCAN_SCHEDULE", "0 0 8 31 2 *", "never"),
        ("SCAN_SCHEDULE", "0 6 * * *", "six fields"),
        ("SCAN_CLAIM_LIMIT", "-1", "whole number"),
        ("SEND_WINDOW", "Mon-Fri 18:00-08:00", "SEND_WINDOW"),
        ("MAIL_FROM", "nobody", "one address"),
        ("LEASE_SECONDS", "0", "from 3"),
        ("LISTEN_ADDR", "here", "IP address"),
        ("CLOCK", "tomorrow", "RFC 3339"),
        ("DATABASE_URL", "nonsense", "postgres://"),
        ("SMTP_URL", "mail.example.org", "smtp://"),
        ("RUST_LOG", "lots=of=noise", "level"),
    ];
    for (name, value, allowed) in wrong {
        let desk = Desk::new().with(name, value);
        let said = refused(&desk, &["scan"], 1, &[name, allowed]);
        assert_eq!(said.trim_end().lines().count(), 1, "{name}: {said}");
        assert!(!desk.data().exists(), "{name}: nothing is written");
    }
}

#[test]
fn all_wrong_variables_are_named_at_once() {
    let desk = Desk::new().with("TIME_ZONE", "x").with("MAX_ATTEMPTS", "many").with("LOG_FORMAT", "loud");
    refused(&desk, &["scan"], 1, &["TIME_ZONE", "MAX_ATTEMPTS", "LOG_FORMAT"]);
}

#[test]
fn an_unreachable_database_is_one_sentence_without_its_password() {
    let desk = Desk::new().with("DATABASE_URL", "postgres://permits:hunter2@127.0.0.1:1/permits");
    for command in ["scan", "dispatch", "migrate", "serve"] {
        let said = refused(&desk, &[command], 1, &["DATABASE_URL", "database", "refused"]);
        assert!(!said.contains("hunter2"), "{said}");
    }
    let desk = desk.with("DATABASE_DIRECT_URL", "postgres://permits:hunter2@127.0.0.1:2/permits");
    let said = refused(&desk, &["migrate"], 1, &["DATABASE_DIRECT_URL", "refused"]);
    assert!(!said.contains("hunter2"), "{said}");
}

#[test]
fn a_clock_is_refused_in_production() {
    let desk = Desk::new().with("CLOCK", "2026-03-01T08:00:00Z").with("ENVIRONMENT", "production");
    refused(&desk, &["scan"], 1, &["CLOCK", "production"]);
}

#[test]
fn in_production_a_later_day_needs_a_dry_run() {
    let desk = Desk::new().with("ENVIRONMENT", "production");
    refused(&desk, &["scan", "--as-of", "2999-01-01"], 1, &["--as-of", "--dry-run"]);
    refused(&desk, &["dispatch", "--as-of", "2999-01-01"], 1, &["--as-of"]);
    assert_eq!(desk.json(&["scan", "--as-of", "2999-01-01", "--dry-run", "--json"])["dry_run"], true);
}

#[test]
fn a_file_that_is_no_csv_is_one_sentence() {
    let desk = Desk::new();
    std::fs::write(desk.folder().join("form.csv"), b"%PDF-1.7 nothing").expect("written");
    refused(&desk, &["import", "form.csv"], 1, &["form.csv", "PDF"]);
    refused(&desk, &["import", "nowhere.csv"], 1, &["nowhere.csv"]);
    std::fs::write(desk.folder().join("empty.csv"), b"").expect("written");
    refused(&desk, &["import", "empty.csv"], 1, &["empty.csv", "empty"]);
    std::fs::write(desk.folder().join("odd.csv"), b"a,b\n1,2\n").expect("written");
    refused(&desk, &["import", "odd.csv", "--map", "permit_number=c"], 1, &["c"]);
    refused(&desk, &["import", "odd.csv"], 1, &["permit_number", "holder_name", "expires_on", "--map"]);
}

#[test]
fn a_folder_without_rights_is_one_sentence() {
    let desk = Desk::new();
    std::fs::write(desk.folder().join("file"), b"x").expect("written");
    let inside = desk.folder().join("file/data").display().to_string();
    let desk = desk.with("DATA_DIR", inside.clone());
    refused(&desk, &["scan"], 1, &["file"]);
}

#[test]
fn a_dry_run_ends_as_the_import_would() {
    let desk = Desk::new().with("CLOCK", "2026-11-01T09:00:00Z");
    let header = "permit_number,permit_type,holder_name,expires_on\n";
    std::fs::write(desk.folder().join("bad.csv"), format!("{header}1,Food,Ann,never\n")).expect("written");
    std::fs::write(desk.folder().join("some.csv"), format!("{header}1,Food,Ann,never\n2,Food,Ann,2027-01-31\n"))
        .expect("written");
    for (arguments, code) in [
        (&["import", "bad.csv", "--keep-good-rows"][..], 1),
        (&["import", "some.csv"], 1),
        (&["import", "some.csv", "--keep-good-rows"], 0),
    ] {
        for more in [&[][..], &["--dry-run"]] {
            let done = desk.run(&[arguments, more].concat());
            assert_eq!(done.code, Some(code), "{arguments:?} {more:?}: {done:?}");
        }
    }
}
