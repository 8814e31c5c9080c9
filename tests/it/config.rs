use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::TimeDelta;
use permit_notifier::config::{
    AmbiguousPolicy, Config, ConfigErrors, Environment, LogFormat, SmtpTls, SmtpUrl, TrustedProxies, misspelt,
    read_dotenv,
};
use permit_notifier::web::pages::Unsent;
use secrecy::ExposeSecret;

fn read(values: &[(&str, &str)]) -> Result<Config, ConfigErrors> {
    let values: BTreeMap<&str, &str> = values.iter().copied().collect();
    Config::read(&|name| values.get(name).map(ToString::to_string))
}

fn accepted(values: &[(&str, &str)]) -> Config {
    read(values).unwrap()
}

/// The one sentence about one fault.
fn refused(name: &str, value: &str) -> String {
    let errors = read(&[(name, value)]).unwrap_err();
    assert_eq!(errors.0.len(), 1, "{errors}");
    assert_eq!(errors.0[0].variable, name);
    errors.to_string()
}

#[test]
fn an_empty_environment_gives_the_documented_defaults() {
    let config = accepted(&[]);
    assert!(config.database_url.is_none() && config.database_direct_url.is_none());
    assert!(config.data_dir.is_none() && config.send_window.is_none());
    assert!(config.environment.is_none() && config.clock.is_none());
    assert_eq!(config.listen_addr.to_string(), "127.0.0.1:8080");
    assert_eq!(config.time_zone, chrono_tz::UTC);
    assert_eq!(config.scan_schedule.to_string(), "0 0 6 * * * UTC");
    assert_eq!(config.scan_grace.num_minutes(), 30);
    assert_eq!(config.scan_claim_limit, Some(5000));
    assert_eq!(config.mail_from.to_string(), "Permit Office <permits@permit-notifier.invalid>");
    assert_eq!((config.mail_concurrency, config.max_attempts), (8, 16));
    assert_eq!(config.api_rate_per_minute.map(u32::from), Some(1200));
    assert_eq!(config.lease, Duration::from_mins(1));
    assert_eq!(config.shutdown_limit, Duration::from_secs(25));
    assert_eq!(config.change_delay.num_minutes(), 5);
    assert_eq!(config.keep.content.zip(config.keep.personal), Some((TimeDelta::days(730), TimeDelta::days(730))));
    let for_ever = accepted(&[("KEEP_CONTENT_DAYS", "0"), ("KEEP_PERSONAL_DAYS", "30")]);
    assert_eq!((for_ever.keep.content, for_ever.keep.personal), (None, Some(TimeDelta::days(30))));
    assert!(config.alerts.email.is_none() && config.alerts.webhook.is_none() && config.alerts.heartbeat.is_none());
    assert_eq!(config.alerts.oldest_pending.num_hours(), 24);
    assert_eq!(config.log_format, LogFormat::Pretty);
    assert_eq!(config.log_filter, None);
    assert!(config.warnings.is_empty());
}

#[test]
fn values_are_taken_without_blanks_around_them_and_empty_ones_count_as_unset() {
    let config = accepted(&[
        ("TIME_ZONE", " America/New_York "),
        ("SCAN_SCHEDULE", "0 30 5 * * MON-FRI"),
        ("SEND_WINDOW", "Mon-Fri 08:00-18:00"),
        ("SCAN_CLAIM_LIMIT", "0"),
        ("MAIL_FROM", ""),
        ("LEASE_SECONDS", "  "),
        ("MAIL_REPLY_TO", "desk@example.org"),
        ("ENVIRONMENT", "staging"),
        ("CLOCK", "2026-03-01T09:00:00+01:00"),
        ("LOG_FORMAT", "json"),
        ("RUST_LOG", "warn,permit_notifier=debug"),
    ]);
    assert_eq!(config.scan_schedule.zone(), chrono_tz::America::New_York);
    assert_eq!(config.send_window.unwrap().to_string(), "Mon-Fri 08:00-18:00");
    assert_eq!(config.scan_claim_limit, None);
    assert_eq!(config.lease, Duration::from_mins(1));
    assert_eq!(config.mail_reply_to.unwrap().to_string(), "desk@example.org");
    assert_eq!(config.environment, Some(Environment::Named("staging".into())));
    assert_eq!(config.clock.unwrap().to_rfc3339(), "2026-03-01T08:00:00+00:00");
    assert_eq!(config.log_format, LogFormat::Json);
}

