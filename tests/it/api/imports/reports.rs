//! What is imported, and what is said of it.

use std::path::Path;

use permit_notifier::files::{self, ImportOptions, ImportRules, Input};
use serde_json::json;

use super::{GOOD, HEADER, count, import, import_form, sample, without_id};
use crate::support::api::{Options, TestApi};
use crate::support::office::TestOffice;

#[tokio::test]
async fn a_raw_body_and_a_form_are_imported_and_the_report_can_be_read_again() {
    let api = TestApi::open().await;
    let raw = import(&api, "?file_name=C:%5Cold%5Cpermits.csv", GOOD).await;
    assert_eq!(raw.status, 201, "{raw:?}");
    assert_eq!((&raw.body["committed"], &raw.body["permits_created"]), (&json!(true), &json!(2)));
    assert_eq!(raw.path(), format!("/imports/{}", raw.text("id")));
    let read = api.get(raw.path()).await;
    assert_eq!((read.status.as_u16(), &read.body), (200, &raw.body));
    let form = import_form(&api, "", &[("name=\"file\"; filename=\"%22again%22.csv\"", GOOD)]).await;
    assert_eq!((form.status.as_u16(), &form.body["unchanged"]), (201, &json!(2)), "{form:?}");
    let names = api.office.text("SELECT file_name FROM imports ORDER BY id").await;
    assert_eq!(names, ["permits.csv", "\"again\".csv"]);
    let changes = api.office.text("SELECT by || ' ' || import_id FROM permit_history").await;
    assert_eq!(changes, vec![format!("token:tests {}", raw.text("id")); 2]);
    assert_eq!(api.get("/imports/00000000-0000-7000-8000-000000000000").await.status, 404);
    api.close().await;
}

#[tokio::test]
async fn a_saved_mapping_is_asked_where_nothing_else_is_said_and_a_complete_file_tells_what_is_missing() {
    let api = TestApi::open().await;
    assert_eq!(import(&api, "", GOOD).await.status, 201);
    let options = ImportOptions::parse(&["holder_name=Who"], &["ok=active"], Some("Food"), None, false).unwrap();
    let name = "Old System".parse().unwrap();
    files::saved::save(&mut *api.office.connection().await, &name, &options, "command", api.office.moment())
        .await
        .unwrap();
    let file = "number,Who,Else,expires,status\nI-1,Ann,Zoe,2028-01-31,ok\n";
    assert_eq!(import(&api, "", file).await.status, 422, "nothing says what Who is");
    let report = import(&api, "?mapping=old%20system&complete=true", file).await;
    assert_eq!(report.status, 201, "{report:?}");
    assert_eq!(report.body["missing"], json!({ "count": 1, "expired": 0, "numbers": ["I-2"] }));
    assert_eq!(report.body["mapped"][0], json!({ "field": "permit_number", "columns": ["number"] }), "{report:?}");
    let report = import(&api, "?mapping=Old+System&map=holder_name%3DElse", file).await;
    assert_eq!((&report.body["permits_updated"], report.body.get("missing")), (&json!(1), None), "{report:?}");
    assert_eq!(api.office.text("SELECT holder_name FROM permits WHERE number_key = 'i-1'").await, ["Zoe"]);
    let unknown = import(&api, "?mapping=New", file).await;
    assert_eq!(
        (unknown.status.as_u16(), &unknown.faults()[..]),
        (422, &[("/mapping", "not_allowed")][..]),
        "{unknown:?}"
    );
    assert!(unknown.body.to_string().contains("saved are: Old System"), "{unknown:?}");
    let column = import(&api, "?mapping=Old+System", GOOD).await;
    assert_eq!(column.faults(), [("", "no_such_column")], "{column:?}");
    assert!(column.body.to_string().contains("the saved mapping \\\"Old System\\\" reads holder_name"), "{column:?}");
    api.close().await;
}

