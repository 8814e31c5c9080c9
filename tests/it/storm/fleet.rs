//! The processes that send, and what becomes of them.

use std::{
    fmt,
    time::{Duration, Instant},
};

use chrono::TimeDelta;
use fastrand::Rng;
use nix::sys::signal::Signal;

use super::weather;
use crate::support::{
    dispatching::{Dispatching, Role},
    postbox::{
        Postbox,
        proxy::{Commits, Proxy},
    },
    smtp_server::SmtpServer,
};

const TICK: Duration = Duration::from_millis(100);

/// What was done.
#[derive(Debug, Default)]
pub struct Count {
    killed: u32,
    stopped: u32,
    ended: u32,
    backends: i64,
    answers: usize,
    /// Processes that ended although nobody asked them to.
    fell: u32,
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} killed, {} stopped, {} ended, {} fell by themselves, {} backends, {} answers lost or late",
            self.killed, self.stopped, self.ended, self.fell, self.backends, self.answers
        )
    }
}

struct Ship {
    child: Dispatching,
    proxy: Proxy,
    stopped_until: Option<Instant>,
    /// It keeps COMMITs or their answers back.
    proxy_holds: bool,
}

pub struct Fleet<'p> {
    post: &'p Postbox,
    server: &'p SmtpServer,
    ships: Vec<Ship>,
    random: Rng,
    count: Count,
    ticks: u32,
}

impl<'p> Fleet<'p> {
    pub async fn start(post: &'p Postbox, server: &'p SmtpServer, size: usize, mut random: Rng) -> Self {
        let mut ships = Vec::new();
        for _ in 0..size {
            let proxy = Proxy::to(&post.url);
            let child = launch(post, server, &proxy, &mut random).await;
            ships.push(Ship { child, proxy, stopped_until: None, proxy_holds: false });
        }
        Self { post, server, ships, random, count: Count::default(), ticks: 0 }
    }

    /// A little later something else is wrong.
    pub async fn tick(&mut self) {
        tokio::time::sleep(TICK).await;
        self.ticks += 1;
        if self.ticks.is_multiple_of(2) {
            self.server.behave(weather::rules(&mut self.random));
        }
        // Otherwise the storm would wait for the server most of the time.
        self.post
            .execute(
                "UPDATE transport SET paused_until = NULL, pause_seconds = 0, fault = NULL, probe_boot_id = NULL,
                        probe_token = NULL, closed_at = closed_at - interval '1 hour'",
            )
            .await;
        for number in 0..self.ships.len() {
            self.hit(number).await;
        }
        match self.random.u8(0..20) {
            0..2 => self.kill_backends().await,
            2 => self.post.clock.advance(TimeDelta::minutes(self.random.i64(1..60))),
            _ => {}
        }
    }

    async fn hit(&mut self, number: usize) {
        let ship = &mut self.ships[number];
        if let Some(until) = ship.stopped_until {
            if Instant::now() >= until {
                ship.child.signal(Signal::SIGCONT);
                ship.stopped_until = None;
            } else if self.random.u8(0..50) == 0 {
                self.count.killed += 1;
                self.replace(number, true).await;
            }
            return;
        }
        if ship.child.has_ended() {
            self.count.fell += 1;
            self.replace(number, true).await;
            return;
        }
        if ship.proxy_holds {
            ship.proxy.let_commits(Commits::Pass);
            ship.proxy_holds = false;
        }
        match self.random.u8(0..60) {
            0..2 => {
                self.count.killed += 1;
                self.replace(number, true).await;
            }
            2 => {
                self.count.ended += 1;
                self.replace(number, false).await;
            }
            3..5 => {
                let pause = Duration::from_millis(self.random.u64(50..4000));
                ship.child.signal(Signal::SIGSTOP);
                ship.stopped_until = Some(Instant::now() + pause);
                self.count.stopped += 1;
            }
            5..8 => ship.proxy.let_commits(Commits::LoseNextAnswer),
            // Seldom: all who share the connection wait for a long time.
            8 if self.random.u8(0..3) == 0 => {
                ship.proxy
                    .let_commits(*self.random.choice(&[Commits::KeepBack, Commits::KeepAnswersBack]).expect("some"));
                ship.proxy_holds = true;
            }
            _ => {}
        }
    }

    /// Ends this process, killed or in order, and starts another.
    async fn replace(&mut self, number: usize, killed: bool) {
        let ship = self.ships.remove(number);
        ship.proxy.let_commits(Commits::Pass);
        if killed {
            ship.child.kill();
        } else {
            ship.child.end().await;
        }
        let child = launch(self.post, self.server, &ship.proxy, &mut self.random).await;
        self.ships.insert(number, Ship { child, proxy: ship.proxy, stopped_until: None, proxy_holds: false });
    }

    async fn kill_backends(&mut self) {
        let some = "SELECT count(pg_terminate_backend(pid)) FROM (
                        SELECT pid FROM pg_stat_activity WHERE datname = current_database()
                        AND application_name LIKE 'permit-notifier%' ORDER BY random() LIMIT 3) AS chosen";
        self.count.backends += self.post.count(some).await;
    }

    /// The end of the storm: half of the processes end in order, what stands still is killed.
    pub async fn end(mut self) -> Count {
        self.server.behave([]);
        for mut ship in self.ships.drain(..) {
            ship.proxy.let_commits(Commits::Pass);
            if ship.child.has_ended() {
                self.count.fell += 1;
            } else if ship.stopped_until.is_some() || self.random.bool() {
                ship.child.kill();
            } else {
                ship.child.end().await;
            }
            self.count.answers += ship.proxy.caught();
        }
        self.count
    }
}

async fn launch(post: &Postbox, server: &SmtpServer, proxy: &Proxy, random: &mut Rng) -> Dispatching {
    let role = Role {
        way: proxy.url.clone(),
        senders: random.usize(1..4),
        lease: Duration::from_secs(random.u64(2..4)),
        ..Role::with_slow_server(post, server)
    };
    Dispatching::start(&role).await
}
