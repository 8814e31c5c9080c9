//! The REST API over a real socket and a real database.

mod access;
mod bad_input;
mod crowd;
mod description;
mod export;
mod imports;
mod notices;
mod office;
mod permits;
mod repeated;
