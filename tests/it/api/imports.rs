//! Imports over HTTP: what the command does, and what a connection can do to it.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use futures_util::future::join;
use permit_notifier::domain::scope::Scope;
use permit_notifier::files::{self, ImportOptions, ImportRules, Input};
use permit_notifier::web::api::UploadLimits;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::api::{Answered, Options, TestApi, send};
use crate::support::office::TestOffice;

const HEADER: &str = "permit_number,permit_type,holder_name,holder_email,expires_on";
const GOOD: &str = "permit_number,permit_type,holder_name,holder_email,expires_on\n\
                    I-1,Food,Ann,ann@example.org,2028-01-31\nI-2,Food,Bob,bob@example.org,2028-02-29\n";

async fn import(api: &TestApi, query: &str, body: impl Into<reqwest::Body>) -> Answered {
    let request = api.request(Method::POST, &format!("/imports{query}")).header("content-type", "text/csv");
    send(request.body(body)).await
}

async fn import_form(api: &TestApi, query: &str, parts: &[(&str, &str)]) -> Answered {
    let mut body = String::new();
    for (disposition, content) in parts {
        body.extend(["--b0undary\r\ncontent-disposition: form-data; ", disposition, "\r\n\r\n", content, "\r\n"]);
    }
    body += "--b0undary--\r\n";
    let request = api.request(Method::POST, &format!("/imports{query}"));
    send(request.header("content-type", "multipart/form-data; boundary=b0undary").body(body)).await
}

async fn count(api: &TestApi, what: &str) -> i64 {
    let query = format!("SELECT count(*) FROM {what}");
    sqlx::query_scalar(sqlx::AssertSqlSafe(query)).fetch_one(&api.office.pool).await.unwrap()
}

fn sample() -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/samples/chicago_sample.csv")).unwrap()
}

/// The report without what no two imports have in common.
fn without_id(report: &Value) -> Value {
    let mut report = report.clone();
    report.as_object_mut().unwrap().remove("id");
    report
}

/// Whether no import of this office has a connection, a staged row or a key any more.
async fn until_nothing_is_left(api: &TestApi) {
    let left = "(SELECT FROM pg_stat_activity WHERE datname = current_database()
                        AND (application_name = 'permit-notifier bulk' OR state LIKE 'idle in transaction%')
                 UNION ALL SELECT FROM import_rows UNION ALL SELECT FROM import_rejected_rows
                 UNION ALL SELECT FROM idempotency_keys) AS left_over";
    for _ in 0..1500 {
        if count(api, left).await == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("something is left of an import");
}

#[tokio::test]
async fn a_raw_body_and_a_form_are_imported_and_the_report_can_be_read_again() {
    let api = TestApi::open().await;
    let raw = import(&api, "?file_name=C:%5Cold%5Cpermits.csv", GOOD).await;
    assert_eq!(raw.status, 201, "{raw:?}");
    assert_eq!((&raw.body["committed"], &raw.body["permits_created"]), (&json!(true), &json!(2)));
    assert_eq!(raw.path(), format!("/imports/{}", raw.text("id")));
    let read = api.get(raw.path()).await;
    assert_eq!((read.status.as_u16(), &read.body), (200, &raw.body));
    let form = import_form(&api, "", &[("name=\"file\"; filename=\"again.csv\"", GOOD)]).await;
    assert_eq!((form.status.as_u16(), &form.body["unchanged"]), (201, &json!(2)), "{form:?}");
    let names = api.office.text("SELECT file_name FROM imports ORDER BY id").await;
    assert_eq!(names, ["permits.csv", "again.csv"]);
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
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], format!("{};error", HEADER.replace(',', ";")));
    assert!(lines[1].starts_with("I-2;Food;\"=1+1, \"\"Co\"\"\";;2028-13-31;"), "kept as it came: {text}");
    assert!(lines[1].contains("no such date") && lines[2].starts_with("I-3;Food;;;;"), "{text}");
    assert_eq!(lines.len(), 3);
    let corrected = text.replace("2028-13-31", "2028-12-31").replace("I-3;Food;;;;", "I-3;Food;Cy;;2028-12-31;");
    let again = import(&api, "", corrected).await;
    assert_eq!((&again.body["committed"], &again.body["permits_created"]), (&json!(true), &json!(2)), "{again:?}");
    assert_eq!(api.get("/imports/00000000-0000-7000-8000-000000000000/errors.csv").await.status, 404);
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

