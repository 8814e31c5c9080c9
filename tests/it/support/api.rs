//! The API over a real socket, on an office of its own, told in verbs what to ask.

use std::num::NonZeroU32;
use std::sync::Arc;

use chrono::{NaiveDate, TimeDelta};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use permit_notifier::{
    app::OfficeFiles,
    auth::Token,
    config::TrustedProxies,
    dispatch,
    domain::scope::Scope,
    mail::{Office, Preview},
    scan::{asked::Asked, schedule::ScanSchedule},
    shutdown::Shutdown,
    store::{
        StoreError,
        connect::reading_pool,
        leases::Leased,
        tokens::{NewToken, insert_token},
    },
    telemetry::metrics,
    web::{
        self, Health, Limits, NotReady, Web,
        api::{Api, ApiParts, Mails, ScanRefused, Scans, UploadLimits},
        pages::{Pages, PagesParts},
    },
};
use reqwest::{Client, Method, RequestBuilder, StatusCode, header::HeaderMap};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::office::{FOOD, TestOffice};

/// The API of one office. Ends with [`TestApi::close`].
pub struct TestApi {
    pub office: TestOffice,
    pub url: String,
    /// A token with the scope `admin`.
    pub token: String,
    pub client: Client,
    stop: CancellationToken,
}

/// What an API is like that is not as usual.
#[derive(Default)]
pub struct Options {
    /// Each token may ask so often a minute.
    pub per_minute: Option<u32>,
    /// How uploads are limited.
    pub uploads: UploadLimits,
    /// More pending notices than this of one import are held; 0 for no limit.
    pub claim_limit: u64,
    /// Mail may go only then.
    pub window: Option<&'static str>,
    /// Whose word is taken about where requests come from, besides this machine's.
    pub proxies: Option<&'static str>,
    /// Where people reach the pages, unless it is where they are served.
    pub public_url: Option<String>,
}

/// What came back.
#[derive(Debug)]
pub struct Answered {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Value,
}

struct Healthy;

impl Health for Healthy {
    fn ready(&self) -> BoxFuture<'_, Result<(), NotReady>> {
        async { Ok(()) }.boxed()
    }

    fn refresh_metrics(&self) -> BoxFuture<'_, ()> {
        async {}.boxed()
    }
}

/// Mails of the office, as a process makes them.
#[derive(Debug)]
struct OfficeMails;

impl Mails for OfficeMails {
    fn preview(&self, copy: &Leased, today: NaiveDate) -> Result<Preview, String> {
        let office = Office::parse("Permit Office <permits@office.example>", None, None).expect("an office");
        dispatch::preview(&office, copy, today)
    }
}

/// Scans of the office, as a process with all roles does them.
#[derive(Debug)]
struct OfficeScans(Asked);

impl Scans for OfficeScans {
    fn begin(&self) -> BoxFuture<'_, Result<Uuid, ScanRefused>> {
        async { self.0.begin().await.map_err(ScanRefused::Store)?.ok_or(ScanRefused::Running) }.boxed()
    }

    fn preview(&self, as_of: Option<NaiveDate>) -> BoxFuture<'_, Result<Value, StoreError>> {
        async move { Ok(serde_json::to_value(self.0.preview(as_of).await?).unwrap()) }.boxed()
    }
}

impl TestApi {
    pub async fn open() -> Self {
        Self::with_rate(None).await
    }

    /// Each token may ask so often a minute.
    pub async fn with_rate(per_minute: Option<u32>) -> Self {
        Self::with(Options { per_minute, ..Options::default() }).await
    }

