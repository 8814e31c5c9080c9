//! Messages about alarms: by mail and by webhook, each once, and again when they were not taken.

use std::sync::Arc;

use permit_notifier::{
    mail::{
        FileMailer, Mailer, Office,
        smtp::{Limits, SmtpMailer},
    },
    outgoing::{CallUrl, Caller},
    watch::messages::{Messenger, Way},
};
use tokio_util::sync::CancellationToken;

use super::{Watcher, outbox, rules};
use crate::support::{listener::Listener, office::TestOffice, run_folder::TestDir, smtp_server::SmtpServer};

fn messenger(office: &TestOffice, way: Way) -> Messenger {
    Messenger {
        direct_url: office.url.clone(),
        way,
        clock: office.clock.clone(),
        zone: office.rules.zone,
        pages: "https://permits.example.org/".parse().unwrap(),
        poke: Arc::default(),
    }
}

fn webhook(office: &TestOffice, listener: &Listener) -> Messenger {
    let url = CallUrl::parse(&format!("{}/hook", listener.url)).unwrap();
    messenger(office, Way::Webhook { url, caller: Caller::new() })
}

fn email(office: &TestOffice, mailer: Arc<dyn Mailer>) -> Messenger {
    let sender = Office::parse("Office <office@permits.example>", None, None).unwrap();
    let address = "operator@example.org".parse().unwrap();
    messenger(office, Way::Email { address, office: Arc::new(sender), mailer })
}

async fn deliver(messenger: &Messenger) {
    messenger.deliver_all(&CancellationToken::new()).await.unwrap();
}

/// An office with one alarm that stands.
async fn alarmed() -> (TestOffice, Watcher) {
    let office = TestOffice::new().await;
    let mut watcher = Watcher::new(rules(&office)).await;
    watcher.look().await;
    office.now_is("2027-03-11T13:00:00Z");
    assert_eq!(watcher.look().await.len(), 1);
    (office, watcher)
}

#[tokio::test]
async fn an_alarm_and_its_end_are_told_once_however_many_would_tell() {
    let (office, mut watcher) = alarmed().await;
    let listener = Listener::open().await;
    let messengers: Vec<_> = (0..4).map(|_| webhook(&office, &listener)).collect();
    futures_util::future::join_all(messengers.iter().map(deliver)).await;
    let [call] = &listener.calls()[..] else { panic!("{:?}", listener.calls()) };
    assert_eq!((call.method.as_str(), call.uri.path()), ("POST", "/hook"));
    let told = call.json();
    assert_eq!(told["event"], "raised");
    assert_eq!(told["alarm"], "missing_run");
    assert_eq!(told["subject"], "2027-03-11T12:00:00Z");
    assert_eq!(told["raised_at"], "2027-03-11T13:00:00Z");
    assert_eq!(told["url"], "https://permits.example.org/");
    assert!(told["text"].as_str().unwrap().starts_with("Alarm: A scan did not run. The scan expected at 06:00"));
    assert_eq!(call.headers["idempotency-key"], &*format!("{}-raised", told["id"].as_str().unwrap()));

    office.scan().await;
    watcher.look().await;
    futures_util::future::join_all(messengers.iter().map(deliver)).await;
    let calls = listener.calls();
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[1].json()["event"], "cleared");
    assert_eq!(calls[1].json()["cleared_at"], "2027-03-11T13:00:00Z");
    office.close().await;
}

#[tokio::test]
async fn what_is_not_taken_waits_and_is_tried_again() {
    let (office, _) = alarmed().await;
    let listener = Listener::open().await;
    listener.answers(503);
    let messenger = webhook(&office, &listener);
    deliver(&messenger).await;
    deliver(&messenger).await;
    assert_eq!(listener.calls().len(), 1, "not at once");
    let why = "SELECT last_error FROM alarm_messages WHERE surface = 'webhook'";
    assert_eq!(office.text(why).await, ["it answered with status 503"]);
    office.sql("UPDATE alarm_messages SET next_try_at = now()").await;
    listener.answers(204);
    deliver(&messenger).await;
    assert_eq!(listener.calls().len(), 2);
    assert_eq!(outbox(&office).await, ["missing_run raised email waits", "missing_run raised webhook told"]);
    office.close().await;
}

