//! Permit Notifier.
