//! The commands, run as a person runs them.

mod bad_input;
mod demo;
mod doctor;
mod main_job;
mod quiet;
mod serve;
