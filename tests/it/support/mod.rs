//! What the tests share.

pub mod api;
pub mod browser;
pub mod cluster;
pub mod dispatching;
pub mod dropped;
pub mod filled;
pub mod html;
pub mod listener;
pub mod office;
pub mod own_server;
pub mod pages;
pub mod postbox;
pub mod program;
pub mod records;
pub mod run_folder;
pub mod service;
pub mod smtp_server;
pub mod workbook;