#[test]
fn every_refused_value_is_named_with_what_is_allowed() {
    for (name, value, allowed) in [
        ("LISTEN_ADDR", "localhost", "`127.0.0.1:8080`"),
        ("PUBLIC_URL", "permits.example.org", "`https://permits.example.org`"),
        ("PUBLIC_URL", "https://example.org/permits", "without a path"),
        ("TIME_ZONE", "Europe/Bonn", "`Europe/Berlin`"),
        ("SCAN_SCHEDULE", "0 6 * * *", "six fields"),
        ("SCAN_SCHEDULE", "0 0 8 31 2 *", "never run"),
        ("SCAN_SCHEDULE", "0 0 8 1 * MON", "leave one of the two"),
        ("SCAN_GRACE_MINUTES", "0", "from 1 to 1440"),
        ("SCAN_CLAIM_LIMIT", "-1", "from 0 to 10000000"),
        ("MAIL_FROM", "the office", "one address"),
        ("MAIL_FROM", "a@example.org, b@example.org", "one address"),
        ("MAIL_REPLY_TO", "a@example.org\r\nBcc: b@example.org", "line breaks"),
        ("MAIL_CONCURRENCY", "257", "from 1 to 256"),
        ("MAX_ATTEMPTS", "many", "from 1 to 100"),
        ("API_RATE_PER_MINUTE", "-1", "from 0 to 1000000"),
        ("LEASE_SECONDS", "2", "from 3 to 3600"),
        ("SHUTDOWN_SECONDS", "1.5", "from 1 to 600"),
        ("SEND_WINDOW", "Mon-Fri 22:00-06:00", "on the same day"),
        ("CHANGE_DELAY_MINUTES", "1441", "from 0 to 1440"),
        ("KEEP_CONTENT_DAYS", "29", "from 30 to 36500, or 0 to keep everything"),
        ("KEEP_PERSONAL_DAYS", "-1", "from 30 to 36500, or 0 to keep everything"),
        ("KEEP_PERSONAL_DAYS", "36501", "from 30 to 36500, or 0 to keep everything"),
        ("ENVIRONMENT", "my place", "`production`"),
        ("CLOCK", "yesterday", "RFC 3339"),
        ("LOG_FORMAT", "xml", "`pretty` or `json`"),
        ("RUST_LOG", "info,sqlx=loud", "`info,sqlx=warn`"),
        ("RUST_LOG", "warning", "a level (error, warn, info, debug, trace, off)"),
        ("SMTP_URL", "mail.example.org", "`smtp://user:password@mail.example.org:587`"),
        ("SMTP_URL", "smtp://mail.example.org/inbox", "no path"),
        ("SMTP_URL", "smtp://ann@mail.example.org", "a user and a password"),
        ("SMTP_URL", "smtp://mail.example.org?tls=maybe", "`opportunistic`"),
        ("SMTP_URL", "smtp://mail.example.org?timeout=5", "one parameter only"),
        ("SMTP_URL", "smtps://mail.example.org?tls=none", "`smtp://…`"),
        ("SMTP_URL", "smtp://a:b@mail.example.org?tls=opportunistic", "another machine"),
        ("BOUNCE_ADDRESS", "bounces", "`bounces@example.org`"),
        ("BOUNCE_ADDRESS", "bücher@example.org", "in ASCII"),
        ("MAIL_ALLOWLIST", "example.org;example.com", "separated by commas"),
        ("MAIL_RATE_PER_SECOND", "10001", "from 0 to 10000"),
        ("AMBIGUOUS_POLICY", "resend", "`resend-after:24`"),
        ("AMBIGUOUS_POLICY", "resend-after:0", "hours from 1"),
        ("DATABASE_DIRECT_URL", "postgres://localhost/permits", "beside DATABASE_URL"),
    ] {
        let sentence = refused(name, value);
        assert!(sentence.contains(allowed), "{name}={value}: {sentence}");
        assert!(sentence.starts_with(name) && sentence.ends_with('.'), "{sentence}");
        assert_eq!(sentence.lines().count(), 1, "{sentence}");
    }
}

