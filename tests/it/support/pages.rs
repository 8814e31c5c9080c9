//! Somebody in front of the pages, without a browser: a client that keeps cookies and follows no redirects by itself.

use permit_notifier::{
    auth::password,
    domain::role::Role,
    store::people::users::{add_user, set_password},
};
use reqwest::{
    Client, StatusCode,
    header::HeaderMap,
    multipart::{self, Part},
    redirect::Policy,
};

use super::api::TestApi;

/// The password of everybody in tests.
pub const PASSWORD: &str = "a long enough password";

/// Somebody who looks at pages of an office.
pub struct Visitor {
    pub client: Client,
    pub url: String,
    /// What the forms of this visitor carry.
    pub csrf: String,
}

/// A page that came back.
#[derive(Debug)]
pub struct Page {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

impl TestApi {
    /// Adds somebody with the usual password.
    pub async fn add_user(&self, email: &str, role: Role) {
        let mut connection = self.office.pool.acquire().await.unwrap();
        let (user, _) = add_user(&mut connection, email, role, "tests", self.office.clock.now()).await.unwrap();
        set_password(&mut *connection, user.id, &password::hash(&PASSWORD.into()).unwrap()).await.unwrap();
    }

    /// Somebody who is not signed in.
    pub fn visitor(&self) -> Visitor {
        let client = Client::builder().no_proxy().cookie_store(true).redirect(Policy::none()).build().unwrap();
        Visitor { client, url: self.url.clone(), csrf: String::new() }
    }

    /// Adds somebody with this role, who signs in.
    pub async fn signed_in(&self, role: Role) -> Visitor {
        let email = format!("{role}@office.example");
        self.add_user(&email, role).await;
        let mut visitor = self.visitor();
        let page = visitor.sign_in(&email, PASSWORD).await;
        assert_eq!(page.status, 303, "{page:?}");
        visitor.csrf = visitor.get("/account").await.csrf();
        visitor
    }
}

impl Visitor {
    pub async fn get(&self, path: &str) -> Page {
        Page::of(self.client.get(format!("{}{path}", self.url)).send().await.expect("an answer")).await
    }

    /// Sends a form with the proof that it is ours.
    pub async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Page {
        let mut form = vec![("csrf", self.csrf.as_str())];
        form.extend_from_slice(fields);
        self.send(path, &form).await
    }

    /// Sends just these fields.
    pub async fn send(&self, path: &str, form: &[(&str, &str)]) -> Page {
        Page::of(self.client.post(format!("{}{path}", self.url)).form(form).send().await.expect("an answer")).await
    }

    /// Sends a file after the proof that the form is ours.
    pub async fn upload(&self, path: &str, name: &str, content: impl Into<Vec<u8>>) -> Page {
        let file = Part::bytes(content.into()).file_name(name.to_owned());
        self.upload_form(path, multipart::Form::new().text("csrf", self.csrf.clone()).part("file", file)).await
    }

    /// Sends these parts.
    pub async fn upload_form(&self, path: &str, form: multipart::Form) -> Page {
        let request = self.client.post(format!("{}{path}", self.url)).multipart(form);
        Page::of(request.send().await.expect("an answer")).await
    }

    /// Opens the page to sign in, and fills it in.
    pub async fn sign_in(&self, email: &str, password: &str) -> Page {
        let csrf = self.get("/sign-in").await.csrf();
        self.send("/sign-in", &[("csrf", &csrf), ("email", email), ("password", password)]).await
    }
}

impl Page {
    async fn of(response: reqwest::Response) -> Self {
        let (status, headers) = (response.status(), response.headers().clone());
        Self { status, headers, text: response.text().await.expect("a page") }
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// What the first form of the page carries.
    pub fn csrf(&self) -> String {
        self.between("name=\"csrf\" value=\"", "\"").to_owned()
    }

    /// The text between the first `before` and the `after` that follows.
    pub fn between(&self, before: &str, after: &str) -> &str {
        let (_, rest) = self.text.split_once(before).unwrap_or_else(|| panic!("no {before:?} in {self:?}"));
        rest.split_once(after).unwrap_or_else(|| panic!("no {after:?} in {self:?}")).0
    }

    /// Panics unless the page shows all of these.
    pub fn shows(&self, texts: &[&str]) {
        for text in texts {
            assert!(self.text.contains(text), "no {text:?} in {self:?}");
        }
    }
}
