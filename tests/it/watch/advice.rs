//! What people are advised to do about an alarm can be done, and ends it.

use permit_notifier::domain::alarm::AlarmKind;
use serde_json::json;

use super::{rules, wrong};
use crate::support::api::TestApi;

#[tokio::test]
async fn mail_that_was_not_really_sent_goes_as_is_advised() {
    let api = TestApi::open().await;
    let (kept, back) = (api.office.permit_expiring_in(30).await, api.office.permit_expiring_in(30).await);
    api.office.scan().await;
    let of = |permit| format!("(SELECT id FROM notices WHERE permit_id = '{permit}' AND state = 'pending')");
    api.office
        .sql(&format!(
            "INSERT INTO attempts (id, delivery_id, number, notice_key, boot_id, started_at, finished_at, transport,
                                   outcome, phase, response, payload_sha256)
             SELECT gen_random_uuid(), d.id, 1, n.notice_key, gen_random_uuid(), d.created_at, d.created_at, 'file',
                    'accepted', 'dot', 'x.eml', sha256('x')
             FROM deliveries d JOIN notices n ON n.id = d.notice_id WHERE n.id = {}",
            of(kept)
        ))
        .await;
    for (permit, copy, notice) in [
        (kept, "state = 'sent'", "state = 'sent'"),
        (back, "state = 'suppressed', reason_code = 'guard'", "state = 'failed', reason_code = 'guard'"),
    ] {
        api.office.sql(&format!("UPDATE deliveries SET {copy} WHERE notice_id = {}", of(permit))).await;
        api.office.sql(&format!("UPDATE notices SET {notice} WHERE id = {}", of(permit))).await;
    }
    let kinds = async || wrong(&api.office, &rules(&api.office)).await.into_iter().map(|(kind, _)| kind);
    assert_eq!(kinds().await.collect::<Vec<_>>(), [AlarmKind::FilesOnly]);

    let advice = AlarmKind::FilesOnly.advice();
    let many = advice.split_once("actions with ").expect("a body").1.trim_end_matches('.');
    let done = api.post("/notices/actions", &serde_json::from_str(many).expect("JSON")).await;
    assert_eq!((done.status.as_u16(), done.body["done"].as_array().map(Vec::len)), (200, Some(1)), "{done:?}");
    assert_eq!(kinds().await.collect::<Vec<_>>(), [AlarmKind::FilesOnly]);
    assert!(advice.contains("POST /api/v1/notices/{id}/copies"), "{advice}");
    let sent = format!("SELECT id::text FROM notices WHERE permit_id = '{kept}' AND state = 'sent'");
    let path = format!("/notices/{}/copies", api.office.text(&sent).await.remove(0));
    let done = api.post(&path, &json!({ "reason": "it was only a file" })).await;
    assert_eq!(done.status, 200, "{done:?}");
    assert_eq!(kinds().await.collect::<Vec<_>>(), []);
    api.close().await;
}
