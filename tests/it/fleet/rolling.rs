//! Replicas are replaced one after another in the midst of the work, as for another version of the program.
//!
//! The large one: `cargo test --test it fleet::rolling -- --ignored --nocapture`

use std::time::{Duration, Instant};

use super::{UNSENT, all_sent_once, due, land, launch};
use crate::support::{
    postbox::{Postbox, until_within},
    service::{Service, desk},
    smtp_server::{Behaviour, SmtpServer},
};

const REPLICAS: usize = 3;
const PATIENT: Duration = Duration::from_mins(5);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_replicas_are_replaced_in_the_midst_of_600_sends() {
    replace_all(600).await;
}

#[ignore = "takes a minute, and wants the machine for itself"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_replicas_are_replaced_in_the_midst_of_5000_sends() {
    replace_all(5000).await;
}

async fn replace_all(notices: usize) {
    let post = Postbox::open().await;
    due(&post, notices).await;
    // Slow enough that each stop meets messages past the gate, of all senders.
    let server = SmtpServer::start(Behaviour { final_reply: Duration::from_millis(40), ..Behaviour::default() });
    let began = Instant::now();
    let mut services: Vec<Service> = launch(&post, &server.url(), REPLICAS, |desk| desk);
    let mut stops = Vec::new();
    for (number, service) in services.iter_mut().enumerate() {
        let share = notices * (number + 1) / (REPLICAS + 2);
        until_within(PATIENT, "they are in the midst of it", async || server.taken() >= share).await;
        let told = Instant::now();
        service.terminate();
        assert_eq!(service.ended(), Some(0), "{}", service.said());
        stops.push(told.elapsed());
        assert!(server.taken() < notices, "nothing was left for those who stay");
        *service = Service::start(desk(&post, &server.url()));
    }
    until_within(PATIENT, "all is sent", async || {
        tokio::time::sleep(Duration::from_millis(100)).await;
        post.count(UNSENT).await == 0
    })
    .await;
    let took = began.elapsed();
    land(services);
    let ambiguous = post.count("SELECT count(*) FROM attempts WHERE outcome = 'ambiguous'").await;
    let other = post.count("SELECT count(*) FROM attempts WHERE outcome <> 'accepted'").await;
    println!("{notices} sent in {took:.1?}; stops took {stops:.2?}; {ambiguous} ambiguous, {other} not accepted");
    assert_eq!(ambiguous, 0);
    assert_eq!(other, 0, "nothing past the gate was given up");
    let senders = "SELECT count(DISTINCT boot_id) FROM attempts";
    assert_eq!(post.count(senders).await, 2 * REPLICAS as i64, "each process sent some");
    assert_eq!(post.count("SELECT count(*) FROM processes WHERE ended_at IS NULL").await, 0);
    all_sent_once(&post, &server, notices).await;
}
