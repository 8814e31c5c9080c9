//! Good rows of permits of which another row is wrong: they are held back, because what the wrong row says is not known.

use permit_notifier::files::{ImportReport, REJECTED_KEPT, Reason};

use super::{Desk, catch_up, keep_good_rows, rules};

const HEADER: &str = "permit_number,permit_type,holder_name,holder_email,expires_on,status";

async fn keep_good(desk: &Desk, lines: &[&str]) -> ImportReport {
    let path = desk.file("permits.csv", &format!("{HEADER}\n{}\n", lines.join("\n")));
    desk.try_import(&path, &keep_good_rows(), &catch_up()).await.unwrap()
}

#[tokio::test]
async fn a_permit_of_which_a_row_is_wrong_is_left_alone_altogether() {
    let desk = Desk::new().await;
    desk.import(HEADER, &["K1,Food,Ann,k@example.org,2026-06-20,active"], &rules()).await;
    let before = desk.rows("SELECT number_key, version, expires_on FROM permits").await;
    let report = keep_good(
        &desk,
        &[
            "T1,Food,Ann,t@example.org,2026-06-07,Active",
            "V1,Food,Bob,v@example.org,2026-06-07,Active",
            "G1,Food,Cy,g@example.org,2026-06-07,Active",
            "t 1,Food,Ann,t@example.org,2027-06-07,Renewal pending",
            "V1,Food,Bob,v@example.org,never,Revoked",
            "K1,Food,Ann,k@example.org,2026-06-25,Active",
            "K1,Food,Ann,k@example.org",
        ],
    )
    .await;
    assert_eq!((report.committed, report.permits_created, report.permits_renewed), (true, 1, 0));
    assert_eq!((report.rejected, report.rejected_by_reason[&Reason::AnotherRowWrong]), (6, 3));
    assert_eq!(desk.rows("SELECT number_key FROM permits ORDER BY 1").await, "g1 k1");
    assert!(desk.rows("SELECT number_key, version, expires_on FROM permits").await.contains(&before));
    assert_eq!(desk.rows("SELECT DISTINCT recipient FROM deliveries WHERE state = 'pending'").await, "g@example.org");
    let held: Vec<_> = report.errors.iter().filter(|error| error.code == Reason::AnotherRowWrong).collect();
    assert_eq!(held.iter().map(|error| error.row.unwrap()).collect::<Vec<_>>(), [2, 3, 7]);
    assert_eq!((held[0].column.as_deref(), held[0].value.as_deref()), (Some("permit_number"), Some("T1")));
    assert!(report.errors.is_sorted_by_key(|error| error.row), "{:?}", report.errors);
    assert_eq!(desk.ask("SELECT count(*) FROM import_rows").await, "0");
}

#[tokio::test]
async fn the_corrected_file_of_errors_completes_the_job() {
    let desk = Desk::new().await;
    let lines = [
        "T1,Food,Ann,t@example.org,2026-06-07,Active",
        "G1,Food,Cy,g@example.org,2027-06-07,Active",
        "T1,Food,Ann,t@example.org,2027-06-07,Renewal pending",
    ];
    keep_good(&desk, &lines).await;
    let kept = desk.rows("SELECT file_row, cells ->> 0 AS number, errors FROM import_rejections ORDER BY 1").await;
    assert!(kept.starts_with("2,T1,") && kept.contains("another row of this permit is wrong"), "{kept}");
    assert!(kept.contains("4,T1,") && !kept.contains("G1"), "{kept}");
    let corrected = keep_good(&desk, &[lines[0], "T1,Food,Ann,t@example.org,2027-06-07,active"]).await;
    assert_eq!((corrected.rejected, corrected.permits_created, corrected.history_terms), (0, 1, 1));
    assert_eq!(desk.terms("t1").await, "1,,2026-06-07 2,,2027-06-07");
    assert_eq!(desk.notices("t1").await, "");
}

#[tokio::test]
async fn a_file_of_which_every_permit_has_a_wrong_row_commits_nothing() {
    let desk = Desk::new().await;
    let report = keep_good(&desk, &["T1,Food,Ann,,2026-06-07,Active", "T1,Food,Ann,,2027-06-07,what"]).await;
    assert_eq!((report.committed, report.rejected, report.rows), (false, 2, 2));
    assert_eq!(desk.ask("SELECT count(*) FROM import_rejections").await, "2");
}

