//! Certificates made for one test.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

/// A certificate authority that nobody knows unless told.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    der: Vec<u8>,
}

/// A server's certificate and key.
#[derive(Debug, Clone)]
pub struct Certificate {
    pub der: Vec<u8>,
    pub key: Vec<u8>,
}

impl Authority {
    pub fn new() -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let der = params.self_signed(&key).expect("signed").der().to_vec();
        Self { issuer: Issuer::new(params, key), der }
    }

    /// What a client must trust.
    pub fn der(&self) -> Vec<u8> {
        self.der.clone()
    }

    /// The same as a file has it.
    pub fn pem(&self) -> String {
        use base64::Engine as _;
        let text = base64::engine::general_purpose::STANDARD.encode(&self.der);
        let lines: Vec<&str> =
            text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).expect("base64")).collect();
        format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
    }

    /// A good certificate for `name`, a host or an IP address.
    pub fn certify(&self, name: &str) -> Certificate {
        self.sign(&CertificateParams::new(vec![name.to_owned()]).expect("a name"))
    }

    /// One that was good long ago.
    pub fn certify_expired(&self, name: &str) -> Certificate {
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        params.not_before = rcgen::date_time_ymd(2019, 1, 1);
        params.not_after = rcgen::date_time_ymd(2020, 1, 1);
        self.sign(&params)
    }

    fn sign(&self, params: &CertificateParams) -> Certificate {
        let key = KeyPair::generate().expect("a key");
        let der = params.signed_by(&key, &self.issuer).expect("signed").der().to_vec();
        Certificate { der, key: key.serialize_der() }
    }
}

/// One that its owner signed.
pub fn self_signed(name: &str) -> Certificate {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
    let der = params.self_signed(&key).expect("signed").der().to_vec();
    Certificate { der, key: key.serialize_der() }
}
