//! Encryption and passwords: who is believed, and what never goes in clear.

use lettre::{AsyncTransport as _, Message};
use permit_notifier::{
    config::SmtpUrl,
    domain::attempt::{Outcome, Phase},
    mail::{Ended, Mailer as _, SmtpMailer, smtp::SmtpCheck},
};

use super::{assert_ledger_agrees, limits, line, message, send};
use crate::{
    mail::office,
    support::smtp_server::{Act, At, Authority, Behaviour, Certificate, Rule, SmtpServer, Tls, self_signed},
};

const HOST: &str = "127.0.0.1";

fn server(tls: Tls, certificate: Certificate, rules: Vec<Rule>) -> SmtpServer {
    let auth = Some("PLAIN LOGIN");
    SmtpServer::start(Behaviour { tls: Some((tls, certificate)), auth, rules, ..Behaviour::default() })
}

fn mailer(url: &str, authority: &Authority) -> SmtpMailer {
    SmtpMailer::trusting(SmtpUrl::parse(url).unwrap(), limits(), office().from.address(), vec![authority.der()])
}

fn url(server: &SmtpServer, scheme: &str, tls: &str) -> String {
    format!("{scheme}://permits:correct%20horse@{HOST}:{}{tls}", server.port())
}

async fn send_one(server: &SmtpServer, mailer: &SmtpMailer) -> Ended {
    let message = message("ann@bakery.example");
    let ended = send(&mut *mailer.session(), &message).await;
    assert_ledger_agrees(server, &[(&message, &ended)]);
    ended
}

fn assert_nothing_secret_in_clear(server: &SmtpServer) {
    for heard in server.heard().iter().filter(|heard| !heard.encrypted) {
        let fine = ["EHLO", "STARTTLS", "(end)", "QUIT"].iter().any(|word| heard.line.starts_with(word));
        assert!(fine, "in clear: {}", heard.line);
    }
}

#[tokio::test]
async fn a_proven_server_gets_the_password_and_the_mail_encrypted() {
    let authority = Authority::new();
    for (tls, scheme, query) in [(Tls::Implicit, "smtps", ""), (Tls::Starttls, "smtp", "?tls=required")] {
        let server = server(tls, authority.certify(HOST), Vec::new());
        let ended = send_one(&server, &mailer(&url(&server, scheme, query), &authority)).await;
        assert_eq!(line(&ended), "accepted dot - 250");
        assert_nothing_secret_in_clear(&server);
        assert_eq!(server.count("AUTH PLAIN"), 1);
    }
}

#[tokio::test]
async fn auth_login_is_spoken_where_plain_is_not() {
    let authority = Authority::new();
    let behaviour =
        Behaviour { tls: Some((Tls::Starttls, authority.certify(HOST))), auth: Some("LOGIN"), ..Behaviour::default() };
    let server = SmtpServer::start(behaviour);
    let ended = send_one(&server, &mailer(&url(&server, "smtp", "?tls=required"), &authority)).await;
    assert_eq!(line(&ended), "accepted dot - 250");
    assert_nothing_secret_in_clear(&server);
}

#[tokio::test]
async fn a_server_that_cannot_prove_its_name_gets_nothing() {
    let authority = Authority::new();
    let bad = [
        authority.certify("mail.example.org"),
        authority.certify_expired(HOST),
        self_signed(HOST),
        Authority::new().certify(HOST),
    ];
    for certificate in bad {
        for (tls, scheme, query) in [(Tls::Implicit, "smtps", ""), (Tls::Starttls, "smtp", "?tls=required")] {
            let server = server(tls, certificate.clone(), Vec::new());
            let ended = send_one(&server, &mailer(&url(&server, scheme, query), &authority)).await;
            assert_eq!(line(&ended), "not_sent fault tls certificate_refused -", "{ended:?}");
            assert_eq!((server.count("AUTH"), server.count("MAIL")), (0, 0));
        }
    }
}

#[tokio::test]
async fn a_downgrade_is_refused_where_tls_is_required() {
    let authority = Authority::new();
    for (rule, expected) in [
        (Rule::new(At::Ehlo, Act::Say("250-mail.test\r\n250 AUTH PLAIN LOGIN\r\n")), "tls starttls_missing -"),
        (Rule::new(At::Starttls, Act::Say("454 4.7.0 not now\r\n")), "tls - 454"),
        (Rule::new(At::Starttls, Act::Say("250 fine\r\n")), "tls unexpected_reply 250"),
        (
            Rule::new(At::Starttls, Act::Add("250-mail.test\r\n250 AUTH PLAIN\r\n235 welcome\r\n")),
            "tls plaintext_after_starttls -",
        ),
    ] {
        let server = server(Tls::Starttls, authority.certify(HOST), vec![rule]);
        let ended = send_one(&server, &mailer(&url(&server, "smtp", "?tls=required"), &authority)).await;
        assert_eq!(line(&ended), format!("not_sent fault {expected}"), "{ended:?}");
        assert_eq!((server.count("AUTH"), server.count("MAIL")), (0, 0));
    }
}

