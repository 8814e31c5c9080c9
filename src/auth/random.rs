//! Text that nobody can guess.

/// Letters and digits, which survive every form, header and URL.
pub const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// No randomness from the operating system.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the operating system gave no random numbers: {0}")]
pub struct NoRandomness(getrandom::Error);

/// So many random bytes.
pub fn bytes<const COUNT: usize>() -> Result<[u8; COUNT], NoRandomness> {
    let mut bytes = [0_u8; COUNT];
    getrandom::fill(&mut bytes).map_err(NoRandomness)?;
    Ok(bytes)
}

/// So many random characters of the alphabet; 32 of them are more than 190 bits.
pub fn characters(count: usize) -> Result<String, NoRandomness> {
    let mut text = String::with_capacity(count);
    while text.len() < count {
        let bytes = bytes::<64>()?;
        // Values above would make the first characters of the alphabet likelier.
        let even = bytes.iter().filter(|byte| **byte < 248).map(|byte| char::from(ALPHABET[usize::from(byte % 62)]));
        text.extend(even.take(count - text.len()));
    }
    Ok(text)
}
