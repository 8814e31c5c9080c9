//! Whoever asks: connections that are kept, and as little work as HTTP allows.

use std::time::{Duration, Instant};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
    time::sleep_until,
};

use crate::{
    CONNECTIONS, Error,
    office::{ID_START, Office, PERMITS},
};

struct Connection {
    stream: TcpStream,
    token: String,
    answer: Vec<u8>,
}

impl Connection {
    async fn open(office: &Office) -> Result<Self, Error> {
        let stream = TcpStream::connect(office.address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, token: office.token.clone(), answer: Vec::with_capacity(8192) })
    }

    /// Sends a request and reads the whole answer, which must have this status and this text in it.
    async fn ask(&mut self, head: &str, body: &str, status: &str, text: &str) -> Result<(), Error> {
        let request = format!(
            "{head} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        );
        self.stream.write_all(request.as_bytes()).await?;
        self.answer.clear();
        loop {
            if self.stream.read_buf(&mut self.answer).await? == 0 {
                return Err("the connection ended".into());
            }
            if let Some(end) = end_of_head(&self.answer) {
                let head = std::str::from_utf8(&self.answer[..end])?;
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
                if self.answer.len() >= end + length.ok_or("the answer has no length")? {
                    break;
                }
            }
        }
        let answer = std::str::from_utf8(&self.answer)?;
        if answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.contains(text) {
            return Ok(());
        }
        Err(format!("{head} was answered {answer}").into())
    }
}

fn end_of_head(answer: &[u8]) -> Option<usize> {
    answer.windows(4).position(|four| four == b"\r\n\r\n").map(|place| place + 4)
}

/// All connections read one permit after the other for so long; says how many in a second.
pub async fn read_for(office: &Office, time: Duration) -> Result<f64, Error> {
    let mut readers = JoinSet::new();
    let started = Instant::now();
    for _ in 0..CONNECTIONS {
        let mut connection = Connection::open(office).await?;
        readers.spawn(async move {
            let mut read = 0_usize;
            while started.elapsed() < time {
                let id = format!("{ID_START}{:012}", fastrand::usize(1..=PERMITS));
                connection.ask(&format!("GET /api/v1/permits/{id}"), "", "200", &id).await?;
                read += 1;
            }
            Ok::<usize, Error>(read)
        });
    }
    let mut read = 0;
    while let Some(one) = readers.join_next().await {
        read += one??;
    }
    Ok(read as f64 / started.elapsed().as_secs_f64())
}

/// Records so many permits in each second for so long; says how long each took from when it was due.
pub async fn record_at(office: &Office, rate: u32, time: Duration) -> Result<Vec<Duration>, Error> {
    let every = Duration::from_secs(1) / rate;
    let count = time.as_secs() as usize * rate as usize;
    let mut writers = JoinSet::new();
    let started = tokio::time::Instant::now() + Duration::from_millis(200);
    for writer in 0..CONNECTIONS {
        let mut connection = Connection::open(office).await?;
        writers.spawn(async move {
            let mut times = Vec::new();
            for number in (writer..count).step_by(CONNECTIONS) {
                let due = started + every * number as u32;
                sleep_until(due).await;
                let number = format!("N-{number}");
                let body = format!(
                    r#"{{"permit_number": "{number}", "permit_type": "food", "holder_name": "Ada Holder",
                        "holder_email": "ada@example.org", "expires_on": "2040-06-30",
                        "contacts": [{{ "name": "Bo Agent", "email": "bo@example.org" }}]}}"#
                );
                connection.ask("POST /api/v1/permits", &body, "201", &number).await?;
                times.push(due.elapsed());
            }
            Ok::<_, Error>(times)
        });
    }
    let mut times = Vec::new();
    while let Some(one) = writers.join_next().await {
        times.extend(one??);
    }
    Ok(times)
}