#[tokio::test]
async fn a_file_that_is_too_large_is_refused_with_and_without_a_length() {
    let limits = UploadLimits { bytes: 2000, ..UploadLimits::default() };
    let api = TestApi::with(Options { uploads: limits, ..Options::default() }).await;
    let line = "1,Food,Ann,,2028-01-31\n";
    let text = format!("{HEADER}\n{}", line.repeat(100));
    let refused = import(&api, "", text.clone()).await;
    assert_eq!((refused.status.as_u16(), refused.kind()), (413, "too-large"));
    let pieces = text.into_bytes().chunks(100).map(|piece| Ok::<_, std::io::Error>(piece.to_vec())).collect::<Vec<_>>();
    let refused = import(&api, "", reqwest::Body::wrap_stream(futures_util::stream::iter(pieces))).await;
    assert_eq!((refused.status.as_u16(), refused.kind()), (413, "too-large"));
    let fits = format!("{HEADER}\n{}", line.repeat(50));
    assert_eq!(import(&api, "", fits).await.status, 201);
    until_nothing_is_left(&api).await;
    api.close().await;
}

#[tokio::test]
async fn a_sender_who_falls_silent_is_given_up() {
    let limits = UploadLimits { silence: Duration::from_millis(200), ..UploadLimits::default() };
    let api = TestApi::with(Options { uploads: limits, ..Options::default() }).await;
    let first = futures_util::stream::iter([Ok::<_, std::io::Error>(format!("{HEADER}\n"))]);
    let silent = futures_util::StreamExt::chain(first, futures_util::stream::pending());
    let refused = import(&api, "", reqwest::Body::wrap_stream(silent)).await;
    assert_eq!((refused.status.as_u16(), refused.kind()), (400, "malformed"), "{refused:?}");
    until_nothing_is_left(&api).await;
    api.close().await;
}

#[tokio::test]
async fn a_sender_who_dribbles_does_not_keep_a_place_from_others_for_ever() {
    let limits = UploadLimits { whole: Duration::from_millis(500), ..UploadLimits::default() };
    let api = TestApi::with(Options { uploads: limits, ..Options::default() }).await;
    let drops = futures_util::stream::unfold((), |()| async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        Some((Ok::<_, std::io::Error>("\n"), ()))
    });
    let dribbled = import(&api, "", reqwest::Body::wrap_stream(drops));
    let refused = tokio::time::timeout(Duration::from_secs(20), dribbled).await.expect("an answer");
    assert_eq!((refused.status.as_u16(), refused.kind()), (400, "malformed"), "{refused:?}");
    assert_eq!(import(&api, "", GOOD).await.status, 201);
    api.close().await;
}

/// Temporary files without a name and of this length that this process holds.
fn nameless_files(length: u64) -> usize {
    let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten().map(|entry| entry.path());
    let nameless = open.filter(|fd| {
        let target = std::fs::read_link(fd).unwrap_or_default();
        target.starts_with(std::env::temp_dir()) && target.to_string_lossy().ends_with("(deleted)")
    });
    nameless.filter(|fd| std::fs::metadata(fd).is_ok_and(|file| file.len() == length)).count()
}