#[tokio::test]
async fn without_keeping_good_rows_none_is_held_back() {
    let desk = Desk::new().await;
    let lines = ["T1,Food,Ann,,2026-06-07,Active", "T1,Food,Ann,,2027-06-07,what"];
    let report = desk.import(HEADER, &lines, &rules()).await;
    assert_eq!((report.committed, report.rejected, report.errors.len()), (false, 1, 1));
}

#[tokio::test]
async fn rows_that_are_not_kept_hold_others_back_too() {
    let desk = Desk::new().await;
    let wrong = (0..=REJECTED_KEPT).map(|i| format!("W{i},Food,Ann,,never,\n")).collect::<Vec<String>>().concat();
    let last = format!("W{REJECTED_KEPT}");
    let good = format!("{last},Food,Ann,,2026-06-07,\nG1,Food,Ann,,2027-06-07,\n");
    let path = desk.file(
        "many.csv",
        &format!("{HEADER},issued_on\n{}", format!("{good}{wrong}").replace(",\n", ",,2026-01-01\n")),
    );
    let report = desk.try_import(&path, &keep_good_rows(), &rules()).await.unwrap();
    assert_eq!((report.permits_created, report.rejected), (1, REJECTED_KEPT + 2));
    assert_eq!(desk.rows("SELECT number_key FROM permits").await, "g1");
    // Alone in the file of errors it would look as if the permit had no other row.
    let kept = format!("SELECT count(*) FROM import_rejections WHERE cells ->> 0 = '{last}'");
    assert_eq!(desk.ask(&kept).await, "0");
    let said = report.warnings.iter().filter(|one| one.detail.contains("1 further rejected row is counted"));
    assert_eq!(said.count(), 2, "{:?}", report.warnings);
}

#[tokio::test]
async fn rejected_rows_without_a_number_hold_nothing_back_and_are_counted() {
    let desk = Desk::new().await;
    let lines = ["T1,Food,Ann,,2026-06-07,", ",Food,Ann,,2027-06-07,", "N/A,Food,Ann,,2027-06-07,"];
    let report = keep_good(&desk, &lines).await;
    assert_eq!((report.permits_created, report.rejected), (1, 2));
    let said: Vec<_> = report.warnings.iter().filter(|one| one.code == Reason::RowsWithoutNumber).collect();
    assert!(said.len() == 1 && said[0].detail.starts_with("2 rejected rows have no permit number"), "{said:?}");
}

#[tokio::test]
async fn a_row_with_a_cell_too_many_or_too_few_holds_back_what_any_of_its_cells_may_be_the_number_of() {
    let desk = Desk::new().await;
    let header = "holder_name,permit_number,permit_type,expires_on,status,holder_email";
    desk.import(header, &["Smith,A1,T,2026-06-20,active,s@x.example"], &rules()).await;
    let lines = [
        "Smith,A1,T,2026-12-20,active,s@x.example",
        "Smith, John,a 1,T,2027-12-20,revoked,s@x.example",
        "Bo,B2,T,2026-12-20,active,",
        "B2,T,2027-12-20,revoked,",
        "Cy,C3,T,2026-12-20,active,",
        "Di,D4,T,2026-12-20,active,",
        // As wide as the header but for a blank at its end.
        "Di, Eve,D4,T,2027-12-20,revoked,",
        "Flo,F5,T,never,active,",
        "Flo, Eve,F5,T,2027-12-20,revoked,f@x.example",
    ];
    let path = desk.file("shifted.csv", &format!("{header}\n{}\n", lines.join("\n")));
    let report = desk.try_import(&path, &keep_good_rows(), &rules()).await.unwrap();
    assert_eq!((report.rejected, report.rejected_by_reason[&Reason::AnotherRowWrong]), (8, 3));
    let permits = desk.rows("SELECT number_key, expires_on, status FROM permits ORDER BY 1").await;
    assert_eq!(permits, "a1,2026-06-20,active c3,2026-12-20,active");
    assert!(report.warnings.iter().all(|one| one.code != Reason::RowsWithoutNumber), "{:?}", report.warnings);
    // Nobody knows whose it is: no cell is the number of another row.
    let path =
        desk.file("unknown.csv", &format!("{header}\n{}\nSmith, John,Z9,T,2027-12-20,revoked,z@x.example\n", lines[4]));
    let report = desk.try_import(&path, &keep_good_rows(), &rules()).await.unwrap();
    let said: Vec<_> = report.warnings.iter().filter(|one| one.code == Reason::RowsWithoutNumber).collect();
    assert!(said.len() == 1 && said[0].detail.starts_with("1 rejected row has no permit number"), "{said:?}");
}
