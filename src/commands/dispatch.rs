//! `dispatch`: take over from dead processes, try each due delivery once, wait for the replies, and end.

use std::process::ExitCode;

use anyhow::Result;
use chrono::NaiveDate;
use clap::Args;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::{date, print_json, say, tell_of_memory, with_progress};
use crate::{
    app::{App, Database},
    config::Config,
    dispatch::{Dispatcher, Membership, Report, TransportReport},
    shutdown::Shutdown,
};

#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// The day that counts as today
    #[arg(long, value_name = "DATE", value_parser = date)]
    as_of: Option<NaiveDate>,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Printed {
    transport: TransportReport,
    #[serde(flatten)]
    report: Report,
}

pub async fn run(arguments: Arguments, config: Config, database: &Database) -> Result<ExitCode> {
    let app = App::open(config, database).await?;
    app.check_as_of(arguments.as_of).await?;
    let rules = app.dispatch_rules(arguments.as_of)?;
    let shutdown = Shutdown::new();
    shutdown.listen_for_signals()?;
    let (report, transport) = with_progress("dispatching", dispatch_once(&app, rules, &shutdown)).await?;
    let printed = Printed { transport, report };
    if arguments.json {
        print_json(&printed)?;
    } else {
        print(&printed, &app);
    }
    // The guard is no fault of the transport: there is nothing that trying again would mend.
    let guarded = transport == TransportReport::Paused && tell_of_memory(&app, arguments.json).await?;
    Ok(if transport == TransportReport::Ok || guarded { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// One dispatch of this process under a row of its own.
pub(super) async fn dispatch_once(
    app: &App<'_>,
    rules: crate::dispatch::DispatchRules,
    shutdown: &Shutdown,
) -> Result<(Report, TransportReport)> {
    let membership = Membership::join(app.member("dispatch")).await?;
    let alive = CancellationToken::new();
    let keeping = {
        let (membership, alive) = (membership.clone(), alive.clone());
        shutdown.spawn_errand("process row", async move {
            membership.keep_alive(alive).await;
            Ok::<_, std::convert::Infallible>(())
        })
    };
    let dispatcher = Dispatcher::new(rules, membership.clone());
    let result = dispatcher.run_once(shutdown.soft().clone(), shutdown.hard().clone()).await;
    alive.cancel();
    let _ = keeping.await;
    membership.leave().await?;
    Ok(result?)
}

fn print(printed: &Printed, app: &App<'_>) {
    let report = printed.report;
    say!(
        "Transport {}: {} accepted, {} deferred, {} rejected, {} not sent, {} ambiguous; {} superseded, {} suppressed, \
         {} skipped; {} left pending.",
        printed.transport,
        report.accepted,
        report.deferred,
        report.rejected,
        report.not_sent,
        report.ambiguous,
        report.superseded,
        report.suppressed,
        report.skipped,
        report.left_pending
    );
    if app.config.smtp_url.is_none()
        && let Ok(folder) = app.mail_folder()
    {
        say!("Mail is kept on disk, in {}; nothing is really sent.", folder.display());
    }
}
