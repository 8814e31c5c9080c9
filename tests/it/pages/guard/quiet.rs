//! Looking changes nothing, every link leads somewhere, and every answer has the headers that keep it safe.

use chrono::TimeDelta;
use reqwest::Method;

use super::crawl::{Crawl, is_page};
use crate::support::{
    filled::{Filled, plainly},
    html::Dom,
    pages::Page,
};

/// Where everything that can be looked at is reached from.
const EVERYWHERE: [&str; 6] = ["/", "/sign-in", "/docs", "/livez", "/readyz", "/metrics"];

/// When a session was last seen is all that looking writes.
fn without_sessions(dump: Vec<String>) -> Vec<String> {
    dump.into_iter().filter(|row| !row.starts_with("sessions ")).collect()
}

#[tokio::test]
async fn looking_at_every_page_changes_nothing_and_sends_nothing() {
    let filled = Filled::open(plainly).await;
    filled.api.office.clock.advance(TimeDelta::minutes(10));
    let before = filled.api.office.dump().await;
    let mut from = EVERYWHERE.to_vec();
    from.push(&filled.link);
    let crawl = Crawl::of(&filled.admin, &from).await;
    let after = filled.api.office.dump().await;
    assert!(crawl.pages.len() > 100, "{} pages", crawl.pages.len());
    assert_ne!(before, after, "the session was seen");
    // Attempts to send are among them.
    assert_eq!(without_sessions(after), without_sessions(before));
    let dead = crawl.pages.iter().filter(|(_, page)| page.status != 200);
    let dead: Vec<_> = dead.map(|(path, page)| format!("{path}: {}", page.status)).collect();
    assert!(dead.is_empty(), "{dead:#?}");
    filled.api.close().await;
}

/// What an answer lacks that every answer, or every one of its sort, must have.
fn faults_of(path: &str, page: &Page) -> Vec<String> {
    let policy = page.header("content-security-policy");
    let mut must = vec![
        ("x-content-type-options", page.header("x-content-type-options") == "nosniff"),
        ("referrer-policy", page.header("referrer-policy") == "no-referrer"),
        ("content-security-policy", policy.starts_with("default-src 'none'") && !policy.contains("unsafe-inline")),
        ("content-type", page.header("content-type").contains('/') || page.text.is_empty()),
    ];
    if path.starts_with("/assets/") && page.status == 200 {
        must.push(("cache-control", page.header("cache-control") == "public, max-age=31536000, immutable"));
    } else {
        must.push(("cache-control", page.header("cache-control") == "no-store"));
    }
    let is_mail = policy.contains("sandbox");
    must.push((
        "frame-ancestors",
        policy.contains(if is_mail { "frame-ancestors 'self'" } else { "frame-ancestors 'none'" }),
    ));
    if is_mail {
        must.push(("no script in mails", !policy.contains("script-src")));
    }
    if is_page(page) {
        must.push(("base-uri", policy.contains("base-uri 'none'") && policy.contains("form-action")));
        must.push(("charset", page.header("content-type") == "text/html; charset=utf-8"));
    }
    // What is given out as it is must not be shown by the browser as a page of ours.
    if path.contains("/message/") || path.ends_with("/errors.csv") {
        must.push((
            "content-disposition",
            page.header("content-disposition").starts_with("attachment") || page.status != 200,
        ));
    }
    let mut faults: Vec<_> = must.into_iter().filter(|(_, is_so)| !is_so).map(|(what, _)| what.to_owned()).collect();
    if is_page(page) {
        faults.extend(Dom::of(path, &page.text).faults());
    }
    faults.into_iter().map(|fault| format!("{path}: {fault}")).collect()
}

#[tokio::test]
async fn every_answer_has_the_headers_that_keep_it_safe_and_no_script_or_style_inline() {
    let filled = Filled::open(plainly).await;
    let mut from = EVERYWHERE.to_vec();
    from.push(&filled.link);
    let mut pages = Crawl::of(&filled.admin, &from).await.pages;
    let stranger = filled.api.visitor();
    for path in ["/nothing", "/permits/xyz", "/assets/nothing", "/permits?x=1", "/problems/nothing", "/api/v1/permits"]
    {
        pages.push((path.to_owned(), filled.admin.get(path).await));
        pages.push((path.to_owned(), stranger.get(path).await));
    }
    pages.push(("/users".to_owned(), filled.viewer.get("/users").await));
    pages.push(("/users".to_owned(), stranger.send("/users", &[]).await));
    pages.push(("/sign-out".to_owned(), filled.admin.send("/sign-out", &[]).await));
    pages.push(("/users".to_owned(), filled.admin.post("/users", &[("email", "no"), ("role", "no")]).await));
    let faults: Vec<_> = pages.iter().flat_map(|(path, page)| faults_of(path, page)).collect();
    assert!(faults.is_empty(), "{faults:#?}");
    // A page with a form that is filled in for somebody must not be kept either.
    let head = filled.admin.client.request(Method::HEAD, format!("{}/account", filled.admin.url)).send().await.unwrap();
    assert_eq!(head.headers()["cache-control"], "no-store");
    filled.api.close().await;
}
