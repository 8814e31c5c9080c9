//! People who sign in to the pages: who they are, where they are signed in, and tries that failed.

pub mod attempts;
pub mod links;
pub mod sessions;
pub mod users;
