//! A server between a pool and PostgreSQL that can swallow the answer to a COMMIT.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

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

pub struct Proxy {
    pub url: String,
    armed: Arc<AtomicBool>,
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
        let armed = Arc::new(AtomicBool::new(false));
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, server, Arc::clone(&armed)));
        Self { url: format!("{database}?host={host}"), armed, _folder: folder, _serving: serving }
    }

    /// The next COMMIT is done, and its answer lost with the connection.
    pub fn swallow_next_commit(&self) {
        self.armed.store(true, Ordering::SeqCst);
    }

    /// Whether that has happened.
    pub fn has_swallowed(&self) -> bool {
        !self.armed.load(Ordering::SeqCst)
    }
}

async fn serve(listener: UnixListener, server: String, armed: Arc<AtomicBool>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let server = UnixStream::connect(&server).await.expect("the server");
        connections.spawn(carry(client, server, Arc::clone(&armed)));
    }
}

async fn carry(client: UnixStream, server: UnixStream, armed: Arc<AtomicBool>) {
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let cut = Arc::new(AtomicBool::new(false));
    tokio::select! {
        () = forth(from_client, to_server, armed, Arc::clone(&cut)) => {}
        () = back(from_server, to_client, cut) => {}
    }
}

async fn forth(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, armed: Arc<AtomicBool>, cut: Arc<AtomicBool>) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let commits = buffer[..count].windows(COMMIT.len()).any(|window| window == COMMIT);
        if commits && armed.swap(false, Ordering::SeqCst) {
            cut.store(true, Ordering::SeqCst);
        }
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

async fn back(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, cut: Arc<AtomicBool>) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        if cut.load(Ordering::SeqCst) || to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}
