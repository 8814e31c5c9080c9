//! Addresses that nothing has are answered alike, with a way on: mistyped ones, broken ones, and ones of nobody.

use std::collections::BTreeMap;

use super::{
    crawl::Crawl,
    table::{Who, row_of, table},
};
use crate::support::filled::{Filled, plainly};

/// What may stand where an id should.
const BROKEN: [&str; 9] = [
    "xyz",
    "%ff",
    "%00",
    "%2e%2e%2fusers",
    "99999999999999999999999999",
    "00000000-0000-0000-0000-00000000000g",
    "00000000-0000-0000-0000-000000000000",
    "%22%3E%3Cx-evil%3E",
    "%F0%9F%9A%80",
];

#[tokio::test]
async fn what_nothing_has_as_its_address_is_a_page_with_a_way_on() {
    let filled = Filled::open(plainly).await;
    let table = table();
    let mut known = BTreeMap::new();
    for (address, page) in Crawl::of(&filled.admin, &["/", "/docs", &filled.link]).await.pages {
        if let Some(row) = row_of(&table, "GET", &address).filter(|_| page.status == 200) {
            known.entry(row.route).or_insert(address.split('?').next().unwrap().to_owned());
        }
    }
    let sign_in = filled.admin.get("/sign-in").await.csrf();
    let before = filled.api.office.dump().await;
    let mut faults = Vec::new();
    for row in table.iter().filter(|row| row.route.contains('{')) {
        let example = known.get(row.route).map_or(row.route, String::as_str);
        for (at, part) in row.route.split('/').enumerate() {
            if !part.starts_with('{') {
                continue;
            }
            for broken in BROKEN.into_iter().chain(["a"]).chain([&*"a".repeat(3000)]) {
                let parts = example.split('/').enumerate().map(|(place, given)| match place == at {
                    true => broken,
                    false if given == "{verb}" => "hold",
                    false if given.starts_with('{') => "00000000-0000-0000-0000-000000000000",
                    false => given,
                });
                let address = parts.collect::<Vec<_>>().join("/");
                let csrf = if row.lets_in(Who::Nobody) { &sign_in } else { &filled.admin.csrf };
                let page = match row.method {
                    "GET" => filled.admin.get(&address).await,
                    _ => {
                        filled
                            .admin
                            .send(
                                &address,
                                &[
                                    ("csrf", csrf),
                                    ("role", "clerk"),
                                    ("version", "1"),
                                    ("action", "hold"),
                                    ("reason", "x"),
                                ],
                            )
                            .await
                    }
                };
                // Whoever is signed in keeps the navigation; what is open to everybody has a frame of its own.
                let leads_on =
                    page.text.contains("<a href=") && (row.lets_in(Who::Nobody) || page.text.contains("<nav"));
                if page.status != 404 || !leads_on {
                    faults.push(format!("{} {address}: {}", row.method, page.status));
                }
            }
        }
    }
    for address in ["/nothing", "/permits/", "/permits/x/y/z", "/%ff", "/users.json", "/import/file/", "/favicon.ico"] {
        let page = filled.admin.get(address).await;
        if page.status != 404 || !page.text.contains("<nav") {
            faults.push(format!("GET {address}: {}", page.status));
        }
        let stranger = filled.api.visitor().get(address).await;
        if stranger.status != 404 && stranger.status != 303 || stranger.text.contains("<nav") {
            faults.push(format!("GET {address} without a session: {}", stranger.status));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert_eq!(filled.api.office.dump().await, before);
    filled.api.close().await;
}
