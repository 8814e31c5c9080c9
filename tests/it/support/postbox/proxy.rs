//! A server between a pool and PostgreSQL that can swallow the answer to a COMMIT, or keep back COMMITs or their
//! answers for as long as their client lives.

use std::sync::{Arc, Mutex};

use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        UnixListener, UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    task::JoinSet,
};

/// A simple query that commits, as it goes over the wire.
const COMMIT: &[u8] = b"Q\0\0\0\x0bCOMMIT\0";

/// What becomes of a COMMIT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commits {
    /// It is done and answered.
    Pass,
    /// The next one is done, and its answer lost with the connection.
    LoseNextAnswer,
    /// It never comes to the database, and the client waits.
    KeepBack,
    /// It is done, and the client waits for its answer.
    KeepAnswersBack,
}

#[derive(Debug)]
struct Orders {
    commits: Commits,
    /// How many COMMITs were not let pass.
    caught: usize,
}

pub struct Proxy {
    pub url: String,
    orders: Arc<Mutex<Orders>>,
    _folder: TempDir,
    _serving: JoinSet<()>,
}

impl Proxy {
    /// A way to the database at `url` that is ours to cut.
    pub fn to(url: &str) -> Self {
        let (database, host) = url.split_once("?host=").expect("the URL of a socket");
        let server = format!("{}/.s.PGSQL.5432", host.replace("%2F", "/"));
        let folder = tempfile::tempdir().expect("a folder");
        let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).expect("a socket");
        let host = folder.path().display().to_string().replace('/', "%2F");
        let orders = Arc::new(Mutex::new(Orders { commits: Commits::Pass, caught: 0 }));
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, server, Arc::clone(&orders)));
        Self { url: format!("{database}?host={host}"), orders, _folder: folder, _serving: serving }
    }

    /// What becomes of COMMITs from now on.
    pub fn let_commits(&self, commits: Commits) {
        self.orders.lock().unwrap().commits = commits;
    }

    /// How many COMMITs did not pass, or their answers.
    pub fn caught(&self) -> usize {
        self.orders.lock().unwrap().caught
    }
}

async fn serve(listener: UnixListener, server: String, orders: Arc<Mutex<Orders>>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let server = UnixStream::connect(&server).await.expect("the server");
        connections.spawn(carry(client, server, Arc::clone(&orders)));
    }
}

async fn carry(client: UnixStream, server: UnixStream, orders: Arc<Mutex<Orders>>) {
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let answers = Arc::new(Mutex::new(Commits::Pass));
    tokio::select! {
        () = forth(from_client, to_server, &orders, &answers) => {}
        () = back(from_server, to_client, &answers) => {}
    }
}

/// Carries what the client says. Ends with the client, and so does the connection to the database.
async fn forth(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, orders: &Mutex<Orders>, answers: &Mutex<Commits>) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        if buffer[..count].windows(COMMIT.len()).any(|window| window == COMMIT) {
            let what = orders.lock().unwrap().catch();
            *answers.lock().unwrap() = what;
            if what == Commits::KeepBack {
                while let Ok(1..) = from.read(&mut buffer).await {}
                return;
            }
        }
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

impl Orders {
    /// What becomes of this COMMIT.
    fn catch(&mut self) -> Commits {
        let what = self.commits;
        if what != Commits::Pass {
            self.caught += 1;
        }
        if what == Commits::LoseNextAnswer {
            self.commits = Commits::Pass;
        }
        what
    }
}

async fn back(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, answers: &Mutex<Commits>) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let what = *answers.lock().unwrap();
        match what {
            Commits::LoseNextAnswer => return,
            Commits::KeepAnswersBack => {}
            Commits::Pass | Commits::KeepBack => {
                if to.write_all(&buffer[..count]).await.is_err() {
                    return;
                }
            }
        }
    }
}
