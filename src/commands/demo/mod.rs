//! `demo`: the main job on sample permits, on a private PostgreSQL of its own, mail kept on disk. It leaves something
//! true to see on every page, and one of each problem.

mod old_system;
mod samples;
mod troubles;

use std::{
    io,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use anyhow::{Context, Result, bail};
use tokio::net::TcpListener;
use uuid::Uuid;

use super::{block_on, dispatch::dispatch_once, say, serve};
use crate::{
    app::{App, Database, people},
    config::Config,
    domain::{recipient::EmailAddress, role::Role, saying::counted},
    private_postgres::resolve_data_dir,
    scan::{ScanRequest, pass::run_once},
    shutdown::Shutdown,
    store::{
        changes::COMMAND,
        connect::{Purpose, connect},
        demo::{Shown, empty_database, list_mailed},
        scans::Trigger,
    },
    telemetry::metrics,
};

/// Who may do everything in the demo.
const ADMIN: &str = "admin@example.org";
/// Somebody who was added and has not signed in yet.
const CLERK: &str = "clerk@example.org";

/// Starts from nothing each time: what an earlier demo left is removed.
pub fn run(config: Config) -> Result<ExitCode> {
    let (data_dir, said) = resolve_data_dir(config.data_dir.as_deref())?;
    if let Some(said) = said {
        eprintln!("{said}");
    }
    let folder = data_dir.join("demo");
    std::fs::create_dir_all(&folder).with_context(|| format!("DATA_DIR: {} cannot be used", folder.display()))?;
    say!("Starting a private PostgreSQL under {} ...", folder.display());
    let database = Database::open_private(&folder)?;
    if database.private.as_ref().is_some_and(|private| !private.is_owner()) {
        bail!("another demo runs on {}; stop it first, or set DATA_DIR to another folder", folder.display());
    }
    let code = block_on(show(config, &database, folder));
    database.close();
    code
}

async fn show(config: Config, database: &Database, folder: PathBuf) -> Result<ExitCode> {
    let shutdown = Shutdown::new();
    shutdown.listen_for_signals()?;
    empty_database(&mut connect(&database.direct_url, Purpose::Bulk).await?).await?;
    let app = App::open(config, database).await?;
    let mail = app.mail_folder()?;
    remove_folder(&mail)?;
    let moment = app.moment(None).await?;
    let loaded = samples::load(&app, moment).await?;
    say!("Loaded {}. Today is {}.", counted(loaded, "sample permit"), moment.today);
    scan_and_send(&app, &mail, &shutdown).await?;
    if shutdown.soft().is_cancelled() {
        return Ok(shutdown.exit_code());
    }
    let held = old_system::hand_over(&app, moment, &folder).await?;
    say!("\nImported {}: {held}", old_system::FILE);
    let listener = listen(&app.config).await?;
    let url = app.config.public_url(listener.local_addr()?);
    say!("The mails are in {}", mail.display());
    let password = people::set_up(&app, ADMIN).await?;
    people::add(&app, &CLERK.parse::<EmailAddress>()?, Role::Clerk, COMMAND).await?;
    say!("Open {url} and sign in as {ADMIN} with {password}");
    let program = std::env::current_exe().unwrap_or_else(|_| "permit-notifier".into());
    say!(
        "The API is described at {url}docs; a token for it, from another shell:\n  DATA_DIR='{}' '{}' token create \
         portal --scope read",
        folder.display(),
        program.display()
    );
    say!("Serving until stopped with Ctrl-C.");
    serve::serve(&app, &serve::Roles::default(), Some(listener), &shutdown).await
}

fn remove_folder(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("{} cannot be emptied", folder.display()))
        }
        _ => Ok(()),
    }
}

/// The port that is set; if that is the usual one and taken, any free one, for a demo must just work.
async fn listen(config: &Config) -> Result<TcpListener> {
    match serve::listen(config).await {
        Err(_) if config.listen_addr.port() == 8080 => {
            let mut free = config.listen_addr;
            free.set_port(0);
            Ok(TcpListener::bind(free).await?)
        }
        listener => listener,
    }
}

async fn scan_and_send(app: &App<'_>, mail: &Path, shutdown: &Shutdown) -> Result<()> {
    metrics::start()?;
    let request = ScanRequest { scheduled_for: None, trigger: Trigger::Command, as_of: None };
    let scanned = run_once(&app.scan_rules(Uuid::new_v4()), request).await?.counts;
    say!(
        "Scanned: {} claimed, {} recorded as superseded, {} skipped.",
        counted(scanned.claimed, "notice"),
        scanned.superseded,
        scanned.skipped
    );
    let mut rules = app.dispatch_rules(None)?;
    if app.config.smtp_url.is_none() {
        rules.mailer = Arc::new(troubles::Troubled::new(mail));
    }
    let (report, _) = dispatch_once(app, rules, shutdown).await?;
    say!(
        "Wrote {}, each with its attempt on record; {} refused and {} left without an answer, as a mail server \
         may do:\n",
        counted(report.accepted, "mail"),
        report.rejected,
        report.ambiguous
    );
    let mut connection = app.pool.acquire().await?;
    for Shown { permit_number, expires_on, notice_type, recipient, state } in list_mailed(&mut connection).await? {
        let recipient = recipient.unwrap_or_else(|| "(a letter to post)".to_owned());
        say!("  {permit_number:<12} expires {expires_on}  {notice_type:<13} {state:<9} {recipient}");
    }
    Ok(())
}
