//! How fast: 5,000 messages of 6 KB over 20 connections. Run by hand, with `--ignored --nocapture`.

use std::time::{Duration, Instant};

use permit_notifier::{
    domain::attempt::Outcome,
    mail::{Composed, Mailer as _},
};
use tokio::task::JoinSet;

use super::{limits, mailer, message, send_all};
use crate::support::smtp_server::{Behaviour, SmtpServer};

const MESSAGES: usize = 5_000;
const SESSIONS: usize = 20;

fn six_kilobytes(number: usize) -> Composed {
    let mut message = message(&format!("a{number}@bakery.example"));
    while message.bytes.len() < 6 * 1024 {
        message.bytes.extend_from_slice(b"A line that makes the message as long as most are.\r\n");
    }
    message.envelope.size = Some(message.bytes.len());
    message
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn five_thousand_messages_over_twenty_connections() {
    let messages: Vec<_> = (0..MESSAGES).map(six_kilobytes).collect();
    for round_trip in [0, 20] {
        for pipelining in [true, false] {
            let behaviour =
                Behaviour { pipelining, round_trip: Duration::from_millis(round_trip), ..Behaviour::default() };
            let server = SmtpServer::start(behaviour);
            let mailer = mailer(&server.url(), limits());
            let begun = Instant::now();
            let mut senders = JoinSet::new();
            for share in messages.chunks(MESSAGES / SESSIONS) {
                let (mut session, share) = (mailer.session(), share.to_vec());
                senders.spawn(async move { send_all(&mut *session, &share).await });
            }
            let ends: Vec<_> = senders.join_all().await.concat();
            let seconds = begun.elapsed().as_secs_f64();
            assert!(ends.iter().all(|ended| ended.outcome == Outcome::Accepted));
            assert_eq!(server.accepted().len(), MESSAGES);
            println!("round trip {round_trip} ms, pipelining {pipelining}: {:.0} a second", MESSAGES as f64 / seconds);
        }
    }
}
