//! Exports: what comes out goes in again and changes nothing.

use permit_notifier::domain::{permit::PermitStatus, scope::Scope};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::api::{Answered, TestApi, send};

async fn export(api: &TestApi, query: &str) -> String {
    let answer = api.request(Method::GET, &format!("/permits/export{query}")).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    answer.text().await.unwrap()
}

/// Permits with everything that is hard to write into a cell.
async fn hard_permits(api: &TestApi) {
    for (number, more) in [
        ("-1", json!({ "holder_name": "=cmd|' /C calc'!A0", "description": "+1\n\"two\", \tthree; \u{e9}" })),
        ("'=2", json!({ "holder_name": "''@x", "site_address": "1, \"Elm\" St; Flat 3", "external_id": "@sum(1)" })),
        (
            "3 a",
            json!({ "holder_email": null, "issued_on": "2026-01-01", "effective_on": "2026-02-01", "custom": { "k": [1, "a\"b"] } }),
        ),
        (
            "004",
            json!({ "status": "suspended", "holder_language": "pt-BR", "notices_paused_until": "2027-12-31", "contacts": [
            { "name": "=Eve, \"E\"", "email": "eve@example.org", "role": "agent", "language": "es" },
            { "name": "No Mail", "role": "tenant", "language": "de" },
            { "name": "", "email": "second@example.org", "role": "agent", "language": "en" },
        ] }),
        ),
        ("ÄÖ-5", json!({ "holder_name": "N/A", "notices_from": "2027-06-01" })),
    ] {
        let mut permit = api.permit(number);
        permit.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let made = api.post("/permits", &permit).await;
        assert_eq!(made.status, 201, "{made:?}");
    }
}

async fn dump(api: &TestApi) -> Vec<String> {
    let tables =
        ["permits", "contacts", "terms", "expiry_periods", "notices", "deliveries", "permit_history", "permit_types"];
    let rows = tables.map(|table| format!("SELECT '{table} ' || t::text AS row FROM {table} t"));
    api.office.text(&format!("SELECT row FROM ({}) AS r ORDER BY row", rows.join(" UNION ALL "))).await
}

