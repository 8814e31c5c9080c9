//! What is not imported, and why.

use permit_notifier::domain::scope::Scope;
use reqwest::Method;
use serde_json::json;

use super::{GOOD, HEADER, count, import, import_form, until_nothing_is_left};
use crate::support::api::{TestApi, send};

#[tokio::test]
async fn wrong_rows_commit_nothing_and_are_given_back_with_what_is_wrong() {
    let api = TestApi::open().await;
    let text = format!("{HEADER}\nI-1,Food,Ann,,2028-01-31\nI-2,Food,\"=1+1, \"\"Co\"\"\",,2028-13-31\nI-3,Food\n");
    let report = import(&api, "", text.replace(',', ";").replace("1+1;", "1+1,")).await;
    assert_eq!((report.status.as_u16(), &report.body["committed"]), (201, &json!(false)), "{report:?}");
    assert_eq!((&report.body["rejected"], count(&api, "permits").await), (&json!(2), 0));
    let errors = api.request(Method::GET, &format!("{}/errors.csv", report.path())).send().await.unwrap();
    assert_eq!(errors.headers()["content-type"], "text/csv; charset=utf-8; header=present");
    assert!(errors.headers()["content-disposition"].to_str().unwrap().starts_with("attachment; filename=\"errors-"));
    let text = errors.text().await.unwrap();
    let text = text.trim_start_matches('\u{feff}');
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], format!("{};error", HEADER.replace(',', ";")));
    assert!(lines[1].starts_with("I-2;Food;\"'=1+1, \"\"Co\"\"\";;2028-13-31;"), "{text}");
    assert!(lines[1].contains("not understood as a date") && lines[2].starts_with("I-3;Food;(no cell);"), "{text}");
    assert_eq!(lines.len(), 3);
    let corrected = text.replace("2028-13-31", "2028-12-31");
    let corrected = corrected.replace("I-3;Food;(no cell);(no cell);(no cell);", "I-3;Food;Cy;;2028-12-31;");
    let again = import(&api, "", corrected).await;
    assert_eq!((&again.body["committed"], &again.body["permits_created"]), (&json!(true), &json!(2)), "{again:?}");
    assert_eq!(api.get("/imports/00000000-0000-7000-8000-000000000000/errors.csv").await.status, 404);
    api.close().await;
}

#[tokio::test]
async fn the_row_of_the_names_is_said_by_its_number() {
    let api = TestApi::open().await;
    let text = format!("permit_number,permit_type\n{GOOD}");
    let report = import(&api, "?header_row=2", text.clone()).await;
    assert_eq!((&report.body["guessed"]["header_row"], &report.body["permits_created"]), (&json!(2), &json!(2)));
    let none = import(&api, "?header_row=9", text.clone()).await;
    assert_eq!((none.status.as_u16(), none.faults()), (422, vec![("", "no_header_row")]), "{none:?}");
    for wrong in ["0", "-1", "two"] {
        let refused = import(&api, &format!("?header_row={wrong}"), text.clone()).await;
        assert_eq!(refused.status.as_u16(), 400, "{refused:?}");
    }
    api.close().await;
}

#[tokio::test]
async fn what_is_wrong_begins_no_formula() {
    let api = TestApi::open().await;
    let text = "permit_number,permit_type,holder_name,=cmd()\n1,Food,Ann,never\n";
    let report = import(&api, "?map=expires_on%3D%3Dcmd()", text).await;
    assert_eq!(report.body["rejected"], 1, "{report:?}");
    let errors = api.request(Method::GET, &format!("{}/errors.csv", report.path())).send().await.unwrap();
    let text = errors.text().await.unwrap();
    assert!(text.contains(",never,\"'=cmd() "), "{text}");
    api.close().await;
}

#[tokio::test]
async fn options_are_those_of_the_command_and_the_wrong_ones_are_named() {
    let api = TestApi::open().await;
    let text = "no,who,until,state\nI-1,Ann,31.01.2028,fine\n";
    let query = "?map=permit_number%3Dno&map=holder_name%3Dwho&map=expires_on%3Duntil&map=status%3Dstate\
                 &status=fine%3Dsuspended&status=bad%3Drevoked&permit_type=Food&date_format=%25d.%25m.%25Y";
    let report = import(&api, query, text).await;
    assert_eq!((report.status.as_u16(), &report.body["committed"]), (201, &json!(true)), "{report:?}");
    let permit = api.office.text("SELECT status || ' ' || expires_on || ' ' || permit_type FROM permits").await;
    assert_eq!(permit, ["suspended 2028-01-31 food"]);
    for (query, pointer) in [
        ("?map=colour%3DA", "/map"),
        ("?map=status%3DA&map=status%3DB", "/map"),
        ("?status=x", "/status"),
        ("?status=*%3Dclosed", "/status"),
        ("?permit_type=!!", "/permit_type"),
        ("?date_format=%25Q", "/date_format"),
    ] {
        let refused = import(&api, query, GOOD).await;
        assert_eq!((refused.status.as_u16(), refused.kind()), (422, "validation-failed"), "{query}");
        assert_eq!(refused.faults(), [(pointer, "not_allowed")]);
        assert!(!refused.text("detail").contains("--"), "{refused:?}");
    }
    for query in ["?colour=red", "?dry_run=maybe", "?dry_run=true&dry_run=true", "?catch-up=true", "?sheets=1"] {
        let refused = import(&api, query, GOOD).await;
        assert_eq!((refused.status.as_u16(), refused.kind()), (400, "malformed"), "{query}");
    }
    assert_eq!(count(&api, "imports").await, 1);
    api.close().await;
}

