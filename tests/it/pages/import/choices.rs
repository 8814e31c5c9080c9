//! How a file is read is guessed, chosen, and kept for the next one.

use permit_notifier::domain::role::Role;

use super::{GOOD, import, permits, sent};
use crate::support::api::TestApi;

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

#[tokio::test]
async fn a_mapping_of_a_workbook_reads_the_errors_of_that_workbook_and_its_status_words_need_a_column() {
    let api = TestApi::open().await;
    let clerk = api.signed_in(Role::Clerk).await;
    let mut book = rust_xlsxwriter::Workbook::new();
    book.add_worksheet().write_string(0, 0, "x").unwrap();
    let sheet = book.add_worksheet().set_name("Permits").unwrap();
    sheet.write_string(0, 0, "Licences").unwrap();
    sheet.write_row(2, 0, ["Number", "Type", "Holder", "Expires", "Status"]).unwrap();
    sheet.write_row(3, 0, ["I-1", "Food", "Ann", "2028-02-29", "ruht"]).unwrap();
    let sent_book = clerk.upload("/import", "permits.xlsx", book.save_to_buffer().unwrap()).await;
    let path = sent_book.header("location").to_owned();
    clerk.post(&path, &[("sheet", "Permits")]).await;
    let chosen = [
        ("sheet", "Permits"),
        ("header_row", "3"),
        ("status-word", "ruht"),
        ("status-means", "suspended"),
        ("do", "save"),
        ("mapping_name", "Book"),
    ];
    assert_eq!(clerk.post(&path, &chosen).await.status, 303);
    let id = api.office.text("SELECT id::text FROM import_mappings").await.concat();
    let text = "Number,Type,Holder,Expires,Status,error\nI-1,Food,Ann,2028-02-29,ruht,x\nI-2,Food,Bo,2028-02-29,ruht,x\n\
                I-3,Food,Cy,2028-02-29,ruht,x\n";
    let path = sent(&clerk, "errors.csv", text).await;
    clerk.post(&path, &[("do", "use"), ("mapping", &id)]).await;
    clerk.get(&path).await.shows(&["<dt>Column names in row</dt><dd>1</dd>", "All 3 rows can be imported."]);
    assert_eq!(import(&clerk, &path).await.status, 303);
    assert_eq!(permits(&api).await, ["I-1 suspended", "I-2 suspended", "I-3 suspended"]);

    // Without the column they would be active.
    let path = sent(&clerk, "bare.csv", "Number,Type,Holder,Expires,error\nI-4,Food,Ann,2028-02-29,x\n").await;
    clerk.post(&path, &[("do", "use"), ("mapping", &id)]).await;
    let page = clerk.get(&path).await;
    page.shows(&["No column was recognised for status. Choose the columns below."]);
    assert!(!page.text.contains("value=\"import\"") && !page.text.contains("give all permits one type"), "{page:?}");
    clerk.post(&path, &[("field/status", "-")]).await;
    assert_eq!(import(&clerk, &path).await.status, 303);
    assert_eq!(permits(&api).await.last().map(String::as_str), Some("I-4 active"));
    api.close().await;
}
