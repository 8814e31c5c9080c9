//! Dates: one format a column, decided from all its values.

use permit_notifier::files::Reason::{InvalidDate, TimeInDate};
use permit_notifier::files::{FileFault, Reason};

use super::{day, errors, options, plain, read, refused, with_dates};

#[test]
fn a_given_format_holds_for_all_columns_and_iso_dates_stay_dates() {
    let text = with_dates(&["01.02.27", "2026-03-04"]);
    let (reading, terms) = read(&text, &options(&[], &[], Some("%d.%m.%y"), false)).unwrap();
    assert_eq!(reading.guessed.date_format, "%d.%m.%y");
    assert_eq!((terms[0].expires_on, terms[1].expires_on), (day("2027-02-01"), day("2026-03-04")));
    let (reading, _) = read(with_dates(&["2026-03-14"]), &options(&[], &[], Some("%Y-%d-%m"), false)).unwrap();
    assert_eq!(errors(&reading), [(2, "expires_on", InvalidDate)], "not taken for ISO when that could be a mistake");
}

#[test]
fn a_given_format_leaves_a_column_alone_in_which_nothing_is_written_so() {
    let head = "permit_number,permit_type,holder_name,issued_on,effective_on,expires_on\n";
    let text = format!("{head}A,T,Ann,01/02/2026,03-04-2026,25.12.2027\nB,T,Bob,05/06/2026,2026-05-06,1.2.2028\n");
    assert!(matches!(refused(&text), FileFault::AmbiguousDates { .. }));
    for (format, issued, effective) in [
        ("%d/%m/%Y", ["2026-02-01", "2026-06-05"], ["2026-04-03", "2026-05-06"]),
        ("%m/%d/%Y", ["2026-01-02", "2026-05-06"], ["2026-03-04", "2026-05-06"]),
    ] {
        let (reading, terms) = read(&text, &options(&[], &[], Some(format), false)).unwrap();
        assert!(errors(&reading).is_empty(), "{format}: {reading:?}");
        let seen = |date: fn(&permit_notifier::files::TermRow) -> Option<chrono::NaiveDate>| {
            terms.iter().map(|term| date(term).unwrap().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(seen(|term| term.issued_on), issued);
        // Of what could be either the one that has day and month in the order that was named.
        assert_eq!(seen(|term| term.effective_on), effective);
        assert_eq!(seen(|term| Some(term.expires_on)), ["2027-12-25", "2028-02-01"]);
        assert!(reading.guessed.date_format.contains("expires_on %d.%m.%Y"), "{}", reading.guessed.date_format);
    }
}

#[test]
fn one_value_that_fits_one_format_only_decides_its_whole_column() {
    for (dates, format, first) in [
        (&["12/01/2026", "31/12/2026"][..], "%d/%m/%Y", "2026-01-12"),
        (&["12/01/2026", "12/31/2026"], "%m/%d/%Y", "2026-12-01"),
        (&["1.2.2026"], "%d.%m.%Y", "2026-02-01"),
        (&["2026/02/01"], "%Y/%m/%d", "2026-02-01"),
        (&["13-02-2026"], "%d-%m-%Y", "2026-02-13"),
        (&["2026-02-01"], "%Y-%m-%d", "2026-02-01"),
        (&["20260201"], "%Y%m%d", "2026-02-01"),
        (&["1-Feb-2026"], "%d-%b-%Y", "2026-02-01"),
        (&["\"Feb 1, 2026\""], "%b %d, %Y", "2026-02-01"),
        (&["\"December 31, 2026\"", "\"May 1, 2027\""], "%B %d, %Y", "2026-12-31"),
        (&["31 December 2026"], "%d %B %Y", "2026-12-31"),
        (&["05/05/2026"], "%m/%d/%Y", "2026-05-05"),
    ] {
        let (reading, terms) = read(with_dates(dates), &plain()).unwrap();
        assert_eq!(reading.guessed.date_format, format, "{dates:?}");
        assert_eq!(terms[0].expires_on, day(first), "{dates:?}");
        assert_eq!(reading.rejected, 0);
    }
}

#[test]
fn years_of_two_digits_are_never_guessed_and_it_is_said_what_to_do() {
    for date in ["6/5/26", "31.12.26", "5-Jun-26", "12/31/26"] {
        let (reading, _) = read(with_dates(&[date, "2027-03-04"]), &plain()).unwrap();
        assert_eq!(errors(&reading), [(2, "expires_on", InvalidDate)], "{date}");
        let detail = &reading.errors[0].detail;
        let said =
            ["are read as 2027-03-25 (%Y-%m-%d)", "write the year with four digits, or say how dates are written"];
        assert!(said.iter().all(|said| detail.contains(said)), "{detail}");
    }
    let (reading, _) = read(with_dates(&["12/31/2026", "soon"]), &plain()).unwrap();
    let detail = "not understood as a date; the dates of this column are read as 03/25/2027 (%m/%d/%Y)";
    assert_eq!(reading.errors[0].detail, detail);
    // Named, they are read, and a year of four digits is not taken for one of two.
    let us = options(&[], &[], Some("%m/%d/%y"), false);
    let (reading, terms) = read(with_dates(&["6/5/26", "12/31/99", "6/5/2026", "6/5/1999"]), &us).unwrap();
    assert_eq!((terms[0].expires_on, terms[1].expires_on), (day("2026-06-05"), day("1999-12-31")));
    assert_eq!(errors(&reading), [(4, "expires_on", InvalidDate), (5, "expires_on", InvalidDate)]);
}

#[test]
fn columns_that_are_ambiguous_throughout_ask_for_a_format() {
    let text = "permit_number,permit_type,holder_name,issued_on,expires_on\n1,Food,Ann,02/01/2026,03/04/2026\n\
                2,Food,Bob,05/05/2025,06/06/2026\n";
    let sentence = refused(text).to_string();
    for part in ["\"issued_on\" (such as 02/01/2026)", "\"expires_on\" (such as 03/04/2026)", "--date-format %d/%m/%Y"]
    {
        assert!(sentence.contains(part), "{sentence}");
    }
    let (_, terms) = read(text, &options(&[], &[], Some("%d/%m/%Y"), false)).unwrap();
    assert_eq!((terms[0].issued_on, terms[0].expires_on), (Some(day("2026-01-02")), day("2026-04-03")));
}

#[test]
fn a_column_with_dates_of_both_kinds_is_refused_and_a_few_typing_errors_are_not() {
    let mixed = ["01/02/2026", "31/12/2026", "30/12/2026", "12/31/2026"];
    assert!(matches!(refused(with_dates(&mixed)), FileFault::MixedDates { counts: [2, 1], .. }));
    let mut dates = vec!["12/31/2026"; 40];
    dates.extend(["01/02/2026", "31/12/2026"]);
    let (reading, terms) = read(with_dates(&dates), &plain()).unwrap();
    assert_eq!(errors(&reading), [(43, "expires_on", InvalidDate)]);
    assert_eq!(terms[40].expires_on, day("2026-01-02"));
}

#[test]
fn days_that_do_not_exist_and_times_of_day_are_errors_and_midnight_is_not() {
    let midnights = ["2026-02-01T00:00:00.000", "2026-02-01 00:00", "2026-02-01 12:00:00 AM", " 2026-02-01 "];
    let (reading, terms) = read(with_dates(&midnights), &plain()).unwrap();
    assert_eq!((reading.rejected, terms.len()), (0, 4));
    let wrong =
        ["2026-02-30", "2026-13-01", "soon", "0026-01-01", "2026-01-01 00:00:01", "2026-01-01T00:00:00Z", "46054"];
    let (reading, _) = read(with_dates(&wrong), &plain()).unwrap();
    let codes: Vec<Reason> = reading.errors.iter().map(|error| error.code).collect();
    assert_eq!(codes, [InvalidDate, InvalidDate, InvalidDate, InvalidDate, TimeInDate, TimeInDate, InvalidDate]);
    assert_eq!(reading.errors[0].value.as_deref(), Some("2026-02-30"));
}

#[test]
fn an_expiry_before_the_start_is_an_error_and_before_the_issue_date_a_warning() {
    let text = "permit_number,permit_type,holder_name,issued_on,effective_on,expires_on\n\
                1,Food,Ann,,2026-01-02,2026-01-01\n2,Food,Ann,2026-01-02,,2026-01-01\n3,Food,Ann,,2026-01-01,2026-01-01\n";
    let (reading, terms) = read(text, &plain()).unwrap();
    assert_eq!(errors(&reading), [(2, "expires_on", Reason::ExpiryBeforeEffective)]);
    assert_eq!((reading.warnings[0].row, reading.warnings[0].code), (Some(3), Reason::ExpiryBeforeIssue));
    assert_eq!(terms.len(), 2);
}