    pub async fn with(options: Options) -> Self {
        let per_minute = options.per_minute;
        let mut office = TestOffice::new().await;
        if let Some(window) = options.window {
            office.set_window(window);
        }
        let parts = ApiParts {
            pool: office.pool.clone(),
            reading_pool: reading_pool(&office.url, 4).unwrap(),
            clock: office.clock.clone(),
            zone: office.rules.zone,
            window: office.rules.window.clone(),
            claim_limit: 0,
            mails: Arc::new(OfficeMails),
            scans: Arc::new(OfficeScans(Asked::new(office.rules.clone(), Shutdown::new()))),
            files: Arc::new(OfficeFiles {
                direct_url: office.url.clone(),
                pool: office.pool.clone(),
                clock: office.clock.clone(),
                zone: office.rules.zone,
                window: office.rules.window.clone(),
                claim_limit: options.claim_limit,
            }),
            uploads: options.uploads,
            rate_per_minute: per_minute.and_then(NonZeroU32::new),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let public_url = options.public_url.as_ref().unwrap_or(&url).parse().unwrap();
        let api = Api::new(parts);
        let pages = Pages::new(PagesParts {
            api: api.clone(),
            public_url,
            proxies: options.proxies.and_then(TrustedProxies::parse).unwrap_or_default(),
            schedule: ScanSchedule::new("0 0 6 * * *", office.rules.zone).unwrap(),
            grace: TimeDelta::minutes(30),
            change_delay: TimeDelta::minutes(5),
            unsent: None,
        });
        let web =
            Web { health: Arc::new(Healthy), metrics: metrics::start().unwrap(), api: Some(api), pages: Some(pages) };
        let stop = CancellationToken::new();
        #[expect(clippy::disallowed_methods, reason = "ends with the test")]
        tokio::spawn(web::serve(listener, web::router(&web), Limits::default(), stop.clone()));
        let client = Client::builder().no_proxy().build().unwrap();
        let mut api = Self { office, url, token: String::new(), client, stop };
        api.token = api.create_token("tests", Scope::Admin, None).await;
        api
    }

    pub async fn close(self) {
        self.stop.cancel();
        self.office.close().await;
    }

    pub async fn create_token(&self, name: &str, scope: Scope, expires_on: Option<NaiveDate>) -> String {
        let token = Token::generate().unwrap();
        let (hash, hint) = (token.hash(), token.hint());
        let new = NewToken { name, scope, hash, hint, expires_on, by: "tests" };
        insert_token(&self.office.pool, &new, self.office.clock.now()).await.unwrap();
        token.reveal().to_owned()
    }

    /// A request to a path under `/api/v1`, with the administrator's token.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}/api/v1{path}", self.url)).bearer_auth(&self.token)
    }

    pub async fn get(&self, path: &str) -> Answered {
        send(self.request(Method::GET, path)).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answered {
        send(self.request(Method::POST, path).json(body)).await
    }

    pub async fn put(&self, path: &str, etag: &str, body: &Value) -> Answered {
        send(self.request(Method::PUT, path).header("if-match", etag).json(body)).await
    }

    pub async fn patch(&self, path: &str, etag: &str, body: &Value) -> Answered {
        send(self.request(Method::PATCH, path).header("if-match", etag).json(body)).await
    }

    pub async fn delete(&self, path: &str, etag: &str) -> Answered {
        send(self.request(Method::DELETE, path).header("if-match", etag)).await
    }

    /// A permit that nothing is due of, made over the API.
    pub async fn create_permit(&self, number: &str) -> Answered {
        let made = self.post("/permits", &self.permit(number)).await;
        assert_eq!(made.status, 201, "{made:?}");
        made
    }

    /// What is needed of a permit that expires in a year.
    pub fn permit(&self, number: &str) -> Value {
        json!({
            "permit_number": number, "permit_type": FOOD, "holder_name": "Ada Holder",
            "holder_email": "ada@example.org", "expires_on": self.office.in_days(365),
        })
    }
}

/// Sends it, and reads the whole answer; a body that is no JSON is null.
pub async fn send(request: RequestBuilder) -> Answered {
    let response = request.send().await.expect("an answer");
    let (status, headers) = (response.status(), response.headers().clone());
    let bytes = response.bytes().await.expect("the whole answer");
    Answered { status, headers, body: serde_json::from_slice(&bytes).unwrap_or_default() }
}

impl Answered {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    pub fn etag(&self) -> &str {
        self.header("etag")
    }

    pub fn text(&self, field: &str) -> &str {
        self.body[field].as_str().unwrap_or_default()
    }

    /// Path of the resource under `/api/v1`.
    pub fn path(&self) -> &str {
        self.header("location").strip_prefix("/api/v1").unwrap_or_default()
    }

    /// The end of the problem's type.
    pub fn kind(&self) -> &str {
        assert_eq!(self.header("content-type"), "application/problem+json", "{self:?}");
        self.text("type").strip_prefix("/problems/").unwrap_or_default()
    }

    /// Pointer and code of each field error.
    pub fn faults(&self) -> Vec<(&str, &str)> {
        let errors = self.body["errors"].as_array().map(Vec::as_slice).unwrap_or_default();
        errors.iter().map(|error| (error["pointer"].as_str().unwrap(), error["code"].as_str().unwrap())).collect()
    }

    /// What each row of a list has in this field.
    pub fn column(&self, field: &str) -> Vec<&str> {
        let items = self.body["items"].as_array().expect("a list");
        items.iter().map(|item| item[field].as_str().unwrap_or_default()).collect()
    }
}
