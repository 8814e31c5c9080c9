//! The scripted mail server of the tests, in a process of its own: this program once more, with another argument.

#[expect(dead_code, unused_imports, reason = "made for the tests; a benchmark needs little of it")]
#[path = "../../tests/it/support/smtp_server/mod.rs"]
mod smtp_server;

use std::{
    fs::File,
    io::{BufRead as _, BufReader, Read as _},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use smtp_server::{Accepted, Behaviour, SmtpServer};

use crate::Error;

/// What makes this program the mail server.
pub const ARGUMENT: &str = "--smtp-server";

/// How long the server lets its client wait.
#[derive(Debug, Clone, Copy)]
pub struct Delays {
    pub round_trip: Duration,
    pub final_reply: Duration,
}

impl Delays {
    pub fn any(self) -> bool {
        !(self.round_trip + self.final_reply).is_zero()
    }
}

/// One message that the server took, or that it should have taken.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Taken {
    pub message_id: String,
    pub recipient: String,
    pub sha256: String,
}

/// A mail server that runs until this is dropped.
pub struct Server {
    pub port: u16,
    process: Child,
    /// Read as far as the rounds before.
    ledger: BufReader<File>,
}

impl Server {
    pub fn start(delays: Delays, ledger: &Path) -> Result<Self, Error> {
        let millis = |delay: Duration| delay.as_millis().to_string();
        let mut process = Command::new(std::env::current_exe()?)
            .args([ARGUMENT, &millis(delays.round_trip), &millis(delays.final_reply)])
            .arg(ledger)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut port = String::new();
        let said = process.stdout.take().ok_or("the server's output is not ours")?;
        BufReader::new(said).read_line(&mut port)?;
        Ok(Self { port: port.trim().parse()?, process, ledger: BufReader::new(File::open(ledger)?) })
    }

    /// What it took since the last call.
    pub fn taken(&mut self) -> Result<Vec<Taken>, Error> {
        let mut lines = String::new();
        self.ledger.read_to_string(&mut lines)?;
        let taken = lines.lines().map(|line| {
            let Accepted { message_id, recipient, sha256, .. } = serde_json::from_str(line)?;
            Ok(Taken { message_id, recipient, sha256 })
        });
        taken.collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// Serves until the one who started us closes our input, or is gone.
pub fn serve(arguments: &[String]) -> Result<(), Error> {
    let [round_trip, final_reply, ledger] = arguments else { return Err("two delays and a ledger".into()) };
    let millis = |text: &str| Ok::<_, Error>(Duration::from_millis(text.parse()?));
    let server = SmtpServer::start(Behaviour {
        round_trip: millis(round_trip)?,
        final_reply: millis(final_reply)?,
        ledger: Some(ledger.into()),
        ..Behaviour::default()
    });
    println!("{}", server.port());
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    Ok(())
}
