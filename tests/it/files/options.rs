//! Options of an import, and the wrong ones.

use permit_notifier::files::{self, ImportOptions, OptionError};

#[test]
fn wrong_options_say_what_is_allowed() {
    let parse = |map: &[&str], status: &[&str], permit_type, date_format| {
        ImportOptions::parse(map, status, permit_type, date_format, false).unwrap_err().to_string()
    };
    let unknown = parse(&["colour=A"], &[], None, None);
    assert!(unknown.contains("\"colour\"") && unknown.contains("permit_number, permit_type"), "{unknown}");
    assert!(parse(&["permit_number"], &[], None, None).contains("FIELD=COLUMN"));
    assert!(parse(&["permit_number="], &[], None, None).contains("FIELD=COLUMN"));
    assert!(parse(&["status=A", "status=B"], &[], None, None).contains("twice"));
    assert!(parse(&[], &["AAI=happy"], None, None).contains("active, suspended, revoked"));
    assert!(parse(&[], &["AAI"], None, None).contains("FROM=TO"));
    assert!(parse(&[], &["---=closed"], None, None).contains("--status: \"---\" has no letters and no digits"));
    let long = "x".repeat(201);
    assert!(parse(&[], &[], Some(&long), None).ends_with("the name of a permit type has at most 200 characters"));
    assert!(parse(&["permit_type=A"], &[], Some("Taxi"), None).contains("exclude"));
    assert!(parse(&[], &[], Some("—"), None).contains("--permit-type"));
    for format in ["", "dd.mm.yyyy", "%d.%m", "%Y-%m-%d %H:%M", "%d.%m.%Q", "%H", "%s"] {
        let sentence = parse(&[], &[], None, Some(format));
        assert!(sentence.contains("--date-format") && sentence.contains("%d.%m.%Y"), "{format}: {sentence}");
    }
    for format in ["%d.%m.%Y", "%m/%d/%y", "%d %B %Y", "%Y%j", "%F"] {
        let parsed: Result<files::DateFormat, OptionError> = format.parse();
        assert!(parsed.is_ok(), "{format}");
    }
}