#[tokio::test]
async fn who_hangs_up_in_the_middle_leaves_nothing() {
    let api = TestApi::open().await;
    let address = api.url.strip_prefix("http://").unwrap().to_owned();
    let half = format!("{GOOD}{}", " ".repeat(4321 - GOOD.len()));
    let mut streams = Vec::new();
    for key in ["", "idempotency-key: k\r\n"] {
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        let head = format!("host: x\r\nauthorization: Bearer {}\r\n{key}content-length: 9000", api.token);
        write!(stream, "POST /api/v1/imports HTTP/1.1\r\n{head}\r\n\r\n{half}").unwrap();
        streams.push(stream);
    }
    let until_held = async |wanted: usize| {
        for _ in 0..1500 {
            if nameless_files(4321) == wanted {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{} temporary files, not {wanted}", nameless_files(4321));
    };
    until_held(2).await;
    drop(streams);
    until_held(0).await;
    until_nothing_is_left(&api).await;
    assert_eq!(count(&api, "imports").await, 0);
    assert_eq!(import(&api, "", GOOD).await.status, 201, "places for imports are free");
    api.close().await;
}

async fn with_key(api: &TestApi, key: &str, query: &str, body: &str) -> Answered {
    let request = api.request(Method::POST, &format!("/imports{query}")).header("idempotency-key", key);
    send(request.body(body.to_owned())).await
}

#[tokio::test]
async fn a_key_imports_once_and_belongs_to_one_file_with_its_options() {
    let api = TestApi::open().await;
    let first = with_key(&api, "k", "", GOOD).await;
    assert_eq!((first.status.as_u16(), first.header("idempotency-replayed")), (201, ""), "{first:?}");
    let again = with_key(&api, "k", "", GOOD).await;
    assert_eq!((again.status.as_u16(), again.header("idempotency-replayed")), (201, "true"));
    assert_eq!((&again.body, again.header("location")), (&first.body, first.header("location")));
    assert_eq!(count(&api, "imports").await, 1);
    for (query, body) in [("?catch_up=true", GOOD), ("", &GOOD.replace("I-2", "I-3"))] {
        let other = with_key(&api, "k", query, body).await;
        assert_eq!((other.status.as_u16(), other.kind()), (422, "key-reused"), "{query}");
    }
    let refused = with_key(&api, "r", "", HEADER).await;
    assert_eq!(refused.status, 422);
    let again = with_key(&api, "r", "", HEADER).await;
    assert_eq!((again.status.as_u16(), again.header("idempotency-replayed")), (422, "true"), "a refusal is kept too");
    assert_eq!(with_key(&api, &"k".repeat(256), "", GOOD).await.kind(), "malformed");
    api.close().await;
}

#[tokio::test]
async fn two_at_once_with_one_key_are_one_import() {
    let api = TestApi::open().await;
    let (first, second) = join(with_key(&api, "k", "", GOOD), with_key(&api, "k", "", GOOD)).await;
    let mut replayed = [first.header("idempotency-replayed"), second.header("idempotency-replayed")];
    replayed.sort_unstable();
    assert_eq!((first.status.as_u16(), second.status.as_u16(), replayed), (201, 201, ["", "true"]));
    assert_eq!((first.text("id"), count(&api, "imports").await), (second.text("id"), 1));
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

#[tokio::test]
async fn without_its_database_an_import_is_put_off() {
    let api = TestApi::open().await;
    // As others do who lock what an import needs, for longer than it waits.
    let limit = "ALTER TABLE imports ADD CONSTRAINT away CHECK (false) NOT VALID";
    api.office.sql(limit).await;
    let failed = import(&api, "", GOOD).await;
    assert_eq!((failed.status.as_u16(), failed.kind()), (500, "internal-error"), "{failed:?}");
    assert!(!failed.body.to_string().contains("away"), "nothing of the inside is shown");
    assert_eq!(count(&api, "permits").await, 0);
    api.office.sql("ALTER TABLE imports DROP CONSTRAINT away").await;
    api.office
        .sql(
            "CREATE FUNCTION busy() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                        RAISE EXCEPTION 'busy' USING ERRCODE = '55P03'; END $$;
                    CREATE TRIGGER busy BEFORE INSERT ON imports FOR EACH ROW EXECUTE FUNCTION busy()",
        )
        .await;
    let busy = with_key(&api, "k", "", GOOD).await;
    assert_eq!((busy.status.as_u16(), busy.kind(), busy.header("retry-after")), (503, "unavailable", "5"), "{busy:?}");
    api.office.sql("DROP TRIGGER busy ON imports").await;
    let done = with_key(&api, "k", "", GOOD).await;
    assert_eq!((done.status.as_u16(), done.header("idempotency-replayed")), (201, ""));
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
        ("", "sheet_needed", "say with sheet NAME which is to be read"),
        ("?sheet=Newer", "no_such_sheet", "no sheet \"Newer\", which sheet names; its sheets are \"Old\", \"New\""),
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
