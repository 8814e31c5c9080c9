//! `release`: what a scan or an import held, or the memory guard, released or cancelled.

use std::process::ExitCode;

use anyhow::Result;
use clap::{ArgGroup, Args};
use uuid::Uuid;

use super::{say, with_progress};
use crate::{
    app::{App, Database},
    config::Config,
    domain::saying::{counted, which},
    store::{
        actions::{ActionRules, HeldBy, release_held},
        changes::COMMAND,
        connect::{Purpose, connect},
    },
};

#[derive(Debug, Clone, Args)]
#[command(group = ArgGroup::new("held_by").required(true))]
pub struct Arguments {
    /// Release what this scan held
    #[arg(long, value_name = "ID", group = "held_by")]
    scan: Option<Uuid>,
    /// Release what this import held
    #[arg(long, value_name = "ID", group = "held_by")]
    import: Option<Uuid>,
    /// Release all that is held because the database was restored or moved; only after resume
    #[arg(long, group = "held_by")]
    restored: bool,
    /// Cancel it instead
    #[arg(long)]
    cancel: bool,
    /// Why, in your words; kept with each notice
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

impl Arguments {
    fn held_by(&self) -> HeldBy {
        match (self.scan, self.import) {
            _ if self.restored => HeldBy::Restored,
            (Some(scan), _) => HeldBy::Scan(scan),
            (None, import) => HeldBy::Import(import.unwrap_or_default()),
        }
    }
}

pub async fn run(arguments: Arguments, config: Config, database: &Database) -> Result<ExitCode> {
    let app = App::open(config, database).await?;
    let rules = ActionRules {
        moment: app.moment(None).await?,
        window: app.config.send_window.as_ref(),
        zone: app.config.time_zone,
    };
    let mut connection = connect(&database.direct_url, Purpose::Bulk).await?;
    let (held_by, cancel) = (arguments.held_by(), arguments.cancel);
    let work = release_held(&mut connection, held_by, cancel, &arguments.reason, COMMAND, &rules, |at| {
        if at.done < at.total {
            eprintln!("{} of {} done", at.done, counted(at.total, "notice"));
        }
    });
    let done = with_progress(if cancel { "cancelling" } else { "releasing" }, work).await?;
    if done.total() == 0 {
        let why = if arguments.restored { "Nothing is held for that" } else { "Nothing of it is held" };
        say!("{why}, so nothing was {}.", if cancel { "cancelled" } else { "released" });
    } else if cancel {
        say!("Cancelled {}.", counted(done.cancelled, "notice"));
        if done.released > 0 {
            say!(
                "The letters of {} wait to be posted, as before; they are on the page Problems.",
                counted(done.released, "notice")
            );
        }
    } else {
        say!(
            "Released {}; {} {} superseded and {} skipped meanwhile.",
            counted(done.released, "notice"),
            done.superseded,
            which(done.superseded, "was", "were"),
            done.skipped
        );
    }
    Ok(ExitCode::SUCCESS)
}
