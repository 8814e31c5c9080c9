//! Who is let in where, who is refused and how, and that nobody is shown what they may not do.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use permit_notifier::domain::role::Role;
use reqwest::Method;
use uuid::Uuid;

use super::{
    crawl::Crawl,
    table::{EVERYBODY, Row, Who, row_of, table},
};
use crate::support::{
    filled::{Filled, plainly},
    pages::{PASSWORD, Page, Visitor},
};

/// Method and address of everything that pages lead somebody to.
fn led_to(crawl: &Crawl) -> BTreeSet<(String, String)> {
    let links = crawl.addresses.iter().map(|address| ("GET".to_owned(), address.clone()));
    let forms = crawl.forms.iter().filter(|form| form.method == "POST").flat_map(|form| {
        // Without a button it can be sent all the same, by the Enter key.
        let itself = form.buttons.is_empty().then(|| form.action.clone());
        let buttons = form.buttons.iter().map(|button| button.action.clone());
        buttons.chain(itself).map(|action| ("POST".to_owned(), action))
    });
    links.chain(forms).collect()
}

#[tokio::test]
async fn everybody_is_led_to_what_they_may_and_to_nothing_else() {
    let filled = Filled::open(plainly).await;
    let table = table();
    let mut reached = BTreeSet::new();
    let nobody = filled.api.visitor();
    let mut faults = Vec::new();
    for who in EVERYBODY {
        let visitor = match who {
            Who::Nobody => &nobody,
            Who::Viewer => &filled.viewer,
            Who::Clerk => &filled.clerk,
            Who::Admin => &filled.admin,
        };
        let from: &[&str] = if who == Who::Nobody { &["/sign-in", &filled.link, "/docs"] } else { &["/"] };
        let led_to = led_to(&Crawl::of(visitor, from).await);
        let mut found = BTreeSet::new();
        for (method, address) in led_to {
            match row_of(&table, &method, &address) {
                None => faults.push(format!("{method} {address} is not in the table")),
                // The name of the program leads home, which leads to sign in.
                Some(_) if who == Who::Nobody && address == "/" => {}
                Some(row) if !row.lets_in(who) => {
                    faults.push(format!("{who:?} is led to {method} {address}, and refused there"));
                }
                Some(row) => {
                    found.insert((row.method, row.route));
                }
            }
        }
        // What one of them is led to leads everybody who may: whoever is signed in need not sign in, and the other way round.
        let is_open = |row: &&Row| row.lets_in(Who::Nobody);
        let expected = table.iter().filter(|row| row.why_unreached.is_none() && row.lets_in(who));
        for row in expected.filter(|row| is_open(row) == (who == Who::Nobody)) {
            if !found.contains(&(row.method, row.route)) {
                faults.push(format!("nothing leads {who:?} to {} {}", row.method, row.route));
            }
        }
        reached.extend(found);
    }
    let unreached = table.iter().filter(|row| row.why_unreached.is_some());
    faults.extend(
        unreached
            .filter(|row| reached.contains(&(row.method, row.route)) && row.route != "/set-password/{secret}")
            .map(|row| {
                format!("something leads to {} {}, although the table says why nothing does", row.method, row.route)
            }),
    );
    assert!(faults.is_empty(), "{faults:#?}");
    filled.api.close().await;
}

