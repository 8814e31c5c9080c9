//! Processes that were told to end, and whether they do so in order and in time.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::{Fleet, Ship};
use crate::{
    storm::truth,
    support::{
        dispatching::CUT_OFF,
        postbox::proxy::{Commits, Proxy},
    },
};

/// How long a process that was told to end may live, its last words included, where nothing hangs.
const END_LIMIT: Duration = Duration::from_secs(20);

/// A connection that hangs is given up by then, by its client or by the database.
const HANG: Duration = Duration::from_secs(40);

#[derive(Debug, Clone, Copy)]
pub(super) enum Told {
    BySignal,
    ByInput,
}

/// One that was told to end, and takes its time.
pub(super) struct Leaving {
    ship: Ship,
    how: &'static str,
    since: Instant,
    /// Nothing was wrong when it was told.
    in_calm: bool,
}

impl Fleet<'_> {
    /// Starts another beside this one, which ends in its own time.
    pub(super) async fn tell_to_end(&mut self, number: usize, told: Told) {
        let other = self.launch(Proxy::to(&self.post.url)).await;
        let ship = std::mem::replace(&mut self.ships[number], other);
        self.let_leave(ship, told, false);
    }

    pub(super) fn let_leave(&mut self, mut ship: Ship, told: Told, in_calm: bool) {
        ship.proxy.let_commits(Commits::Pass);
        let how = match told {
            Told::BySignal => {
                self.count.terminated += 1;
                ship.child.signal(Signal::SIGTERM);
                "SIGTERM"
            }
            Told::ByInput => {
                self.count.ended += 1;
                ship.child.close_input();
                "the end of its input"
            }
        };
        self.leaving.push(Leaving { ship, how, since: Instant::now(), in_calm });
    }

    /// Notes how those ended that did. Who waits for a connection that hangs may be cut off, and so may one in a hurry,
    /// when somebody who changes many permits holds its rows.
    pub(super) async fn see_off(&mut self) {
        let something_hangs = self.held_at.is_some_and(|at| at.elapsed() < HANG);
        for mut leaving in std::mem::take(&mut self.leaving) {
            leaving.ship.go_on();
            let Some(status) = leaving.ship.child.exit_status() else {
                let limit = if something_hangs { END_LIMIT + HANG } else { END_LIMIT };
                if leaving.since.elapsed() < limit {
                    self.leaving.push(leaving);
                } else {
                    self.count.faults.push(format!("a process lived on for {limit:?} after {}", leaving.how));
                    leaving.ship.child.kill();
                }
                continue;
            };
            self.count.answers += leaving.ship.proxy.caught();
            if status.success() {
                self.note_stop(&leaving).await;
            } else if !((something_hangs || leaving.ship.hasty) && status.code() == Some(CUT_OFF)) {
                self.count.faults.push(format!("a process ended with {status} after {}", leaving.how));
            }
        }
    }

    async fn note_stop(&self, leaving: &Leaving) {
        if leaving.in_calm {
            let noted = sqlx::query(truth::STOPPED).bind(leaving.ship.child.number() as i32);
            noted.execute(&mut self.post.session().await).await.expect("a note of it");
        }
    }
}
