//! Values with rules of their own: keys, states, addresses, permit numbers, waits.

use std::time::Duration;

use permit_notifier::domain::{
    backoff::delay,
    delivery::DeliveryState,
    notice::{NoticeKey, NoticeState, NoticeType, ReasonCode},
    permit::{PermitNumber, PermitNumberError, PermitTypeCode},
    recipient::{EmailAddress, EmailAddressError},
};
use uuid::Uuid;

use super::cases::notice_type;

#[test]
fn a_notice_key_is_permit_type_and_period_with_colons_between() {
    let key = NoticeKey {
        permit_id: Uuid::from_u128(0x0190_5e4f_7b1a_7c00_8000_0000_0000_002a),
        notice_type: notice_type("expires-30d"),
        expires_on: "2028-02-29".parse().expect("a date"),
    };
    assert_eq!(key.to_string(), "01905e4f-7b1a-7c00-8000-00000000002a:expires-30d:2028-02-29");
}

#[test]
fn a_permit_type_gets_its_code_from_its_name() {
    let code = |name: &str| PermitTypeCode::from_name(name).map(|code| code.to_string());
    for (name, expected) in [
        ("Food", "food"),
        ("  Night  Market / B&B ", "night-market-b-b"),
        ("food-stand", "food-stand"),
        // Marks between words are no letters that could be missed.
        ("Food – “Stand”…", "food-stand"),
        ("Food\u{a0}Stand", "food-stand"),
        // What is beyond ASCII leaves a trace, that two names do not share.
        ("Café", "caf-a82b5049"),
        ("Cafè", "caf-a72b4eb6"),
        ("Ψησταριά", "type-b09a68ce"),
        ("Κατηγορία 2", "2-26b722a9"),
        ("飲食店", "type-b5919042"),
    ] {
        assert_eq!(code(name).as_deref(), Some(expected), "{name}");
    }
    let long = "x".repeat(70);
    assert_eq!(code(&long), Some("x".repeat(64)));
    let traced = code(&format!("{long}é")).unwrap();
    assert!(traced.len() == 64 && traced.starts_with(&format!("{}-", "x".repeat(55))), "{traced}");
    for [one, other] in [["CAFÉ  Bar", "café-bar"], ["Ψησταριά.", "ΨΗΣΤΑΡΙΆ"], ["ψηστες", "ΨΗΣΤΕΣ"]]
    {
        assert_eq!(code(one), code(other), "{one} {other}");
    }
    for [one, other] in [["Café", "Cafe\u{301}"], ["Ψησταριά", "Ψησταρια"], ["食 堂", "食堂"]] {
        assert_ne!(code(one), code(other), "{one} {other}");
    }
    // A code is its own.
    let again = code("Ψησταριά").unwrap();
    assert_eq!(code(&again), Some(again));
    for none in ["", " - ", "…", "&"] {
        assert_eq!(code(none), None, "{none:?}");
    }
}

#[test]
fn a_notice_type_is_short_and_has_only_lower_case_letters_digits_and_dashes() {
    for good in ["a", "expires-30d", "renewed", &"x".repeat(40)] {
        assert!(good.parse::<NoticeType>().is_ok(), "{good}");
    }
    for bad in ["", "A", "a b", "a:b", "a_b", "é", &"x".repeat(41)] {
        assert!(bad.parse::<NoticeType>().is_err(), "{bad}");
    }
    assert!(notice_type("renewed").is_renewed() && !notice_type("renewed-2").is_renewed());
}

