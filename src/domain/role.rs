//! What a person may do on the pages.

use super::words;

words! {
    /// What a person may do on the pages; each role includes those before it.
    "role" Role {
        /// Read everything that is not about users and tokens.
        Viewer = "viewer",
        /// Change permits, imports, notices and suppressions, and start scans.
        Clerk = "clerk",
        /// Change permit types, users and tokens, and read the audit.
        Admin = "admin",
    }
}

impl Role {
    /// Whether this role is enough where `needed` is asked for.
    pub fn includes(self, needed: Self) -> bool {
        self >= needed
    }
}
