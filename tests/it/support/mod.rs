//! What the tests share.

pub mod cluster;
pub mod postbox;
pub mod program;
pub mod run_folder;
