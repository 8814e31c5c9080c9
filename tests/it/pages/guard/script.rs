//! Whatever people, files and servers wrote is text on every page that shows it.

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::json;

use super::crawl::{Crawl, is_page};
use super::sent::{URLENCODED, encoded, faults_of, found, is_open, keep_signed_in, send_bytes, with_proof};
use crate::support::{
    filled::Filled,
    html::{Dom, SMUGGLED},
};

/// Ends whatever it stands in and begins something of its own.
const BREAKS_OUT: &str = "\"'></title></textarea></option></select><x-evil x-evil>";

thread_local! {
    /// What the office was filled with.
    static FILLED_IN: RefCell<BTreeSet<String>> = RefCell::default();
}

fn hostile(name: &str) -> String {
    FILLED_IN.with_borrow_mut(|names| names.insert(name.to_owned()));
    format!("{BREAKS_OUT}{name}")
}

#[tokio::test]
async fn what_anybody_wrote_is_text_on_every_page_that_shows_it() {
    let filled = Filled::open(hostile).await;
    let mut shown = String::new();
    let mut faults = Vec::new();
    for visitor in [&filled.viewer, &filled.admin] {
        for (path, page) in Crawl::of(visitor, &["/", "/permits?archived=any", "/import?checks=1"]).await.pages {
            if !page.header("content-type").starts_with("text/html") {
                continue;
            }
            let dom = Dom::of(&path, &page.text);
            // A mail has styles of its own, which its policy knows.
            let found = if is_page(&page) { dom.faults() } else { smuggled(&dom) };
            faults.extend(found.into_iter().map(|fault| format!("{path}: {fault}")));
            shown.push_str(&dom.shown());
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    let names = FILLED_IN.with_borrow(Clone::clone);
    // What an address cannot hold as it is is written otherwise in one.
    let is_seen =
        |name: &&String| shown.contains(&format!("{SMUGGLED}>{name}")) || shown.contains(&format!("%3E{name}"));
    let unseen: Vec<_> = names.iter().filter(|name| !is_seen(name)).collect();
    assert!(unseen.is_empty(), "no page shows {unseen:?}");
    filled.api.close().await;
}

fn smuggled(dom: &Dom) -> Vec<String> {
    let found = dom.all("x-evil, [x-evil], script, [onerror], a[href^=\"javascript\" i]");
    found.into_iter().map(|element| element.html()).collect()
}

#[tokio::test]
async fn what_is_asked_and_what_is_filled_in_wrongly_is_shown_as_text() {
    let mut filled = Filled::open(crate::support::filled::plainly).await;
    let mut faults = Vec::new();
    let mut shown = 0;
    let evil: String = url::form_urlencoded::byte_serialize(BREAKS_OUT.as_bytes()).collect();
    for (form, button) in found(&filled).await {
        if form.method == "GET" {
            let names = form.fields.iter().map(|field| field.name.as_str()).chain([
                evil.as_str(),
                "sort",
                "cursor",
                "limit",
                "done",
            ]);
            for name in names {
                let address = format!("{}?{name}={evil}", form.action);
                let page = filled.admin.get(&address).await;
                shown += usize::from(Dom::of("/", &page.text).shown().contains(BREAKS_OUT));
                faults.extend(faults_of(&page).into_iter().map(|fault| format!("{address}: {fault}")));
            }
            continue;
        }
        if form.is_upload {
            continue;
        }
        let fields = form.filled_in(&button);
        let names: Vec<_> = fields.iter().map(|(name, _)| name.clone()).filter(|name| name != "csrf").collect();
        for name in names.iter().map(Some).chain([None]) {
            let proved = with_proof(&filled.admin, &form, fields.clone()).await;
            let said = |(field, value): (String, String)| {
                let is_meant = field != "csrf" && name.is_none_or(|name| *name == field);
                if is_meant { (field, BREAKS_OUT.to_owned()) } else { (field, value) }
            };
            let body = encoded(&proved.into_iter().map(said).collect::<Vec<_>>());
            let page = send_bytes(&filled.admin, &button.action, URLENCODED, body).await;
            shown += usize::from(Dom::of("/", &page.text).shown().contains(BREAKS_OUT));
            faults.extend(faults_of(&page).into_iter().map(|fault| format!("{} {name:?}: {fault}", button.action)));
            if !is_open(&form) {
                keep_signed_in(&mut filled, &page).await;
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(shown > 50, "shown again {shown} times only");
    filled.api.close().await;
}

#[tokio::test]
async fn a_renewal_address_is_one_of_the_web() {
    let filled = Filled::open(crate::support::filled::plainly).await;
    for address in [
        "javascript:alert(1)",
        " javascript:alert(1)",
        "JAVASCRIPT:alert(1)",
        "data:text/html,x",
        "//evil.example",
        "https:evil.example",
        "https://permits.example.org\\@evil.example",
        "x",
    ] {
        let page = filled.admin.get("/permit-types/food").await;
        let version = page.between("name=\"version\" value=\"", "\"").to_owned();
        let fields =
            [("name", "Food"), ("renewal_url", address), ("grace_days", "0"), ("version", &version), ("do", "save")];
        let refused = filled.admin.post("/permit-types/food", &fields).await;
        assert_eq!(refused.status, 422, "{address}");
        let food = filled.api.get("/permit-types/food").await;
        let mut body = food.body.clone();
        body["renewal_url"] = json!(address);
        assert_eq!(filled.api.put("/permit-types/food", food.etag(), &body).await.status, 422, "{address}");
    }
    filled.api.close().await;
}
