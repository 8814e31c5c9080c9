//! Parses the arguments, runs one command, and ends with its exit code.

use std::process::ExitCode;

use clap::Parser;
use permit_notifier::commands::{Cli, run};

fn main() -> ExitCode {
    run(Cli::parse())
}
