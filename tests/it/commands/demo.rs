//! The demo: from nothing to mails on disk and an answer on the port, and the same again.

use nix::sys::signal::Signal;

use crate::support::program::{Desk, get};

#[test]
fn the_demo_shows_the_main_job_and_starts_from_nothing_each_time() {
    let desk = Desk::new();
    for _ in 0..2 {
        let mut demo = desk.start(&["demo"]);
        demo.wait_for("Loaded 17 sample permits");
        let wrote = demo.wait_for("Wrote");
        assert!(wrote.starts_with("Wrote 13 mails") && wrote.contains("2 refused and 1 left"), "{wrote}");
        let imported = demo.wait_for("Imported old-system.csv");
        assert!(imported.ends_with("3 permits; 1 row rejected, 3 notices held until somebody has looked at them."));
        let line = demo.wait_for("Open http://");
        let url = line.split_whitespace().nth(1).expect("an address");
        demo.wait_for("Listening on");
        assert!(line.contains(" and sign in as admin@example.org with "), "{line}");
        assert_eq!(get(&format!("{url}readyz")), (200, "ok\n".to_owned()));
        assert_eq!((get(url).0, get(&format!("{url}sign-in")).0), (303, 200));
        let (_, metrics) = get(&format!("{url}metrics"));
        for (state, count) in [("sent", 13), ("failed", 2), ("ambiguous", 1), ("held", 3)] {
            let line = format!(r#"permit_notifier_deliveries{{channel="email",state="{state}"}} {count}"#);
            assert!(metrics.contains(&line), "{line}: {metrics}");
        }
        let letters = r#"permit_notifier_deliveries{channel="letter",state="pending"} 2"#;
        assert!(metrics.contains(letters), "{metrics}");
        assert!(metrics.contains(r#"permit_notifier_attempts_total{outcome="accepted"} 13"#), "{metrics}");
        assert!(metrics.contains("permit_notifier_notices_claimed_total 18"), "{metrics}");
        // The one without an answer arrived all the same.
        let mails = std::fs::read_dir(desk.data().join("demo/mail")).expect("a folder").count();
        assert_eq!(mails, 14);
        demo.signal(Signal::SIGINT);
        assert_eq!(demo.wait(), Some(0));
    }
}

#[test]
fn a_second_demo_on_the_same_folder_is_refused() {
    let desk = Desk::new();
    let mut first = desk.start(&["demo"]);
    first.wait_for("Open http://");
    let second = desk.run(&["demo"]);
    assert_eq!(second.code, Some(1), "{second:?}");
    assert!(second.err.contains("another demo runs"), "{second:?}");
    first.signal(Signal::SIGTERM);
    assert_eq!(first.wait(), Some(0));
}
