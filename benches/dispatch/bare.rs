//! What somebody would write who trusts the mail server and remembers nothing: lettre's own connection over a stream
//! with NODELAY (lettre sets none), one command at a time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use lettre::{
    address::Envelope,
    transport::smtp::{client::AsyncSmtpConnection, extension::ClientId},
};
use tokio::{net::TcpStream, task::JoinSet};

use crate::{CONCURRENCY, Error, office, office::Sent};

/// Sends every message once over [`CONCURRENCY`] connections; says how long that took.
pub async fn send_all(port: u16, messages: &[Sent]) -> Result<Duration, Error> {
    let letters: Result<Vec<(Envelope, Vec<u8>)>, Error> = messages.iter().map(letter).collect();
    let letters = Arc::new(letters?);
    let next = Arc::new(AtomicUsize::new(0));
    let started = Instant::now();
    let mut senders = JoinSet::new();
    for _ in 0..CONCURRENCY {
        senders.spawn(send_some(port, Arc::clone(&letters), Arc::clone(&next)));
    }
    while let Some(ended) = senders.join_next().await {
        ended??;
    }
    Ok(started.elapsed())
}

fn letter(message: &Sent) -> Result<(Envelope, Vec<u8>), Error> {
    let envelope = Envelope::new(Some(office::SENDER.parse()?), vec![message.recipient.parse()?])?;
    // Lettre ends the last line itself.
    let content = message.content.strip_suffix(b"\r\n").unwrap_or(&message.content);
    Ok((envelope, content.to_vec()))
}

async fn send_some(port: u16, letters: Arc<Vec<(Envelope, Vec<u8>)>>, next: Arc<AtomicUsize>) -> Result<(), Error> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.set_nodelay(true)?;
    let hello = ClientId::Domain("maple.example".to_owned());
    let mut connection = AsyncSmtpConnection::connect_with_transport(Box::new(stream), &hello).await?;
    while let Some((envelope, content)) = letters.get(next.fetch_add(1, Ordering::Relaxed)) {
        connection.send(envelope, content).await?;
    }
    connection.quit().await?;
    Ok(())
}
