//! The secrets by which callers are known.

pub mod token;

pub use token::{Token, TokenHash};
