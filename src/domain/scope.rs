//! What a token may do.

use super::words;

words! {
    /// What a token may do; each scope includes those before it.
    "scope" Scope {
        /// Read everything.
        Read = "read",
        /// Change permits, imports, notices, scans and suppressions.
        Write = "write",
        /// Change permit types and tokens.
        Admin = "admin",
    }
}

impl Scope {
    /// Whether this scope is enough where `needed` is asked for.
    pub fn includes(self, needed: Self) -> bool {
        self >= needed
    }
}