#[tokio::test]
async fn an_export_that_is_imported_again_changes_nothing() {
    let api = TestApi::open().await;
    hard_permits(&api).await;
    let before = dump(&api).await;
    let csv = export(&api, "").await;
    assert!(csv.starts_with("id,permit_number,permit_type,status,phase,"), "{csv}");
    for cell in csv.split([',', '\n']).map(|cell| cell.trim_start_matches('"')) {
        assert!(!cell.starts_with(['=', '@', '\t', '\r']), "{cell} in {csv}");
    }
    for guarded in ["'-1,", "'=cmd", "\"'+1\n", "''=2,", "'''@x,", "'@sum(1)"] {
        assert!(csv.contains(guarded), "{guarded} in {csv}");
    }
    let report = send(api.request(Method::POST, "/imports?catch_up=true").body(csv)).await;
    assert_eq!((report.status.as_u16(), &report.body["committed"]), (201, &json!(true)), "{report:?}");
    let doubts = |report: &Answered| {
        let warnings = report.body["warnings"].as_array().unwrap();
        warnings.iter().map(|doubt| doubt["value"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!((&report.body["unchanged"], doubts(&report)), (&json!(5), vec!["N/A".to_owned()]), "{report:?}");
    assert_eq!(dump(&api).await, before);
    let workbook = api.request(Method::GET, "/permits/export?format=xlsx").send().await.unwrap().bytes().await.unwrap();
    let report = send(api.request(Method::POST, "/imports?catch_up=true").body(workbook)).await;
    assert_eq!((report.status.as_u16(), &report.body["guessed"]["format"]), (201, &json!("xlsx")), "{report:?}");
    assert_eq!((&report.body["unchanged"], doubts(&report)), (&json!(5), vec!["N/A".to_owned()]), "{report:?}");
    assert_eq!(dump(&api).await, before);
    api.close().await;
}

#[tokio::test]
async fn an_export_moves_permits_with_their_contacts_to_another_office() {
    let (api, other) = (TestApi::open().await, TestApi::open().await);
    hard_permits(&api).await;
    let csv = export(&api, "").await;
    let report = send(other.request(Method::POST, "/imports").body(csv)).await;
    assert_eq!(report.body["permits_created"], 5, "{report:?}");
    let shown = async |api: &TestApi| {
        let mut permits: Vec<Value> = serde_json::from_str(&export(api, "?format=json").await).unwrap();
        for permit in &mut permits {
            let fields = permit.as_object_mut().unwrap();
            for own in ["id", "created_at", "updated_at", "notices_from", "notices_paused_until", "custom"] {
                fields.remove(own);
            }
        }
        permits.sort_by_key(|permit| permit["permit_number"].to_string());
        permits
    };
    assert_eq!(shown(&other).await, shown(&api).await);
    api.close().await;
    other.close().await;
}

#[tokio::test]
async fn json_is_the_list_as_the_api_shows_it_and_filters_are_those_of_the_list() {
    let api = TestApi::open().await;
    assert_eq!(export(&api, "?format=json").await, "[\n]\n");
    assert_eq!(export(&api, "").await.lines().count(), 1);
    hard_permits(&api).await;
    let listed = api.get("/permits").await;
    let exported: Value = serde_json::from_str(&export(&api, "?format=json").await).unwrap();
    assert_eq!(exported, listed.body["items"]);
    for filter in ["status=suspended", "q=elm", "expires_to=2020-01-01", "phase=active", "archived=true"] {
        let listed = api.get(&format!("/permits?{filter}")).await;
        let exported: Value = serde_json::from_str(&export(&api, &format!("?format=json&{filter}")).await).unwrap();
        assert_eq!(exported, listed.body["items"], "{filter}");
    }
    api.close().await;
}

/// The cells of the sheets of a workbook as a spreadsheet shows them, days as they are written in ISO 8601; of each with
/// its type: `d`, `n` or `t`.
fn sheets(file: &[u8]) -> Vec<Vec<Vec<(char, String)>>> {
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(file)).unwrap();
    let mut read = |name: &str| {
        let mut text = String::new();
        archive.by_name(name).map(|mut part| std::io::Read::read_to_string(&mut part, &mut text).unwrap()).ok()?;
        Some(text)
    };
    let styles = read("xl/styles.xml").unwrap();
    // The formats of cells, of which one is our format of days.
    let day = styles.split("formatCode=\"yyyy-mm-dd\"").next().unwrap().rsplit("numFmtId=\"").next().unwrap();
    let day = format!("numFmtId=\"{}\"", day.split('"').next().unwrap());
    let formats: Vec<&str> = styles.split("<cellXfs").nth(1).unwrap().split("<xf ").skip(1).collect();
    let day = formats.iter().position(|format| format.starts_with(&day)).unwrap().to_string();
    let cell = |text: &str| {
        let (head, rest) = text.split_once('>').unwrap();
        assert!(!rest.contains("<f>"), "a formula: {rest}");
        let inner = |begin: &str, end: &str| {
            let from = rest.split_once(begin).unwrap().1;
            from.split_once('>').unwrap().1.split(end).next().unwrap().to_owned()
        };
        if head.contains("t=\"inlineStr\"") {
            let text = inner("<t", "</t>").replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
            ('t', text.replace("&amp;", "&"))
        } else if head.contains(&format!("s=\"{day}\"")) {
            let days: i64 = inner("<v", "</v>").parse().unwrap();
            let day = chrono::NaiveDate::from_ymd_opt(1899, 12, 30).unwrap() + chrono::TimeDelta::days(days);
            ('d', day.to_string())
        } else {
            ('n', inner("<v", "</v>"))
        }
    };
    let row = |text: &str| {
        let mut cells = Vec::new();
        for text in text.split("<c r=\"").skip(1) {
            let letters = text.bytes().take_while(u8::is_ascii_uppercase);
            let at = letters.fold(0, |at, letter| at * 26 + usize::from(letter - b'A') + 1) - 1;
            cells.resize(at, (' ', String::new()));
            cells.push(cell(text));
        }
        cells
    };
    let sheets = (1..).map_while(|number| read(&format!("xl/worksheets/sheet{number}.xml")));
    sheets.map(|sheet| sheet.split("<row ").skip(1).map(row).collect()).collect()
}

#[tokio::test]
async fn a_workbook_says_the_same_as_csv_with_days_and_texts_told_apart() {
    let api = TestApi::open().await;
    hard_permits(&api).await;
    let answer = api.request(Method::GET, "/permits/export?format=xlsx").send().await.unwrap();
    let kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
    assert_eq!((answer.status().as_u16(), answer.headers()["content-type"].to_str().unwrap()), (200, kind));
    assert_eq!(answer.headers()["content-disposition"], "attachment; filename=\"permits.xlsx\"");
    let sheets = sheets(&answer.bytes().await.unwrap());
    let csv = export(&api, "").await;
    let rows: Vec<Vec<String>> = csv::ReaderBuilder::new()
        .has_headers(false)
        .from_reader(csv.as_bytes())
        .records()
        .map(|row| row.unwrap().iter().map(str::to_owned).collect())
        .collect();
    assert_eq!((sheets.len(), sheets[0].len(), rows.len()), (1, 6, 6));
    for (row, cells) in rows.iter().zip(&sheets[0]) {
        for (at, text) in row.iter().enumerate() {
            let (kind, shown) = cells.get(at).cloned().unwrap_or((' ', String::new()));
            assert_eq!(*text, shown, "{} of {row:?}", rows[0][at]);
            let name = rows[0][at].as_str();
            let is_day =
                matches!(name, "issued_on" | "effective_on" | "expires_on" | "notices_from" | "notices_paused_until");
            let wanted = match name {
                _ if text.is_empty() => ' ',
                _ if row == &rows[0] => 't',
                "version" => 'n',
                _ if is_day => 'd',
                _ => 't',
            };
            assert_eq!(kind, wanted, "{name} of {row:?}");
        }
    }
    api.close().await;
}

#[tokio::test]
async fn what_the_public_gets_names_nobody() {
    let api = TestApi::open().await;
    let mut permit = api.permit("BP-1");
    let more = json!({
        "holder_name": "Zoe Xylander", "holder_email": "zoe@xylander.example", "external_id": "xylander-77",
        "site_address": "1, \"Elm\" St", "description": "=Shed", "issued_on": "2026-01-01", "custom": { "xylander": 1 },
        "contacts": [{ "name": "Xylander & Co", "email": "co@xylander.example", "role": "xylander", "language": "en" }],
    });
    permit.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let made = api.post("/permits", &permit).await;
    let id = made.text("id").parse().unwrap();
    let answer = api.request(Method::GET, "/permits/export?format=blds").send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/csv; charset=utf-8; header=present");
    let text = answer.text().await.unwrap();
    assert!(!text.to_lowercase().contains("xylander") && !text.contains("zoe"), "{text}");
    let expires_on = permit["expires_on"].as_str().unwrap();
    let header = "PermitNum,Description,AppliedDate,IssuedDate,CompletedDate,StatusCurrent,OriginalAddress1,\
                  OriginalAddress2,OriginalCity,OriginalState,OriginalZip,StatusCurrentMapped,PermitType,\
                  PermitTypeMapped,PermitTypeDesc,ExpiresDate";
    let row =
        format!("BP-1,'=Shed,,2026-01-01,,Active,\"1, \"\"Elm\"\" St\",,,,,Permit Issued,food,,Food,{expires_on}");
    assert_eq!(text, format!("{header}\n{row}\n"));
    let status = async || {
        let text = export(&api, "?format=blds").await;
        // The site has a comma, too.
        let cells: Vec<&str> = text.lines().nth(1).unwrap().split(',').collect();
        format!("{},{}", cells[5], cells[12])
    };
    for (is, words) in [
        (PermitStatus::Suspended, "Suspended,Permit Issued"),
        (PermitStatus::Revoked, "Revoked,Permit Cancelled"),
        (PermitStatus::Surrendered, "Surrendered,Permit Cancelled"),
        (PermitStatus::Closed, "Closed,Permit Finaled"),
        (PermitStatus::Active, "Active,Permit Issued"),
    ] {
        api.office.set_status(id, is).await;
        assert_eq!(status().await, words);
    }
    api.office.days_pass(3650);
    assert_eq!(status().await, "Expired,Permit Issued");
    api.close().await;
}

#[tokio::test]
async fn more_permits_than_are_read_at_once_come_out_each_once() {
    let api = TestApi::open().await;
    let rows =
        (0..1203).map(|i| format!("P-{i},Food,Ann,,2028-01-{:02}\n", 1 + i % 31)).collect::<Vec<String>>().concat();
    let file = format!("permit_number,permit_type,holder_name,holder_email,expires_on\n{rows}");
    let report = send(api.request(Method::POST, "/imports").body(file)).await;
    assert_eq!(report.body["permits_created"], 1203, "{report:?}");
    let csv = export(&api, "").await;
    let mut numbers: Vec<&str> = csv.lines().skip(1).map(|line| line.split(',').nth(1).unwrap()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!((csv.lines().count(), numbers.len()), (1204, 1203));
    let json: Vec<Value> = serde_json::from_str(&export(&api, "?format=json").await).unwrap();
    assert_eq!(json.len(), 1203);
    let book = api.request(Method::GET, "/permits/export?format=xlsx").send().await.unwrap().bytes().await.unwrap();
    let numbers: std::collections::HashSet<_> = sheets(&book)[0].iter().skip(1).map(|row| row[1].clone()).collect();
    assert_eq!(numbers.len(), 1203);
    api.close().await;
}

#[tokio::test]
async fn formats_that_are_not_there_and_strange_parameters_are_refused() {
    let api = TestApi::open().await;
    for query in [
        "?format=ods",
        "?format=CSV",
        "?format=json&bom=true",
        "?format=xlsx&bom=true",
        "?bom=yes",
        "?limit=5",
        "?cursor=x",
        "?phase=dead",
    ] {
        let refused = api.get(&format!("/permits/export{query}")).await;
        assert_eq!((refused.status.as_u16(), refused.kind()), (400, "malformed"), "{query}");
    }
    let reader = api.create_token("reader", Scope::Read, None).await;
    let url = format!("{}/api/v1/permits/export", api.url);
    let answer = api.client.get(&url).bearer_auth(&reader).send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/csv; charset=utf-8; header=present");
    assert_eq!(answer.headers()["content-disposition"], "attachment; filename=\"permits.csv\"");
    assert_eq!(api.client.get(&url).send().await.unwrap().status(), 401);
    let marked = api.client.get(format!("{url}?bom=true&status=suspended")).bearer_auth(&reader).send().await.unwrap();
    assert!(marked.text().await.unwrap().starts_with("\u{feff}id,permit_number,"));
    let taken = "SELECT by || ' ' || label || ' ' || (after ->> 'filter') FROM office_log WHERE action = 'exported'
                 ORDER BY id";
    assert_eq!(api.office.text(taken).await, ["token:reader csv ", "token:reader csv bom=true&status=suspended"]);
    api.close().await;
}

#[tokio::test]
async fn a_reader_who_goes_away_holds_no_snapshot() {
    let api = TestApi::open().await;
    let wide = "x".repeat(9000);
    let rows = (0..3000).map(|i| format!("P-{i},Food,Ann,{wide},2028-01-01\n")).collect::<Vec<String>>().concat();
    let file = format!("permit_number,permit_type,holder_name,description,expires_on\n{rows}");
    let report = send(api.request(Method::POST, "/imports").body(file)).await;
    assert_eq!(report.body["permits_created"], 3000, "{report:?}");
    let open = "SELECT count(*)::text FROM pg_stat_activity WHERE datname = current_database()
                AND application_name = 'permit-notifier bulk'";
    let until = async |wanted: &str| {
        for _ in 0..1500 {
            if api.office.text(open).await == [wanted] {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        panic!("connections of exports: not {wanted}");
    };
    let answer = api.request(Method::GET, "/permits/export").send().await.unwrap();
    until("1").await;
    drop(answer);
    until("0").await;
    api.close().await;
}
