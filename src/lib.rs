//! Permit Notifier tells every permit holder, in time and never twice by our own doing, that a
//! permit is about to expire, and can prove it afterwards.
//!
//! `main → commands → app → {web, scan, dispatch, watch, files, inbound} → {store, mail, auth} →
//! domain`; the leaves (clock, config, shutdown, telemetry) may be used from everywhere.
//! `tests/it/layout.rs` holds the code to that direction.

pub mod clock;
pub mod config;
pub mod domain;
pub mod scan;
pub mod shutdown;
pub mod telemetry;
pub mod web;
