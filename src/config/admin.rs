//! With what the first administrator signs in.

use secrecy::SecretString;

use super::FirstAdmin;
use super::reader::Reader;

const EMAIL_ALLOWED: &str = "one email address, such as `ada@example.org`";
/// Longer ones are no better, and shorter ones are soon guessed.
const PASSWORD_LENGTH: std::ops::RangeInclusive<usize> = 12..=200;

pub(super) fn read(reader: &mut Reader<'_>) -> Option<FirstAdmin> {
    let is_set = reader.text("ADMIN_EMAIL").is_some();
    let email = reader.parsed("ADMIN_EMAIL", EMAIL_ALLOWED, |text| text.parse().ok());
    let password = reader.text("ADMIN_PASSWORD");
    match (&password, is_set) {
        (Some(_), false) => reader.fault("ADMIN_EMAIL", "must be set beside ADMIN_PASSWORD"),
        (None, true) => reader.fault("ADMIN_PASSWORD", "must be set beside ADMIN_EMAIL"),
        (Some(password), true) if !PASSWORD_LENGTH.contains(&password.chars().count()) => {
            reader.fault("ADMIN_PASSWORD", "must have 12 to 200 characters; its value is not shown");
        }
        _ => {}
    }
    Some(FirstAdmin { email: email?, password: SecretString::from(password?) })
}
