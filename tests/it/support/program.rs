//! The program itself, as a person runs it: with a clean environment, in a folder of its own.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, mpsc},
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use super::run_folder::TestDir;

/// No step of a test takes longer, on a machine that does other things too.
const PATIENCE: Duration = Duration::from_secs(90);

/// A working folder with settings, in which commands are run.
pub struct Desk {
    folder: TestDir,
    settings: Vec<(String, String)>,
    /// Where lines of commands that stay are kept too, for whoever looks without waiting.
    log: Option<Arc<Mutex<Vec<String>>>>,
}

/// What one command did.
#[derive(Debug)]
pub struct Done {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Desk {
    pub fn new() -> Self {
        let folder = TestDir::new();
        let desk = Self { folder, settings: Vec::new(), log: None };
        let data = desk.data().display().to_string();
        desk.with("DATA_DIR", data).with("LISTEN_ADDR", "127.0.0.1:0")
    }

    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.settings.retain(|(known, _)| known != name);
        self.settings.push((name.to_owned(), value.into()));
        self
    }

    /// The same settings in a folder of its own.
    pub fn again(&self) -> Self {
        let desk = Self::new();
        let theirs = self.settings.iter().filter(|(name, _)| name != "DATA_DIR");
        theirs.fold(desk, |desk, (name, value)| desk.with(name, value.as_str()))
    }

    /// Lines of commands that stay can be read by [`Desk::log`] at any time.
    pub fn keeping_a_log(mut self) -> Self {
        self.log = Some(Arc::default());
        self
    }

    /// What commands that stay have said until now.
    pub fn log(&self) -> Vec<String> {
        self.log.as_ref().expect("a log is kept").lock().unwrap().clone()
    }

    /// What a variable is set to.
    pub fn setting(&self, name: &str) -> String {
        self.settings.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()).unwrap_or_default()
    }

    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_permit-notifier"));
        command.args(arguments).current_dir(self.folder.path()).env_clear().stdin(Stdio::null());
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command.envs(self.settings.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs a command to its end.
    pub fn run(&self, arguments: &[&str]) -> Done {
        let output = self.command(arguments).output().expect("the program starts");
        Done {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Runs a command that must succeed, and reads the JSON it prints.
    pub fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let done = self.run(arguments);
        assert_eq!(done.code, Some(0), "{arguments:?}: {done:?}");
        serde_json::from_str(&done.out).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {done:?}"))
    }

    /// Starts a command that stays, with its output read line by line.
    pub fn start(&self, arguments: &[&str]) -> Running {
        let mut child =
            self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let (sender, lines) = mpsc::channel();
        let outputs: [Box<dyn Read + Send>; 2] =
            [Box::new(child.stdout.take().expect("piped")), Box::new(child.stderr.take().expect("piped"))];
        for output in outputs {
            let (sender, log) = (sender.clone(), self.log.clone());
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    if let Some(log) = &log {
                        log.lock().unwrap().push(line.clone());
                    }
                    let _ = sender.send(line);
                }
            });
        }
        Running { child, lines, seen: Vec::new() }
    }
}

/// A command that goes on.
pub struct Running {
    child: Child,
    lines: mpsc::Receiver<String>,
    seen: Vec<String>,
}

impl Running {
    /// Waits for a line with this text; gives it.
    pub fn wait_for(&mut self, text: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = self
                .lines
                .recv_timeout(left)
                .unwrap_or_else(|_| panic!("no line with {text:?} came, but these: {:#?}", self.seen));
            self.seen.push(line.clone());
            if line.contains(text) {
                return line;
            }
        }
    }

    /// A line with this text, of those that came already or the next ones: two tasks of a process say things in any
    /// order.
    pub fn find(&mut self, text: &str) -> String {
        let known = self.seen.iter().find(|line| line.contains(text)).cloned();
        known.unwrap_or_else(|| self.wait_for(text))
    }

    pub fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).expect("the process is there");
    }

    pub fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).expect("a pid"))
    }

    /// Waits for the end; gives the exit code, or `None` after a signal.
    pub fn wait(&mut self) -> Option<i32> {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("our child") {
                return status.code();
            }
            assert!(Instant::now() < until, "it does not end; it said {:#?}", self.seen);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Everything it said, until it ended.
    pub fn rest(&mut self) -> Vec<String> {
        while let Ok(line) = self.lines.recv_timeout(Duration::from_secs(5)) {
            self.seen.push(line);
        }
        std::mem::take(&mut self.seen)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Status and body of a GET of `http://…`.
pub fn get(url: &str) -> (u16, String) {
    let rest = url.strip_prefix("http://").expect("http");
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut stream = TcpStream::connect(host).expect("a listener");
    stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    (status, body.to_owned())
}
