use std::time::Duration;

use ::metrics::with_local_recorder;
use permit_notifier::telemetry::metrics;

#[test]
fn metrics_carry_the_agreed_names_and_labels() {
    let recorder = metrics::recorder().unwrap();
    let handle = recorder.handle();
    let text = with_local_recorder(&recorder, || {
        metrics::scan_ended("completed");
        metrics::scan_succeeded(1_764_400_000);
        metrics::notices_claimed(3);
        metrics::purge_completed(1_764_400_001);
        metrics::attempt_ended("accepted", Duration::from_millis(30));
        metrics::set_oldest_pending(Duration::from_secs(90));
        metrics::set_deliveries([("email", "pending", 7), ("letter", "sent", 2)]);
        metrics::set_alarm("missing_run", true);
        metrics::set_database_up(false);

        handle.render()
    });
    for line in [
        "permit_notifier_scans_total{outcome=\"completed\"} 1\n",
        "permit_notifier_scans_total{outcome=\"failed\"} 0\n",
        "permit_notifier_last_successful_scan_timestamp_seconds 1764400000",
        "permit_notifier_notices_claimed_total 3\n",
        "permit_notifier_last_purge_timestamp_seconds 1764400001",
        "permit_notifier_attempts_total{outcome=\"accepted\"} 1\n",
        "permit_notifier_attempts_total{outcome=\"rejected\"} 0\n",
        "permit_notifier_send_duration_seconds_bucket{le=\"0.025\"} 0\n",
        "permit_notifier_send_duration_seconds_bucket{le=\"0.05\"} 1\n",
        "permit_notifier_oldest_pending_seconds 90",
        "permit_notifier_deliveries{channel=\"email\",state=\"pending\"} 7",
        "permit_notifier_deliveries{channel=\"letter\",state=\"sent\"} 2",
        "permit_notifier_deliveries{channel=\"email\",state=\"ambiguous\"} 0",
        "permit_notifier_alarm{kind=\"missing_run\"} 1",
        "permit_notifier_alarm{kind=\"files_only\"} 0",
        "permit_notifier_database_up 0",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }

    with_local_recorder(&recorder, || {
        metrics::set_deliveries([("letter", "sent", 2)]);
    });
    let emptied = "permit_notifier_deliveries{channel=\"email\",state=\"pending\"} 0";
    assert!(handle.render().contains(emptied));
}

#[test]
fn several_services_in_one_process_share_the_recorder() {
    let first = metrics::start().unwrap();
    let second = metrics::start().unwrap();
    metrics::scan_ended("failed");
    let line = "permit_notifier_scans_total{outcome=\"failed\"} ";
    for text in [first.render(), second.render()] {
        assert!(text.contains(line) && !text.contains(&format!("{line}0\n")), "{text}");
    }
}
