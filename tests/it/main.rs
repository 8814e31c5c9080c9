//! One binary for all behaviours seen from outside; one file each.

mod actions;
mod clock;
mod commands;
mod config;
mod domain;
mod files;
mod health;
mod import;
mod layout;
mod logs;
mod mail;
mod metrics;
mod private_postgres;
mod scan_schedule;
mod send_window;
mod shutdown;
mod support;
