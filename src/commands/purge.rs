//! `purge`: removes old content and personal data, never the memory of what was sent.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use super::{say, with_progress};
use crate::{
    app::{App, Database},
    config::Config,
    domain::saying::counted,
    purge::{Purged, run_once},
    store::purge::PurgeTrigger,
};

#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// Count what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
}

pub async fn run(arguments: Arguments, config: Config, database: &Database) -> Result<ExitCode> {
    let app = App::open(config, database).await?;
    let (rules, dry_run) = (app.purge_rules()?, arguments.dry_run);
    let what = if dry_run { "counting what is old" } else { "removing what is old" };
    match with_progress(what, run_once(&rules, PurgeTrigger::Command, dry_run)).await? {
        Purged::HeldElsewhere => say!("Another process is removing old data; nothing was done here."),
        Purged::Done(removed) => {
            for (kind, days) in [("content", rules.keep.content), ("personal data", rules.keep.personal)] {
                match days {
                    Some(keep) => say!("Kept: {kind} for {}.", counted(keep.num_days(), "day")),
                    None => say!("Kept: {kind} for ever."),
                }
            }
            let did = if dry_run { "Would remove" } else { "Removed" };
            for (kind, count) in removed.kinds() {
                say!("{did} {kind}: {count}");
            }
            if removed.left > 0 {
                say!("Left {} old rows that the database does not let change; the log names each.", removed.left);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
