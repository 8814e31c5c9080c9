//! The account: every error, every count, and the report.

use permit_notifier::files::Reason::InvalidDate;
use permit_notifier::files::{self, ImportReport, Reason, TermRow};

use super::{HEADER, errors, plain, read, with_dates};

#[test]
fn a_row_that_is_wrong_twice_is_listed_twice_and_rejected_once() {
    let mut cells = vec![("ann@example.org", "2026-02-28"); 499];
    cells[398] = ("ann@@example.org", "2026-02-30");
    let rows = cells.iter().enumerate().map(|(i, (address, date))| format!("P-{i},Food,Ann,{address},{date}\n"));
    let text = HEADER.to_owned() + rows.collect::<String>().as_str();
    let (reading, _) = read(text, &plain()).unwrap();
    let expected = [(400, "holder_email", Reason::MalformedAddress), (400, "expires_on", InvalidDate)];
    assert_eq!(errors(&reading), expected);
    assert_eq!((reading.rows, reading.rejected), (499, 1));
    let text = ImportReport::of(reading, false).to_string();
    assert!(text.contains("row 400, expires_on \"2026-02-30\": not understood as a date"), "{text}");
}

#[test]
fn errors_beyond_the_ones_kept_are_still_counted() {
    let (reading, _) = read(with_dates(&vec!["never"; 10_500]), &plain()).unwrap();
    assert_eq!((reading.rejected, reading.errors.len()), (10_500, files::REMARKS_KEPT));
    assert_eq!(reading.rejected_by_reason[&InvalidDate], 10_500);
    assert_eq!(reading.warnings[0].detail, "500 further errors are counted and not listed");
}

#[test]
fn the_last_term_is_the_one_that_ends_last_then_starts_last_then_stands_last() {
    let text = "permit_number,permit_type,holder_name,effective_on,expires_on\n1,F,old,2025-01-01,2025-12-31\n\
                1,F,late,2026-03-01,2026-12-31\n1,F,same,2026-03-01,2026-12-31\n1,F,early,2026-01-01,2026-12-31\n\
                1,F,open,,2026-12-31\n";
    let (_, mut terms) = read(text, &plain()).unwrap();
    terms.sort_by_key(TermRow::order);
    let names: Vec<&str> = terms.iter().map(|term| term.holder_name.as_str()).collect();
    assert_eq!(names, ["old", "open", "early", "late", "same"]);
}

#[test]
fn the_report_has_the_shape_that_scripts_read() {
    let (reading, _) = read(with_dates(&["2026-01-01", "soon"]), &plain()).unwrap();
    let json = serde_json::to_value(ImportReport::of(reading, true)).unwrap();
    assert_eq!(
        json["guessed"],
        serde_json::json!({
            "format": "csv", "sheet": null, "encoding": "UTF-8", "delimiter": "comma",
            "date_format": "%Y-%m-%d", "header_row": 1,
        })
    );
    assert_eq!(
        json["errors"],
        serde_json::json!([{
            "row": 3, "column": "expires_on", "value": "soon", "code": "invalid_date",
            "detail": "not understood as a date; the dates of this column are read as 2027-03-25 (%Y-%m-%d)",
        }])
    );
    assert_eq!(json["rejected_by_reason"], serde_json::json!({"invalid_date": 1}));
    let mut keys: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    assert_eq!(
        keys,
        [
            "addresses_cleaned",
            "addresses_missing",
            "committed",
            "contradictory_numbers",
            "dry_run",
            "errors",
            "guessed",
            "history_terms",
            "id",
            "mapped",
            "notices_claimed",
            "notices_held",
            "permits_created",
            "permits_renewed",
            "permits_updated",
            "rejected",
            "rejected_by_reason",
            "repeated",
            "rows",
            "skipped",
            "skipped_by_reason",
            "types_created",
            "unchanged",
            "warnings",
        ]
    );
}
