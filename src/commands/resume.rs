//! `resume`: an administrator confirms that a restored or moved database may send again.

use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::Args;
use uuid::Uuid;

use super::{say, with_progress};
use crate::{
    app::{App, Database},
    config::Config,
    domain::saying::{counted, which},
    scan::{ScanRequest, pass::run_once},
    store::{
        actions::check_reason,
        connect::{Purpose, connect},
        memory::{compare_marks, confirm, count_held, difference},
        scans::{ScanOutcome, Trigger},
    },
};

#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// Why it may, in your words; kept in the database
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

/// What was pending, and what is owed up to today, may have been sent after the state that was restored. A scan holds
/// both before the guard is taken away, so that a person's release, and nothing else, sends them.
pub async fn run(arguments: Arguments, config: Config, database: &Database) -> Result<ExitCode> {
    let reason = check_reason(&arguments.reason)?;
    let app = App::open(config, database).await?;
    let mut connection = connect(&database.direct_url, Purpose::Bulk).await?;
    let Some(differs) = difference(&compare_marks(&mut connection).await?) else {
        say!("There is nothing to confirm: this is the database that wrote its memory.");
        return Ok(ExitCode::SUCCESS);
    };
    let request = ScanRequest { scheduled_for: None, trigger: Trigger::Command, as_of: None };
    let scanned = with_progress("scanning", run_once(&app.scan_rules(Uuid::new_v4()), request)).await?;
    ensure!(
        scanned.outcome == ScanOutcome::Completed,
        "another process is scanning; run resume again when it has ended"
    );
    confirm(&mut connection, reason, app.moment(None).await?.now).await?;
    tracing::warn!(reason, "the memory is confirmed although it may have gone back: {differs}");
    say!("Confirmed: mail goes on.");
    let held = count_held(&mut connection).await?;
    if held > 0 {
        say!(
            "{} {} held and may have been sent since: what was pending, and what was found due meanwhile. Compare \
             with the mail server's log: permit-notifier audit LEDGER. Then let go what is held with \
             permit-notifier release --restored --reason TEXT, or add --cancel to end it unsent.",
            counted(held, "notice"),
            which(held, "is", "are")
        );
    }
    Ok(ExitCode::SUCCESS)
}
