//! Letters that a person posted.

use permit_notifier::{
    domain::notice::NoticeState,
    store::actions::{Posting, posted},
};

use super::{Office, TODAY, day, invalid, on, wrong_state};

fn posting(on: &str) -> Posting<'static> {
    Posting { delivery: None, posted_on: day(on), tracking: None, by: "ann@example.org" }
}

#[tokio::test]
async fn a_posted_letter_is_sent_with_proof() {
    let office = Office::new().await;
    let permit = office.permit_with("1", |data| data.holder_email = None).await;
    let notice = office.notice(permit).await;
    let posting = Posting { tracking: Some("RR 12 DE"), ..posting("2026-06-02") };
    let connection = &mut office.connect().await;
    let state = posted(connection, notice, posting, &on("2026-06-03")).await.unwrap();
    assert_eq!(state, NoticeState::Sent);
    assert_eq!(
        office.ask("SELECT concat_ws('|', number, transport, outcome, response) FROM attempts").await,
        "1|letter|accepted|posted on 2026-06-02 by ann@example.org, tracking number RR 12 DE"
    );
    let why = wrong_state(posted(connection, notice, posting, &on("2026-06-03")).await);
    assert!(why.contains("sent"), "{why}");
}

#[tokio::test]
async fn days_and_words_are_checked() {
    let office = Office::new().await;
    let permit = office.permit_with("1", |data| data.holder_email = None).await;
    let notice = office.notice(permit).await;
    let connection = &mut office.connect().await;
    let rules = on("2026-06-03");
    for bad in ["2026-06-04", "2026-05-31"] {
        assert_eq!(invalid(posted(connection, notice, posting(bad), &rules).await), "posted_on");
    }
    let bad = Posting { tracking: Some("a\tb"), ..posting(TODAY) };
    assert_eq!(invalid(posted(connection, notice, bad, &rules).await), "tracking");
    assert_eq!(invalid(posted(connection, notice, Posting { by: " ", ..posting(TODAY) }, &rules).await), "by");
    assert_eq!(office.state(notice).await, "pending");
}

#[tokio::test]
async fn a_mail_cannot_be_posted() {
    let office = Office::new().await;
    let notice = office.pending("1").await;
    let mail = office.ask("SELECT id FROM deliveries").await.parse().unwrap();
    let chosen = Posting { delivery: Some(mail), ..posting(TODAY) };
    let why = wrong_state(posted(&mut office.connect().await, notice, chosen, &on(TODAY)).await);
    assert!(why.contains("email") && why.contains("pending"), "{why}");
}
