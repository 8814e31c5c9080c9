//! One binary for all behaviours seen from outside; one file each.

mod actions;
mod changes;
mod clock;
mod commands;
mod config;
mod database_truth;
mod dispatch;
mod domain;
mod files;
mod health;
mod import;
mod layout;
mod lives;
mod logs;
mod mail;
mod metrics;
mod migrations;
mod model;
mod private_postgres;
mod races;
mod scan_schedule;
mod scans;
mod send_window;
mod shutdown;
mod smtp;
mod support;
