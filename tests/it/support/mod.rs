//! What the tests share.

pub mod cluster;
pub mod program;
pub mod run_folder;
pub mod smtp_server;
