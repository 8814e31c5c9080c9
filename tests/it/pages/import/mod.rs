//! The import wizard: nothing is imported before somebody has seen what it would do.

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
        "<td>not understood as a date; the dates of this column are read as 2027-03-25; write the year with four digits</td>",
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
async fn what_was_guessed_wrongly_is_chosen_and_checked_again() {
    let api = TestApi::open().await;
    let clerk = api.signed_in(Role::Clerk).await;
    let text = "Ref;Holder;Until;State;Note\nI-1;Ann;04/05/2027;weird;x\nI-2;Bob;05/04/2027;in force;y\n";
    let path = sent(&clerk, "<b>odd.csv", text).await;
    let page = clerk.get(&path).await;
    page.shows(&[
        "No column was recognised for Permit number, Permit type, Expires on. Choose the columns below",
        "&#60;b&#62;odd.csv",
        "<option value=\"=Until\">Until</option>",
        "<th scope=\"row\">Note</th><td>x · y</td>",
    ]);
    assert!(!page.text.contains("value=\"import\""), "it cannot be imported: {page:?}");
    let mut form = vec![
        ("field/permit_number", "=Ref"),
        ("field/expires_on", "=Until"),
        ("field/status", "=State"),
        ("permit_type", "Food"),
    ];
    assert_eq!(clerk.post(&path, &form).await.header("location"), format!("{path}?done=file-checked"));
    let page = clerk.get(&path).await;
    page.shows(&["can be read in two ways. Choose below how the dates are written.", "value=\"=Until\" selected"]);
    form.push(("date_format", "%d/%m/%Y"));
    clerk.post(&path, &form).await;
    let page = clerk.get(&path).await;
    page.shows(&["1 row with errors", "weird", "<td><code>weird</code></td>", ">not known</span>", "value=\"Food\""]);
    assert!(!page.text.contains("value=\"import\""), "{page:?}");
    form.extend([
        ("status-word", "weird"),
        ("status-means", "closed"),
        ("status-word", "in force"),
        ("status-means", ""),
    ]);
    clerk.post(&path, &form).await;
    assert_eq!(import(&clerk, &path).await.status, 303);
    assert_eq!(permits(&api).await, ["I-1 closed", "I-2 active"]);
    assert_eq!(api.office.text("SELECT expires_on::text FROM permits ORDER BY 1").await, ["2027-04-05", "2027-05-04"]);

    // A column that is guessed and not wanted.
    let path = sent(&clerk, "again.csv", GOOD).await;
    clerk.post(&path, &[("field/status", "-"), ("field/holder_email", "-")]).await;
    clerk.get(&path).await.shows(&["<option value=\"-\" selected>do not read it</option>"]);
    assert_eq!(import(&clerk, &path).await.status, 303);
    let addresses = "SELECT permit_number FROM permits WHERE holder_email IS NOT NULL";
    assert!(api.office.text(addresses).await.is_empty());
    // An option that contradicts another stays as it was filled in.
    let path = sent(&clerk, "third.csv", GOOD).await;
    let refused = clerk.post(&path, &[("field/permit_type", "=Type"), ("permit_type", "Dogs")]).await;
    assert_eq!(refused.status, 422);
    refused.shows(&["exclude each other", "value=\"Dogs\"", "value=\"=Type\" selected"]);
    assert_eq!(clerk.post(&path, &[("do", "discard")]).await.header("location"), "/import?done=file-discarded");
    assert_eq!(clerk.get(&path).await.status, 404);
    api.close().await;
}

