//! The rules of the office as pure functions and values: no I/O, no clock, no database.

pub mod window;
