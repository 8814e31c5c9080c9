//! Several replicas of the program itself on one database: what they do together, and what the mail server saw.

mod database;
mod outage;
mod revoking;
mod rolling;
mod versions;

use std::collections::HashSet;

use crate::support::{
    postbox::Postbox,
    program::Desk,
    service::{Service, desk},
    smtp_server::SmtpServer,
};

/// Permits with a notice that is due, for so many holders.
async fn due(post: &Postbox, count: usize) {
    post.permit(&crate::sending::holder(0)).await;
    post.more_of_the_same(count).await;
}

/// So many replicas, each listening before the next one starts.
fn launch(post: &Postbox, smtp_url: &str, replicas: usize, set: impl Fn(Desk) -> Desk) -> Vec<Service> {
    (0..replicas).map(|_| Service::start(set(desk(post, smtp_url)))).collect()
}

/// All end in order.
fn land(mut services: Vec<Service>) {
    services.iter().for_each(Service::terminate);
    for service in &mut services {
        assert_eq!(service.ended(), Some(0), "{}", service.said());
    }
}

const UNSENT: &str = "SELECT count(*) FROM deliveries WHERE state <> 'sent'";

/// The mail server took so many messages, each once and no others, and the database says of each what the server does.
async fn all_sent_once(post: &Postbox, server: &SmtpServer, notices: usize) {
    post.check_states().await;
    assert_eq!(post.count(UNSENT).await, 0);
    assert_eq!(post.count("SELECT count(*) FROM deliveries").await, notices as i64);
    let taken = server.accepted();
    assert_eq!(taken.len(), notices, "the server took");
    let taken: HashSet<_> =
        taken.into_iter().map(|message| (message.message_id, message.recipient, message.sha256)).collect();
    let known: Vec<(String, String, String)> = sqlx::query_as(
        "SELECT d.message_id, d.recipient, encode(a.payload_sha256, 'hex')
         FROM attempts a JOIN deliveries d ON d.id = a.delivery_id WHERE a.outcome = 'accepted'",
    )
    .fetch_all(&mut post.session().await)
    .await
    .expect("what was accepted");
    assert_eq!(known.len(), notices, "the database says accepted");
    let known: HashSet<_> = known.into_iter().collect();
    assert!(known == taken, "{:?}", known.symmetric_difference(&taken).next());
    let recipients: HashSet<_> = taken.iter().map(|(_, recipient, _)| recipient).collect();
    assert_eq!(recipients.len(), notices, "everybody has one");
}
