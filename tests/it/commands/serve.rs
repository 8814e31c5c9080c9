//! The service as a process: start, stop, owners and joiners.

use nix::sys::signal::Signal;

use crate::support::program::{Desk, Running, get};

fn serving(desk: &Desk) -> (Running, String) {
    let mut serve = desk.start(&["serve"]);
    let line = serve.wait_for("Listening on http://");
    let url = line.split_whitespace().last().expect("an address").to_owned();
    (serve, url)
}

#[test]
fn it_says_where_it_listens_and_where_people_reach_it() {
    let desk = Desk::new().with("PUBLIC_URL", "https://permits.example.org");
    let mut serve = desk.start(&["serve"]);
    let line = serve.wait_for("Listening on http://127.0.0.1:");
    assert!(line.ends_with("/, people reach it at https://permits.example.org/"), "{line}");
}

#[test]
fn it_is_ready_scans_at_its_first_start_and_stops_in_order() {
    let desk = Desk::new().with("LOG_FORMAT", "json");
    let (mut serve, url) = serving(&desk);
    assert_eq!(get(&format!("{url}livez")).0, 200);
    assert_eq!(get(&format!("{url}readyz")), (200, "ok\n".to_owned()));
    assert_eq!(get(&format!("{url}nothing")).0, 404);
    let line = serve.find("scan completed");
    let scan: serde_json::Value = serde_json::from_str(&line).expect("a JSON line");
    for field in ["timestamp", "level", "target", "message", "scheduled_for", "lock", "claimed", "already_claimed"] {
        assert!(!scan[field].is_null(), "{field} is missing: {line}");
    }
    assert_eq!(scan["lock"], "acquired");
    serve.signal(Signal::SIGTERM);
    assert_eq!(serve.wait(), Some(0));
}

#[test]
fn a_second_one_joins_and_stops_when_its_owner_is_gone() {
    let desk = Desk::new();
    let (mut owner, _) = serving(&desk);
    let mut joiner = desk.start(&["serve"]);
    joiner.wait_for("Using the private PostgreSQL of process");
    joiner.wait_for("Listening on http://");
    owner.signal(Signal::SIGKILL);
    assert_eq!(owner.wait(), None);
    assert_eq!(joiner.wait(), Some(1), "it does not end well, for its database is gone");
    let again = desk.json(&["scan", "--json"]);
    assert_eq!(again["outcome"], "completed", "what the killed owner left can be started again: {again}");
}

#[test]
fn while_nobody_can_sign_in_each_that_starts_prints_a_link_and_all_are_good() {
    let desk = Desk::new();
    let mut services = [(); 2].map(|()| serving(&desk));
    let links = services.each_mut().map(|(serve, _)| {
        let line = serve.find("Become the first administrator");
        line.split_whitespace().last().expect("a link").to_owned()
    });
    assert_ne!(links[0], links[1]);
    for link in links {
        assert_eq!(get(&link).0, 200, "{link}");
    }
}

#[test]
fn a_process_without_the_web_opens_no_port() {
    let desk = Desk::new().with("LOG_FORMAT", "json");
    let mut serve = desk.start(&["serve", "--roles", "scan"]);
    serve.wait_for("scan completed");
    serve.signal(Signal::SIGTERM);
    assert_eq!(serve.wait(), Some(0));
    let said = serve.rest().join("\n");
    assert!(!said.contains("istening"), "{said}");
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let desk = Desk::new();
    let (mut serve, _) = serving(&desk);
    serve.signal(Signal::SIGTERM);
    serve.signal(Signal::SIGTERM);
    let code = serve.wait();
    assert!(code.is_some(), "it ended by itself");
}

#[test]
fn commands_at_once_on_one_folder_all_end_well_although_owners_come_and_go() {
    let desk = Desk::new();
    let mut scans: Vec<Running> = (0..6).map(|_| desk.start(&["scan", "--json"])).collect();
    for scan in &mut scans {
        assert_eq!(scan.wait(), Some(0), "{:?}", scan.rest());
    }
}
