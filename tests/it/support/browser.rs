//! A real browser: Debian's chromium, led by its chromedriver, that reaches this machine and nothing else.

mod hands;
mod senses;

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};
use serde_json::{Value, json};
use thirtyfour::{ChromiumLikeCapabilities, prelude::*};

use super::run_folder::TestDir;

/// A page is there sooner, on a machine that does other things too.
const PATIENCE: Duration = Duration::from_secs(20);

/// A telephone.
pub const NARROW: u32 = 360;

/// A browser with one window. Ends with [`Browser::close`], or with the test that fails.
pub struct Browser {
    pub driver: WebDriver,
    server: Child,
    url: String,
    way: Way,
    /// What is sent up and what came down.
    files: TestDir,
}

/// How the pages are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// With a pointer.
    Usual,
    /// On a narrow screen, and the pages run no script.
    NarrowWithoutScript,
    /// Without a pointer, and each stop of the keyboard is to be seen.
    Keyboard,
}

impl Drop for Browser {
    /// The browser is a child of its server's, and would outlive it.
    fn drop(&mut self) {
        // Its own end would ask the server and wait for the answer on the thread that reads it.
        let _ = self.driver.clone().leak();
        if let Ok(group) = i32::try_from(self.server.id()) {
            let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
        }
        let _ = self.server.wait();
    }
}

impl Browser {
    /// A browser for the service at `url`.
    pub async fn open(url: &str) -> Self {
        Self::used(Way::Usual, url).await
    }

    /// The same, which runs no script of a page.
    pub async fn without_script(url: &str) -> Self {
        Self::used(Way::NarrowWithoutScript, url).await
    }

    /// A browser that is used in this way.
    pub async fn used(way: Way, url: &str) -> Self {
        let files = TestDir::new();
        let mut server = Command::new("chromedriver")
            .arg("--port=0")
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver: apt-get install chromium-driver");
        let mut lines = BufReader::new(server.stdout.take().expect("piped")).lines().map_while(Result::ok);
        let port = lines
            .find_map(|line| Some(line.split_once("successfully on port ")?.1.trim_matches('.').to_owned()))
            .expect("a port");
        let mut wanted = DesiredCapabilities::chrome();
        let usual = [
            "--headless=new",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
            "--disable-background-networking",
            "--no-first-run",
            "--lang=en-US",
            "--window-size=1280,1000",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        ];
        let more = (way == Way::NarrowWithoutScript).then_some("--blink-settings=scriptEnabled=false");
        for argument in usual.into_iter().chain(more) {
            wanted.add_arg(argument).expect("an argument");
        }
        let down = json!({ "download.default_directory": files.path() });
        wanted.add_experimental_option("prefs", down).expect("a folder for what comes down");
        let driver = WebDriver::new(format!("http://127.0.0.1:{port}"), wanted).await.expect("a browser");
        let browser = Self { driver, server, url: url.to_owned(), way, files };
        // Nobody sits before this window: without it, a page that has just come sometimes counts as one behind others.
        let focused = json!({ "enabled": true });
        browser.driver.cdp().send_raw("Emulation.setFocusEmulationEnabled", focused).await.expect("a window in front");
        if way == Way::NarrowWithoutScript {
            browser.be_wide(NARROW).await;
        }
        browser
    }

    pub async fn close(self) {
        self.driver.clone().quit().await.expect("an end");
    }

    pub async fn goto(&self, path: &str) {
        self.driver.goto(format!("{}{path}", self.url)).await.expect("a page");
    }

    /// Signs in with the usual password, and waits until that is done: a page asked for meanwhile would be refused.
    pub async fn sign_in(&self, email: &str) {
        self.goto("/sign-in").await;
        self.fill("Email address", email).await;
        self.fill("Password", super::pages::PASSWORD).await;
        self.press("Sign in").await;
        self.see("Sign out").await;
    }

    /// Waits until the page shows this text.
    pub async fn see(&self, text: &str) {
        let until = Instant::now() + PATIENCE;
        loop {
            let shown = self.text().await;
            if shown.contains(text) {
                return;
            }
            assert!(Instant::now() < until, "no {text:?} at {:?}: {shown}", self.driver.current_url().await);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until the browser is at an address with this in it: a page that is left shows much of the next one's text.
    pub async fn is_at(&self, part: &str) {
        let until = Instant::now() + PATIENCE;
        loop {
            let url = self.driver.current_url().await.expect("an address");
            if url.as_str().contains(part) {
                return;
            }
            assert!(Instant::now() < until, "{url}, and not {part}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// What the page shows.
    pub async fn text(&self) -> String {
        match self.driver.find(By::Tag("body")).await {
            Ok(body) => body.text().await.unwrap_or_default(),
            Err(_) => String::new(),
        }
    }

    /// A file to be sent up.
    pub fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.files.path().join(name);
        fs::write(&path, content).expect("a file");
        path
    }

    /// Waits for the one file that came down whose name begins so, and reads it. Its place is kept by an empty one.
    pub async fn downloaded(&self, name: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let files = fs::read_dir(self.files.path()).expect("the folder").map(|file| file.expect("a file").path());
            let is_whole = |path: &PathBuf| {
                let called = path.file_name().unwrap_or_default().to_string_lossy();
                called.starts_with(name) && !called.ends_with(".crdownload")
            };
            let mut texts = files.filter(is_whole).map(|path| fs::read_to_string(path).expect("a text"));
            if let Some(text) = texts.find(|text| !text.is_empty()) {
                return text;
            }
            assert!(Instant::now() < until, "no {name}… came down: {}", self.text().await);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// What a script answers; works where pages may run none, too.
    pub async fn script(&self, script: &str) -> Value {
        self.driver.execute(script, Vec::new()).await.expect("an answer").json().clone()
    }

    async fn element(&self, xpath: &str) -> WebElement {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.driver.find(By::XPath(xpath)).await {
                Ok(element) => return element,
                Err(error) if Instant::now() > until => panic!("{xpath}: {error}: {}", self.text().await),
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }
}

/// A text as `XPath` has it.
fn quoted(text: &str) -> String {
    if text.contains('\'') { format!("\"{text}\"") } else { format!("'{text}'") }
}
