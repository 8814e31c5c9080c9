//! Who may do what: the secrets that callers show, and what they are allowed.

pub mod scope;
pub mod token;

pub use scope::Scope;
pub use token::{Token, TokenHash};
