//! The doctor: a line for each check, and exit code 1 on a fault.

use crate::support::program::Desk;

#[test]
fn a_sound_set_up_has_no_fault() {
    let desk = Desk::new().with("TIME_ZONE", "Europe/Berlin");
    let found = desk.json(&["doctor", "--json"]);
    assert_eq!(found["ok"], true, "{found}");
    let schedule = found["checks"].as_array().expect("checks").iter().find(|check| check["check"] == "schedule");
    let found = schedule.expect("a schedule")["found"].as_str().expect("text").to_owned();
    assert_eq!(found.matches("06:00:00 CE").count(), 5, "five local times: {found}");
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
