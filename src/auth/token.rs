//! Access tokens: shown once, stored as a hash, and recognisable when they leak.

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use super::random::{self, ALPHABET, NoRandomness};

/// What every token begins with, so that scanners for leaked secrets find it.
pub const PREFIX: &str = "pnt_";
/// Random characters of a token: 62^32 is more than 190 bits.
const RANDOM: usize = 32;
/// Characters of the checksum: 62^6 is more than 32 bits.
const CHECKSUM: usize = 6;

/// SHA-256 of a whole token. A slow hash protects secrets that can be guessed; 190 random bits cannot.
pub type TokenHash = [u8; 32];

/// `pnt_`, 32 random characters and a checksum of 6, all of them letters and digits.
#[derive(Debug, Clone)]
pub struct Token(SecretString);

impl Token {
    /// A new one.
    pub fn generate() -> Result<Self, NoRandomness> {
        let text = PREFIX.to_owned() + &random::characters(RANDOM)?;
        let checksum = checksum(&text);
        Ok(Self((text + &checksum).into()))
    }

    /// The token that `text` is, if prefix, length and checksum say that we made it. What was mistyped or made up
    /// needs no look into the database.
    pub fn parse(text: &str) -> Option<Self> {
        let is_plain = text.bytes().skip(PREFIX.len()).all(|byte| byte.is_ascii_alphanumeric());
        if !text.starts_with(PREFIX) || text.len() != PREFIX.len() + RANDOM + CHECKSUM || !is_plain {
            return None;
        }
        let (start, end) = text.split_at(PREFIX.len() + RANDOM);
        (checksum(start) == end).then(|| Self(text.into()))
    }

    /// The token itself, to be shown once.
    pub fn reveal(&self) -> &str {
        self.0.expose_secret()
    }

    /// What is stored of it.
    pub fn hash(&self) -> TokenHash {
        Sha256::digest(self.reveal()).into()
    }

    /// Its last four characters, by which people tell their tokens apart; they are part of the checksum.
    pub fn hint(&self) -> &str {
        &self.reveal()[self.reveal().len() - 4..]
    }
}

/// CRC-32 in six characters of the alphabet.
fn checksum(text: &str) -> String {
    let mut rest = crc32fast::hash(text.as_bytes());
    let mut characters = [b'0'; CHECKSUM];
    for place in characters.iter_mut().rev() {
        *place = ALPHABET[(rest % 62) as usize];
        rest /= 62;
    }
    characters.map(char::from).iter().collect()
}
