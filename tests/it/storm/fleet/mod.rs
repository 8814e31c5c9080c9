//! The processes that send and scan, and what becomes of them.

mod leaving;

use std::{
    fmt,
    time::{Duration, Instant},
};

use chrono::TimeDelta;
use fastrand::Rng;
use nix::sys::signal::Signal;

use leaving::{Leaving, Told};

use super::{PATTERN, STAGE_PATTERN, settings::Settings, truth, turning_up, weather};
use crate::support::{
    dispatching::{Dispatching, Role},
    postbox::{
        Postbox,
        proxy::{Commits, Proxy},
        until,
    },
    smtp_server::SmtpServer,
};

const TICK: Duration = Duration::from_millis(100);
/// Most ticks between two waves of permits that are due, each with a scan of all processes at once.
const WAVES: u32 = 5;
/// How long a process that is stopped may go on with what is in flight.
const STOP_LIMIT: Duration = Duration::from_secs(3);
/// The same for one in a hurry: what is in flight is dropped before its reply comes.
const SHORT_STOP_LIMIT: Duration = Duration::from_millis(30);
/// What was done.
#[derive(Debug, Default)]
pub struct Count {
    killed: u32,
    stopped: u32,
    terminated: u32,
    /// Processes that ended because their input did.
    ended: u32,
    backends: i64,
    answers: usize,
    /// What processes did that they must not.
    pub faults: Vec<String>,
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { killed, stopped, terminated, ended, backends, answers, .. } = self;
        let cuts = *backends + *answers as i64;
        write!(f, "{killed} crashes, {stopped} stops, {terminated} terms, {ended} ends, {cuts} cuts")
    }
}

struct Ship {
    child: Dispatching,
    proxy: Proxy,
    stopped_until: Option<Instant>,
    /// It keeps COMMITs or their answers back.
    proxy_holds: bool,
    /// A stop leaves it no time.
    hasty: bool,
}

impl Ship {
    /// Lets it go on if it stopped itself.
    fn go_on(&mut self) {
        if self.child.stands_still() {
            self.child.signal(Signal::SIGCONT);
        }
    }
}

pub struct Fleet<'p> {
    post: &'p Postbox,
    server: &'p SmtpServer,
    settings: &'p Settings,
    ships: Vec<Ship>,
    leaving: Vec<Leaving>,
    random: Rng,
    count: Count,
    ticks: u32,
    /// Permits that are still to turn up.
    to_come: usize,
    next_wave: u32,
    /// When a COMMIT was kept back last. Its connection hangs for long after, and so do those who wait for its locks.
    held_at: Option<Instant>,
}

impl<'p> Fleet<'p> {
    pub async fn start(
        post: &'p Postbox,
        server: &'p SmtpServer,
        settings: &'p Settings,
        to_come: usize,
        mut random: Rng,
    ) -> Self {
        let size = random.usize(3..6);
        let (ships, leaving, count) = Default::default();
        let mut fleet = Self {
            post,
            server,
            settings,
            ships,
            leaving,
            random,
            count,
            ticks: 0,
            to_come,
            next_wave: 0,
            held_at: None,
        };
        for _ in 0..size {
            let ship = fleet.launch(Proxy::to(&post.url)).await;
            fleet.ships.push(ship);
        }
        fleet
    }

    async fn launch(&mut self, proxy: Proxy) -> Ship {
        let hasty = self.random.u8(0..3) == 0;
        let role = Role {
            way: proxy.url.clone(),
            senders: self.settings.senders(&mut self.random),
            lease: Duration::from_secs(self.random.u64(3..5)),
            loiter: self.settings.loiter(),
            stop_limit: if hasty { SHORT_STOP_LIMIT } else { STOP_LIMIT },
            ..Role::with_slow_server(self.post, self.server)
        };
        let child = Dispatching::start(&role).await;
        Ship { child, proxy, stopped_until: None, proxy_holds: false, hasty }
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
        self.see_off().await;
        if self.ticks >= self.next_wave {
            self.next_wave = self.ticks + self.random.u32(1..=WAVES);
            self.wave().await;
        }
        match self.random.u8(0..20) {
            0..2 => self.kill_backends().await,
            2 => self.post.clock.advance(TimeDelta::minutes(self.random.i64(1..60))),
            _ => {}
        }
    }