#[test]
fn the_state_of_a_notice_follows_from_its_deliveries() {
    use DeliveryState as D;
    use NoticeState as N;
    let table: [(&[D], Option<N>); 24] = [
        (&[], None),
        (&[D::Pending], Some(N::Pending)),
        (&[D::Sending], Some(N::Pending)),
        (&[D::Held], Some(N::Held)),
        (&[D::Ambiguous], Some(N::Ambiguous)),
        (&[D::Sent], Some(N::Sent)),
        (&[D::Failed], Some(N::Failed)),
        (&[D::Bounced], Some(N::Failed)),
        (&[D::Suppressed], Some(N::Failed)),
        (&[D::Superseded], Some(N::Superseded)),
        (&[D::Skipped], Some(N::Skipped)),
        (&[D::Cancelled], Some(N::Cancelled)),
        (&[D::Sent, D::Pending], Some(N::Pending)),
        (&[D::Held, D::Sending], Some(N::Pending)),
        (&[D::Ambiguous, D::Held], Some(N::Held)),
        (&[D::Sent, D::Held], Some(N::Held)),
        (&[D::Sent, D::Ambiguous, D::Failed], Some(N::Ambiguous)),
        (&[D::Bounced, D::Sent], Some(N::Sent)),
        (&[D::Superseded, D::Sent, D::Suppressed], Some(N::Sent)),
        (&[D::Superseded, D::Bounced], Some(N::Failed)),
        (&[D::Skipped, D::Suppressed], Some(N::Failed)),
        (&[D::Skipped, D::Superseded], Some(N::Superseded)),
        (&[D::Cancelled, D::Superseded], Some(N::Superseded)),
        (&[D::Cancelled, D::Skipped], Some(N::Skipped)),
    ];
    for (deliveries, notice) in table {
        assert_eq!(NoticeState::of(deliveries), notice, "{deliveries:?}");
        let backwards: Vec<D> = deliveries.iter().rev().copied().collect();
        assert_eq!(NoticeState::of(&backwards), notice, "{backwards:?}");
    }
}

/// From the row's state to the column's; `x` where a delivery may go. Written by hand.
const MAY_BECOME: &str = "
            pending held sending sent ambiguous failed bounced superseded suppressed skipped cancelled
pending     .       x    x       x    .         x      .       x          x          x       x
held        x       .    .       .    .         .      .       x          x          x       x
sending     x       .    .       x    x         x      .       x          .          x       .
sent        .       .    .       .    .         .      x       .          .          .       .
ambiguous   x       .    .       x    .         x      x       x          .          .       .
failed      x       .    .       .    .         .      .       .          .          .       x
bounced     .       .    .       .    .         .      .       .          .          .       .
superseded  x       x    .       .    .         .      .       .          x          x       .
suppressed  x       x    .       .    .         .      .       x          .          .       .
skipped     .       .    .       .    .         .      .       .          .          .       .
cancelled   .       .    .       .    .         .      .       .          .          .       .
";

#[test]
fn a_delivery_goes_only_where_the_table_says() {
    let state = |word: &str| word.parse::<DeliveryState>().expect("a delivery state");
    let mut lines = MAY_BECOME.trim().lines();
    let columns: Vec<_> = lines.next().into_iter().flat_map(str::split_whitespace).map(state).collect();
    assert_eq!(columns, DeliveryState::ALL);
    let mut pairs = 0;
    for line in lines {
        let mut words = line.split_whitespace();
        let from = state(words.next().expect("a row's state"));
        for (to, mark) in columns.iter().zip(words) {
            assert_eq!(from.may_become(*to), mark == "x", "{from} to {to}");
            pairs += 1;
        }
    }
    assert_eq!(pairs, DeliveryState::ALL.len().pow(2));
}

#[test]
fn only_what_ended_because_the_permit_changed_comes_back() {
    let come_back: Vec<&str> =
        ReasonCode::ALL.iter().filter(|reason| reason.is_revivable()).map(|reason| reason.as_str()).collect();
    assert_eq!(come_back, ["period_changed", "not_active", "paused", "archived", "step_removed", "not_owed"]);
}

#[test]
fn an_address_is_kept_as_written_with_its_domain_in_ascii() {
    for (text, written) in [
        ("ann@example.org", "ann@example.org"),
        (" Ann.Lee+permits@Mail.EXAMPLE.Org\r\n", "Ann.Lee+permits@mail.example.org"),
        ("info@bücher.example", "info@xn--bcher-kva.example"),
        ("info@BÜCHER.example", "info@xn--bcher-kva.example"),
        ("info@例え.テスト", "info@xn--r8jz45g.xn--zckzah"),
        ("o'hara_1@example.co.uk", "o'hara_1@example.co.uk"),
        ("josé@example.org", "josé@example.org"),
    ] {
        let address: EmailAddress = text.parse().expect(text);
        assert_eq!(address.to_string(), written);
        assert_eq!(address.needs_smtputf8(), text.contains("josé"), "{text}");
    }
    let address = |text: &str| text.parse::<EmailAddress>().expect("an address");
    assert_eq!(address("Ann@Example.org").key(), address("ann@EXAMPLE.ORG").key());
    assert_ne!(address("ann@example.org").key(), address("ann+1@example.org").key());
}

