//! Which URLs may be called.

use std::net::{IpAddr, SocketAddr};

use permit_notifier::outgoing::{
    CallError, CallUrl, Caller,
    guard::{Reach, permitted, reach},
};

use crate::support::listener::Listener;

#[test]
fn addresses_are_public_private_or_never_called_in_whatever_way_they_are_written() {
    for (address, expected) in [
        ("93.184.216.34", Reach::Public),
        ("2606:4700::1111", Reach::Public),
        ("127.0.0.1", Reach::Private),
        ("10.1.2.3", Reach::Private),
        ("172.16.0.1", Reach::Private),
        ("172.32.0.1", Reach::Public),
        ("192.168.1.1", Reach::Private),
        ("100.64.0.1", Reach::Private),
        ("198.18.0.1", Reach::Private),
        ("::1", Reach::Private),
        ("fd00::1", Reach::Private),
        ("::ffff:10.0.0.1", Reach::Private),
        ("64:ff9b::7f00:1", Reach::Private),
        ("2002:a00:1::", Reach::Private),
        ("169.254.169.254", Reach::Forbidden),
        ("::ffff:169.254.169.254", Reach::Forbidden),
        ("64:ff9b::a9fe:a9fe", Reach::Forbidden),
        ("2002:a9fe:a9fe::", Reach::Forbidden),
        ("fe80::1", Reach::Forbidden),
        ("febf::1", Reach::Forbidden),
        ("fec0::1", Reach::Forbidden),
        ("0.0.0.0", Reach::Forbidden),
        ("::", Reach::Forbidden),
        ("224.0.0.1", Reach::Forbidden),
        ("ff02::1", Reach::Forbidden),
        ("255.255.255.255", Reach::Forbidden),
        ("240.0.0.1", Reach::Forbidden),
    ] {
        assert_eq!(reach(address.parse::<IpAddr>().unwrap()), expected, "{address}");
    }
}

#[test]
fn a_name_leads_inside_only_if_it_can_mean_nothing_else() {
    let found = ["10.0.0.1:0", "169.254.169.254:0", "93.184.216.34:0"];
    let found = || found.iter().map(|address| address.parse::<SocketAddr>().unwrap());
    for (name, count) in [
        ("hooks.example.org", 1),
        ("localhost.example.org", 1),
        ("internal", 2),
        ("alertmanager", 2),
        ("localhost", 2),
        ("alerts.office.internal", 2),
        ("alerts.office.INTERNAL.", 2),
        ("printer.local", 2),
        ("notlocal", 2),
        ("alerts.notinternal", 1),
    ] {
        let allowed = permitted(name, found());
        assert_eq!(allowed.len(), count, "{name}: {allowed:?}");
        assert!(!allowed.iter().any(|address| address.ip().to_string() == "169.254.169.254"), "{name}");
    }
}

#[test]
fn urls_that_lead_nowhere_or_where_secrets_are_kept_are_refused_without_being_shown() {
    for text in
        ["https://hooks.example.org/T0/secret?x=1", "http://127.0.0.1:9000/hook", "http://[::1]/", "http://localhost/x"]
    {
        let url = CallUrl::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(format!("{url:?}"), "CallUrl");
    }
    for text in [
        "ftp://example.org/",
        "file:///etc/passwd",
        "hooks.example.org",
        "https://",
        "https://example.org/#part",
        "http://169.254.169.254/latest/meta-data/secret",
        "http://[fe80::1]/",
        "http://0.0.0.0/",
        "http://0xa9fea9fe/secret",
        "http://2852039166/secret",
    ] {
        let error = CallUrl::parse(text).expect_err(text).to_string();
        assert!(!error.contains("secret") || error.contains("hold a secret"), "{error}");
        assert!(!error.contains("meta-data"), "{error}");
    }
    assert!(CallUrl::parse(&format!("https://example.org/{}", "x".repeat(2000))).is_err());
}

#[tokio::test]
async fn no_redirect_is_followed_and_a_fault_shows_no_url() {
    let listener = Listener::open().await;
    let url = CallUrl::parse(&format!("{}/hook/secret", listener.url)).unwrap();
    listener.answers(302);
    assert_eq!(Caller::new().ping(&url).await, Err(CallError::Refused(302)));
    assert_eq!(listener.paths(), ["/hook/secret"]);
    let nobody = CallUrl::parse("http://127.0.0.1:9/hook/secret").unwrap();
    let error = Caller::new().ping(&nobody).await.unwrap_err().to_string();
    assert!(error.contains("cannot be reached") && !error.contains("secret"), "{error}");
}
