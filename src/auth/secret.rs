//! Secrets that we hand out for a while: cookies of sessions, one-time links.

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use super::random::{self, NoRandomness};
use crate::domain::text::hex;

/// Random characters of a secret: more than 250 bits.
const LENGTH: usize = 43;

/// Letters and digits that nobody can guess. Stored is only its hash.
#[derive(Debug, Clone)]
pub struct Secret(SecretString);

impl Secret {
    /// A new one.
    pub fn generate() -> Result<Self, NoRandomness> {
        Ok(Self(random::characters(LENGTH)?.into()))
    }

    /// The secret that `text` may be; what has another form was never ours.
    pub fn parse(text: &str) -> Option<Self> {
        let fits = text.len() == LENGTH && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        fits.then(|| Self(text.into()))
    }

    /// The secret itself.
    pub fn reveal(&self) -> &str {
        self.0.expose_secret()
    }

    /// What is stored of it.
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.reveal()).into()
    }

    /// Another secret that follows from this one for one purpose, and from which this one cannot be found.
    pub fn derived(&self, purpose: &str) -> String {
        let digest = Sha256::new().chain_update(purpose).chain_update([0]).chain_update(self.reveal()).finalize();
        hex(&digest)
    }
}

/// Whether both are the same, in a time that does not say where they differ.
pub fn same(one: &str, other: &str) -> bool {
    // Hashes of equal length, whose first difference says nothing about the texts.
    Sha256::digest(one) == Sha256::digest(other)
}
