//! The office's pages over HTTP: who may see what, and what each does.

mod permits;
mod sign_in;
mod users;
