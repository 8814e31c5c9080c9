//! A scripted SMTP server on loopback. It keeps a ledger of what it accepted, in a file before it answers, and a log
//! of what it was told; scripts make it misbehave at any phase. It runs in a thread of its own, so that a client
//! under test cannot hold it up.

mod certificates;
mod conversation;
mod delay;
mod script;

use std::{
    fmt::Write as _,
    fs::File,
    io::Write as _,
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use tokio::{
    net::TcpListener,
    sync::{mpsc, watch},
    task::JoinSet,
};

pub use certificates::{Authority, Certificate, self_signed};
pub use script::{Act, At, Rule};

use conversation::Conversation;

/// What the server offers, and how it behaves.
#[derive(Debug, Clone)]
pub struct Behaviour {
    pub pipelining: bool,
    pub smtputf8: bool,
    /// Offers SIZE with this limit.
    pub size: Option<usize>,
    /// `AUTH` with these words; the right password is `PASSWORD`.
    pub auth: Option<&'static str>,
    pub tls: Option<(Tls, Certificate)>,
    /// Forgets what came in the same write behind a command.
    pub drops_pipelined: bool,
    /// Waits so long before each batch of replies.
    pub round_trip: Duration,
    /// Waits so long before the reply to the dot.
    pub final_reply: Duration,
    /// The file of the ledger, one JSON line for each message; `None`: in memory only.
    pub ledger: Option<PathBuf>,
    pub rules: Vec<Rule>,
    /// Listens there; 0 for any free port.
    pub port: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tls {
    Implicit,
    Starttls,
}

pub const USER: &str = "permits";
pub const PASSWORD: &str = "correct horse";

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            pipelining: true,
            smtputf8: true,
            size: Some(0),
            auth: None,
            tls: None,
            drops_pipelined: false,
            round_trip: Duration::ZERO,
            final_reply: Duration::ZERO,
            ledger: None,
            rules: Vec::new(),
            port: 0,
        }
    }
}

/// One message that the server accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    pub message_id: String,
    pub recipient: String,
    /// Of the bytes before dot-stuffing, in hexadecimal.
    pub sha256: String,
    pub connection: usize,
    pub at: chrono::DateTime<chrono::Utc>,
}

/// One line that the server read.
#[derive(Debug, Clone)]
pub struct Heard {
    pub connection: usize,
    /// Without its line end; `(body)` for the first bytes of a body, `.` for its dot, `(end)` for the end of the
    /// connection.
    pub line: String,
    pub encrypted: bool,
    pub at: Instant,
}

/// What the conversations share with the one who watches them.
#[derive(Debug)]
pub(super) struct Shared {
    behaviour: Behaviour,
    rules: Mutex<Vec<Rule>>,
    connections: AtomicUsize,
    heard: Mutex<Vec<Heard>>,
    accepted: Mutex<Vec<Accepted>>,
    file: Option<Mutex<File>>,
    /// Commands that came before the replies they had to wait for.
    hasty: AtomicUsize,
    released: watch::Sender<bool>,
    live: Mutex<Vec<mpsc::UnboundedSender<Poke>>>,
    /// Keeps nobody waiting for the reply to the dot any more.
    hurries: AtomicBool,
}

/// Something to say to a client that asked nothing.
#[derive(Debug)]
pub(super) struct Poke {
    text: String,
    then_cut: bool,
    done: std::sync::mpsc::Sender<()>,
}

