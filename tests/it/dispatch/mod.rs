//! Sending what was claimed: once, only what is still owed, and never silently lost.
//!
//! Every test compares the database with the ledger of what a transport really took ([`Postbox::check`]).
//!
//! [`Postbox::check`]: crate::support::postbox::Postbox::check

mod away;
mod gate;
mod happy;
mod killed;
mod outcomes;
mod processes;
mod races;
mod stop;
mod together;

/// The address of the holder with that number.
fn holder(number: usize) -> String {
    format!("holder{number:03}@x.example")
}
