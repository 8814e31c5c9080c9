//! The secrets by which callers and people are known.

pub mod password;
mod random;
pub mod secret;
pub mod token;

pub use random::NoRandomness;
pub use secret::Secret;
pub use token::{Token, TokenHash};
