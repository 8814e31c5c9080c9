//! The main job as a real process that logs as much as it can: no line and no metric shows an address, a name, a body,
//! or a secret; and lines about notices and requests say which.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use reqwest::{Client, Method, redirect::Policy};
use serde_json::Value;

use crate::support::cluster::empty_database;
use crate::support::pages::Visitor;
use crate::support::program::{Desk, get};
use crate::support::smtp_server::{Act, At, Behaviour, Rule, SmtpServer};

const ADMIN: &str = "chief@office.example";
const ADMIN_PASSWORD: &str = "kettle drum orchard 9";
const NEW_PASSWORD: &str = "another orchard drum 7";
const WRONG_PASSWORD: &str = "no such orchard at all";
const DATABASE_PASSWORD: &str = "database-hush-41";
/// As the URL has it, and as it is.
const SMTP_PASSWORD: [&str; 2] = ["correct%20horse", "correct horse"];
const PERMITS: &str = "\
permit_number,permit_type,holder_name,holder_email,site_address,expires_on
L-1,Food,Wilhelmine Brandt,taken@holder.example,17 Juniper Lane,2026-12-30
L-2,Food,Wilhelmine Brandt,later@holder.example,17 Juniper Lane,2026-12-30
L-3,Food,Wilhelmine Brandt,never@holder.example,17 Juniper Lane,2026-12-30
L-4,Food,Wilhelmine Brandt,lost@holder.example,17 Juniper Lane,2026-12-30
L-5,Food,Wilhelmine Brandt,busy@holder.example,17 Juniper Lane,2026-12-30
L-6,Food,Wilhelmine Brandt,bad row@@holder.example,17 Juniper Lane,2026-02-31
";

/// A server that repeats the address in whatever it refuses.
fn server() -> SmtpServer {
    let refuse = |name: &str, says: &'static str| {
        Rule::new(At::Rcpt, Act::Say(says)).for_recipient(&format!("{name}@holder.example"))
    };
    let busy = "421 4.3.2 <busy@holder.example> (busy@holder.example): too many\r\n";
    SmtpServer::start(Behaviour {
        auth: Some("PLAIN LOGIN"),
        rules: vec![
            refuse("later", "451 4.3.0 <later@holder.example>: later@holder.example has to wait\r\n"),
            refuse("never", "550 5.1.1 <never@holder.example>: no such user as never@holder.example\r\n"),
            Rule::new(At::Dot, Act::AcceptThenCut).for_recipient("lost@holder.example"),
            refuse("busy", busy).once(),
        ],
        ..Behaviour::default()
    })
}

/// Everything that was said, and what must not be in it.
#[derive(Default)]
struct Overheard {
    lines: Vec<String>,
    metrics: String,
    secrets: Vec<String>,
}

impl Overheard {
    fn check(&self) {
        let usual = [
            "@holder.example",
            "Wilhelmine",
            "Juniper",
            ADMIN,
            "clerk@office.example",
            ADMIN_PASSWORD,
            NEW_PASSWORD,
            WRONG_PASSWORD,
            DATABASE_PASSWORD,
            "correct horse",
            "correct%20horse",
            "Subject:",
            "Content-Type: text",
        ];
        for secret in usual.into_iter().chain(self.secrets.iter().map(String::as_str)) {
            // An address may be recognised by its first letter, as `t***@holder.example`.
            let told = |line: &&String| line.replace("***@holder.example", "").contains(secret);
            let found: Vec<_> = self.lines.iter().filter(told).collect();
            assert!(found.is_empty(), "{secret:?} is told by {found:#?}");
            assert!(!self.metrics.contains(secret), "{secret:?} is in the metrics");
        }
    }

    fn json(&self) -> Vec<Value> {
        let lines = self.lines.iter().filter(|line| line.starts_with('{'));
        lines.map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
    }
}