#[tokio::test]
async fn the_register_of_a_city_gives_the_same_report_by_command_and_over_http() {
    let api = TestApi::open().await;
    let other = TestOffice::new().await;
    let options = ImportOptions::new(Vec::new(), Vec::new(), None, None, true).unwrap();
    let rules = ImportRules {
        moment: other.moment(),
        zone: chrono_tz::UTC,
        window: None,
        claim_limit: 0,
        catch_up: true,
        complete: false,
        dry_run: false,
        by: "command",
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/samples/chicago_sample.csv");
    let by_command = files::import(&other.url, Input::Path(path), &options, &rules, |_| {}).await.unwrap();
    let by_http = import(&api, "?keep_good_rows=true&catch_up=true", sample()).await;
    assert_eq!(by_http.status, 201, "{by_http:?}");
    assert_eq!(by_http.body["rejected"], 7);
    assert_eq!(without_id(&by_http.body), without_id(&serde_json::to_value(&by_command).unwrap()));
    let state = "SELECT count(*) || ' ' || count(DISTINCT permit_id) || ' ' || max(due_on) FROM notices";
    assert_eq!(api.office.text(state).await, other.text(state).await);
    other.close().await;
    api.close().await;
}

#[tokio::test]
async fn a_dry_run_changes_nothing_and_leaves_its_report() {
    let api = TestApi::open().await;
    let dry = import(&api, "?dry_run=true", GOOD).await;
    assert_eq!((dry.status.as_u16(), &dry.body["permits_created"]), (201, &json!(2)), "{dry:?}");
    assert_eq!((&dry.body["committed"], &dry.body["dry_run"]), (&json!(false), &json!(true)));
    assert_eq!(api.get(dry.path()).await.body, dry.body);
    assert_eq!(count(&api, "permits").await, 0);
    api.close().await;
}

#[tokio::test]
async fn more_than_the_limit_is_held_until_it_is_released_or_cancelled() {
    let api = TestApi::with(Options { claim_limit: 1, ..Options::default() }).await;
    let soon = api.office.in_days(20);
    let file = |first: u32| {
        let rows = (first..first + 2)
            .map(|i| format!("H-{i},Food,Ann,a{i}@example.org,{soon}\n"))
            .collect::<Vec<String>>()
            .concat();
        format!("{HEADER}\n{rows}")
    };
    for (first, verb, field, state) in [(1, "release", "released", "pending"), (3, "cancel", "cancelled", "cancelled")]
    {
        let made = import(&api, "?catch_up=true", file(first)).await;
        assert_eq!(made.body["notices_claimed"], 2, "{made:?}");
        assert_eq!(count(&api, "notices WHERE state = 'held'").await, 2);
        let path = format!("{}/{verb}", made.path());
        assert_eq!(api.post(&path, &json!({})).await.faults(), [("/reason", "required")]);
        let done = api.post(&path, &json!({ "reason": "looked through" })).await;
        assert_eq!((done.status.as_u16(), &done.body[field]), (200, &json!(2)), "{done:?}");
        assert_eq!(count(&api, &format!("notices WHERE state = '{state}'")).await, 2);
    }
    let unknown = "/imports/00000000-0000-7000-8000-000000000000/release";
    assert_eq!(api.post(unknown, &json!({ "reason": "x" })).await.status, 404);
    api.close().await;
}

/// A workbook with a sheet of notes and one of permits for each name.
fn workbook(sheets: &[&str]) -> Vec<u8> {
    let mut book = rust_xlsxwriter::Workbook::new();
    for name in sheets {
        let sheet = book.add_worksheet();
        sheet.set_name(*name).unwrap();
        sheet.write_row(0, 0, HEADER.split(',')).unwrap();
        sheet.write_row(1, 0, ["W-1", "Food", *name, "", "2028-01-31"]).unwrap();
    }
    book.save_to_buffer().unwrap()
}

#[tokio::test]
async fn workbooks_are_taken_like_csv_and_a_sheet_is_chosen_by_name() {
    let api = TestApi::open().await;
    let one = import(&api, "", workbook(&["Permits"])).await;
    assert_eq!((one.status.as_u16(), &one.body["permits_created"]), (201, &json!(1)), "{one:?}");
    let guessed = json!({
        "format": "xlsx", "sheet": "Permits", "encoding": "UTF-8", "delimiter": null,
        "date_format": "%Y-%m-%d", "header_row": 1,
    });
    assert_eq!(one.body["guessed"], guessed);
    let several = workbook(&["Old", "New"]);
    for (query, code, part) in [
        ("", "sheet_needed", "say with the query parameter sheet=NAME which is to be read"),
        ("?sheet=Newer", "no_such_sheet", "no sheet \"Newer\"; its sheets are \"Old\", \"New\""),
    ] {
        let refused = import(&api, query, several.clone()).await;
        assert_eq!((refused.status.as_u16(), refused.faults()), (422, vec![("", code)]), "{refused:?}");
        assert!(refused.text("detail").contains(part), "{refused:?}");
    }
    let chosen = import(&api, "?sheet=New", several).await;
    assert_eq!((chosen.status.as_u16(), &chosen.body["permits_updated"]), (201, &json!(1)), "{chosen:?}");
    assert_eq!(api.office.text("SELECT holder_name FROM permits").await, ["New"]);
    let text = import(&api, "?sheet=New", GOOD).await;
    assert_eq!((text.status.as_u16(), text.faults()), (422, vec![("", "no_sheets")]), "{text:?}");
    api.close().await;
}