#[test]
fn all_faults_are_reported_at_once_one_sentence_each() {
    let errors = read(&[
        ("LEASE_SECONDS", "never"),
        ("TIME_ZONE", "Mars"),
        ("RUST_LOG", "=="),
        ("SEND_WINDOW", "Mon-Fri 01:00-02:00"),
    ])
    .unwrap_err();
    let named: BTreeSet<_> = errors.0.iter().map(|fault| fault.variable.as_str()).collect();
    // The window cannot be judged while the zone is unknown.
    assert_eq!(named, BTreeSet::from(["LEASE_SECONDS", "RUST_LOG", "TIME_ZONE"]));
    assert_eq!(errors.to_string().lines().count(), 3);
}

#[test]
fn the_clock_cannot_be_moved_in_production() {
    for name in ["production", "Production"] {
        let errors = read(&[("ENVIRONMENT", name), ("CLOCK", "2026-03-01T08:00:00Z")]);
        let errors = errors.unwrap_err().to_string();
        assert!(errors.starts_with("CLOCK must be unset with ENVIRONMENT=production"));
        assert!(accepted(&[("ENVIRONMENT", name)]).is_production());
    }
}

#[test]
fn a_window_day_without_a_scan_before_the_windows_end_stops_the_start() {
    let check =
        |zone, schedule, window| read(&[("TIME_ZONE", zone), ("SCAN_SCHEDULE", schedule), ("SEND_WINDOW", window)]);
    assert!(check("UTC", "0 0 6 * * *", "Mon-Fri 08:00-18:00").is_ok());
    assert!(check("UTC", "0 0 17 * * MON-FRI", "Mon-Fri 08:00-18:00").is_ok());
    assert!(check("Asia/Beirut", "* * * * * *", "Mon-Sun 00:00-00:01").is_err());
    assert!(check("UTC", "* * * * * *", "Mon-Sun 00:00-00:01").is_ok());

    let too_late = check("UTC", "0 0 18 * * *", "Mon-Fri 08:00-18:00").unwrap_err();
    assert!(too_late.to_string().contains("Wednesday 2025-01-01 would have none"));
    let no_saturday = check("UTC", "0 0 6 * * MON-FRI", "Mon-Sat 08:00-18:00").unwrap_err();
    assert!(no_saturday.to_string().contains("Saturday 2025-01-04"));
    assert!(check("UTC", "0 0 6 1-28 * *", "Mon-Fri 08:00-18:00").is_err());
    // 01:30 does not exist on one Sunday a year and then runs at 02:00, when the window is over.
    assert!(check("Europe/London", "0 30 1 * * *", "Mon-Sun 00:00-02:00").is_err());
    assert!(check("Europe/London", "0 30 1 * * *", "Mon-Sat 00:00-02:00").is_ok());
}

#[test]
fn a_database_password_is_shown_by_no_message() {
    for value in [
        "mysql://permits:hunter2@localhost/permits",
        "postgres://permits:hunter2@localhost:port/permits",
        "postgres://permits:hunter2@localhost/permits?sslmode=always",
        "host=localhost password=hunter2",
        "postgres://permits:hunter2\n@localhost/permits",
    ] {
        assert!(!refused("DATABASE_URL", value).contains("hunter2"), "{value}");
    }
    let url = "postgres://permits:hunter2@db.example.org/permits";
    let config = accepted(&[("DATABASE_URL", url), ("DATABASE_DIRECT_URL", url)]);
    assert_eq!(config.database_url.as_ref().unwrap().expose_secret(), url);
    assert_eq!(config.warnings.len(), 2);
    assert!(!format!("{config:?}").contains("hunter2"));
}

#[test]
fn no_fault_repeats_the_password_of_a_url_in_whatever_variable_it_stands() {
    for variable in [
        "PUBLIC_URL",
        "DATABASE_URL",
        "SMTP_URL",
        "ALERT_WEBHOOK_URL",
        "HEARTBEAT_URL",
        "ALERT_EMAIL",
        "LISTEN_ADDR",
        "MAIL_REPLY_TO",
    ] {
        for value in [
            "https://ann:HUNTER2@x.example/y#z",
            "https://ann:x@HUNTER2@x.example/y#z",
            "https://ann:x/HUNTER2@x.example/y#z",
            "https:ann:HUNTER2@x.example/y#z",
            "ann:HUNTER2@x.example/y#z",
        ] {
            let errors = read(&[(variable, value)]).expect_err(value).to_string();
            assert!(errors.contains(variable) && !errors.to_uppercase().contains("HUNTER2"), "{errors}");
        }
    }
    assert!(refused("PUBLIC_URL", "https://ann:hunter2@x.example/").contains("not `https://…@x.example/`"));
    assert!(refused("ALERT_EMAIL", "ann@@x.example").contains("not `ann@@x.example`"));
}

