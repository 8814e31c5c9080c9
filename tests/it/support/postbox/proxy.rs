//! A server between a pool and PostgreSQL that can swallow the answer to a COMMIT, keep back COMMITs or their answers
//! for as long as their client lives, cut a connection at any byte, be slow, and fall silent.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        UnixListener, UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
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

/// Who says something to whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    ToServer,
    ToClient,
}

#[derive(Debug)]
struct Orders {
    commits: Commits,
    /// How many COMMITs were not let pass.
    caught: usize,
    /// The connection that is to pass on so many bytes more this way, of all connections together, is cut after them.
    cut: Option<(Way, usize)>,
    /// How many bytes came, each way, since that was asked for last.
    came: [usize; 2],
    /// Everything comes so much later, both ways.
    delay: Duration,
}

pub struct Proxy {
    pub url: String,
    orders: Arc<Mutex<Orders>>,
    /// The number grows, and the connections that there are fall silent.
    silences: watch::Sender<u32>,
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
        let orders = Orders { commits: Commits::Pass, caught: 0, cut: None, came: [0, 0], delay: Duration::ZERO };
        let orders = Arc::new(Mutex::new(orders));
        let silences = watch::Sender::new(0);
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, server, Arc::clone(&orders), silences.clone()));
        let url = format!("{database}?host={host}");
        Self { url, orders, silences, _folder: folder, _serving: serving }
    }

    /// What becomes of COMMITs from now on.
    pub fn let_commits(&self, commits: Commits) {
        self.orders.lock().unwrap().commits = commits;
    }

    /// How many COMMITs did not pass, or their answers.
    pub fn caught(&self) -> usize {
        self.orders.lock().unwrap().caught
    }

    /// Lets `bytes` more pass this way, whatever connections they come by, and cuts the connection with the next; all
    /// is well after that.
    pub fn cut_after(&self, way: Way, bytes: usize) {
        self.orders.lock().unwrap().cut = Some((way, bytes));
    }

    /// Whether a cut that was ordered is done.
    pub fn has_cut(&self) -> bool {
        self.orders.lock().unwrap().cut.is_none()
    }

    /// How many bytes came this way since the last time that this was asked.
    pub fn came(&self, way: Way) -> usize {
        std::mem::take(&mut self.orders.lock().unwrap().came[way as usize])
    }

    /// From now on everything comes so much later, both ways.
    pub fn delay(&self, delay: Duration) {
        self.orders.lock().unwrap().delay = delay;
    }

    /// Nothing more comes through on the connections that there are, not even that the other side has closed its own,
    /// as when a machine between them has gone. New ones are well.
    pub fn fall_silent(&self) {
        self.silences.send_modify(|silences| *silences += 1);
    }
}

async fn serve(listener: UnixListener, server: String, orders: Arc<Mutex<Orders>>, silences: watch::Sender<u32>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        // Without a server the client's connection ends at once.
        if let Ok(server) = UnixStream::connect(&server).await {
            connections.spawn(carry(client, server, Arc::clone(&orders), silences.subscribe()));
        }
    }
}

async fn carry(client: UnixStream, server: UnixStream, orders: Arc<Mutex<Orders>>, mut silences: watch::Receiver<u32>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let answers = Arc::new(Mutex::new(Commits::Pass));
    tokio::select! {
        () = forth(&mut from_client, &mut to_server, &orders, &answers) => {}
        () = back(&mut from_server, &mut to_client, &orders, &answers) => {}
        Ok(()) = silences.changed() => std::future::pending().await,
    }
}

/// Carries what the client says. Ends with the client, and so does the connection to the database.
async fn forth(from: &mut OwnedReadHalf, to: &mut OwnedWriteHalf, orders: &Mutex<Orders>, answers: &Mutex<Commits>) {
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
        if !pass_on(&buffer[..count], Way::ToServer, to, orders).await {
            return;
        }
    }
}

async fn back(from: &mut OwnedReadHalf, to: &mut OwnedWriteHalf, orders: &Mutex<Orders>, answers: &Mutex<Commits>) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let what = *answers.lock().unwrap();
        match what {
            Commits::LoseNextAnswer => return,
            Commits::KeepAnswersBack => {}
            Commits::Pass | Commits::KeepBack => {
                if !pass_on(&buffer[..count], Way::ToClient, to, orders).await {
                    return;
                }
            }
        }
    }
}

/// Says whether the connection goes on.
async fn pass_on(bytes: &[u8], way: Way, to: &mut OwnedWriteHalf, orders: &Mutex<Orders>) -> bool {
    let (passes, delay) = {
        let mut orders = orders.lock().unwrap();
        (orders.let_pass(way, bytes.len()), orders.delay)
    };
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    to.write_all(&bytes[..passes]).await.is_ok() && passes == bytes.len()
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

    /// How many of so many bytes pass; if not all do, this is the cut.
    fn let_pass(&mut self, way: Way, bytes: usize) -> usize {
        self.came[way as usize] += bytes;
        match &mut self.cut {
            Some((cut, left)) if *cut == way && *left < bytes => {
                let passes = *left;
                self.cut = None;
                passes
            }
            Some((cut, left)) if *cut == way => {
                *left -= bytes;
                bytes
            }
            _ => bytes,
        }
    }
}
