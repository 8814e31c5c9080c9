//! Forms as they are found on pages, sent otherwise than they are filled in there.

use std::collections::BTreeMap;

use reqwest::{Response, header};
use url::Url;

use super::crawl::{Crawl, is_page};
use crate::support::{
    filled::Filled,
    html::{Button, Dom, Form},
    pages::{PASSWORD, Page, Visitor},
};

/// Every form that an administrator finds, with each of its buttons; of those that are alike, one.
pub async fn found(filled: &Filled) -> Vec<(Form, Button)> {
    let mut forms = Crawl::of(&filled.admin, &["/"]).await.forms;
    forms.extend(Crawl::of(&filled.api.visitor(), &["/sign-in", &filled.link]).await.forms);
    let mut alike = BTreeMap::new();
    for form in forms {
        let names: Vec<_> = form.fields.iter().map(|field| field.name.clone()).collect();
        let alone = Button { action: form.action.clone(), adds: None };
        let buttons = if form.buttons.is_empty() { vec![alone] } else { form.buttons.clone() };
        for button in buttons {
            let action = button.action.split('?').next().unwrap_or_default();
            let is_id = |part: &&str| part.len() == 36 && part.matches('-').count() == 4;
            let action: Vec<_> = action.split('/').map(|part| if is_id(&part) { "*" } else { part }).collect();
            alike
                .entry((form.method.clone(), action.join("/"), button.adds.clone(), names.clone()))
                .or_insert((form.clone(), button));
        }
    }
    alike.into_values().collect()
}

/// Whether it may be sent by who is not signed in, with a proof of its own.
pub fn is_open(form: &Form) -> bool {
    form.action == "/sign-in" || form.action.starts_with("/set-password/")
}

/// Signs in again if what was answered has ended the session, or began another; says whether it was so.
pub async fn keep_signed_in(filled: &mut Filled, answered: &Page) -> bool {
    let is_over = answered.status == 401 || answered.headers.contains_key(header::SET_COOKIE);
    if is_over {
        let mut visitor = filled.api.visitor();
        assert_eq!(visitor.sign_in("admin@office.example", PASSWORD).await.status, 303);
        visitor.csrf = visitor.get("/account").await.csrf();
        filled.admin = visitor;
    }
    is_over
}

/// The fields with the proof that this visitor's forms carry.
pub async fn with_proof(visitor: &Visitor, form: &Form, fields: Vec<(String, String)>) -> Vec<(String, String)> {
    let csrf = if is_open(form) { visitor.get("/sign-in").await.csrf() } else { visitor.csrf.clone() };
    let proved =
        fields.into_iter().map(|(name, value)| if name == "csrf" { (name, csrf.clone()) } else { (name, value) });
    proved.collect()
}

/// Sends these bytes as a form.
pub async fn send_bytes(visitor: &Visitor, action: &str, kind: &str, bytes: Vec<u8>) -> Page {
    let request = visitor.client.post(format!("{}{action}", visitor.url)).header(header::CONTENT_TYPE, kind);
    page_of(request.body(bytes).send().await.expect("an answer")).await
}

pub async fn page_of(response: Response) -> Page {
    let (status, headers) = (response.status(), response.headers().clone());
    Page { status, headers, text: response.text().await.expect("a page") }
}

pub const URLENCODED: &str = "application/x-www-form-urlencoded";

/// The fields as a browser sends them.
pub fn encoded(fields: &[(String, String)]) -> Vec<u8> {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish().into_bytes()
}

/// What is wrong with an answer, whatever was asked.
pub fn faults_of(page: &Page) -> Vec<String> {
    let mut faults = Vec::new();
    if page.status.is_server_error() {
        faults.push(format!("{}", page.status));
    }
    if page.headers.contains_key("x-evil") {
        faults.push("a header that somebody else wrote".to_owned());
    }
    if let Some(location) = page.headers.get(header::LOCATION) {
        let office = Url::parse("http://office.invalid").unwrap();
        let leads_to = location.to_str().ok().and_then(|location| office.join(location).ok());
        let is_ours = leads_to.is_some_and(|url| url.host_str() == office.host_str());
        if !is_ours || location.as_bytes().first() != Some(&b'/') {
            faults.push(format!("leads to {location:?}"));
        }
    } else if is_page(page) {
        let dom = Dom::of("/", &page.text);
        faults.extend(dom.faults());
        if dom.all("h1").is_empty() {
            faults.push("a page that says nothing".to_owned());
        }
    } else if !page.headers.contains_key(header::CONTENT_DISPOSITION) {
        faults.push(format!("no page: {}", page.status));
    }
    faults
}