#[test]
fn what_every_page_says_about_mail_is_so() {
    let said =
        |values: &[(&str, &str)]| Unsent::of(&accepted(values)).map(|unsent| (unsent.headline, unsent.to_everybody));
    assert_eq!(said(&[]), Some(("No mail is really sent.", false)));
    let server = [("SMTP_URL", "smtp://127.0.0.1"), ("MAIL_FROM", "office@example.org")];
    let with = |more: &[(&'static str, &'static str)]| said(&[&server[..], more].concat());
    assert_eq!(with(&[("ENVIRONMENT", "production")]), None);
    assert_eq!(with(&[("ENVIRONMENT", "staging")]), Some(("Not everybody is mailed.", false)));
    let everybody = [("ENVIRONMENT", "staging"), ("MAIL_ALLOWLIST", "*")];
    assert_eq!(with(&everybody), Some(("Mail is really sent.", true)));
}

#[test]
fn an_unproven_server_on_another_machine_is_worth_a_warning_and_no_more() {
    let warnings = |url| accepted(&[("DATABASE_URL", url)]).warnings.len();
    for near in [
        "postgres://permits@localhost/permits",
        "postgresql://permits@127.0.0.1:5433/permits",
        "postgres://permits@[::1]/permits",
        "postgres://permits@localhost/permits?host=/run/postgresql",
        "postgres://%2Frun%2Fpostgresql/permits",
        "postgres:///permits",
    ] {
        assert_eq!(warnings(near), 0, "{near}");
    }
    assert_eq!(warnings("postgres://permits@postgres/permits"), 1);
    assert_eq!(warnings("postgres://permits@localhost/permits?host=db.example.org"), 1);
    assert_eq!(warnings("postgres://db.example.org/permits?sslmode=require"), 1);
    assert_eq!(warnings("postgres://db.example.org/permits?sslmode=verify-full"), 0);
}

#[test]
fn the_public_url_is_the_one_set_or_the_address_that_is_listened_on() {
    let url = |values: &[(&str, &str)], bound: &str| accepted(values).public_url(bound.parse().unwrap()).to_string();
    assert_eq!(url(&[], "127.0.0.1:41234"), "http://127.0.0.1:41234/");
    assert_eq!(url(&[], "0.0.0.0:8080"), "http://127.0.0.1:8080/");
    assert_eq!(url(&[], "[::]:8080"), "http://[::1]:8080/");
    assert_eq!(url(&[], "[fe80::1%3]:8080"), "http://[fe80::1]:8080/");
    let set = [("PUBLIC_URL", "https://permits.example.org")];
    assert_eq!(url(&set, "127.0.0.1:8080"), "https://permits.example.org/");
}

#[test]
fn the_fingerprint_changes_with_what_replicas_must_agree_on_and_with_nothing_else() {
    let fingerprint = |values: &[(&str, &str)]| accepted(values).fingerprint();
    let plain = fingerprint(&[]);
    assert!(plain.contains(env!("CARGO_PKG_VERSION")));
    for different in [
        ("TIME_ZONE", "Europe/Berlin"),
        ("SCAN_SCHEDULE", "0 0 7 * * *"),
        ("MAIL_FROM", "permits@example.org"),
        ("PUBLIC_URL", "https://permits.example.org"),
    ] {
        assert_ne!(fingerprint(&[different]), plain);
    }
    assert_eq!(fingerprint(&[("SCAN_SCHEDULE", "0  0 6 * * *")]), plain);
    assert_eq!(fingerprint(&[("MAIL_CONCURRENCY", "20"), ("RUST_LOG", "debug")]), plain);
}

