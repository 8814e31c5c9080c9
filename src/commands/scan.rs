//! `scan`: one scan now, whatever the schedule says.

use std::process::ExitCode;

use anyhow::Result;
use chrono::NaiveDate;
use clap::Args;
use uuid::Uuid;

use super::{date, print_json, say, tell_of_memory, with_progress};
use crate::{
    app::{App, Database},
    config::Config,
    scan::{ScanReport, ScanRequest, pass::run_once, preview::dry_run},
    store::scans::{ScanOutcome, Trigger},
};

#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// The day that counts as today
    #[arg(long, value_name = "DATE", value_parser = date)]
    as_of: Option<NaiveDate>,
    /// Say what would be done, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(arguments: Arguments, config: Config, database: &Database) -> Result<ExitCode> {
    let app = App::open(config, database).await?;
    let rules = app.scan_rules(Uuid::new_v4());
    let request = ScanRequest { scheduled_for: None, trigger: Trigger::Command, as_of: arguments.as_of };
    let report = if arguments.dry_run {
        with_progress("looking for what is owed", dry_run(&rules, request)).await?
    } else {
        app.check_as_of(arguments.as_of).await?;
        with_progress("scanning", run_once(&rules, request)).await?
    };
    if arguments.json {
        print_json(&report)?;
    } else {
        print(&report);
    }
    tell_of_memory(&app, arguments.json).await?;
    Ok(ExitCode::SUCCESS)
}

fn print(report: &ScanReport) {
    for item in report.items.iter().flatten() {
        say!("{:<9} {:<24} {:<14} due {}  {}", item.would, item.permit_number, item.notice_type, item.due_on, item.why);
    }
    let counts = report.counts;
    match report.outcome {
        ScanOutcome::HeldElsewhere => say!("Another process is scanning; nothing was done here."),
        _ => say!(
            "{} as of {}: {} claimed ({} held), {} already claimed, {} revived, {} superseded, {} skipped.",
            if report.dry_run { "Would scan" } else { "Scanned" },
            report.as_of,
            counts.claimed,
            counts.held,
            counts.already_claimed,
            counts.revived,
            counts.superseded,
            counts.skipped
        ),
    }
}
