//! What the tests share.

pub mod cluster;
pub mod run_folder;
