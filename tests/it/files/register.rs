//! A register of licences as a city publishes it.

use std::collections::BTreeMap;

use permit_notifier::domain::permit::PermitStatus::{self, Active, Surrendered};
use permit_notifier::files::Reason;

use super::{options, plain, read_path, sample};

#[test]
fn a_licence_register_is_refused_whole_with_every_error_when_all_or_nothing() {
    let (reading, _) = read_path(&sample("chicago_sample.csv"), &plain()).unwrap();
    assert_eq!((reading.rows, reading.rejected), (203, 17));
    let reasons = [(Reason::MalformedAddress, 10), (Reason::ExpiryBeforeEffective, 6), (Reason::Missing, 1)];
    assert_eq!(reading.rejected_by_reason, BTreeMap::from(reasons));
    assert_eq!(reading.errors.len(), 17);
    assert!(reading.errors.iter().all(|error| error.row.is_some() && error.column.is_some()));
}

#[test]
fn a_licence_register_is_read_with_its_good_rows_kept() {
    let (reading, terms) = read_path(&sample("chicago_sample.csv"), &options(&[], &[], None, true)).unwrap();
    assert_eq!((reading.rows, reading.rejected, terms.len()), (203, 7, 196));
    assert_eq!(reading.guessed.date_format, "%m/%d/%Y");
    assert_eq!((reading.addresses_missing, reading.addresses_cleaned), (32, 10));
    let count = |status| terms.iter().filter(|term| term.status == status).count();
    assert_eq!(count(Active), 182);
    assert_eq!(count(Surrendered), 10);
    assert_eq!(count(PermitStatus::Revoked), 4);
    let warned = |code| reading.warnings.iter().filter(|warning| warning.code == code).count();
    assert_eq!(warned(Reason::MalformedAddress), 10);
    assert_eq!(warned(Reason::UnusedColumns), 1);
    let first = &terms[0];
    assert!(first.site_address.as_deref().unwrap().contains(", CHICAGO, IL 60"), "{first:?}");
    let numbers: std::collections::HashSet<String> = terms.iter().map(|term| term.permit_number.key()).collect();
    assert!(numbers.len() < terms.len(), "several terms of one permit are in the sample");
}
