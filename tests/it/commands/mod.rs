//! The commands, run as a person runs them.

mod bad_input;
mod demo;
mod export;
mod large_import;
mod main_job;
mod mappings;
mod progress;
mod quiet;
mod serve;
