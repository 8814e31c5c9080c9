//! Imports over HTTP: what the command does, and what a connection can do to it.

use std::path::Path;
use std::time::Duration;

use reqwest::Method;
use serde_json::Value;

use crate::support::api::{Answered, TestApi, send};

mod connections;
mod keys;
mod refusals;
mod reports;

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

async fn with_key(api: &TestApi, key: &str, query: &str, body: &str) -> Answered {
    let request = api.request(Method::POST, &format!("/imports{query}")).header("idempotency-key", key);
    send(request.body(body.to_owned())).await
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
