//! Status words and addresses.

use std::collections::BTreeMap;

use permit_notifier::domain::permit::PermitStatus::{self, Active, Closed, Surrendered, Suspended};
use permit_notifier::files::look::look;
use permit_notifier::files::{Input, Reason};

use super::{Desk, errors, options, plain, read, with_addresses};

#[test]
fn status_words_are_mapped_and_unknown_ones_name_ours() {
    let text = "permit_number,permit_type,holder_name,expires_on,status\n1,Food,Ann,2026-01-01,AAI\n\
                2,Food,Ann,2026-01-01,Expired\n3,Food,Ann,2026-01-01,cancelled\n4,Food,Ann,2026-01-01,REA\n\
                5,Food,Ann,2026-01-01,\n";
    let (reading, terms) = read(text, &plain()).unwrap();
    assert_eq!(errors(&reading), [(5, "status", Reason::UnknownStatus)]);
    assert!(
        reading.errors[0].detail.ends_with("say which of ours it is: active, suspended, revoked, surrendered, closed")
    );
    let statuses: Vec<PermitStatus> = terms.iter().map(|term| term.status).collect();
    assert_eq!(statuses, [Active, Active, Surrendered, Active]);
    assert_eq!(reading.warnings[0].code, Reason::StatusTakenAsActive);
    let (_, terms) = read(text, &options(&[], &["rea=suspended", "Cancelled=closed"], None, false)).unwrap();
    let statuses: Vec<PermitStatus> = terms.iter().map(|term| term.status).collect();
    assert_eq!(statuses, [Active, Active, Closed, Suspended, Active]);
}

#[test]
fn the_words_that_blds_has_for_permits_are_known_and_those_for_applications_are_not() {
    let words = [
        ("Permit Issued", Some(Active)),
        ("Inspection Phase", Some(Active)),
        ("Permit Finaled", Some(Closed)),
        ("Permit Cancelled", Some(Surrendered)),
        ("Application Accepted", None),
        ("In Review", None),
    ];
    for (word, means) in words {
        let text = format!("permit_number,permit_type,holder_name,expires_on,status\n1,Food,Ann,2026-01-01,{word}\n");
        let (_, terms) = read(text, &plain()).unwrap();
        assert_eq!(terms.first().map(|term| term.status), means, "{word}");
    }
}

#[test]
fn a_status_word_may_have_an_equals_sign() {
    let text = "permit_number,permit_type,holder_name,expires_on,status\n1,Food,Ann,2026-01-01,a=b\n";
    let (_, terms) = read(text, &options(&[], &["a=b=closed"], None, false)).unwrap();
    assert_eq!(terms[0].status, Closed);
}

#[test]
fn every_status_word_that_is_an_error_can_be_explained() {
    let words = ["Pending", "unknown", "N/A", "none", "X", "-", "", "#N/A", "active"];
    let rows = words.map(|word| format!("1,Food,Ann,2026-01-01,{word}\n")).concat();
    let path = Desk::new();
    let path_of = path.file(format!("permit_number,permit_type,holder_name,expires_on,status\n{rows}"));
    let look = look(Input::Path(path_of), &plain()).unwrap();
    let shown: Vec<&str> = look.statuses.iter().map(|status| status.word.as_str()).collect();
    assert_eq!(shown, ["N/A", "Pending", "X", "none", "unknown", "active"]);
}

#[test]
fn addresses_are_cleaned_and_words_for_none_are_counted() {
    let cells = [
        "mailto:a@example.org",
        " a@example.org ",
        "a@example.org.",
        "A@Example.ORG,",
        "a@example.org",
        "josé@exämple.com",
        "N/A",
        "none",
        "-",
        "",
        " see file ",
        "Unknown",
        "tbd",
        "NONE GIVEN",
    ];
    let (reading, terms) = read(with_addresses(&cells), &plain()).unwrap();
    assert_eq!((reading.rejected, reading.addresses_cleaned, reading.addresses_missing), (0, 4, 8));
    let email = |at: usize| terms[at].holder_email.as_ref().map(ToString::to_string);
    assert_eq!(email(3).as_deref(), Some("A@example.org"));
    assert_eq!(email(5).as_deref(), Some("josé@xn--exmple-cua.com"));
    assert_eq!(email(6), None);
}

#[test]
fn several_addresses_in_a_cell_are_the_holder_and_contacts() {
    let cells = [
        "a@x.org; b@y.org",
        "a@x.org,b@y.org",
        "a@x.org b@y.org",
        "a@x.org and b@y.org;A@X.ORG",
        "a@x.org/b@y.org",
        "a@x.org|b@y.org/",
        "Ann <a@x.org>; Bob B. <b@y.org>",
    ];
    let (reading, terms) = read(with_addresses(&cells), &plain()).unwrap();
    assert_eq!((reading.rejected, reading.addresses_cleaned), (0, 0));
    for term in &terms {
        assert_eq!(term.holder_email.as_ref().unwrap().to_string(), "a@x.org");
        let [contact] = &term.contacts[..] else { panic!("{term:?}") };
        assert_eq!((contact.email.as_ref().unwrap().to_string(), contact.role.as_str()), ("b@y.org".into(), "contact"));
    }
    assert_eq!(terms[6].contacts[0].name, "Bob B.");
    let (_, terms) = read(with_addresses(&["a/b@x.org"]), &plain()).unwrap();
    assert_eq!(terms[0].holder_email.as_ref().unwrap().to_string(), "a/b@x.org", "a sign of the address itself");
}

