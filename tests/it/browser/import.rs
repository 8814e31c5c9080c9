//! A file is sent, its columns are put right, its good rows are imported, and what they made due is settled.

use super::{clerk, office_with};
use crate::support::{
    api::{Options, TestApi},
    browser::{Browser, Way},
};

#[ignore = "wants a browser"]
#[tokio::test]
async fn a_file_is_checked_put_right_imported_and_released() {
    files_are_imported(Way::Usual).await;
}

#[ignore = "wants a browser"]
#[tokio::test]
async fn the_same_without_script() {
    files_are_imported(Way::NarrowWithoutScript).await;
}

#[ignore = "wants a browser"]
#[tokio::test]
async fn the_same_by_keyboard() {
    files_are_imported(Way::Keyboard).await;
}

async fn files_are_imported(way: Way) {
    let api = office_with(Options { claim_limit: 1, ..Options::default() }).await;
    let browser = clerk(&api, way).await;
    browser.press("Import").await;
    no_file_is_no_dead_end(&browser).await;
    let soon = api.office.in_days(5);
    let rows = [
        format!("I-1;Food;Ann Holder;ann@example.org;2026-01-05;{soon}"),
        format!("I-2;Food;Bob Holder;bob@example.org;2026-01-06;{soon}"),
        "I-3;Food;Eve Holder;eve@example.org;2026-01-07;2027-13-31".to_owned(),
        format!("I-4;Food;;mo@example.org;2026-01-08;{soon}"),
    ];
    let text = format!("Number;Type;Holder;Email;Expires;Valid to the end of\n{}\n", rows.join("\n"));
    send(&browser, "register.csv", text.as_bytes()).await;
    columns_are_put_right(&browser).await;
    the_good_rows_are_imported(&browser).await;
    assert_eq!(states(&api).await, ["I-1 pending", "I-2 pending"]);

    let more = format!("Number,Type,Holder,Expires\nI-5,Food,Ida,{soon}\nI-6,Food,Joe,{soon}\n");
    send(&browser, "more.csv", more.as_bytes()).await;
    browser.tick("Catch up: tell the holders of new permits what is due already, and confirm renewals").await;
    browser.press("Check again").await;
    browser.is_done("The file was checked again.").await;
    browser.press("Import all of 2 rows").await;
    browser.is_done("The file is imported.").await;
    browser.fill("Why", "they were told by telephone").await;
    browser.press("Cancel them").await;
    browser.is_done("What was held is cancelled.").await;
    browser.close().await;
    assert_eq!(states(&api).await, ["I-1 pending", "I-2 pending", "I-5 cancelled", "I-6 cancelled"]);
    api.close().await;
}

/// What the step that is due came to, by permit.
async fn states(api: &TestApi) -> Vec<String> {
    let query = "SELECT permit_number || ' ' || n.state FROM permits p JOIN notices n ON n.permit_id = p.id
                 WHERE n.notice_type = 'expires-7d' ORDER BY 1";
    api.office.text(query).await
}

async fn send(browser: &Browser, name: &str, content: &[u8]) {
    browser.press("Import").await;
    let path = browser.file(name, content);
    browser.fill("File", path.to_str().unwrap()).await;
    browser.press("Check the file").await;
}

async fn no_file_is_no_dead_end(browser: &Browser) {
    browser.press("Check the file").await;
    browser.is_kept_back_at("File").await;
    send(browser, "empty.csv", b"").await;
    browser.is_refused("Choose a file that is not empty.").await;
    send(browser, "permits.csv", b"%PDF-1.7\nnothing for us").await;
    browser.is_refused("This is a PDF, not a table; save it as csv, xlsx or ods").await;
    browser.press("Discard the file").await;
    browser.is_done("The file is discarded.").await;
}

/// The wrong column was guessed.
async fn columns_are_put_right(browser: &Browser) {
    browser.is_refused("1 row with errors, so nothing can be imported.").await;
    let shown = browser.text().await;
    for guessed in ["guess: Expires", "2026-01-05 · 2026-01-06 · 2026-01-07", "semicolon", "2027-03-25"] {
        assert!(shown.contains(guessed), "{guessed}: {shown}");
    }
    browser.choose("Expires on", "Valid to the end of").await;
    browser.tick("Import the good rows although others are wrong").await;
    browser.tick("Catch up: tell the holders of new permits what is due already, and confirm renewals").await;
    browser.press("Check again").await;
    browser.is_done("The file was checked again.").await;
    let shown = browser.text().await;
    for text in [
        "2 of 4 rows can be imported; the others are left out.",
        "Mail it would cause in the next 30 days: 6",
        "2027-13-31",
        "Valid to the end of",
        "Holder",
        "2027-03-15 · 2027-13-31",
    ] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    assert!(shown.contains("Rows with errors") && !shown.contains("The file is imported"), "{shown}");
}

async fn the_good_rows_are_imported(browser: &Browser) {
    browser.press("Import 2 good rows").await;
    browser.is_done("The file is imported.").await;
    for text in ["2 notices are held", "New permits", "2027-13-31"] {
        browser.see(text).await;
    }
    browser.press("The rows with errors as a csv file").await;
    let rejected = browser.downloaded("errors-").await;
    assert_eq!(rejected.lines().count(), 3, "{rejected}");
    assert!(rejected.contains("I-3;Food;Eve Holder") && rejected.contains("I-4;Food;;mo@example.org"), "{rejected}");
    browser.press("Release them").await;
    browser.is_kept_back_at("Why").await;
    browser.fill("Why", " ").await;
    browser.press("Release them").await;
    browser.is_refused("Reason is needed.").await;
    browser.fill("Why", "looked through").await;
    browser.press("Release them").await;
    browser.is_done("What was held is released: each goes if it is still owed and in time.").await;
}