#[tokio::test]
async fn a_password_goes_in_clear_only_to_this_machine_or_with_tls_none() {
    let authority = Authority::new();
    for (rule, expected, sign_ins) in [
        ("", "accepted dot - 250", 1),
        ("?tls=none", "accepted dot - 250", 1),
        ("?tls=required", "not_sent fault tls starttls_missing -", 0),
    ] {
        let server = SmtpServer::start(Behaviour { auth: Some("PLAIN"), ..Behaviour::default() });
        let ended = send_one(&server, &mailer(&url(&server, "smtp", rule), &authority)).await;
        assert_eq!((line(&ended), server.count("AUTH")), (expected.to_owned(), sign_ins), "{rule}");
    }

    let server = SmtpServer::start(Behaviour { auth: Some("GSSAPI"), ..Behaviour::default() });
    let ended = send_one(&server, &mailer(&url(&server, "smtp", "?tls=none"), &authority)).await;
    assert_eq!(line(&ended), "not_sent fault auth auth_not_offered -");
    let wrong = format!("smtp://permits:wrong@{HOST}:{}?tls=none", server.port());
    let server = SmtpServer::start(Behaviour { auth: Some("PLAIN"), ..Behaviour::default() });
    let wrong = wrong.replace(&wrong[wrong.rfind(':').unwrap()..], &format!(":{}?tls=none", server.port()));
    let ended = send_one(&server, &mailer(&wrong, &authority)).await;
    assert_eq!(line(&ended), "not_sent fault auth - 535");
    assert!(!format!("{ended:?}").contains("wrong\0"));
}

#[tokio::test]
async fn where_tls_is_optional_it_is_taken_whoever_the_server_is() {
    let server = SmtpServer::start(Behaviour {
        tls: Some((Tls::Starttls, self_signed("elsewhere.example"))),
        ..Behaviour::default()
    });
    let ended = send_one(&server, &super::mailer(&server.url(), limits())).await;
    assert_eq!(line(&ended), "accepted dot - 250");
    assert_nothing_secret_in_clear(&server);

    let refuse = Rule::new(At::Starttls, Act::Say("454 4.7.0 not now\r\n"));
    let server = SmtpServer::start(Behaviour {
        tls: Some((Tls::Starttls, self_signed(HOST))),
        rules: vec![refuse],
        ..Behaviour::default()
    });
    let ended = send_one(&server, &super::mailer(&server.url(), limits())).await;
    assert_eq!(line(&ended), "accepted dot - 250");
}

#[tokio::test]
async fn a_check_goes_as_far_as_the_sender_and_sends_nothing() {
    let authority = Authority::new();
    let server = server(Tls::Starttls, authority.certify(HOST), Vec::new());
    let office = office();
    let check = mailer(&url(&server, "smtp", "?tls=required"), &authority).check(office.from.address()).await;
    let phases: Vec<_> = check.steps.iter().map(|step| step.phase.as_str()).collect();
    assert_eq!(phases, ["connect", "banner", "ehlo", "tls", "tls", "ehlo", "auth", "mail"]);
    assert_eq!(check.fault, None);
    assert!(check.tls.unwrap().contains("certificate checked"));
    assert_eq!((server.count("MAIL"), server.count("RSET"), server.count("QUIT")), (1, 1, 1));
    assert!(server.accepted().is_empty());

    let refuse = Rule::new(At::Mail, Act::Say("550 5.7.1 not from you\r\n"));
    let server = SmtpServer::with([refuse]);
    let SmtpCheck { fault, tls, .. } = super::mailer(&server.url(), limits()).check(office.from.address()).await;
    let fault = fault.unwrap();
    assert_eq!((fault.phase, fault.smtp_code, tls), (Phase::Mail, Some(550), None));
}

#[tokio::test]
async fn a_single_mail_goes_through_the_librarys_own_interface() {
    let refuse = Rule::new(At::Rcpt, Act::Say("550 5.1.1 nobody\r\n")).for_recipient("bob@bakery.example");
    let server = SmtpServer::with([refuse]);
    let mailer = super::mailer(&server.url(), limits());
    let mail = |to: &str| {
        let builder = Message::builder().from("permits@maple.example".parse().unwrap()).to(to.parse().unwrap());
        builder.subject("A test").body("Hello\n.\n..\n".to_owned()).unwrap()
    };
    let ends = mailer.send(mail("ann@bakery.example")).await.unwrap();
    assert_eq!((ends.len(), ends[0].outcome), (1, Outcome::Accepted));
    assert_eq!(server.accepted()[0].recipient, "ann@bakery.example");
    let refused = mailer.send(mail("bob@bakery.example")).await.unwrap_err();
    assert_eq!(refused.to_string(), "rejected at rcpt: 550 5.1.1 nobody");
}
