//! What somebody was given to come in with is good no more on any replica once it is taken back on one.

use std::time::Duration;

use permit_notifier::{auth::Token, domain::scope::Scope};
use reqwest::{Client, Method, redirect::Policy};
use serde_json::Value;

use super::{land, launch};
use crate::support::{
    pages::{PASSWORD, Visitor},
    postbox::{Postbox, until_within},
    service::desk,
    smtp_server::SmtpServer,
};

const ADMIN: &str = "admin@office.example";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_given_is_good_no_more_on_any_replica() {
    let post = Postbox::open().await;
    let server = SmtpServer::with([]);
    let services =
        launch(&post, &server.url(), 2, |desk| desk.with("ADMIN_EMAIL", ADMIN).with("ADMIN_PASSWORD", PASSWORD));
    let [here, there] = [0, 1].map(|number: usize| services[number].url.trim_end_matches('/').to_owned());

    let made = desk(&post, &server.url()).run(&["token", "create", "portal", "--scope", Scope::Admin.as_str()]);
    let token = made.out.trim();
    assert!(Token::parse(token).is_some(), "{made:?}");
    let client = Client::builder().no_proxy().cookie_store(true).redirect(Policy::none()).build().expect("a client");
    let ask = async |method: Method, url: String| {
        client.request(method, url).bearer_auth(token).send().await.expect("an answer")
    };
    let whoami = ask(Method::GET, format!("{here}/api/v1/whoami")).await;
    let who: Value = serde_json::from_str(&whoami.text().await.expect("a body")).expect("JSON");
    assert_eq!(ask(Method::GET, format!("{there}/api/v1/permits")).await.status(), 200);
    let id = who["id"].as_str().expect("an id");
    assert_eq!(ask(Method::DELETE, format!("{here}/api/v1/tokens/{id}")).await.status(), 200);
    assert_eq!(ask(Method::GET, format!("{here}/api/v1/permits")).await.status(), 401, "here at once");
    until_within(Duration::from_secs(3), "it is refused there too", async || {
        ask(Method::GET, format!("{there}/api/v1/permits")).await.status() == 401
    })
    .await;

    // Cookies are kept for the machine, whatever the port, as behind a proxy.
    let mut visitor = Visitor { client: client.clone(), url: here, csrf: String::new() };
    assert_eq!(visitor.sign_in(ADMIN, PASSWORD).await.status, 303);
    visitor.csrf = visitor.get("/account").await.csrf();
    let elsewhere = Visitor { client, url: there, csrf: String::new() };
    assert_eq!(elsewhere.get("/account").await.status, 200);
    visitor.post("/account/sign-out-everywhere", &[]).await;
    let away = elsewhere.get("/account").await;
    assert_eq!((away.status.as_u16(), away.header("location")), (303, "/sign-in?next=%2Faccount"));
    land(services);
}