#[test]
fn a_text_that_is_no_address_is_refused_with_the_reason() {
    use EmailAddressError as E;
    for (text, reason) in [
        ("", E::Empty),
        (" \r\n", E::Empty),
        ("ann", E::Malformed),
        ("@example.org", E::Malformed),
        ("ann@@example.org", E::Malformed),
        ("ann@home@example.org", E::Malformed),
        ("ann@example.org,bob@example.org", E::Malformed),
        ("ann@example.org bob@example.org", E::Malformed),
        ("Ann <ann@example.org>", E::Malformed),
        ("<ann@example.org>", E::Domain),
        ("ann lee@example.org", E::Malformed),
        ("ann@exam ple.org", E::Malformed),
        ("ann@example.org\r\nBcc: bob@example.org", E::Malformed),
        ("ann\r\n@example.org", E::Malformed),
        ("ann\0@example.org", E::Malformed),
        (".ann@example.org", E::Malformed),
        ("ann.@example.org", E::Malformed),
        ("ann..lee@example.org", E::Malformed),
        ("ann(office)@example.org", E::Malformed),
        ("\"ann lee\"@example.org", E::Exotic),
        ("\"ann\"@example.org", E::Exotic),
        ("ann@[192.0.2.1]", E::Exotic),
        ("ann@[IPv6:2001:db8::1]", E::Exotic),
        ("ann@", E::Domain),
        ("ann@localhost", E::Domain),
        ("ann@.org", E::Domain),
        ("ann@example.", E::Domain),
        ("ann@example..org", E::Domain),
        ("ann@-example.org", E::Domain),
        ("ann@exam_ple.org", E::Domain),
        ("ann@192.0.2.1", E::Domain),
    ] {
        assert_eq!(text.parse::<EmailAddress>().expect_err(text), reason, "{text:?}");
    }
}

#[test]
fn an_address_has_at_most_64_characters_before_the_at_and_254_in_all() {
    let address = |local: usize, last_label: usize| {
        let label = "d".repeat(63);
        format!("{}@{label}.{label}.{}", "a".repeat(local), "d".repeat(last_label)).parse::<EmailAddress>()
    };
    assert!(address(64, 61).is_ok_and(|address| address.to_string().len() == 254));
    assert_eq!(address(64, 62).expect_err("255"), EmailAddressError::TooLong);
    assert_eq!(address(65, 3).expect_err("65"), EmailAddressError::TooLong);
    assert_eq!(address(1, 64).expect_err("a label of 64"), EmailAddressError::Domain);
}

#[test]
fn permit_numbers_are_unique_without_regard_to_case_but_zeros_and_dashes_matter() {
    let number = |text: &str| text.parse::<PermitNumber>().expect(text);
    assert_eq!(number(" BP-007 \n").as_str(), "BP-007");
    assert_eq!(number("bp-007").key(), number("BP-007").key());
    assert_eq!(number("ÄB-1").key(), number("äb-1").key());
    assert_ne!(number("007").key(), number("7").key());
    assert_ne!(number("BP-7").key(), number("BP7").key());
    assert_eq!(number("007").to_string(), "007");
    assert_eq!(number("\u{feff} BP\u{200b}-0\u{200d}07\u{200b} "), number("BP-007"), "what nobody sees");
    assert_eq!(" \u{200b} ".parse::<PermitNumber>(), Err(PermitNumberError::Empty));
    assert_eq!("  ".parse::<PermitNumber>(), Err(PermitNumberError::Empty));
    assert_eq!("a\u{7}b".parse::<PermitNumber>(), Err(PermitNumberError::ControlCharacter));
    assert!("é".repeat(100).parse::<PermitNumber>().is_ok());
    assert_eq!("é".repeat(101).parse::<PermitNumber>(), Err(PermitNumberError::TooLong));
}

#[test]
fn the_wait_triples_from_a_minute_to_six_hours_and_half_of_it_is_random() {
    let minutes = [1, 3, 9, 27, 81, 243, 360, 360, 360];
    for (failures, minutes) in (1..).zip(minutes) {
        let full = Duration::from_mins(minutes);
        assert_eq!(delay(failures, 0.0), full / 2, "{failures}");
        assert_eq!(delay(failures, 1.0), full, "{failures}");
        assert_eq!(delay(failures, 0.5), full * 3 / 4, "{failures}");
    }
    for failures in [16, 21, 22, 33, 1_000, u32::MAX] {
        assert_eq!(delay(failures, 0.0), Duration::from_hours(3), "{failures}");
        assert_eq!(delay(failures, 1.0), Duration::from_hours(6), "{failures}");
    }
    assert_eq!(delay(0, 1.0), Duration::from_mins(1));
}