#[test]
fn the_example_file_names_exactly_the_variables_that_are_read() {
    let asked = RefCell::new(BTreeSet::new());
    Config::read(&|name| {
        asked.borrow_mut().insert(name.to_owned());
        None
    })
    .unwrap();

    let example = include_str!("../../.env.example");
    let documented: Vec<_> = example
        .lines()
        .filter_map(|line| line.strip_prefix('#'))
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name.to_owned())
        .filter(|name| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
        .collect();
    let set: BTreeSet<_> = documented.iter().cloned().collect();
    assert_eq!(set.len(), documented.len(), "a variable is documented twice");
    assert_eq!(set, asked.into_inner());
}

#[test]
fn the_example_file_shows_the_real_defaults() {
    let uncommented: String = include_str!("../../.env.example")
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(entry) if entry.starts_with(|c: char| c.is_ascii_uppercase()) => entry,
            _ => line,
        })
        .fold(String::new(), |text, line| text + line + "\n");
    let values: BTreeMap<String, String> =
        dotenvy::from_read_iter(uncommented.as_bytes()).collect::<Result<_, _>>().unwrap();
    let without_examples = |name: &str| !matches!(name, "DATABASE_URL" | "DATA_DIR" | "SMTP_URL");
    let example = Config::read(&|name| values.get(name).filter(|_| without_examples(name)).cloned());
    assert_eq!(format!("{:?}", example.unwrap()), format!("{:?}", accepted(&[])));
}

#[test]
fn the_word_of_proxies_alone_is_taken_about_where_a_request_comes_from() {
    let proxies = TrustedProxies::parse("10.1.0.0/16, 2001:db8:1::/48,192.0.2.7").unwrap();
    for (peer, forwarded, origin) in [
        ("203.0.113.5", &["198.51.100.1"][..], "203.0.113.5"),
        ("127.0.0.1", &["198.51.100.1"], "198.51.100.1"),
        ("127.0.0.1", &[], "127.0.0.1"),
        ("10.1.2.3", &["198.51.100.1, 203.0.113.5"], "203.0.113.5"),
        ("::ffff:10.1.2.3", &["198.51.100.1", "203.0.113.5, 192.0.2.7"], "203.0.113.5"),
        ("10.1.2.3", &["198.51.100.1:4711"], "198.51.100.1"),
        ("10.1.2.3", &["[2001:db8:2::1]:4711"], "2001:db8:2::1"),
        ("2001:db8:1:ff::1", &["198.51.100.1"], "198.51.100.1"),
        ("10.2.0.1", &["198.51.100.1"], "10.2.0.1"),
        ("10.1.2.3", &["198.51.100.1, unknown"], "10.1.2.3"),
        ("10.1.2.3", &["10.1.9.9"], "10.1.9.9"),
    ] {
        let found = proxies.origin(peer.parse().unwrap(), forwarded.iter().copied());
        assert_eq!(found.to_string(), origin, "{peer} {forwarded:?}");
    }
    for wrong in ["0.0.0.0/0", "10.0.0.0/33", "::/129", "10.0.0.0/x", "proxy.example.org", "10.0.0"] {
        let sentence = refused("TRUSTED_PROXIES", wrong);
        assert!(sentence.contains("addresses or networks"), "{sentence}");
    }
}

#[test]
fn a_mail_server_needs_a_sender_and_an_environment() {
    let url = ("SMTP_URL", "smtp://mail.example.org");
    let errors = read(&[url]).unwrap_err();
    let named: BTreeSet<_> = errors.0.iter().map(|fault| fault.variable.as_str()).collect();
    assert_eq!(named, BTreeSet::from(["ENVIRONMENT", "MAIL_FROM"]));

    let from = ("MAIL_FROM", "permits@example.org");
    let config = accepted(&[url, from, ("ENVIRONMENT", "production")]);
    assert_eq!(config.smtp_url.unwrap().server(), "mail.example.org:25");
    assert!(config.warnings.is_empty());
    let trial = accepted(&[url, from, ("ENVIRONMENT", "staging")]);
    assert!(trial.warnings[0].contains("nobody is mailed"));
    let ignored = accepted(&[url, from, ("ENVIRONMENT", "production"), ("MAIL_ALLOWLIST", "*")]);
    assert!(ignored.warnings[0].contains("is ignored"));
}