#[test]
fn a_malformed_address_rejects_its_row_or_is_left_out_with_a_warning() {
    let cells = ["a@@b.org", "a@nodot", "a b@c.org", "call Bob", "a@@b.org; c@d.org"];
    let (reading, terms) = read(with_addresses(&cells), &plain()).unwrap();
    assert_eq!((reading.rejected, terms.len()), (5, 0));
    assert_eq!(reading.rejected_by_reason, BTreeMap::from([(Reason::MalformedAddress, 5)]));
    assert_eq!(reading.addresses_missing, 0, "they are listed one by one instead");
    let (reading, terms) = read(with_addresses(&cells), &options(&[], &[], None, true)).unwrap();
    assert_eq!((reading.rejected, terms.len(), reading.warnings.len()), (0, 5, 5));
    assert_eq!(reading.addresses_missing, 5);
    assert!(terms.iter().all(|term| term.holder_email.is_none() && term.holder_unusable), "{terms:?}");
    let contacts: Vec<_> = terms[4].contacts.iter().filter_map(|contact| contact.email.as_ref()).collect();
    assert_eq!(contacts, ["c@d.org"].map(|address| address.parse().unwrap()).iter().collect::<Vec<_>>());
    let (reading, terms) = read(with_addresses(&["c@d.org; a@@b.org"]), &options(&[], &[], None, true)).unwrap();
    assert_eq!((reading.addresses_missing, terms[0].holder_email.is_some()), (0, true));
}

#[test]
fn a_malformed_cell_is_reported_once_and_whole() {
    let (reading, _) = read(with_addresses(&["owner5@example,com"]), &plain()).unwrap();
    let found: Vec<_> = reading.errors.iter().map(|error| error.value.as_deref()).collect();
    assert_eq!(found, [Some("owner5@example,com")]);
}

#[test]
fn a_malformed_address_of_a_row_that_is_rejected_is_one_of_its_errors() {
    let text = "permit_number,permit_type,holder_name,holder_email,expires_on\n1,Food,Ann,ann@nodot,2026-02-31\n";
    let (reading, terms) = read(text, &options(&[], &[], None, true)).unwrap();
    assert_eq!((terms.len(), reading.rejected, reading.warnings.len()), (0, 1, 0));
    let found: Vec<_> = errors(&reading).into_iter().map(|(_, column, reason)| (column, reason)).collect();
    assert_eq!(found, [("expires_on", Reason::InvalidDate), ("holder_email", Reason::MalformedAddress)]);
    assert!(!reading.errors[1].detail.contains("kept"), "{:?}", reading.errors);
}

#[test]
fn words_for_nothing_are_no_number_and_no_type_and_a_doubtful_holder() {
    let nothing = ["N/A", "n/a", "none", "-", "?", "null", "unknown"];
    let header = "permit_number,permit_type,holder_name,expires_on\n";
    let with = |place: usize| {
        let rows = nothing.map(|word| {
            let mut cells = ["P-1", "Food", "Ann", "2026-05-01\n"];
            cells[place] = word;
            cells.join(",")
        });
        read(format!("{header}{}", rows.concat()), &plain()).unwrap()
    };
    for (place, column) in ["permit_number", "permit_type"].into_iter().enumerate() {
        let (reading, terms) = with(place);
        let expected: Vec<_> = (2..).zip(nothing).map(|(row, _)| (row, column, Reason::Missing)).collect();
        assert_eq!((errors(&reading), terms.len()), (expected, 0));
    }
    let (reading, terms) = with(2);
    assert_eq!((errors(&reading), terms.len()), (Vec::new(), nothing.len()));
    let doubts = reading.warnings.iter().filter(|doubt| doubt.code == Reason::Missing).filter_map(|doubt| doubt.row);
    assert!(doubts.eq(2..9), "{:?}", reading.warnings);
    let (reading, _) = read(format!("{header}1,X,No,2026-05-01\n2,Food,Ann None,2026-05-01\n"), &plain()).unwrap();
    assert_eq!(errors(&reading), [], "somebody may be called so");
}

#[test]
fn a_number_that_a_spreadsheet_has_shortened_is_refused() {
    let header = "permit_number,permit_type,holder_name,expires_on,external_id\n";
    let text = format!(
        "{header}2.02301E+11,Food,Ann,2026-05-01,\n\"2,02301e+11\",Food,Ann,2026-05-01,\n2E+05,Food,Ann,2026-05-01,\n\
         2E05,Food,Ann,2026-05-01,\nBE+05,Food,Ann,2026-05-01,1.5E+10\n"
    );
    let (reading, terms) = read(text, &plain()).unwrap();
    let wrong = [2, 3, 4].map(|row| (row, "permit_number", Reason::InvalidPermitNumber));
    assert_eq!((errors(&reading), terms.len()), (wrong.to_vec(), 2));
    assert!(reading.errors[0].detail.contains("format the column as text"), "{}", reading.errors[0].detail);
    let [warning] = &reading.warnings[..] else { panic!("{:?}", reading.warnings) };
    assert_eq!(
        (warning.row, warning.column.as_deref(), warning.code),
        (Some(6), Some("external_id"), Reason::DigitsLost)
    );
}