#[tokio::test]
async fn a_file_that_is_refused_as_a_whole_is_a_problem_that_says_why() {
    let api = TestApi::open().await;
    for (body, code) in [
        (Vec::new(), "empty"),
        (b"\n\n".to_vec(), "empty"),
        (format!("{HEADER}\n").into_bytes(), "header_only"),
        (b"%PDF-1.7 and so on".to_vec(), "other_format"),
        (b"a,b\n\0,1\n".to_vec(), "binary"),
        (b"permit_number,holder_name\n\xff,1\n".to_vec(), "missing_fields"),
        (b"[\n {\"permit_number\": \"1\"}]".to_vec(), "other_format"),
        (format!("{HEADER}\n1,Food,\"Ann,,2028-01-31\n").into_bytes(), "unclosed_quote"),
        (
            [HEADER.as_bytes(), "\n1,Food,Zoë Núñez,,2028-01-31\n2,Food,Jos".as_bytes(), b"\xe9,,2028-01-31\n"]
                .concat(),
            "not_utf8",
        ),
        (b"\xff\xfe\0\xd8a\0".to_vec(), "not_utf16"),
        (b"PK\x03\x04 and no more".to_vec(), "damaged"),
        (format!("{HEADER}\n1,Food,Ann,,01/02/2028\n").into_bytes(), "ambiguous_dates"),
    ] {
        let refused = import(&api, "", body).await;
        assert_eq!((refused.status.as_u16(), refused.kind()), (422, "validation-failed"), "{code}");
        assert_eq!(refused.faults(), [("", code)]);
        let detail = refused.text("detail");
        assert!(!detail.starts_with(':') && !detail.contains("--") && !detail.contains("/tmp"), "{detail}");
    }
    assert_eq!(count(&api, "imports").await, 0);
    until_nothing_is_left(&api).await;
    api.close().await;
}

#[tokio::test]
async fn a_form_has_one_part_and_that_is_the_file() {
    let api = TestApi::open().await;
    let file = ("name=\"file\"; filename=\"a.csv\"", GOOD);
    for (parts, pointer, code) in [
        (&[][..], "/file", "required"),
        (&[file, file][..], "/file", "too_many"),
        (&[file, ("name=\"dry_run\"", "true")][..], "/dry_run", "unknown_field"),
    ] {
        let refused = import_form(&api, "", parts).await;
        assert_eq!((refused.status.as_u16(), refused.faults()), (422, vec![(pointer, code)]), "{refused:?}");
    }
    let broken = api.request(Method::POST, "/imports").header("content-type", "multipart/form-data").body(GOOD);
    assert_eq!(send(broken).await.kind(), "malformed");
    let broken = api.request(Method::POST, "/imports").header("content-type", "multipart/form-data; boundary=x");
    assert_eq!(send(broken.body("--x\r\n\r\nand no end")).await.kind(), "malformed");
    assert_eq!(count(&api, "imports").await, 0);
    api.close().await;
}

#[tokio::test]
async fn only_a_token_with_the_scope_write_imports_and_one_with_read_reads() {
    let api = TestApi::open().await;
    let made = import(&api, "", GOOD).await;
    let reader = api.create_token("reader", Scope::Read, None).await;
    let writer = api.create_token("writer", Scope::Write, None).await;
    let ask = async |token: &str, method: Method, path: &str| {
        let request = api.client.request(method, format!("{}/api/v1{path}", api.url)).bearer_auth(token);
        send(request.header("content-type", "application/json").body(GOOD)).await.status.as_u16()
    };
    for path in ["/imports".to_owned(), format!("{}/release", made.path()), format!("{}/cancel", made.path())] {
        assert_eq!(ask(&reader, Method::POST, &path).await, 403, "{path}");
    }
    assert_eq!(ask(&writer, Method::POST, "/imports").await, 201);
    for path in [made.path().to_owned(), format!("{}/errors.csv", made.path())] {
        assert_eq!(ask(&reader, Method::GET, &path).await, 200, "{path}");
        assert_eq!(ask("pnt_nobody", Method::GET, &path).await, 401, "{path}");
    }
    api.close().await;
}
