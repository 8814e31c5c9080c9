//! A PostgreSQL of one test's own, which it can shut down, let crash and start again where it was.

use nix::sys::signal::{Signal, kill};
use permit_notifier::private_postgres::PrivatePostgres;

use super::run_folder::TestDir;
use crate::{memory::find, private_postgres::postmaster};

/// How a server ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Sessions are cut off, everything is written.
    Fast,
    /// At once; the next start recovers what was committed.
    Crash,
}

/// Durable: what it acknowledged is there after a crash.
pub struct OwnServer {
    folder: TestDir,
    server: Option<PrivatePostgres>,
    pub url: String,
}

impl OwnServer {
    /// Blocks while the server starts.
    pub fn start() -> Self {
        let folder = TestDir::new();
        let server = open(&folder);
        Self { url: server.url(), server: Some(server), folder }
    }

    /// Returns when it has ended.
    pub fn stop(&mut self, how: Stop) {
        let server = self.server.take().expect("a server that runs");
        if how == Stop::Crash {
            kill(postmaster(&self.folder), Signal::SIGQUIT).expect("the server is there");
        }
        server.stop();
    }

    /// Another timeline goes on where this one ended, as when a standby takes over. Returns when it answers.
    pub fn fail_over(&mut self) {
        self.stop(Stop::Fast);
        let data = find(self.folder.path(), "PG_VERSION").expect("the data of the server");
        let data = data.parent().expect("its folder");
        std::fs::write(data.join("recovery.signal"), "").expect("written");
        let path = data.join("postgresql.auto.conf");
        let settings = "restore_command = 'false'\nhot_standby = off\n";
        std::fs::write(&path, std::fs::read_to_string(&path).unwrap_or_default() + settings).expect("written");
        self.start_again();
    }

    /// Returns when it answers, where it did before.
    pub fn start_again(&mut self) {
        let server = open(&self.folder);
        assert_eq!(server.url(), self.url);
        self.server = Some(server);
    }
}

fn open(folder: &TestDir) -> PrivatePostgres {
    PrivatePostgres::open(folder.path()).unwrap_or_else(|error| panic!("{error}"))
}