/// Signs in wrong and right, sets and changes passwords, uses tokens wrong and right, looks things up and exports.
async fn use_everything(desk: &Desk, url: &str, token: &str, heard: &mut Overheard) {
    let client = Client::builder().no_proxy().cookie_store(true).redirect(Policy::none()).build().unwrap();
    let mut admin = Visitor { client, url: url.to_owned(), csrf: String::new() };
    assert_eq!(admin.sign_in(ADMIN, WRONG_PASSWORD).await.status, 401);
    let signed_in = admin.sign_in(ADMIN, ADMIN_PASSWORD).await;
    assert_eq!(signed_in.status, 303, "{signed_in:?}");
    let session = |cookie: &str| cookie.split(['=', ';']).nth(1).expect("its value").to_owned();
    heard.secrets.push(session(signed_in.header("set-cookie")));
    admin.csrf = admin.get("/account").await.csrf();
    let form = [("present", ADMIN_PASSWORD), ("password", NEW_PASSWORD), ("again", NEW_PASSWORD)];
    let changed = admin.post("/account/password", &form).await;
    assert_eq!(changed.status, 303, "{changed:?}");
    heard.secrets.push(session(changed.header("set-cookie")));
    for page in ["/", "/permits?q=Wilhelmine", "/notices", "/problems", "/audit", "/permits?q=taken@holder.example"] {
        assert_eq!(admin.get(page).await.status, 200, "{page}");
    }

    let added = desk.run(&["user", "add", "clerk@office.example", "--role", "clerk"]);
    heard.lines.extend(added.err.lines().map(str::to_owned));
    let path = format!("/set-password/{}", added.out.trim().rsplit('/').next().expect("a link"));
    heard.secrets.push(path.rsplit('/').next().expect("its secret").to_owned());
    let client = Client::builder().no_proxy().cookie_store(true).redirect(Policy::none()).build().unwrap();
    let clerk = Visitor { client, url: url.to_owned(), csrf: String::new() };
    clerk.get("/sign-in").await;
    let csrf = clerk.get(&path).await.csrf();
    let form = [("csrf", csrf.as_str()), ("password", NEW_PASSWORD), ("again", NEW_PASSWORD)];
    let set = clerk.send(&path, &form).await;
    assert_eq!(set.status, 303, "{set:?}");
    heard.secrets.push(session(set.header("set-cookie")));

    let api = |method: Method, path: &str, token: &str| {
        let url = format!("{url}/api/v1{path}");
        admin.client.request(method, url).bearer_auth(token).send()
    };
    let wrong = format!("{}x", &token[..token.len() - 1]);
    heard.secrets.push(wrong.clone());
    assert_eq!(api(Method::GET, "/permits", &wrong).await.unwrap().status(), 401);
    for path in ["/permits?q=Brandt", "/notices", "/permits/export?format=csv", "/permits/export?format=json"] {
        assert_eq!(api(Method::GET, path, token).await.unwrap().status(), 200, "{path}");
    }
    assert_eq!(api(Method::POST, "/scans", token).await.unwrap().status(), 202);
}

/// Until every copy has met its end, or waits for its next try.
fn wait_for_the_mail(desk: &Desk, server: &SmtpServer) {
    let until = Instant::now() + Duration::from_mins(1);
    let ends = |word: &str| desk.log().iter().any(|line| line.contains(&format!("\"outcome\":\"{word}\"")));
    while server.accepted().len() < 2 || !["accepted", "deferred", "rejected", "ambiguous"].into_iter().all(ends) {
        assert!(Instant::now() < until, "the mail did not go: {:?}", server.accepted());
        std::thread::sleep(Duration::from_millis(50));
    }
}