#[tokio::test]
async fn what_a_process_took_and_did_not_finish_is_taken_by_another() {
    let (office, _) = alarmed().await;
    let listener = Listener::open().await;
    office.sql("UPDATE alarm_messages SET taken_until = now() + interval '1 minute'").await;
    let messenger = webhook(&office, &listener);
    deliver(&messenger).await;
    assert_eq!(listener.calls().len(), 0, "somebody has it");
    office.sql("UPDATE alarm_messages SET taken_until = now() - interval '1 second'").await;
    deliver(&messenger).await;
    assert_eq!(listener.calls().len(), 1);
    office.close().await;
}

#[tokio::test]
async fn what_is_a_week_old_is_told_to_nobody() {
    let (office, _) = alarmed().await;
    let listener = Listener::open().await;
    let messenger = webhook(&office, &listener);
    for (age, calls) in [("8 days", 0), ("6 days", 1)] {
        office.sql(&format!("UPDATE alarm_messages SET created_at = now() - interval '{age}'")).await;
        deliver(&messenger).await;
        assert_eq!(listener.calls().len(), calls, "{age}");
    }
    office.close().await;
}

#[tokio::test]
async fn the_mail_says_what_is_wrong_and_what_to_do() {
    let (office, _) = alarmed().await;
    let server = SmtpServer::with([]);
    let sender = "office@permits.example".parse().unwrap();
    let mailer = SmtpMailer::new(server.url().parse_url(), Limits::default(), &sender);
    deliver(&email(&office, Arc::new(mailer))).await;
    assert_eq!(server.accepted().len(), 1);
    assert_eq!(server.accepted()[0].recipient, "operator@example.org");

    // The same as a file, to be read.
    office.sql("UPDATE alarm_messages SET delivered_at = NULL").await;
    let folder = TestDir::new();
    deliver(&email(&office, Arc::new(FileMailer::new(folder.path())))).await;
    let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path()).collect();
    let [file] = &files[..] else { panic!("{files:?}") };
    let text = std::fs::read_to_string(file).unwrap();
    let id = &server.accepted()[0].message_id;
    assert!(text.contains(id), "the same mail has the same Message-ID: {text}");
    assert!(id.trim_start_matches('<').starts_with("operator."), "an audit knows it by that: {id}");
    for part in [
        "Subject: Alarm: A scan did not run\r\n",
        "Auto-Submitted: auto-generated\r\n",
        "The scan expected at 06:00 CST on 11 March 2027 has not completed",
        "It has stood since 07:00 CST on Thursday, 11 March 2027.",
        "What to do: Look whether a process with the role scan runs",
        "https://permits.example.org/",
    ] {
        assert!(text.contains(part), "{part:?} is missing in {text}");
    }
    office.close().await;
}

#[tokio::test]
async fn no_mail_is_tried_while_the_mail_server_is_known_to_be_away() {
    let (office, mut watcher) = alarmed().await;
    office.sql("UPDATE transport SET paused_until = now(), opened_at = now(), fault = 'refused'").await;
    watcher.look().await;
    let server = SmtpServer::with([]);
    let sender = "office@permits.example".parse().unwrap();
    let messenger = email(&office, Arc::new(SmtpMailer::new(server.url().parse_url(), Limits::default(), &sender)));
    deliver(&messenger).await;
    assert_eq!(server.connections(), 0);
    let listener = Listener::open().await;
    deliver(&webhook(&office, &listener)).await;
    let kinds: Vec<_> = listener.calls().iter().map(|call| call.json()["alarm"].clone()).collect();
    assert_eq!(kinds, ["missing_run", "transport"], "the webhook tells all the same");

    office.sql("UPDATE transport SET paused_until = NULL, fault = NULL").await;
    watcher.look().await;
    deliver(&messenger).await;
    assert_eq!(server.accepted().len(), 2, "that a scan is missing, and that the server was away");
    office.close().await;
}

trait ParseUrl {
    fn parse_url(&self) -> permit_notifier::config::SmtpUrl;
}

impl ParseUrl for String {
    fn parse_url(&self) -> permit_notifier::config::SmtpUrl {
        permit_notifier::config::SmtpUrl::parse(self).expect("a URL")
    }
}
