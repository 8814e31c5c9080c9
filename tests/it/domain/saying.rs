//! Numbers and names in sentences.

use permit_notifier::domain::saying::{counted, noun, which, who};

#[test]
fn one_thing_is_said_otherwise_than_several() {
    for (one, several) in [
        ("row", "rows"),
        ("address", "addresses"),
        ("delivery", "deliveries"),
        ("day", "days"),
        ("permit type", "permit types"),
    ] {
        assert_eq!((counted(1_i64, one), noun(1_u64, one)), (format!("1 {one}"), one.to_owned()));
        assert_eq!(
            (counted(0_usize, one), counted("1,000", one)),
            (format!("0 {several}"), format!("1,000 {several}"))
        );
    }
    assert_eq!((which(1, "is", "are"), which(2, "is", "are"), which(0, "is", "are")), ("is", "are", "are"));
}

#[test]
fn people_are_named_without_the_marks_by_which_they_are_kept() {
    let said = ["user:ann@example.org", "token:portal", "command", "first-start", "(removed)"].map(who);
    assert_eq!(
        said,
        ["ann@example.org", "the token portal", "a command on the server", "the first start", "(removed)"]
    );
}
