//! Passwords: which are taken, and how they are kept (argon2id).

use std::sync::LazyLock;

use argon2::{
    Algorithm, Argon2, Params, Version,
    password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString},
};
use secrecy::{ExposeSecret, SecretString};

use super::random::{self, NoRandomness};

/// Fewest and most characters. No other rule makes passwords better; long ones do.
pub const LENGTH: std::ops::RangeInclusive<usize> = 12..=200;

/// Passwords of that length which are tried first.
const COMMON: [&str; 12] = [
    "123456789012",
    "1234567890123",
    "administrator",
    "adminadminadmin",
    "changemechangeme",
    "correcthorsebatterystaple",
    "letmeinletmein",
    "passwordpassword",
    "password1234",
    "password12345",
    "qwertyuiop123",
    "qwertyuiopasdf",
];

/// Why a password is not taken, as what is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Too short or too long.
    #[error("must have {} to {} characters", LENGTH.start(), LENGTH.end())]
    Length,
    /// Everybody tries it.
    #[error("is among the first that are tried; take another")]
    Common,
    /// It says who it belongs to.
    #[error("must not be the email address")]
    Address,
}

/// Whether `password` may be the one of whoever signs in with `email`.
pub fn check(password: &SecretString, email: &str) -> Result<(), Refused> {
    let password = password.expose_secret();
    let small = password.to_lowercase();
    let mut characters = password.chars();
    let first = characters.next();
    if !LENGTH.contains(&password.chars().count()) {
        Err(Refused::Length)
    } else if COMMON.contains(&small.as_str()) || characters.all(|c| Some(c) == first) {
        Err(Refused::Common)
    } else if small == email.to_lowercase() {
        Err(Refused::Address)
    } else {
        Ok(())
    }
}

/// 19 MiB, two passes, one lane: the least that OWASP recommends, so that many may sign in on a small machine.
fn argon2() -> Argon2<'static> {
    let params = Params::new(19 * 1024, 2, 1, None).unwrap_or_default();
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

/// What is kept of a password, as a PHC string. Takes tens of milliseconds: call it where that blocks nobody.
pub fn hash(password: &SecretString) -> Result<String, NoRandomness> {
    let salt = SaltString::encode_b64(&random::bytes::<16>()?)
        .unwrap_or_else(|error| unreachable!("16 bytes are a salt: {error}"));
    let hash = argon2().hash_password(password.expose_secret().as_bytes(), &salt);
    Ok(hash.unwrap_or_else(|error| unreachable!("the parameters are valid: {error}")).to_string())
}

/// Whether `password` is the one of which `kept` is kept. Without one it takes as long and says no, so that the time
/// does not tell who is known here.
pub fn verify(password: &SecretString, kept: Option<&str>) -> bool {
    static NOBODY: LazyLock<String> = LazyLock::new(|| hash(&"nobody has this one".into()).unwrap_or_default());
    let hash = PasswordHash::new(kept.unwrap_or(&NOBODY));
    let fits = hash.is_ok_and(|hash| argon2().verify_password(password.expose_secret().as_bytes(), &hash).is_ok());
    fits && kept.is_some()
}
