//! `serve` as a process: one replica of several on one database, with mail by SMTP.

use nix::sys::signal::Signal;

use super::{
    postbox::{Postbox, noon},
    program::{Desk, Running, get},
};

/// A folder and settings of a replica that sends from that database.
pub fn desk(post: &Postbox, smtp_url: &str) -> Desk {
    Desk::new()
        .with("DATABASE_URL", &post.url)
        .with("SMTP_URL", smtp_url)
        .with("MAIL_FROM", "Maple County <permits@maple.example>")
        .with("MAIL_CONCURRENCY", "4")
        .with("ENVIRONMENT", "tests")
        .with("MAIL_ALLOWLIST", "*")
        .with("CLOCK", noon().to_rfc3339())
}

/// A replica that runs.
pub struct Service {
    /// Where its pages are, with a slash at the end.
    pub url: String,
    serve: Running,
    /// Its folder goes with it.
    _desk: Desk,
}

impl Service {
    /// Returns when it listens.
    pub fn start(desk: Desk) -> Self {
        let mut serve = desk.start(&["serve"]);
        let line = serve.wait_for("Listening on http://");
        let url = line.split_whitespace().last().expect("an address").to_owned();
        Self { url, serve, _desk: desk }
    }

    /// The status of one of its pages.
    pub fn status(&self, path: &str) -> u16 {
        self.answer(path).0
    }

    /// Status and body of one of its pages.
    pub fn answer(&self, path: &str) -> (u16, String) {
        get(&format!("{}{path}", self.url))
    }

    /// Asks it to end.
    pub fn terminate(&self) {
        self.serve.signal(Signal::SIGTERM);
    }

    /// Waits for its end; gives the exit code.
    pub fn ended(&mut self) -> Option<i32> {
        self.serve.wait()
    }

    /// Everything it said that was not read yet, until it ended.
    pub fn said(&mut self) -> String {
        self.serve.rest().join("\n")
    }
}
