//! This program again, as a process that holds a server and can be killed.

use std::env;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use super::open_in;

/// Set in a process that a test starts to own a server, and to be killed.
const CHILD_DATA_DIR: &str = "PRIVATE_POSTGRES_CHILD_DATA_DIR";

/// What such a process prints once it has the server: this, its role and the URL.
const CHILD_READY: &str = "child-ready";

/// What it prints before the sentence with which it learns that its server has gone.
const CHILD_ENDED: &str = "child-ended";

/// A process of its own that owns or joins the server of a folder, until it is killed.
pub struct Holder {
    child: Child,
    output: BufReader<ChildStdout>,
    /// `owner` or `joiner`
    pub role: String,
    pub url: String,
}

impl Holder {
    /// Waits until it has the server.
    pub fn start(data_dir: &Path) -> Self {
        let mut child = spawn(data_dir);
        let mut output = BufReader::new(child.stdout.take().expect("its output"));
        let line = line_with(CHILD_READY, &mut output);
        let words: Vec<&str> = line.split_whitespace().skip_while(|word| *word != CHILD_READY).collect();
        let [_, role, url] = words[..] else { panic!("a role and a URL, not {line}") };
        Self { role: role.to_owned(), url: url.to_owned(), output, child }
    }

    /// The sentence with which it learns that its server has gone.
    pub fn ended(&mut self) -> String {
        line_with(CHILD_ENDED, &mut self.output)
    }

    /// `kill -9`
    pub fn kill(&mut self) {
        self.child.kill().expect("to kill the child");
        self.child.wait().expect("its end");
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts such a process without waiting for anything.
pub fn spawn(data_dir: &Path) -> Child {
    Command::new(env::current_exe().expect("our own program"))
        .args(["--exact", "private_postgres::holder::child_holds_a_server_until_killed", "--nocapture"])
        .env(CHILD_DATA_DIR, data_dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child process")
}

fn line_with(word: &str, output: &mut impl BufRead) -> String {
    let line = output.lines().map(|line| line.expect("the child's output")).find(|line| line.contains(word));
    line.unwrap_or_else(|| panic!("the child ended without a line with {word}"))
}

/// Not a test by itself: the role that [`Holder`] gives to this program.
#[tokio::test]
async fn child_holds_a_server_until_killed() {
    let Some(data_dir) = env::var_os(CHILD_DATA_DIR) else {
        return;
    };
    let server = open_in(Path::new(&data_dir));
    let role = if server.is_owner() { "owner" } else { "joiner" };
    println!("{CHILD_READY} {role} {}", server.url());
    // The parent's end closes our input too, should it die first.
    let parent_gone = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
    tokio::select! {
        sentence = server.ended() => println!("{CHILD_ENDED} {sentence}"),
        _ = parent_gone => {}
    }
    std::process::exit(0);
}
