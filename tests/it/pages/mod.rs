//! The office's pages over HTTP: who may see what, and what each does.

mod guard;
mod import;
mod notices;
mod office;
mod permit_types;
mod permits;
mod problems;
mod sign_in;
mod today;
mod upcoming;
mod users;
