//! The server is well.

use std::collections::HashSet;

use super::{agrees, due, patient};
use crate::support::{
    postbox::{Postbox, Replica},
    smtp_server::SmtpServer,
};

#[tokio::test]
async fn sixty_notices_are_accepted_with_one_message_each() {
    let post = Postbox::open().await;
    due(&post, 60).await;
    let server = SmtpServer::with([]);
    let (report, is_down) = post.dispatch_with(patient(&server)).await;
    assert_eq!((report.accepted, report.left_pending, is_down), (60, 0, false));
    let taken = server.accepted();
    let ids: HashSet<_> = taken.iter().map(|message| message.message_id.as_str()).collect();
    let recipients: HashSet<_> = taken.iter().map(|message| message.recipient.as_str()).collect();
    assert_eq!((taken.len(), ids.len(), recipients.len()), (60, 60, 60));
    assert_eq!(server.hasty(), 0, "no command came before the reply it had to wait for");
    assert!(server.connections() <= 4, "each sender kept its connection");
    assert!(post.copies().await.iter().all(|copy| copy.end() == "sent"));
    agrees(&post, &server).await;
}

#[tokio::test]
async fn two_replicas_share_what_is_due_and_send_nothing_twice() {
    let post = Postbox::open().await;
    due(&post, 60).await;
    let server = SmtpServer::with([]);
    let one = Replica::start(post.rules(patient(&server), 3)).await;
    let other = Replica::start(post.rules(patient(&server), 3)).await;
    let (ours, theirs) = tokio::join!(one.run_once(), other.run_once());
    assert_eq!(ours.0.accepted + theirs.0.accepted, 60);
    assert_eq!(server.accepted().len(), 60);
    one.leave().await;
    other.leave().await;
    agrees(&post, &server).await;
}
