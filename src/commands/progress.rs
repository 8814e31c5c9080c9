//! How far an import is: on a terminal one line of standard error that is drawn anew, with the rate and what is left; in
//! a pipe nothing.

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::domain::saying::counted;
use crate::files::{Phase, Progress};

/// Time between two drawings.
const EVERY: Duration = Duration::from_millis(200);

/// The line.
#[derive(Debug)]
pub struct Meter {
    is_terminal: bool,
    at: Mutex<At>,
}

#[derive(Debug)]
struct At {
    /// The last that was said; none while the file is looked through.
    progress: Option<Progress>,
    /// When its phase began.
    since: Instant,
    drawn: Option<Instant>,
}

impl Meter {
    /// A line on standard error, if that is a terminal.
    pub fn new() -> Self {
        let at = At { progress: None, since: Instant::now(), drawn: None };
        Self { is_terminal: std::io::stderr().is_terminal(), at: Mutex::new(at) }
    }

    /// Notes how far it is.
    pub fn show(&self, progress: Progress) {
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        let begins = at.progress.is_none_or(|before| before.phase != progress.phase);
        // The first that can be told of a rate is drawn at once: a small file has no other.
        let first = at.progress.is_none_or(|before| before.done == 0);
        if begins {
            at.since = Instant::now();
        }
        at.progress = Some(progress);
        if begins || first || at.drawn.is_none_or(|drawn| drawn.elapsed() >= EVERY) {
            self.draw(&mut at);
        }
    }

    /// Draws the line while `work` goes on, and clears it at the end.
    pub async fn beside<T>(&self, work: impl Future<Output = T>) -> T {
        if !self.is_terminal {
            return work.await;
        }
        let mut work = std::pin::pin!(work);
        let mut tick = tokio::time::interval(EVERY);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                done = &mut work => {
                    self.write("");
                    return done;
                }
                _ = tick.tick() => self.draw(&mut self.at.lock().unwrap_or_else(PoisonError::into_inner)),
            }
        }
    }

    fn draw(&self, at: &mut At) {
        at.drawn = Some(Instant::now());
        self.write(&line(at.progress, at.since.elapsed()));
    }

    /// The place stays at the beginning of the line, so that what others say there begins it too.
    fn write(&self, line: &str) {
        if self.is_terminal {
            let mut err = std::io::stderr().lock();
            let _ = write!(err, "\r\x1b[K{line}\r").and_then(|()| err.flush());
        }
    }
}

fn line(progress: Option<Progress>, elapsed: Duration) -> String {
    match progress {
        None | Some(Progress { phase: Phase::Looking, done: 0, .. }) => {
            format!("Looking through the file: {} so far", time(elapsed.as_secs()))
        }
        Some(Progress { phase: Phase::Looking, done, total }) => {
            let (rate, left) = rate(done, total, elapsed);
            let [done, total, rate] = [done, total, rate].map(|bytes| grouped(bytes.div_ceil(1 << 20)));
            format!("Looking through the file: {done} of {total} MB, {rate} MB a second, {} left", time(left))
        }
        Some(Progress { phase: Phase::Reading, done: 0, total }) => {
            format!("Reading {}", counted(grouped(total), "row"))
        }
        Some(Progress { phase: Phase::Reading, done, total }) => {
            let (rate, left) = rate(done, total, elapsed);
            let [done, total, rate] = [done, total, rate].map(grouped);
            let total = counted(total, "row");
            format!("Reading: {done} of {total}, {rate} a second, {} left", time(left))
        }
        Some(Progress { phase: Phase::Waiting, .. }) => {
            format!("Waiting until another import is applied: {} so far", time(elapsed.as_secs()))
        }
        Some(Progress { phase: Phase::Applying, total, .. }) => {
            format!("Applying {} in one go: {} so far", counted(grouped(total), "permit"), time(elapsed.as_secs()))
        }
    }
}

/// How much is done in a second, and how many seconds are left.
fn rate(done: u64, total: u64, elapsed: Duration) -> (u64, u64) {
    let rate = (done as f64 / elapsed.as_secs_f64().max(0.001)) as u64;
    (rate, total.saturating_sub(done).div_ceil(rate.max(1)))
}

/// Digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A time for people.
fn time(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}