#[tokio::test]
async fn how_a_file_is_read_is_saved_used_for_the_next_one_and_removed() {
    let api = TestApi::open().await;
    let clerk = api.signed_in(Role::Clerk).await;
    let text = "Ref;Holder;Until;State\nI-1;Ann;04/05/2027;weird\n";
    let path = sent(&clerk, "odd.csv", text).await;
    let chosen = [
        ("field/permit_number", "=Ref"),
        ("field/expires_on", "=Until"),
        ("field/status", "=State"),
        ("field/holder_email", "-"),
        ("permit_type", "Food"),
        ("date_format", "%d/%m/%Y"),
        ("status-word", "weird"),
        ("status-means", "closed"),
    ];
    let save = |name: &'static str| [&chosen[..], &[("do", "save"), ("mapping_name", name)]].concat();
    let refused = clerk.post(&path, &save(" ")).await;
    assert_eq!(refused.status, 422);
    refused.shows(&[
        "href=\"#mapping_name\">The name of a saved mapping has 1 to 100 characters.",
        "value=\"=Ref\" selected",
    ]);
    let refused = clerk.post(&path, &[("do", "save"), ("mapping_name", "Nothing")]).await;
    assert_eq!(refused.status, 422);
    refused.shows(&["There is nothing to save, because everything is guessed", "value=\"Nothing\""]);
    assert!(!clerk.get("/import").await.text.contains("Saved mappings"));
    let saved = clerk.post(&path, &save(" Old  <b>System ")).await;
    assert_eq!(saved.header("location"), format!("{path}?done=mapping-saved"), "{saved:?}");
    clerk.get(&path).await.shows(&["The one row can be imported."]);
    clerk.get("/import").await.shows(&["Saved mappings", "Old &#60;b&#62;System", "<td>clerk@office.example</td>"]);

    let path = sent(&clerk, "next.csv", &text.replace("I-1", "I-2")).await;
    let page = clerk.get(&path).await;
    page.shows(&["No column was recognised", ">Old &#60;b&#62;System</option>"]);
    let id = page.between("<select id=\"mapping\" name=\"mapping\">\n<option value=\"", "\"").to_owned();
    let used = clerk.post(&path, &[("do", "use"), ("mapping", &id)]).await;
    assert_eq!(used.header("location"), format!("{path}?done=file-checked"), "{used:?}");
    clerk.get(&path).await.shows(&[
        "The one row can be imported.",
        "value=\"=Until\" selected",
        "<option selected>closed</option>",
        "value=\"Food\"",
        "<option value=\"-\" selected>do not read it",
    ]);
    assert_eq!(import(&clerk, &path).await.status, 303);
    assert_eq!(permits(&api).await, ["I-2 closed"]);

    let path = sent(&clerk, "other.csv", &text.replace("Ref;", "Reference;")).await;
    clerk.post(&path, &[("do", "use"), ("mapping", &id)]).await;
    clerk.get(&path).await.shows(&[
        "The file has no column &#34;Ref&#34;, from which the saved mapping &#34;Old &#60;b&#62;System&#34; reads Permit number.",
        "<option value=\"=Ref\" selected>Ref, which the file does not have</option>",
        "Choose another column below.",
    ]);

    let viewer = api.signed_in(Role::Viewer).await;
    assert!(!viewer.get("/import").await.text.contains(&id), "a viewer removes nothing");
    assert_eq!(clerk.post(&path, &[("do", "use"), ("mapping", "x")]).await.status, 400);
    let removed = clerk.post(&format!("/import/mappings/{id}/remove"), &[]).await;
    assert_eq!(removed.header("location"), "/import?done=mapping-removed");
    assert!(!clerk.get("/import").await.text.contains("Saved mappings"));
    assert_eq!(clerk.post(&format!("/import/mappings/{id}/remove"), &[]).await.status, 404);
    assert_eq!(clerk.post(&path, &[("do", "use"), ("mapping", &id)]).await.status, 404);
    let log = "SELECT action || ' ' || label || ' ' || coalesce(after ->> 'map', before ->> 'map') FROM office_log
               WHERE subject = 'import-mapping' ORDER BY id";
    let map = "permit_number=Ref, status=State, expires_on=Until";
    assert_eq!(
        api.office.text(log).await,
        [format!("saved Old <b>System {map}"), format!("removed Old <b>System {map}")]
    );
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
async fn the_row_of_the_names_is_guessed_chosen_and_saved() {
    let api = TestApi::open().await;
    let clerk = api.signed_in(Role::Clerk).await;
    let text = "Stadt Köln – Erlaubnisse\nNummer;Art;Inhaber;Ende\nNr;Art 2;Name 2;bis\n1;Food;Ann;2027-01-31\n";
    let path = sent(&clerk, "own.csv", text).await;
    clerk.get(&path).await.shows(&[
        "<option value=\"\">guess: row 2</option>",
        "<option value=\"3\">row 3: Nr · Art 2 · Name 2 · bis</option>",
        "<option value=\"=Inhaber\">Inhaber</option>",
    ]);
    clerk.post(&path, &[("header_row", "3")]).await;
    clerk.get(&path).await.shows(&[
        "<dt>Column names in row</dt><dd>3</dd>",
        "<option value=\"3\" selected>row 3:",
        "<option value=\"=Name 2\">Name 2</option>",
    ]);
    let chosen = [
        ("header_row", "3"),
        ("field/permit_number", "=Nr"),
        ("field/permit_type", "=Art 2"),
        ("field/holder_name", "=Name 2"),
        ("field/expires_on", "=bis"),
        ("do", "save"),
        ("mapping_name", "Köln"),
    ];
    assert_eq!(clerk.post(&path, &chosen).await.status, 303);
    assert_eq!(import(&clerk, &path).await.status, 303);
    assert_eq!(permits(&api).await, ["1 active"]);
    assert_eq!(api.office.text("SELECT words ->> 'header_row' FROM import_mappings").await, ["3"]);
    // A file that has no such row.
    let path = sent(&clerk, "short.csv", "a;b;c\n").await;
    let id = api.office.text("SELECT id::text FROM import_mappings").await.concat();
    clerk.post(&path, &[("do", "use"), ("mapping", &id)]).await;
    let page = clerk.get(&path).await;
    page.shows(&[
        "Row 3, which was to be the header, is blank or below the end of the file. Choose another row below.",
        "selected>row 3</option>",
    ]);
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
async fn a_status_word_that_a_mapping_spells_otherwise_is_shown_as_it_was_chosen() {
    let api = TestApi::open().await;
    let clerk = api.signed_in(Role::Clerk).await;
    let path = sent(&clerk, "odd.csv", &GOOD.replace("issued", "A=b")).await;
    clerk.post(&path, &[("status-word", "a=B"), ("status-means", "closed")]).await;
    clerk.get(&path).await.shows(&["<option selected>closed</option>"]);
    assert_eq!(import(&clerk, &path).await.status, 303);
    assert_eq!(permits(&api).await, ["I-1 active", "I-2 closed"]);
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

#[tokio::test]
async fn of_a_workbook_with_several_sheets_one_is_chosen() {
    let api = TestApi::open().await;
    let clerk = api.signed_in(Role::Clerk).await;
    let mut book = rust_xlsxwriter::Workbook::new();
    for (name, holder) in [("Notes", ""), ("Old", "Ann"), ("New <1>", "Bob")] {
        let sheet = book.add_worksheet();
        sheet.set_name(name).unwrap();
        if !holder.is_empty() {
            sheet.write_row(0, 0, ["Number", "Type", "Holder", "Expires"]).unwrap();
            sheet.write_row(1, 0, ["I-1", "Food", holder, "2028-02-29"]).unwrap();
        }
    }
    let sent = clerk.upload("/import", "permits.xlsx", book.save_to_buffer().unwrap()).await;
    assert_eq!(sent.status, 303, "{sent:?}");
    let path = sent.header("location").to_owned();
    let page = clerk.get(&path).await;
    page.shows(&[
        "href=\"#sheet\">Several sheets have something in them. Choose below which sheet is meant.",
        "<option value=\"\">choose</option>",
        "<option value=\"Notes\">Notes (empty)</option>",
        "<option value=\"New &#60;1&#62;\">",
    ]);
    assert!(!page.text.contains("Status words") && !page.text.contains("Which column each field"), "{page:?}");
    assert_eq!(clerk.post(&path, &[("sheet", "New <1>")]).await.status, 303);
    let page = clerk.get(&path).await;
    page.shows(&["<dt>Sheet</dt><dd>New &#60;1&#62;</dd>", "guess: Expires</option>", "The one row can be imported."]);
    page.shows(&["<option value=\"New &#60;1&#62;\" selected>", "only the sheet"]);
    assert!(!page.text.contains("<dt>Between cells</dt>"), "{page:?}");
    import(&clerk, &path).await;
    assert_eq!(api.office.text("SELECT holder_name FROM permits").await, ["Bob"]);
    api.close().await;
}
