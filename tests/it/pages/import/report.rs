//! What a check and an import came to, in the words of the page.

use permit_notifier::domain::role::Role;

use super::{GOOD, import, permits, sent};
use crate::support::api::{Options, TestApi};

#[tokio::test]
async fn a_report_speaks_the_words_of_the_page() {
    let api = TestApi::open().await;
    let clerk = api.signed_in(Role::Clerk).await;
    let text = "Permit No.;Type;Holder;Expires;Status\nI-1;Food;;2027-05-04;weird\nI-2;Food;Bob;5/4/27;Weird\n\
                I-3;-;Cy;2027-05-04;odd\nI-4;Food;Di;2027-05-04;\n";
    let path = sent(&clerk, "words.csv", text).await;
    let page = clerk.get(&path).await;
    page.shows(&[
        "<td>Holder name is needed</td>",
        "<td>nobody has said what this status word means</td>",
        "<td>not understood as a date; the dates of this column are read as 2027-03-25; write the year with four digits, or say how dates are written</td>",
        "<td>Permit type is needed, and this says that there is none</td>",
        "1 row has no status; new permits among them are taken as active",
    ]);
    assert!(!page.text.contains("--"), "{page:?}");
    let again = sent(
        &clerk,
        "again.csv",
        "Permit No;Type;Holder;Exp Date;Status\n1;F;A;2027-05-04;odd\n2;F;B;2027-05-04;odd\n",
    );
    let page = clerk.get(&again.await).await;
    page.shows(&["nobody has said what this status word means; 2 rows have it"]);
    assert_eq!(page.text.matches("nobody has said").count(), 1, "{page:?}");
    api.close().await;
}

#[tokio::test]
async fn a_complete_file_says_which_permits_it_does_not_name() {
    let api = TestApi::open().await;
    let clerk = api.signed_in(Role::Clerk).await;
    let path = sent(&clerk, "all.csv", GOOD).await;
    import(&clerk, &path).await;
    let first = GOOD.lines().take(2).collect::<Vec<_>>().join("\n");
    let path = sent(&clerk, "one.csv", &first).await;
    assert!(!clerk.get(&path).await.text.contains("does not name</dt>"));
    clerk.post(&path, &[("complete", "on")]).await;
    let page = clerk.get(&path).await;
    page.shows(&["<dt>Permits that the file does not name</dt><dd>1</dd>", "<a href=\"/permits?q=I-2\">I-2</a>"]);
    let done = import(&clerk, &path).await;
    clerk.get(done.header("location")).await.shows(&["<dd>1</dd>", "<a href=\"/permits?q=I-2\">I-2</a>"]);
    assert_eq!(permits(&api).await, ["I-1 active", "I-2 active"]);
    api.close().await;
}

#[tokio::test]
async fn of_very_many_wrong_rows_the_page_says_how_many_are_kept() {
    let api = TestApi::open().await;
    let clerk = api.signed_in(Role::Clerk).await;
    let rows = (0..10_001).map(|row| format!("{row},Food,Ann,never\n")).collect::<Vec<_>>().concat();
    let path = sent(&clerk, "many.csv", &format!("permit_number,permit_type,holder_name,expires_on\n{rows}")).await;
    let page = clerk.get(&path).await;
    page.shows(&["The first 10000 of 10001 rows with errors as a csv file</a>"]);
    let report = page.between("<p><a href=\"/import/", "/errors.csv").to_owned();
    clerk
        .get(&format!("/import/{report}"))
        .await
        .shows(&["The first 10000 of 10001 rows with errors as a csv file</a>"]);
    api.close().await;
}

#[tokio::test]
async fn wrong_rows_are_all_shown_and_the_good_ones_are_imported_if_somebody_says_so() {
    let api = TestApi::open().await;
    let clerk = api.signed_in(Role::Clerk).await;
    let wrong: Vec<String> = (0..210).map(|row| format!("W-{row},Food,<script>,2028-13-{row}")).collect();
    let good = "permit_number,permit_type,holder_name,expires_on\nI-1,Food,Ann,2028-01-31";
    let text = format!("{good}\n{}\n", wrong.join("\n"));
    let path = sent(&clerk, "mixed.csv", &text).await;
    let page = clerk.get(&path).await;
    page.shows(&[
        "210 rows with errors",
        "<td class=\"number\">3</td><td>expires_on</td><td><code>2028-13-0</code></td>",
        "And 10 more.",
        "errors.csv",
    ]);
    assert!(!page.text.contains("value=\"import\"") && !page.text.contains("2028-13-205"), "{page:?}");
    let csv = page.between("<p><a href=\"/import/", "\"").to_owned();
    let errors = clerk.get(&format!("/import/{csv}")).await;
    assert_eq!((errors.status.as_u16(), errors.text.lines().count()), (200, 211));

    clerk.post(&path, &[("keep_good_rows", "on")]).await;
    let page = clerk.get(&path).await;
    page.shows(&["1 of 211 rows can be imported", "Import 1 good row", "name=\"keep_good_rows\" checked"]);
    let old = page.between("name=\"checked\" value=\"", "\"").to_owned();
    clerk.post(&path, &[("keep_good_rows", "on"), ("catch_up", "on")]).await;
    let refused = clerk.post(&path, &[("checked", &old), ("do", "import")]).await;
    assert_eq!(refused.status, 409, "somebody checked it otherwise: {refused:?}");
    refused.shows(&["checked otherwise meanwhile"]);
    assert!(permits(&api).await.is_empty());
    assert_eq!(import(&clerk, &path).await.status, 303);
    assert_eq!(permits(&api).await, ["I-1 active"]);
    api.close().await;
}

#[tokio::test]
async fn what_an_import_held_is_released_from_its_report() {
    let api = TestApi::with(Options { claim_limit: 1, ..Options::default() }).await;
    let clerk = api.signed_in(Role::Clerk).await;
    let text = GOOD.replace("2028-02-29", "2027-03-16");
    let path = sent(&clerk, "due.csv", &text).await;
    clerk.post(&path, &[("catch_up", "on")]).await;
    let done = import(&clerk, &path).await;
    let path = done.header("location").split('?').next().unwrap().to_owned();
    clerk.get(&path).await.shows(&["2 notices are held", &format!("formaction=\"{path}/release\"")]);
    let refused = clerk.post(&format!("{path}/release"), &[("reason", "")]).await;
    assert_eq!(refused.status, 422);
    refused.shows(&["Reason is needed."]);
    let viewer = api.signed_in(Role::Viewer).await;
    assert_eq!(viewer.post(&format!("{path}/cancel"), &[("reason", "x")]).await.status, 403);
    let released = clerk.post(&format!("{path}/release"), &[("reason", "Looked through.")]).await;
    assert_eq!(released.header("location"), format!("{path}?done=held-released"));
    assert!(!clerk.get(&path).await.text.contains("notices are held"));
    assert_eq!(api.office.text("SELECT DISTINCT state FROM notices WHERE state <> 'superseded'").await, ["pending"]);
    assert_eq!(
        api.office
            .text(
                "SELECT action || ' ' || label || ' ' || coalesce(after ->> 'released', '') FROM office_log ORDER BY id"
            )
            .await,
        ["imported due.csv ", "released-held due.csv 2"]
    );
    api.close().await;
}
