//! Finding what is owed: when a scan is expected, one pass, and the loop around it.

pub mod schedule;