#[test]
fn a_mail_server_s_url_says_how_it_is_encrypted_and_hides_its_password() {
    for (url, tls, port) in [
        ("smtp://mail.example.org", SmtpTls::Opportunistic, 25),
        ("smtp://a:b@mail.example.org", SmtpTls::Required, 587),
        ("smtp://a:b@localhost", SmtpTls::Opportunistic, 587),
        ("smtp://a:b@[::1]:2525/", SmtpTls::Opportunistic, 2525),
        ("smtp://a:b@mail.example.org?tls=none", SmtpTls::Never, 587),
        ("smtp://mail.example.org?tls=required", SmtpTls::Required, 25),
        ("smtps://mail.example.org", SmtpTls::Implicit, 465),
    ] {
        let read = SmtpUrl::parse(url).unwrap();
        assert_eq!((read.tls, read.port), (tls, port), "{url}");
    }
    let url = SmtpUrl::parse("smtps://ann%40example.org:p%3Ass%20hunter2@mail.example.org").unwrap();
    let credentials = url.credentials.as_ref().unwrap();
    assert_eq!(credentials.user, "ann@example.org");
    assert_eq!(credentials.password.expose_secret(), "p:ss hunter2");
    assert!(!format!("{url:?}").contains("hunter2"));
    for value in
        ["smtp://ann:hunter2@", "http://ann:hunter2@host", "smtp://ann:hunter2@host?tls=x", "smtp://:hunter2@host"]
    {
        assert!(!refused("SMTP_URL", value).contains("hunter2"), "{value}");
    }
}

#[test]
fn outside_production_only_the_allowlist_is_mailed() {
    let allows = |list: &str, address: &str| {
        accepted(&[("MAIL_ALLOWLIST", list)]).mail_allowlist.allows(&address.parse().unwrap())
    };
    assert!(!allows("", "ann@example.org"));
    assert!(allows("*", "ann@example.org"));
    assert!(allows("bob@example.org, Ann@Example.org", "ann@example.org"));
    assert!(!allows("ann@example.org", "bob@example.org"));
    assert!(allows("example.com,@example.org", "bob@EXAMPLE.org"));
    assert!(!allows("example.org", "bob@mail.example.org"));
    assert!(!allows("example.org", "bob@notexample.org"));
}

#[test]
fn the_policy_for_unknown_outcomes_is_to_hold_or_to_resend() {
    let policy = |text: &str| accepted(&[("AMBIGUOUS_POLICY", text)]).ambiguous_policy;
    assert_eq!(policy(""), AmbiguousPolicy::Hold);
    assert_eq!(policy("hold"), AmbiguousPolicy::Hold);
    assert_eq!(policy("resend-after:24"), AmbiguousPolicy::ResendAfter(Duration::from_hours(24)));
}

#[test]
fn a_dotenv_file_is_optional_and_its_first_entry_for_a_name_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".env");
    assert!(read_dotenv(&path).unwrap().is_empty());

    std::fs::write(&path, "\u{feff}TIME_ZONE=UTC # the office\nSCAN_SCHEDULE='0 0 6 * * *'\nTIME_ZONE=Asia/Tokyo\n")
        .unwrap();
    let values = read_dotenv(&path).unwrap();
    assert_eq!(values["TIME_ZONE"], "UTC");
    assert_eq!(values["SCAN_SCHEDULE"], "0 0 6 * * *");
}

#[test]
fn a_name_that_looks_like_one_of_ours_is_said() {
    let known = ["SMTP_URL", "MAIL_FROM", "LOG_LEVEL"].map(str::to_owned).into();
    let set = ["SMTP_ULR", "SMTP_URL", "mail_from", "POSTGRES_PASSWORD", "LANG"].map(str::to_owned);
    assert_eq!(
        misspelt(&known, set.into_iter()),
        [
            "SMTP_ULR is set and not read; did you mean SMTP_URL?",
            "mail_from is set and not read; did you mean MAIL_FROM?"
        ]
    );
}

#[test]
fn a_bad_line_of_a_dotenv_file_is_located_and_not_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".env");
    std::fs::write(&path, "LEASE_SECONDS=30\nDATABASE_URL postgres://a:hunter2@b/c\n").unwrap();
    let fault = read_dotenv(&path).unwrap_err().to_string();
    assert!(fault.starts_with(".env in the working folder"), "{fault}");
    assert!(fault.contains("after LEASE_SECONDS"), "{fault}");
    assert!(!fault.contains("hunter2"), "{fault}");
}
