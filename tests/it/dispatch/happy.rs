//! When nothing goes wrong.

use std::{collections::BTreeSet, fs, sync::Arc};

use chrono::TimeDelta;
use permit_notifier::mail::FileMailer;
use sha2::{Digest, Sha256};

use super::holder;
use crate::support::postbox::{Postbox, in_days};

#[tokio::test]
async fn every_notice_becomes_one_file_with_the_bytes_on_record() {
    let post = Postbox::open().await;
    for number in 0..6 {
        post.permit(&holder(number)).await;
    }
    post.permit_with(&holder(6), in_days(14), &["agent@x.example"]).await;
    let folder = tempfile::tempdir().unwrap();
    let mailer = Arc::new(FileMailer::new(folder.path()));
    let (report, down) = post.dispatch_with(mailer.clone()).await;
    assert_eq!((report.accepted, report.left_pending, down), (8, 0, false));

    let attempts = post.attempts().await;
    assert_eq!(attempts.len(), 8);
    let mut expected = BTreeSet::new();
    for copy in post.copies().await {
        assert_eq!((copy.end().as_str(), copy.notice_state.as_str(), copy.lease_token), ("sent", "sent", None));
        let message_id = copy.message_id.unwrap();
        let name = FileMailer::file_name(&message_id);
        let bytes = fs::read(folder.path().join(&name)).unwrap();
        let hash = Sha256::digest(&bytes).to_vec();
        let attempt = attempts.iter().find(|attempt| attempt.delivery_id == copy.id).unwrap();
        assert_eq!((attempt.transport.as_str(), attempt.outcome.as_str(), attempt.number), ("file", "accepted", 1));
        assert_eq!(attempt.response.as_ref(), Some(&name));
        assert_eq!((copy.payload_sha256.as_ref(), attempt.payload_sha256.as_ref()), (Some(&hash), Some(&hash)));
        assert_eq!(attempt.content.as_ref(), Some(&bytes));
        let header = format!("Message-ID: {message_id}\r\n");
        assert!(bytes.windows(header.len()).any(|window| window == header.as_bytes()));
        expected.insert(name);
    }
    let names = || fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(names().collect::<BTreeSet<_>>(), expected);

    let (again, _) = post.dispatch_with(mailer).await;
    assert_eq!((again.accepted, post.attempts().await.len(), names().count()), (0, 8, 8));
    post.check().await;
}

#[tokio::test]
async fn what_is_not_due_yet_or_to_be_posted_is_not_taken() {
    let post = Postbox::open().await;
    let posted = post.permit(&holder(0)).await;
    post.correct(posted, |permit| permit.holder_email = None).await;
    post.permit(&holder(1)).await;
    post.execute(
        "UPDATE deliveries SET next_attempt_at = next_attempt_at + interval '5 minutes' WHERE state = 'pending'",
    )
    .await;
    assert_eq!(post.dispatch().await.left_pending, 1);
    assert_eq!(post.mailer.taken_by(), Vec::<String>::new());
    post.clock.advance(TimeDelta::minutes(5));
    assert_eq!(post.dispatch().await.accepted, 1);
    assert_eq!(post.mailer.taken_by(), [holder(1)]);
    let copies = post.copies().await;
    let letter = copies.iter().find(|copy| copy.channel == "letter").unwrap();
    assert_eq!((letter.state.as_str(), letter.lease_token), ("pending", None));
    post.check().await;
}

#[tokio::test]
async fn outside_the_window_nothing_is_taken() {
    let mut post = Postbox::open().await;
    post.window = Some("Mon-Fri 08:00-11:00".parse().unwrap());
    post.permit(&holder(0)).await;
    let report = post.dispatch().await;
    assert_eq!((report.accepted, report.left_pending), (0, 1));
    assert!(post.copies().await[0].lease_token.is_none());
    post.clock.advance(TimeDelta::hours(20));
    assert_eq!(post.dispatch().await.accepted, 1);
    post.check().await;
}

#[tokio::test]
async fn what_must_go_first_goes_first() {
    let post = Postbox::open().await;
    for (number, days) in [30, 14, 1, 7].into_iter().enumerate() {
        post.permit_expiring(&holder(number), in_days(days)).await;
    }
    let replica = post.replica(1).await;
    assert_eq!(replica.run_once().await.0.accepted, 4);
    let order: Vec<_> = post.mailer.ledger().into_iter().map(|taken| taken.recipient).collect();
    assert_eq!(order, [2, 3, 1, 0].map(holder));
    replica.leave().await;
    post.check().await;
}

#[tokio::test]
async fn a_pass_reports_its_own_work_only() {
    let post = Postbox::open().await;
    let replica = post.replica(2).await;
    for number in 0..2 {
        post.permit(&holder(number)).await;
        assert_eq!(replica.run_once().await.0.accepted, 1);
    }
    replica.leave().await;
    post.check().await;
}
