//! `audit`: what a ledger says was accepted, against the database, both ways.

use std::{
    fs::File,
    io::BufReader,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result};
use clap::Args;

use super::{say, with_progress};
use crate::{
    app::{App, Database},
    config::Config,
    domain::alarm::OPERATOR_MAIL,
    domain::saying::{counted, noun},
    files::ledger::Ledger,
    store::{
        PgConnection,
        audits::{Audit, Finding},
        connect::{Purpose, connect},
    },
};

/// Lines staged at once.
const BATCH: usize = 5000;

#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// The ledger: JSON lines with `message_id`, or lines of a Postfix log
    ledger: PathBuf,
}

pub async fn run(arguments: Arguments, config: Config, database: &Database) -> Result<ExitCode> {
    let path = &arguments.ledger;
    let file = File::open(path).with_context(|| format!("{} cannot be opened", path.display()))?;
    App::open(config, database).await?;
    let mut connection = connect(&database.direct_url, Purpose::Bulk).await?;
    let mut present = connect(&database.direct_url, Purpose::Bulk).await?;
    let differences = with_progress("auditing", compare(path, file, &mut connection, &mut present)).await?;
    Ok(if differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Reads the ledger, prints what is found, and says how many differences that is.
async fn compare(path: &Path, file: File, connection: &mut PgConnection, present: &mut PgConnection) -> Result<u64> {
    let mut audit = Audit::begin(connection).await?;
    let mut ledger = Ledger::new(BufReader::new(file));
    let mut understood = 0;
    loop {
        let batch = ledger.next_batch(BATCH).with_context(|| path.display().to_string())?;
        if batch.is_empty() {
            break;
        }
        understood += batch.len();
        audit.stage(&batch).await?;
    }
    anyhow::ensure!(
        understood > 0 || ledger.lines() == 0,
        "{}: none of its {} lines is a JSON object or a Postfix log line about a message",
        path.display(),
        ledger.lines()
    );
    let (mut differences, mut unresolved, mut to_operator) = (0, 0, 0);
    let messages = audit
        .compare(present, |finding| {
            if is_to_operator(&finding) {
                to_operator += 1;
                return;
            }
            if finding.is_difference() {
                differences += 1;
            } else {
                unresolved += 1;
            }
            say!("{}", sentence(&finding));
        })
        .await?;
    say!(
        "{} in the ledger, {to_operator} of them about alarms and tests: {}, {unresolved} unresolved ambiguous {}.",
        counted(messages, "message"),
        counted(differences, "difference"),
        noun(unresolved, "attempt")
    );
    Ok(differences)
}

/// Mail about alarms, and the doctor's, is not recorded as notices are.
fn is_to_operator(finding: &Finding) -> bool {
    matches!(finding, Finding::Unknown { message_id, .. } if message_id.strip_prefix('<')
        .is_some_and(|id| id.starts_with(OPERATOR_MAIL)))
}

fn sentence(finding: &Finding) -> String {
    match finding {
        Finding::Unknown { message_id, line } => {
            format!("unknown       {message_id}: accepted (line {line}), but no delivery here has this Message-ID")
        }
        Finding::NotAccepted { message_id, line, notice_key, state } => {
            format!("not accepted  {message_id}: accepted (line {line}), but {state} here, notice {notice_key}")
        }
        Finding::Twice { message_id, line, times } => {
            format!("twice         {message_id}: accepted {} (first in line {line})", counted(times, "time"))
        }
        Finding::Missing { message_id, notice_key, transport } => {
            format!("missing       {message_id}: sent here ({transport}), but not in the ledger, notice {notice_key}")
        }
        Finding::Unresolved { message_id, notice_key, in_ledger } => {
            let there = if *in_ledger { "the ledger has it" } else { "the ledger does not have it" };
            format!("unresolved    {message_id}: ambiguous here, {there}, notice {notice_key}")
        }
    }
}
