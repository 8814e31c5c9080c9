//! Permit Notifier.

pub mod private_postgres;
