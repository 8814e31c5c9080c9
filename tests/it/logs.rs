use std::io;
use std::sync::{Arc, Mutex};

use permit_notifier::config::LogFormat;
use permit_notifier::telemetry::{logs, mask_address, mask_addresses};
use serde_json::{Value, json};

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn logged(format: LogFormat, filter: &str, work: impl FnOnce()) -> String {
    let sink = Sink::default();
    let writer = sink.clone();
    let subscriber = logs::subscriber(format, filter, false, move || writer.clone()).unwrap();
    tracing::subscriber::with_default(subscriber, work);
    let bytes = sink.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn json_lines_have_every_field_at_the_top_level_those_of_spans_too() {
    let text = logged(LogFormat::Json, "info", || {
        let _request = tracing::info_span!("request", request_id = "r-1", attempt = 1).entered();
        let _inner = tracing::info_span!("send", notice_key = "p:expires-30d:2026-12-01").entered();
        tracing::warn!(attempt = 2_u64, lock = true, smtp_code = ?Some(451), "the {} waits", "mail");
        tracing::debug!("below the filter");
        tracing::info!(state = "sent", "line\nbreak");
    });
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2, "{text}");

    let mut first = lines[0].clone();
    let timestamp = first.as_object_mut().unwrap().remove("timestamp").unwrap();
    let timestamp = timestamp.as_str().unwrap();
    assert!(timestamp.ends_with('Z') && chrono::DateTime::parse_from_rfc3339(timestamp).is_ok());
    assert_eq!(
        first,
        json!({
            "level": "WARN",
            "target": "it::logs",
            "message": "the mail waits",
            "request_id": "r-1",
            "notice_key": "p:expires-30d:2026-12-01",
            "attempt": 2,
            "lock": true,
            "smtp_code": "Some(451)",
        })
    );
    assert_eq!(lines[1]["message"], "line\nbreak");
    assert_eq!(lines[1]["attempt"], 1);
}

#[test]
fn no_field_takes_the_place_of_level_or_target() {
    let text = logged(LogFormat::Json, "info", || {
        tracing::info!(level = "fake", target = "fake", timestamp = "fake");
    });
    let line: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&line["level"], &line["target"]), (&json!("INFO"), &json!("it::logs")));
    assert_ne!(line["timestamp"], "fake");
    assert_eq!(line["message"], "");
}

#[test]
fn pretty_lines_are_for_people() {
    let text = logged(LogFormat::Pretty, "info", || {
        tracing::info!(claimed = 3, "scan completed");
    });
    assert!(text.contains("INFO") && text.contains("scan completed claimed=3"), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
}

#[test]
fn an_address_in_a_log_can_be_recognised_and_not_used() {
    assert_eq!(mask_address("maria@example.com"), "m***@example.com");
    assert_eq!(mask_address("m@example.com"), "m***@example.com");
    assert_eq!(mask_address("\"a@b\"@example.com"), "\"***@example.com");
    assert_eq!(mask_address("ünal@example.com"), "ü***@example.com");
    let reply = "550 5.1.1 <maria@example.com>: no such user: maria@example.com, (bo@x.example)";
    let masked = "550 5.1.1 <m***@example.com>: no such user: m***@example.com, (b***@x.example)";
    assert_eq!((mask_addresses(reply).as_str(), mask_addresses("plain: words").as_str()), (masked, "plain: words"));
    for no_address in ["", "maria", "@example.com", "maria@"] {
        assert_eq!(mask_address(no_address), "***");
    }
}
