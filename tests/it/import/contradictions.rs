//! Rows of one permit number that contradict each other, and counts that add up.

use permit_notifier::files::{ImportReport, Reason};

use super::{Desk, keep_good_rows, rules, sample};

const HEADER: &str = "permit_number,permit_type,holder_name,holder_email,effective_on,expires_on";

/// Row and words of each such warning.
fn said(report: &ImportReport) -> Vec<(Option<u64>, &str)> {
    let ours = report.warnings.iter().filter(|one| one.code == Reason::ContradictoryRows);
    ours.map(|one| (one.row, one.detail.as_str())).collect()
}

/// Every row became something, and one thing only.
fn adds_up(report: &ImportReport) {
    let permits = report.permits_created + report.permits_renewed + report.permits_updated + report.unchanged;
    assert_eq!(report.rows, permits + report.history_terms + report.repeated + report.rejected, "{report:?}");
}

#[tokio::test]
async fn two_permits_under_one_number_are_told_of() {
    let desk = Desk::new().await;
    let lines = [
        "BL-16,Food,Café Montréal,,2026-01-01,2026-12-31",
        "BL-16,Building,Müller,,2027-01-01,2027-12-31",
        "OK-1,Food,Ann,,2026-01-01,2026-12-31",
        "OK-1,FOOD,ANN,ann@example.org,2027-01-01,2027-12-31",
    ];
    let report = desk.import(HEADER, &lines, &rules()).await;
    assert_eq!((report.committed, report.contradictory_numbers), (true, 1));
    let told = "row 2 with this permit number: another permit type and holder than in row 3, which counts; it looks as if \
                a number were wrong and these were different permits, of which only one is recorded";
    assert_eq!(said(&report), [(Some(3), told)]);
    assert!(report.to_string().contains("1 permit number with rows that contradict each other"), "{report}");
    adds_up(&report);
}

#[tokio::test]
async fn another_holder_at_the_same_time_is_worse_than_one_before() {
    let desk = Desk::new().await;
    let lines = [
        "A,Food,Ann,,2026-01-01,2026-12-31",
        "A,Food,Bob,,2027-01-01,2027-12-31",
        "B,Food,Ann,,2026-01-01,2026-12-31",
        "B,Food,Bob,,2026-06-01,2027-12-31",
        "C,Food,Ann,,,2026-12-31",
        "C,Food,Bob,,,2026-12-31",
    ];
    let report = desk.import(HEADER, &lines, &rules()).await;
    let handed_over =
        "row 2 with this permit number: another holder than in row 3, which counts; right if it was handed over";
    let told = said(&report);
    assert_eq!((told.len(), told[0]), (3, (Some(3), handed_over)));
    for (place, row, than) in [(1, 5, "row 4"), (2, 7, "row 6")] {
        assert_eq!(told[place].0, Some(row));
        let words = told[place].1;
        assert!(words.starts_with(than) && words.contains("at the same time; it looks as if"), "{words}");
    }
    adds_up(&report);
}

#[tokio::test]
async fn rows_of_one_term_that_differ_are_told_of_and_rows_that_repeat_it_are_not() {
    let desk = Desk::new().await;
    let lines = [
        "1,Food,Ann,a@example.org,2026-01-01,2026-12-31",
        "1,Food,Ann,b@example.org,2026-01-01,2026-12-31",
        "1,Food,Ann,c@example.org,2026-02-01,2026-12-31",
        "2,Food,Ann,a@example.org,2026-01-01,2026-12-31",
        "2,Food,Ann,a@example.org,2026-01-01,2026-12-31",
        "3,Food,Ann,a@example.org,2025-01-01,2025-12-31",
        "3,Food,Ann,b@example.org,2026-01-01,2026-12-31",
    ];
    let report = desk.import(HEADER, &lines, &rules()).await;
    let told = "3 rows say different things of the term that ends 2026-12-31 (effective_on, holder_email): rows 2, 3 and \
                row 4, which counts as the last";
    assert_eq!(said(&report), [(Some(4), told)]);
    assert_eq!((report.permits_created, report.history_terms, report.repeated), (3, 2, 2));
    adds_up(&report);
    let again = desk.import(HEADER, &lines, &rules()).await;
    assert_eq!((again.unchanged, again.history_terms, again.repeated), (3, 0, 4));
    adds_up(&again);
}

#[tokio::test]
async fn of_very_many_the_first_are_listed_and_all_are_counted() {
    let desk = Desk::new().await;
    let lines: Vec<String> = (0..1003)
        .flat_map(|i| ["Food", "Bar"].map(|kind| format!("N-{i},{kind},Ann,,,2027-01-31")))
        .chain((0..12).map(|i| format!("M,Food,H{i},,,2027-01-31")))
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let report = desk.import(HEADER, &lines, &rules()).await;
    assert_eq!(report.contradictory_numbers, 1004);
    let told = said(&report);
    assert_eq!((told.len(), told[0]), (1001, (None, "4 further permit numbers have rows that contradict each other")));
    let few = desk.import(HEADER, &lines[2006..], &rules()).await;
    assert!(said(&few)[0].1.starts_with("rows 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 1 more with"), "{:?}", said(&few));
}

#[tokio::test]
async fn the_counts_of_a_register_add_up() {
    let desk = Desk::new().await;
    for _ in 0..2 {
        let report = desk.try_import(&sample(), &keep_good_rows(), &rules()).await.unwrap();
        println!("{report}");
        adds_up(&report);
    }
}
