//! Progress is for people who watch: on a terminal, and nowhere else.

use std::process::{Command, Stdio};

use crate::support::program::Desk;

/// Enough rows for two batches.
const ROWS: u32 = 6000;

fn desk() -> Desk {
    let desk = Desk::new();
    let rows = (0..ROWS).map(|i| format!("P-{i},Food,Ann,2030-01-{:02}\n", 1 + i % 28)).collect::<Vec<_>>().concat();
    let text = format!("permit_number,permit_type,holder_name,expires_on\n{rows}");
    std::fs::write(desk.folder().join("permits.csv"), text).expect("written");
    desk
}

#[test]
fn a_terminal_is_told_the_rate_and_what_is_left_and_a_pipe_nothing() {
    let desk = desk();
    let piped = desk.run(&["import", "permits.csv"]);
    assert_eq!(piped.code, Some(0), "{piped:?}");
    for said in [&piped.err, &piped.out] {
        assert!(!said.contains("Reading") && !said.contains(" a second") && !said.contains('\u{1b}'), "{piped:?}");
    }
    // `script` gives the program a terminal of its own and repeats what is said there.
    let program = env!("CARGO_BIN_EXE_permit-notifier");
    let output = Command::new("script")
        .args(["--quiet", "--return", "--command", &format!("{program} import permits.csv >out.txt"), "/dev/null"])
        .current_dir(desk.folder())
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("DATA_DIR", desk.data())
        .env("RUST_LOG", "error")
        .stdin(Stdio::null())
        .output()
        .expect("script, of the package bsdutils");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}");
    let lines: Vec<&str> = said.split("\r\u{1b}[K").map(|line| line.trim_end_matches('\r')).collect();
    let reading: Vec<&&str> = lines.iter().filter(|line| line.starts_with("Reading: ")).collect();
    assert!(!reading.is_empty(), "{said:?}");
    for line in reading {
        assert!(line.contains(" of 6,000 rows, ") && line.contains(" a second, ") && line.ends_with(" left"), "{line}");
    }
    assert!(lines.iter().any(|line| line.starts_with("Applying 6,000 permits in one go: ")), "{said:?}");
    assert_eq!(lines.last().map(|line| line.trim()), Some(""), "the line is cleared: {said:?}");
    let report = std::fs::read_to_string(desk.folder().join("out.txt")).expect("the report");
    assert!(report.contains("6000 permits left unchanged"), "{report}");
}