    async fn hit(&mut self, number: usize) {
        let ship = &mut self.ships[number];
        if ship.child.stands_still() {
            // Some longer than any lease.
            let pause = Duration::from_millis(self.random.u64(50..6000));
            ship.stopped_until = Some(Instant::now() + pause);
            self.count.stopped += 1;
        }
        if let Some(until) = ship.stopped_until {
            if Instant::now() >= until {
                ship.child.signal(Signal::SIGCONT);
                ship.stopped_until = None;
            } else if self.random.u8(0..50) == 0 {
                self.kill(number).await;
            }
            return;
        }
        if ship.child.has_ended() {
            self.count.faults.push("a process ended although nobody had asked it to".to_owned());
            self.kill(number).await;
            return;
        }
        if ship.proxy_holds {
            ship.proxy.let_commits(Commits::Pass);
            ship.proxy_holds = false;
        }
        match self.random.u8(0..60) {
            0..2 => self.kill(number).await,
            2 => self.tell_to_end(number, Told::BySignal).await,
            3 if self.random.bool() => self.tell_to_end(number, Told::ByInput).await,
            4 => {
                let pause = Duration::from_millis(self.random.u64(50..6000));
                ship.child.signal(Signal::SIGSTOP);
                ship.stopped_until = Some(Instant::now() + pause);
                self.count.stopped += 1;
            }
            6..9 => ship.proxy.let_commits(Commits::LoseNextAnswer),
            // Seldom: all who share the connection wait for a long time.
            9 if self.random.u8(0..3) == 0 => {
                ship.proxy
                    .let_commits(*self.random.choice(&[Commits::KeepBack, Commits::KeepAnswersBack]).expect("some"));
                ship.proxy_holds = true;
                self.held_at = Some(Instant::now());
            }
            _ => {}
        }
    }

    /// Kills this process, and starts another.
    async fn kill(&mut self, number: usize) {
        self.count.killed += 1;
        let ship = self.ships.remove(number);
        ship.child.kill();
        self.count.answers += ship.proxy.caught();
        let ship = self.launch(Proxy::to(&self.post.url)).await;
        self.ships.insert(number, ship);
    }

    /// Permits turn up that are due, and everybody scans at once.
    async fn wave(&mut self) {
        let size = self.settings.wave().min(self.to_come);
        self.to_come -= size;
        let like = if self.random.bool() { PATTERN } else { STAGE_PATTERN };
        turning_up(self.post, like, size).await;
        for ship in &mut self.ships {
            ship.child.scan();
        }
    }

    async fn kill_backends(&mut self) {
        let some = "SELECT count(pg_terminate_backend(pid)) FROM (
                        SELECT pid FROM pg_stat_activity WHERE datname = current_database()
                        AND application_name LIKE 'permit-notifier%' ORDER BY random() LIMIT 3) AS chosen";
        self.count.backends += self.post.count(some).await;
    }

    /// The end of the storm: half of the processes are killed. Then all is well, and the rest is stopped in the midst
    /// of its work, which must leave nothing ambiguous.
    pub async fn end(mut self) -> Count {
        self.server.behave([]);
        for ship in std::mem::take(&mut self.ships) {
            ship.proxy.let_commits(Commits::Pass);
            if ship.hasty || ship.stopped_until.is_some() || self.random.bool() {
                self.count.killed += 1;
                ship.child.kill();
                self.count.answers += ship.proxy.caught();
            } else {
                self.ships.push(ship);
            }
        }
        while self.ships.is_empty() {
            let ship = self.launch(Proxy::to(&self.post.url)).await;
            if !ship.hasty {
                self.ships.push(ship);
            }
        }
        for ship in &mut self.ships {
            ship.child.let_go();
            ship.go_on();
        }
        self.post
            .execute("UPDATE transport SET paused_until = NULL, fault = NULL, probe_boot_id = NULL, probe_token = NULL")
            .await;
        self.post.execute(truth::CALM).await;
        self.to_come = self.to_come.max(self.settings.wave() * 2);
        self.wave().await;
        let begun = "SELECT count(*) FROM storm_log l, storm_calm c WHERE l.place = 'attempts' AND l.at > c.at";
        until("something is sent in calm weather", async || {
            self.ships.iter_mut().for_each(Ship::go_on);
            self.post.count(begun).await > 4
        })
        .await;
        for ship in std::mem::take(&mut self.ships) {
            self.let_leave(ship, Told::BySignal, true);
        }
        while !self.leaving.is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
            self.see_off().await;
        }
        self.count
    }
}