#[derive(Debug)]
pub struct SmtpServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl SmtpServer {
    pub fn start(behaviour: Behaviour) -> Self {
        let file = behaviour.ledger.as_ref().map(|path| {
            Mutex::new(File::options().append(true).create(true).open(path).expect("the ledger can be opened"))
        });
        let shared = Arc::new(Shared {
            rules: Mutex::new(behaviour.rules.clone()),
            behaviour,
            connections: AtomicUsize::new(0),
            heard: Mutex::default(),
            accepted: Mutex::default(),
            file,
            hasty: AtomicUsize::new(0),
            released: watch::Sender::new(false),
            live: Mutex::default(),
            hurries: AtomicBool::new(false),
        });
        let stop = watch::Sender::new(false);
        let (tell, told) = std::sync::mpsc::channel();
        let (inside, stopped) = (Arc::clone(&shared), stop.subscribe());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(serve(inside, stopped, tell));
        });
        let address = told.recv().expect("the server listens");
        Self { address, shared, stop, thread: Some(thread) }
    }

    /// A server that does what `rules` say and is well otherwise.
    pub fn with(rules: impl IntoIterator<Item = Rule>) -> Self {
        Self::start(Behaviour { rules: rules.into_iter().collect(), ..Behaviour::default() })
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    pub fn url(&self) -> String {
        format!("smtp://127.0.0.1:{}", self.port())
    }

    /// From now on it does what `rules` say, and nothing of what it was told before.
    pub fn behave(&self, rules: impl IntoIterator<Item = Rule>) {
        *self.shared.rules.lock().unwrap() = rules.into_iter().collect();
    }

    /// From now on it answers the dot at once.
    pub fn hurry(&self) {
        self.shared.hurries.store(true, Ordering::SeqCst);
    }

    /// Lets everything go on that a script has stalled, now and later.
    pub fn release(&self) {
        self.shared.released.send_replace(true);
    }

    /// Says `text` to all live connections, and returns when it is on its way.
    pub fn say_unasked(&self, text: &str, then_cut: bool) {
        let live = std::mem::take(&mut *self.shared.live.lock().unwrap());
        for connection in live {
            let (done, is_done) = std::sync::mpsc::channel();
            if connection.send(Poke { text: text.to_owned(), then_cut, done }).is_ok() {
                let _ = is_done.recv();
            }
            self.shared.live.lock().unwrap().push(connection);
        }
    }

    pub fn accepted(&self) -> Vec<Accepted> {
        self.shared.accepted.lock().unwrap().clone()
    }

    /// How many messages it accepted.
    pub fn taken(&self) -> usize {
        self.shared.accepted.lock().unwrap().len()
    }

    pub fn heard(&self) -> Vec<Heard> {
        self.shared.heard.lock().unwrap().clone()
    }

    /// How often a line beginning with `word` came.
    pub fn count(&self, word: &str) -> usize {
        self.heard().iter().filter(|heard| heard.line.to_ascii_uppercase().starts_with(word)).count()
    }

    /// When each MAIL came.
    pub fn mails(&self) -> Vec<Instant> {
        self.heard().iter().filter(|heard| heard.line.starts_with("MAIL")).map(|heard| heard.at).collect()
    }

    /// How many connections there were.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Waits until there were so many connections.
    pub async fn wait_for_connections(&self, count: usize) {
        let end = Instant::now() + Duration::from_secs(20);
        while self.connections() < count {
            assert!(Instant::now() < end, "{} connections and never {count}", self.connections());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// How many commands came before the replies they had to wait for.
    pub fn hasty(&self) -> usize {
        self.shared.hasty.load(Ordering::SeqCst)
    }

    /// Waits until `condition` holds of what was heard.
    pub fn wait_until(&self, condition: impl Fn(&[Heard]) -> bool) {
        let end = Instant::now() + Duration::from_secs(20);
        while !condition(&self.heard()) {
            assert!(Instant::now() < end, "the server never heard it: {:?}", self.heard());
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for SmtpServer {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn serve(shared: Arc<Shared>, mut stopped: watch::Receiver<bool>, tell: std::sync::mpsc::Sender<SocketAddr>) {
    let listener = TcpListener::bind(("127.0.0.1", shared.behaviour.port)).await.expect("a free port");
    tell.send(listener.local_addr().expect("an address")).expect("somebody waits");
    let mut conversations = JoinSet::new();
    loop {
        tokio::select! {
            _ = stopped.wait_for(|stop| *stop) => return,
            Some(_) = conversations.join_next() => {}
            tcp = listener.accept() => {
                let (tcp, _) = tcp.expect("a connection");
                tcp.set_nodelay(true).expect("nodelay");
                let number = shared.connections.fetch_add(1, Ordering::SeqCst);
                let (poke, poked) = mpsc::unbounded_channel();
                shared.live.lock().unwrap().push(poke);
                conversations.spawn(Conversation::run(Arc::clone(&shared), number, tcp, poked));
            }
        }
    }
}

impl Shared {
    fn hear(&self, connection: usize, line: &str, encrypted: bool) {
        let heard = Heard { connection, line: line.to_owned(), encrypted, at: Instant::now() };
        self.heard.lock().unwrap().push(heard);
    }

    /// Writes the message down. The system has it then, so that it survives whatever process dies next; not the
    /// machine, which no test stops, and waiting for the disk would take its time from the database under test.
    fn accept(&self, accepted: Accepted) {
        if let Some(file) = &self.file {
            let mut line = serde_json::to_vec(&accepted).expect("plain data");
            line.push(b'\n');
            let mut file = file.lock().unwrap();
            file.write_all(&line).expect("the ledger can be written");
        }
        self.accepted.lock().unwrap().push(accepted);
    }

    /// The first rule that fits; it is used up as often as it says.
    fn act(&self, at: At, connection: usize, message: usize, recipient: &str) -> Option<Act> {
        let mut rules = self.rules.lock().unwrap();
        let rule = rules.iter_mut().find(|rule| rule.fits(at, connection, message, recipient))?;
        rule.used += 1;
        Some(rule.act.clone())
    }
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}
