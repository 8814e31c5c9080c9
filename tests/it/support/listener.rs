//! Whatever is called by HTTP: it notes each call, and answers as it is told.

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    body::Bytes,
    http::{HeaderMap, Method, StatusCode, Uri, header},
    response::IntoResponse,
};
use tokio::net::TcpListener;

/// One call.
#[derive(Debug, Clone)]
pub struct Call {
    pub method: Method,
    pub uri: Uri,
    pub headers: HeaderMap,
    pub body: String,
}

impl Call {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

#[derive(Debug)]
struct Heard {
    calls: Vec<Call>,
    status: StatusCode,
}

/// Listens on loopback until it is dropped with its runtime.
#[derive(Debug, Clone)]
pub struct Listener {
    pub url: String,
    heard: Arc<Mutex<Heard>>,
}

impl Listener {
    pub async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let heard = Arc::new(Mutex::new(Heard { calls: Vec::new(), status: StatusCode::OK }));
        let noted = Arc::clone(&heard);
        let answer = move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| {
            let noted = Arc::clone(&noted);
            async move {
                let body = String::from_utf8_lossy(&body).into_owned();
                let mut heard = noted.lock().expect("no panic");
                heard.calls.push(Call { method, uri, headers, body });
                (heard.status, [(header::LOCATION, "/elsewhere")]).into_response()
            }
        };
        #[expect(clippy::disallowed_methods, reason = "ends with the test")]
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
        Self { url: format!("http://{address}"), heard }
    }

    /// What it answers from now on.
    pub fn answers(&self, status: u16) {
        self.heard.lock().expect("no panic").status = StatusCode::from_u16(status).expect("a status");
    }

    pub fn calls(&self) -> Vec<Call> {
        self.heard.lock().expect("no panic").calls.clone()
    }

    /// Paths of the calls, in order.
    pub fn paths(&self) -> Vec<String> {
        self.calls().iter().map(|call| call.uri.path().to_owned()).collect()
    }
}
