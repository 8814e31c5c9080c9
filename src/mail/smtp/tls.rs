//! TLS: who is believed, and the handshake.

use std::sync::{Arc, OnceLock};

use tokio::{
    net::TcpStream,
    time::{Duration, timeout},
};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        self, CertificateError, ClientConfig, DigitallySignedStruct, SignatureScheme,
        client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        crypto::CryptoProvider,
        pki_types::{CertificateDer, ServerName, UnixTime},
    },
};

use super::judge;
use crate::{
    domain::attempt::{Outcome, Phase},
    mail::Ended,
    outgoing::{believing, tls_builder, tls_provider},
};

/// The server could not prove who it is.
pub const CERTIFICATE_REFUSED: &str = "certificate_refused";
/// The handshake failed.
pub const TLS_FAILED: &str = "tls_failed";

/// Whom to believe.
#[derive(Debug, Default)]
pub(super) struct Trust {
    /// Certificates believed in besides those of the system.
    extra: Vec<Vec<u8>>,
    /// Reading the system's certificates takes a while, and many servers need none.
    checked: OnceLock<Arc<ClientConfig>>,
    unchecked: OnceLock<Arc<ClientConfig>>,
}

impl Trust {
    pub(super) fn with_extra(extra: Vec<Vec<u8>>) -> Self {
        Self { extra, ..Self::default() }
    }

    /// Encrypts `tcp`. With `check` the server must prove to be `host`.
    pub(super) async fn handshake(
        &self,
        tcp: TcpStream,
        host: &str,
        check: bool,
        limit: Duration,
    ) -> Result<TlsStream<TcpStream>, Ended> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| failed(TLS_FAILED, "the host's name cannot stand in a certificate".to_owned()))?;
        let config = if check {
            self.checked.get_or_init(|| Arc::new(believing(&self.extra)))
        } else {
            self.unchecked.get_or_init(|| Arc::new(unchecked()))
        };
        match timeout(limit, TlsConnector::from(Arc::clone(config)).connect(name, tcp)).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => {
                let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
                let refused = matches!(inner, Some(rustls::Error::InvalidCertificate(_)));
                Err(failed(if refused { CERTIFICATE_REFUSED } else { TLS_FAILED }, explain(inner, &error)))
            }
            Err(_) => Err(failed(judge::TIMED_OUT, "no handshake in time".to_owned())),
        }
    }
}

fn explain(inner: Option<&rustls::Error>, error: &std::io::Error) -> String {
    match inner {
        Some(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            "the server's certificate is signed by nobody this machine believes".to_owned()
        }
        _ => error.to_string(),
    }
}

fn failed(reason: &'static str, detail: String) -> Ended {
    Ended::new(Outcome::NotSent, Phase::Tls).because(reason).saying(detail).as_transport_fault()
}

fn unchecked() -> ClientConfig {
    let verifier = Arc::new(AnyServer(tls_provider()));
    tls_builder().dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
}

/// Takes any certificate; only the handshake itself must be right.
#[derive(Debug)]
struct AnyServer(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
