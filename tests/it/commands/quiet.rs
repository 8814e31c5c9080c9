//! What callers send stays out of the log: paths, queries, headers, bodies and addresses, right ones and wrong ones.

use nix::sys::signal::Signal;
use reqwest::{Client, Method, RequestBuilder};
use serde_json::json;

use crate::support::program::Desk;

/// Stands in everything that is sent.
const MARK: &str = "xyzzyplugh";

/// Requests with the mark wherever one can be.
fn requests(client: &Client, url: &str, token: &str) -> Vec<RequestBuilder> {
    let request = |method: Method, path: &str| client.request(method, format!("{url}{path}")).bearer_auth(token);
    let permit = json!({
        "permit_number": format!("{MARK}-1"), "permit_type": "quiet", "holder_name": format!("{MARK} Holder"),
        "holder_email": format!("{MARK}@example.org"), "expires_on": "2030-06-30", "site_address": format!("1 {MARK} Street"),
        "contacts": [{ "name": MARK, "email": format!("contact-{MARK}@example.org") }], "custom": { MARK: MARK },
    });
    let wrong = json!({ "permit_number": format!("{MARK}\n"), MARK: 1, "holder_email": format!("{MARK}@@example.org"),
                        "status": MARK, "expires_on": MARK });
    let address = json!({ "address": format!("{MARK}@example.com"), "reason": MARK });
    vec![
        request(Method::PUT, "/api/v1/permit-types/quiet").json(&json!({ "name": "Quiet" })),
        request(Method::PUT, &format!("/api/v1/permit-types/{MARK}"))
            .json(&json!({ "name": MARK, "office_contact": MARK })),
        request(Method::POST, "/api/v1/permits").header("idempotency-key", MARK).json(&permit),
        request(Method::POST, "/api/v1/permits").header("idempotency-key", MARK).json(&permit),
        request(Method::POST, "/api/v1/permits").header("idempotency-key", MARK).json(&wrong),
        request(Method::POST, "/api/v1/permits").json(&permit),
        request(Method::POST, "/api/v1/permits").json(&wrong),
        request(Method::POST, "/api/v1/permits").header("content-type", MARK).body(MARK),
        request(Method::POST, "/api/v1/permits").header("content-type", "application/json").body(format!("{{\"{MARK}")),
        request(Method::GET, &format!("/api/v1/permits?q={MARK}")),
        request(Method::GET, &format!("/api/v1/permits?{MARK}={MARK}")),
        request(Method::GET, &format!("/api/v1/permits?cursor={MARK}&permit_type={MARK}")),
        request(Method::GET, &format!("/api/v1/permits/{MARK}")),
        request(Method::GET, &format!("/api/v1/{MARK}?{MARK}")),
        request(Method::GET, &format!("/{MARK}?{MARK}={MARK}")),
        request(Method::GET, &format!("/problems/{MARK}")),
        request(Method::from_bytes(MARK.as_bytes()).unwrap(), "/api/v1/permits"),
        request(Method::GET, "/api/v1/permits").header("user-agent", MARK).header("referer", MARK).header(MARK, MARK),
        request(Method::GET, "/api/v1/permits").header("if-none-match", MARK).header("cookie", MARK),
        request(Method::GET, "/api/v1/permits").header("x-request-id", format!("{MARK} {MARK}")),
        client.get(format!("{url}/api/v1/permits")).bearer_auth(MARK),
        client.get(format!("{url}/api/v1/permits")).header("authorization", MARK),
        client.get(format!("{url}/livez?{MARK}")),
        request(Method::POST, "/api/v1/suppressions").json(&address),
        request(Method::POST, "/api/v1/tokens").json(&json!({ "name": MARK, "scope": "read" })),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_callers_send_is_logged() {
    let desk = Desk::new().with("LOG_FORMAT", "json").with("RUST_LOG", "permit_notifier=debug,tower_http=debug");
    let mut serve = desk.start(&["serve"]);
    let line = serve.wait_for("Listening on http://");
    let url = line.split_whitespace().last().expect("an address").trim_end_matches('/').to_owned();
    let made = desk.run(&["token", "create", "quiet", "--scope", "admin"]);
    let token = made.out.trim().to_owned();
    assert!(token.starts_with("pnt_"), "{made:?}");
    let client = Client::builder().no_proxy().build().expect("a client");
    let mut statuses = Vec::new();
    for request in requests(&client, &url, &token) {
        statuses.push(request.send().await.expect("an answer").status().as_u16());
    }
    for status in [200, 201, 400, 401, 404, 405, 409, 415, 422] {
        assert!(statuses.contains(&status), "{status} is not among {statuses:?}");
    }
    serve.signal(Signal::SIGTERM);
    assert_eq!(serve.wait(), Some(0));
    let log = serve.rest();
    let answered = log.iter().filter(|line| line.contains("request answered")).count();
    assert!(answered >= statuses.len(), "{answered} of {} requests are in the log", statuses.len());
    for line in &log {
        assert!(!line.to_lowercase().contains(MARK), "{line}");
        assert!(!line.contains(&token) && !line.contains("pnt_"), "{line}");
        assert!(!line.contains("/api/v1/permits/0"), "a path, not its pattern: {line}");
    }
}
