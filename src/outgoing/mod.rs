//! What we call by HTTP: the operator's webhook and heartbeat. Nobody else's URLs are ever fetched.
//!
//! A call goes where the URL says and nowhere else: no redirect is followed and no proxy of the environment is asked;
//! `guard` decides which addresses may be called. What is answered is not read beyond its status.

pub mod guard;
pub mod heartbeat;
mod url;

use std::{sync::Arc, time::Duration};

use ::url::Host;
use http_body_util::Full;
use hyper::{
    Method, Request,
    body::Bytes,
    header::{CONTENT_TYPE, USER_AGENT},
};
use hyper_rustls::HttpsConnector;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use tokio::net::TcpStream;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore, crypto::CryptoProvider, pki_types::CertificateDer};

pub use self::url::{CallUrl, CallUrlError};
use guard::GuardedNames;

/// Longest time for one call, from the look-up of the name to the status.
const CALL_LIMIT: Duration = Duration::from_secs(10);

/// Why a call did not succeed, in words that may be shown: without the URL, which is a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// Something answered, and refused.
    #[error("it answered with status {0}")]
    Refused(u16),
    /// Nothing answered in time, or it could not be reached.
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
}

/// Makes calls. Neither redirects nor proxies are known to the client underneath.
#[derive(Debug, Clone)]
pub struct Caller(Client<HttpsConnector<HttpConnector<GuardedNames>>, Full<Bytes>>);

impl Default for Caller {
    fn default() -> Self {
        Self::new()
    }
}

impl Caller {
    pub fn new() -> Self {
        let mut plain = HttpConnector::new_with_resolver(GuardedNames);
        // The layer above decides what is encrypted.
        plain.enforce_http(false);
        plain.set_connect_timeout(Some(CALL_LIMIT));
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(believing(&[]))
            .https_or_http()
            .enable_http1()
            .wrap_connector(plain);
        // A call a day needs no connection that stays.
        Self(Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build(connector))
    }

    /// Posts `body`, and is content with any status of success. The same `key` stands for the same call.
    pub async fn post(&self, url: &CallUrl, key: &str, body: &serde_json::Value) -> Result<(), CallError> {
        let call = Request::builder().header(CONTENT_TYPE, "application/json").header("Idempotency-Key", key);
        self.call(url, call, body.to_string()).await
    }

    /// Posts without a body.
    pub async fn ping(&self, url: &CallUrl) -> Result<(), CallError> {
        self.call(url, Request::builder(), String::new()).await
    }

    async fn call(&self, url: &CallUrl, call: hyper::http::request::Builder, body: String) -> Result<(), CallError> {
        let call = call
            .method(Method::POST)
            .uri(url.expose())
            .header(USER_AGENT, concat!("permit-notifier/", env!("CARGO_PKG_VERSION")))
            .body(Full::new(Bytes::from(body)))
            .map_err(|_| CallError::Unreachable("the URL cannot be called".to_owned()))?;
        let answer = tokio::time::timeout(CALL_LIMIT, self.0.request(call)).await;
        let answer = answer
            .map_err(|_| CallError::Unreachable("no answer in time".to_owned()))?
            .map_err(|error| CallError::Unreachable(root_cause(&error)))?;
        if answer.status().is_success() { Ok(()) } else { Err(CallError::Refused(answer.status().as_u16())) }
    }
}

/// Whether something listens where the URL leads. Nothing is said to it.
pub async fn look(url: &CallUrl) -> Result<(), CallError> {
    let looked = tokio::time::timeout(CALL_LIMIT, connect_to(url)).await;
    let looked = looked.map_err(|_| CallError::Unreachable("no answer in time".to_owned()))?;
    looked.map_err(|error| CallError::Unreachable(error.to_string()))
}

async fn connect_to(url: &CallUrl) -> std::io::Result<()> {
    let (host, port) = url.place().ok_or(std::io::ErrorKind::InvalidInput)?;
    let addresses = match host {
        Host::Domain(name) => guard::look_up(&name, port).await?,
        Host::Ipv4(ip) => vec![(ip, port).into()],
        Host::Ipv6(ip) => vec![(ip, port).into()],
    };
    TcpStream::connect(&*addresses).await.map(drop)
}

/// The last word of a chain of errors says most.
fn root_cause(error: &dyn std::error::Error) -> String {
    std::iter::successors(Some(error), |error| error.source()).last().map(ToString::to_string).unwrap_or_default()
}

/// TLS that believes the certificates of this machine, and `extra` ones.
pub fn believing(extra: &[Vec<u8>]) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    let native = rustls_native_certs::load_native_certs();
    for error in native.errors {
        tracing::warn!("some certificates of this machine cannot be read: {error}");
    }
    roots.add_parsable_certificates(native.certs);
    roots.add_parsable_certificates(extra.iter().map(|bytes| CertificateDer::from(bytes.clone())));
    tls_builder().with_root_certificates(roots).with_no_client_auth()
}

/// TLS that still has to be told whom to believe.
pub fn tls_builder() -> rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier> {
    ClientConfig::builder_with_provider(tls_provider())
        .with_safe_default_protocol_versions()
        .unwrap_or_else(|error| unreachable!("the provider knows TLS 1.2 and 1.3: {error}"))
}

/// Named, because other parts of the program may bring another provider in.
pub fn tls_provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
