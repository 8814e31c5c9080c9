//! The import wizard: nothing is imported before somebody has seen what it would do.

mod choices;
mod report;

use chrono::TimeDelta;
use permit_notifier::domain::role::Role;
use permit_notifier::web::api::UploadLimits;
use reqwest::multipart::{Form, Part};

use crate::support::api::{Options, TestApi};
use crate::support::pages::{PASSWORD, Page, Visitor};

const GOOD: &str = "Number,Type,Holder,Email,Expires,Status\n\
                    I-1,Food,Ann,ann@example.org,2027-03-15,active\nI-2,Food,Bob,bob@example.org,2028-02-29,issued\n";

/// Sends a file; the address of its page.
async fn sent(clerk: &Visitor, name: &str, content: &str) -> String {
    let page = clerk.upload("/import", name, content).await;
    assert_eq!(page.status, 303, "{page:?}");
    page.header("location").to_owned()
}

/// Presses the button that imports the file as it was checked.
async fn import(clerk: &Visitor, path: &str) -> Page {
    let checked = clerk.get(path).await.between("name=\"checked\" value=\"", "\"").to_owned();
    clerk.post(path, &[("checked", &checked), ("do", "import")]).await
}

async fn permits(api: &TestApi) -> Vec<String> {
    api.office.text("SELECT permit_number || ' ' || status FROM permits ORDER BY permit_number").await
}

#[tokio::test]
async fn a_file_is_checked_shown_and_imported_and_then_it_is_gone() {
    let api = TestApi::open().await;
    let clerk = api.signed_in(Role::Clerk).await;
    clerk.get("/import").await.shows(&["No file was imported yet.", "enctype=\"multipart/form-data\""]);
    let path = sent(&clerk, "permits.csv", GOOD).await;
    let page = clerk.get(&path).await;
    page.shows(&[
        "All 2 rows can be imported.",
        "<dt>New permits</dt><dd>2</dd>",
        "<dt>Between cells</dt><dd>comma</dd>",
        "<dt>Dates are read as</dt><dd>2027-03-25</dd>",
        "guess: Expires</option>",
        "<td>2027-03-15 · 2028-02-29</td>",
        "guess: active</option>",
        "Mail it would cause in the next 30 days: 3",
        "Import all of 2 rows",
    ]);
    assert!(permits(&api).await.is_empty(), "nothing is imported yet");
    clerk.get("/import").await.shows(&["Files that wait", &format!("<a href=\"{path}\">permits.csv</a>")]);

    let done = import(&clerk, &path).await;
    assert_eq!(done.status, 303, "{done:?}");
    assert_eq!(permits(&api).await, ["I-1 active", "I-2 active"]);
    let report = clerk.get(done.header("location")).await;
    report.shows(&["The file is imported.", ">imported</span>", "by clerk@office.example"]);
    let list = clerk.get("/import").await;
    list.shows(&["permits.csv", "<td>clerk@office.example</td>", ">imported</span>"]);
    assert!(!list.text.contains(">only checked<") && !list.text.contains("Files that wait"), "{list:?}");
    clerk.get("/import?checks=1").await.shows(&[">only checked<"]);
    assert_eq!(clerk.get(&path).await.status, 404, "the file is not kept");
    assert!(api.office.text("SELECT file_id::text FROM kept_file_parts").await.is_empty());
    assert_eq!(
        api.office.text("SELECT by || ' ' || action || ' ' || label || ' ' || after FROM office_log").await,
        ["user:clerk@office.example imported permits.csv {\"notices held\": 0, \"notices claimed\": 0, \
          \"permits created\": 2, \"permits renewed\": 0, \"permits updated\": 0, \"permits unchanged\": 0}"]
    );
    api.close().await;
}

#[tokio::test]
async fn a_file_is_taken_from_who_may_with_the_proof_before_it_and_not_for_ever() {
    let uploads = UploadLimits { bytes: 100_000, ..UploadLimits::default() };
    let api = TestApi::with(Options { uploads, ..Options::default() }).await;
    let clerk = api.signed_in(Role::Clerk).await;
    let file = || Part::bytes(GOOD.as_bytes()).file_name("x.csv");
    let proof = clerk.csrf.clone();
    for form in [
        Form::new().part("file", file()),
        Form::new().text("csrf", "wrong").part("file", file()),
        Form::new().part("file", file()).text("csrf", proof.clone()),
        Form::new().text("csrf", "x".repeat(5000)).part("file", file()),
    ] {
        let page = clerk.upload_form("/import", form).await;
        assert!([400, 403].contains(&page.status.as_u16()), "{page:?}");
    }
    let viewer = api.signed_in(Role::Viewer).await;
    assert_eq!(viewer.upload("/import", "x.csv", GOOD).await.status, 403);
    let seen = viewer.get("/import").await;
    assert!(seen.status == 200 && !seen.text.contains("type=\"file\""), "{seen:?}");

    let empty = clerk.upload("/import", "", "").await;
    assert_eq!(empty.status, 422, "{empty:?}");
    empty.shows(&["href=\"#file\">Choose a file that is not empty."]);
    let large = clerk.upload("/import", "x.csv", vec![b'a'; 200_000]).await;
    assert_eq!(large.status, 413, "{large:?}");
    large.shows(&["A file has at most 100000 bytes.", "type=\"file\""]);
    assert!(api.office.text("SELECT file_name FROM kept_files").await.is_empty());

    let no_csv = sent(&clerk, "x.pdf", "%PDF-1.7 nothing for us").await;
    clerk.get(&no_csv).await.shows(&["This is a PDF, not a table; save it as csv, xlsx or ods", "Discard the file"]);
    api.office.clock.advance(TimeDelta::hours(25));
    let mut again = api.visitor();
    again.sign_in("clerk@office.example", PASSWORD).await;
    again.csrf = again.get("/account").await.csrf();
    assert!(!again.get("/import").await.text.contains("x.pdf"), "it is out of sight after a day");
    sent(&again, "y.csv", GOOD).await;
    assert_eq!(api.office.text("SELECT file_name FROM kept_files").await, ["y.csv"]);
    api.close().await;
}