async fn overhear(filter: &str) -> Overheard {
    let mut heard = Overheard::default();
    let server = server();
    let database = empty_database().await;
    let with_password = database.replacen("permits@", &format!("permits:{DATABASE_PASSWORD}@"), 1);
    assert_ne!(database, with_password);
    let smtp = format!("smtp://permits:{}@127.0.0.1:{}?tls=none", SMTP_PASSWORD[0], server.port());
    let desk = Desk::new()
        .with("DATABASE_URL", with_password)
        .with("SMTP_URL", smtp)
        .with("MAIL_FROM", "Office <permits@office.example>")
        .with("ENVIRONMENT", "staging")
        .with("MAIL_ALLOWLIST", "*")
        .with("ADMIN_EMAIL", ADMIN)
        .with("ADMIN_PASSWORD", ADMIN_PASSWORD)
        .with("CLOCK", "2026-12-01T09:00:00Z")
        .with("LOG_FORMAT", "json")
        .with("RUST_LOG", filter)
        .keeping_a_log();
    std::fs::write(desk.folder().join("permits.csv"), PERMITS).expect("written");
    let imported = desk.run(&["import", "permits.csv", "--keep-good-rows", "--catch-up", "--json"]);
    assert_eq!(imported.code, Some(0), "{imported:?}");
    let token = desk.run(&["token", "create", "portal", "--scope", "write"]);
    for done in [&imported, &token] {
        heard.lines.extend(done.err.lines().map(str::to_owned));
    }
    let token = token.out.trim().to_owned();
    heard.secrets.push(token.clone());

    let mut serve = desk.start(&["serve"]);
    let line = serve.wait_for("Listening on http://");
    let url = line.split_whitespace().last().expect("an address").trim_end_matches('/').to_owned();
    serve.find("scan completed");
    wait_for_the_mail(&desk, &server);
    use_everything(&desk, &url, &token, &mut heard).await;
    heard.metrics = get(&format!("{url}/metrics")).1;
    serve.signal(Signal::SIGTERM);
    assert_eq!(serve.wait(), Some(0));
    serve.rest();
    heard.lines.extend(desk.log());
    heard
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_logged_of_our_own_shows_nobody_and_no_secret() {
    let heard = overhear("info,permit_notifier=trace").await;
    heard.check();
    let lines = heard.json();
    for line in &lines {
        for field in ["timestamp", "level", "target", "message"] {
            assert!(line[field].is_string(), "no {field} in {line}");
        }
    }
    let attempts: Vec<_> =
        lines.iter().filter(|line| line["message"].as_str().unwrap().starts_with("attempt ended")).collect();
    for outcome in ["accepted", "deferred", "rejected", "ambiguous"] {
        assert!(attempts.iter().any(|line| line["outcome"] == outcome), "no {outcome} in {attempts:#?}");
    }
    for line in &attempts {
        for field in ["notice_key", "outcome", "state"] {
            assert!(!line[field].is_null(), "no {field} in {line}");
        }
        // What is refused before the gate gets its number when it is recorded.
        assert!(line["outcome"] != "accepted" || line["attempt"].is_number(), "no attempt in {line}");
    }
    assert!(attempts.iter().any(|line| line["smtp_code"] == 550), "{attempts:#?}");
    let scanned = lines.iter().find(|line| line["message"].as_str().unwrap().starts_with("scan completed"));
    for field in ["scheduled_for", "lock", "claimed", "already_claimed"] {
        assert!(!scanned.expect("a scan")[field].is_null(), "{scanned:?}");
    }
    let requests: Vec<_> = lines.iter().filter(|line| line["message"] == "request answered").collect();
    assert!(requests.len() > 15 && requests.iter().all(|line| line["request_id"].is_string()), "{requests:#?}");
    let route = |line: &Value| line["route"] == "/set-password/{secret}" && line["status"] == 303;
    assert!(requests.iter().any(|line| route(line)), "{requests:#?}");
    let fault = lines.iter().find(|line| line["message"].as_str().unwrap().starts_with("the transport failed"));
    assert!(fault.expect("a fault")["message"].as_str().unwrap().contains("4.3.2"), "the server's words are told");
}

#[tokio::test(flavor = "multi_thread")]
async fn nor_does_what_any_library_logs() {
    let heard = overhear("debug").await;
    heard.check();
    assert!(heard.json().iter().any(|line| line["level"] == "DEBUG"));
}