/// An address of the route; one of a thing that nobody has, if none is known.
fn address_of(row: &Row, known: &BTreeMap<&str, String>) -> String {
    if let Some(known) = known.get(row.route).filter(|_| row.method == "GET") {
        return known.clone();
    }
    let parts = row.route.split('/').map(|part| match part {
        "{step}" => "expires-7d".to_owned(),
        "{code}" => "nothing".to_owned(),
        "{verb}" => "hold".to_owned(),
        "{secret}" => "unknown".to_owned(),
        part if part.starts_with('{') => Uuid::nil().to_string(),
        part => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("/")
}

/// Somebody with this role, whose session is fresh.
async fn fresh(filled: &Filled, who: Who) -> Visitor {
    let mut visitor = filled.api.visitor();
    let role = match who {
        Who::Nobody => return visitor,
        Who::Viewer => Role::Viewer,
        Who::Clerk => Role::Clerk,
        Who::Admin => Role::Admin,
    };
    assert_eq!(visitor.sign_in(&format!("{role}@office.example"), PASSWORD).await.status, 303);
    visitor.csrf = visitor.get("/account").await.csrf();
    visitor
}

/// What became of a request, in the words of the table.
fn said(page: &Page, address: &str) -> String {
    let back =
        format!("/sign-in?next={}", url::form_urlencoded::byte_serialize(address.as_bytes()).collect::<String>());
    match page.status.as_u16() {
        303 if page.header("location") == back || (address == "/" && page.header("location") == "/sign-in") => {
            "sign-in".to_owned()
        }
        401 | 403 | 500.. => page.status.as_str().to_owned(),
        _ => "in".to_owned(),
    }
}

#[tokio::test]
async fn everybody_is_let_in_or_refused_as_the_table_says() {
    let filled = Filled::open(plainly).await;
    let table = table();
    let crawl =
        Crawl::of(&filled.admin, &["/", "/sign-in", "/docs", "/livez", "/readyz", "/metrics", &filled.link]).await;
    let mut known = BTreeMap::new();
    for (address, page) in &crawl.pages {
        if let Some(row) = row_of(&table, "GET", address).filter(|_| page.status == 200) {
            known.entry(row.route).or_insert(address.clone());
        }
    }
    let mut faults = Vec::new();
    for who in EVERYBODY {
        let mut visitor = fresh(&filled, who).await;
        for row in &table {
            let address = address_of(row, &known);
            let page = match row.method {
                "GET" => visitor.get(&address).await,
                _ if row.route == "/sign-in" || row.route.starts_with("/set-password") => {
                    let csrf = visitor.get("/sign-in").await.csrf();
                    visitor.send(&address, &[("csrf", &csrf), ("email", "nobody@office.example")]).await
                }
                _ => visitor.post(&address, &[]).await,
            };
            let mut said = said(&page, &address);
            // It is how signing in answers whoever it does not know.
            if row.route == "/sign-in" && page.text.contains("is not right") {
                said = "in".to_owned();
            }
            // Uploads prove that they are ours in a part of their own.
            if (row.method, row.route) == ("POST", "/import") && page.text.contains("not of this session") {
                said = "in".to_owned();
            }
            if said != row.cell(who) {
                faults.push(format!(
                    "{who:?} {} {address}: {said} ({}), and not {}",
                    row.method,
                    page.status,
                    row.cell(who)
                ));
            }
            if row.method == "GET" {
                let head = visitor.client.head(format!("{}{address}", visitor.url)).send().await.unwrap();
                if head.status() != page.status {
                    faults.push(format!("{who:?} HEAD {address}: {}, and GET {}", head.status(), page.status));
                }
            } else if who != Who::Nobody && visitor.get("/account").await.status != 200 {
                visitor = fresh(&filled, who).await;
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    filled.api.close().await;
}

#[tokio::test]
async fn what_a_route_does_not_take_is_refused_with_what_it_takes() {
    let filled = Filled::open(plainly).await;
    let table = table();
    let mut faults = Vec::new();
    for route in table.iter().map(|row| row.route).collect::<BTreeSet<_>>() {
        let methods: Vec<_> = table.iter().filter(|row| row.route == route).map(|row| row.method).collect();
        let address = address_of(table.iter().find(|row| row.route == route).unwrap(), &BTreeMap::new());
        let takes = methods.iter().map(|method| if *method == "GET" { "GET,HEAD" } else { method });
        let takes = takes.collect::<Vec<_>>().join(",");
        for method in [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS] {
            if methods.contains(&method.as_str()) {
                continue;
            }
            let request = filled.admin.client.request(method.clone(), format!("{}{address}", filled.admin.url));
            let request = if method == Method::POST { request.form(&[("csrf", &filled.admin.csrf)]) } else { request };
            let answer = request.send().await.unwrap();
            let allow = answer.headers().get("allow").map_or("", |allow| allow.to_str().unwrap());
            // Another route may take what this one does not: `/permits/new` beside `/permits/{id}`.
            if (answer.status().as_u16(), allow) != (405, takes.as_str()) {
                faults.push(format!("{method} {address}: {} with {allow:?}, and not {takes}", answer.status()));
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    filled.api.close().await;
}

/// Every `.rs` file under a folder.
fn sources(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: std::path::PathBuf| {
        if path.is_dir() { sources(&path) } else { vec![std::fs::read_to_string(path).unwrap()] }
    };
    entries.flat_map(read).collect()
}

/// The routes that a source names, with the constants that it uses for them.
fn routes_in(source: &str) -> Vec<String> {
    let path = source.split_once("const PATH: &str = \"").map(|(_, rest)| rest.split('"').next().unwrap().to_owned());
    let named = source.split(".route(").skip(1).map(|rest| {
        let rest = rest.trim_start();
        let given = rest.strip_prefix('"').map(|rest| rest.split('"').next().unwrap().to_owned());
        let constant = || if rest.starts_with("PATH,") { path.clone() } else { None };
        // The pages that explain problems stand under the root of their addresses.
        let problems = || rest.starts_with("&format!(\"{PAGES}/{{kind}}\")").then(|| "/problems/{kind}".to_owned());
        given.or_else(constant).or_else(problems).unwrap_or_else(|| panic!("an unknown route: {}", &rest[..40]))
    });
    named.collect()
}

#[test]
fn every_route_is_in_the_table_and_the_table_names_no_other() {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/web");
    let mut texts = sources(&web.join("pages"));
    texts.extend(sources(&web.join("docs")));
    texts.push(std::fs::read_to_string(web.join("health.rs")).unwrap());
    let routes: BTreeSet<String> = texts.iter().flat_map(|text| routes_in(text)).collect();
    let table: BTreeSet<String> = table().into_iter().map(|row| row.route.to_owned()).collect();
    assert_eq!(routes, table);
}
