//! A real browser: Debian's chromium, led by its chromedriver, that reaches this machine and nothing else.

use std::{
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};
use serde_json::Value;
use thirtyfour::{ChromiumLikeCapabilities, prelude::*};

/// A page is there sooner, on a machine that does other things too.
const PATIENCE: Duration = Duration::from_secs(20);

/// A browser with one window. Ends with [`Browser::close`], or with the test that fails.
pub struct Browser {
    pub driver: WebDriver,
    server: Child,
    url: String,
}

impl Drop for Browser {
    /// The browser is a child of its server's, and would outlive it.
    fn drop(&mut self) {
        if let Ok(group) = i32::try_from(self.server.id()) {
            let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
        }
        let _ = self.server.wait();
    }
}

impl Browser {
    /// A browser for the service at `url`.
    pub async fn open(url: &str) -> Self {
        Self::start(url, &[]).await
    }

    /// The same, which runs no script of a page.
    pub async fn without_script(url: &str) -> Self {
        Self::start(url, &["--blink-settings=scriptEnabled=false"]).await
    }

    async fn start(url: &str, more: &[&str]) -> Self {
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
        for argument in usual.iter().chain(more) {
            wanted.add_arg(argument).expect("an argument");
        }
        let driver = WebDriver::new(format!("http://127.0.0.1:{port}"), wanted).await.expect("a browser");
        Self { driver, server, url: url.to_owned() }
    }

    pub async fn close(self) {
        self.driver.clone().quit().await.expect("an end");
    }

    pub async fn goto(&self, path: &str) {
        self.driver.goto(format!("{}{path}", self.url)).await.expect("a page");
    }

    /// Signs in with the usual password.
    pub async fn sign_in(&self, email: &str) {
        self.goto("/sign-in").await;
        self.fill("Email address", email).await;
        self.fill("Password", super::pages::PASSWORD).await;
        self.press("Sign in").await;
    }

    /// The field with this label, found as people find it.
    pub async fn field(&self, label: &str) -> WebElement {
        let by = format!("//label[normalize-space()={}]", quoted(label));
        let label = self.element(&by).await;
        let id = label.attr("for").await.expect("an answer").expect("a label that says for what");
        self.element(&format!("//*[@id={}]", quoted(&id))).await
    }

    /// Writes into a field, instead of what stands there.
    pub async fn fill(&self, label: &str, text: &str) {
        let field = self.field(label).await;
        if field.attr("type").await.expect("an answer").as_deref() == Some("date") {
            // As people of that language write it: month, day, year.
            let parts: Vec<&str> = text.split('-').collect();
            field.send_keys(format!("{}{}{}", parts[1], parts[2], parts[0])).await.expect("keys");
            return;
        }
        field.clear().await.expect("an empty field");
        field.send_keys(text).await.expect("keys");
    }

    /// Chooses from a list.
    pub async fn choose(&self, label: &str, option: &str) {
        let field = self.field(label).await;
        let by = format!("./option[normalize-space()={}]", quoted(option));
        field.find(By::XPath(by)).await.expect("an option").click().await.expect("a choice");
    }

    /// Presses the first button, or follows the first link, with this text.
    pub async fn press(&self, text: &str) {
        let text = quoted(text);
        let by = format!("//*[self::button or self::a or self::summary][normalize-space()={text}]");
        self.element(&by).await.click().await.unwrap_or_else(|error| panic!("{text}: {error}"));
    }

    /// Presses a key somewhere on the page.
    pub async fn key(&self, keys: impl Into<TypingData>) {
        let at = self.driver.active_element().await.expect("a place");
        at.send_keys(keys).await.expect("keys");
    }

    /// What is read where the keyboard is.
    pub async fn focused(&self) -> String {
        let said = "const at = document.activeElement;
                    const label = at.labels?.length ? at.labels[0].textContent : '';
                    return (label || at.getAttribute('aria-label') || at.textContent || at.tagName).trim();";
        self.script(said).await.as_str().unwrap_or_default().to_owned()
    }

    /// Goes on by Tab until the keyboard is at what is read as `text`.
    pub async fn tab_to(&self, text: &str) {
        for _ in 0..150 {
            if self.focused().await == text {
                return;
            }
            self.key(Key::Tab + "").await;
        }
        panic!("the keyboard does not reach {text:?}; it is at {:?}", self.focused().await);
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

    /// What the page shows.
    pub async fn text(&self) -> String {
        match self.driver.find(By::Tag("body")).await {
            Ok(body) => body.text().await.unwrap_or_default(),
            Err(_) => String::new(),
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
