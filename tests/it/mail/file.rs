//! Mail kept as files: whole or not at all, and honest about it.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use permit_notifier::{
    domain::attempt::{Outcome, Phase, Transport},
    mail::{Composed, Ended, FileMailer, LEASE_TOO_OLD, Mailer, MayFinish, compose},
};

use super::{key, notice, now, office, recipient};

fn message() -> Composed {
    let to = recipient("ann@bakery.example", "Ann");
    compose(&office(), &notice(&key("expires-30d"), &to, 27), now()).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

async fn send(folder: &Path, message: &Composed, may_finish: &MayFinish) -> Result<Ended, Ended> {
    let mut session = FileMailer::new(folder).session();
    session.offer(&message.envelope).await?;
    Ok(session.transmit(&message.envelope, message, None, may_finish).await.ended)
}

#[tokio::test]
async fn an_accepted_message_is_a_file_with_its_exact_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("new/mail");
    let message = message();
    for _ in 0..2 {
        let ended = send(&folder, &message, &MayFinish::always()).await.unwrap();
        assert_eq!((ended.outcome, ended.phase, ended.transport_fault), (Outcome::Accepted, Phase::Dot, false));
        let name = ended.response.unwrap();
        assert_eq!(name, format!("{}.eml", message.message_id.trim_matches(['<', '>'])));
        assert_eq!(names(&folder).join(" "), name);
        assert_eq!(fs::read(folder.join(&name)).unwrap(), message.bytes);
    }
    assert_eq!(FileMailer::new(&folder).transport(), Transport::File);
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    let file = folder.join(FileMailer::file_name(&message.message_id));
    assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn may_finish_is_asked_when_only_the_last_step_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().to_owned();
    let hidden_seen = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&hidden_seen);
    let no = MayFinish::new(move || {
        let names = names(&folder);
        seen.store(names.len() == 1 && names[0].starts_with('.'), Ordering::SeqCst);
        false
    });
    let ended = send(dir.path(), &message(), &no).await.unwrap();
    assert!(hidden_seen.load(Ordering::SeqCst), "the whole message was written before it was asked");
    assert_eq!((ended.outcome, ended.phase, ended.transport_fault), (Outcome::NotSent, Phase::Body, false));
    assert_eq!(ended.reason.as_deref(), Some(LEASE_TOO_OLD));
    assert!(names(dir.path()).is_empty(), "nothing is left behind");
}

#[tokio::test]
async fn an_unusable_folder_is_the_transports_fault() {
    let dir = tempfile::tempdir().unwrap();
    let blocked = dir.path().join("mail");
    fs::write(&blocked, "a file where the folder should be").unwrap();
    let ended = send(&blocked, &message(), &MayFinish::always()).await.unwrap_err();
    assert_eq!((ended.outcome, ended.phase, ended.transport_fault), (Outcome::NotSent, Phase::Connect, true));
    assert_eq!(names(dir.path()), ["mail"]);
}

#[tokio::test]
async fn a_folder_that_vanishes_is_noticed_and_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("mail");
    let message = message();
    let mut session = FileMailer::new(&folder).session();
    session.offer(&message.envelope).await.unwrap();
    fs::remove_dir(&folder).unwrap();
    let ended = session.transmit(&message.envelope, &message, None, &MayFinish::always()).await.ended;
    assert_eq!((ended.outcome, ended.phase, ended.transport_fault), (Outcome::NotSent, Phase::Connect, true));
    session.offer(&message.envelope).await.unwrap();
    session.withdraw().await;
    assert!(names(&folder).is_empty());
    session.offer(&message.envelope).await.unwrap();
    let ended = session.transmit(&message.envelope, &message, None, &MayFinish::always()).await.ended;
    assert_eq!(ended.outcome, Outcome::Accepted);
}

#[tokio::test]
async fn a_failed_last_step_is_not_sent_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let message = message();
    let name = FileMailer::file_name(&message.message_id);
    fs::create_dir(dir.path().join(&name)).unwrap();
    let ended = send(dir.path(), &message, &MayFinish::always()).await.unwrap();
    assert_eq!((ended.outcome, ended.phase, ended.transport_fault), (Outcome::NotSent, Phase::Body, true));
    assert_eq!(names(dir.path()), [name]);
}

#[tokio::test]
async fn a_check_that_panics_leaves_no_file_and_claims_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let broken = MayFinish::new(|| panic!("on purpose"));
    let ended = send(dir.path(), &message(), &broken).await.unwrap();
    assert_eq!(ended.outcome, Outcome::Ambiguous);
    assert!(names(dir.path()).is_empty());
}

#[test]
fn a_file_name_holds_only_safe_characters() {
    assert_eq!(FileMailer::file_name("<ab12@maple.example>"), "ab12@maple.example.eml");
    assert_eq!(FileMailer::file_name("<../../etc/pass wd\0@x>"), "_.._etc_pass_wd_@x.eml");
}
