//! `demo`: the main job on sample permits, on a private PostgreSQL of its own, mail kept on disk.

use std::{io, path::Path, process::ExitCode};

use anyhow::{Context, Result, bail};
use chrono::{NaiveDate, TimeDelta};
use tokio::net::TcpListener;
use uuid::Uuid;

use super::{block_on, dispatch::dispatch_once, say, serve};
use crate::{
    app::{App, Database, people},
    config::Config,
    domain::{calendar::plus_days, permit::PermitStatus},
    private_postgres::resolve_data_dir,
    scan::{ScanRequest, pass::run_once},
    shutdown::Shutdown,
    store::{
        Moment,
        changes::{ChangeRules, create},
        connect::{Purpose, connect},
        demo::{Shown, empty_database, list_mailed},
        permit_types::{create_permit_type, describe_permit_type},
        permits::{Contact, PermitData},
        scans::Trigger,
    },
    telemetry::metrics,
};

/// Who may do everything in the demo.
const ADMIN: &str = "admin@example.org";

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
    let code = block_on(show(config, &database));
    database.close();
    code
}

async fn show(config: Config, database: &Database) -> Result<ExitCode> {
    let shutdown = Shutdown::new();
    shutdown.listen_for_signals()?;
    empty_database(&mut connect(&database.direct_url, Purpose::Bulk).await?).await?;
    let app = App::open(config, database).await?;
    let mail = app.mail_folder()?;
    remove_folder(&mail)?;
    let moment = app.moment(None).await?;
    let loaded = load(&app, moment).await?;
    say!("Loaded {loaded} sample permits. Today is {}.", moment.today);
    scan_and_send(&app, &shutdown).await?;
    if shutdown.soft().is_cancelled() {
        return Ok(shutdown.exit_code());
    }
    let listener = listen(&app.config).await?;
    let url = app.config.public_url(listener.local_addr()?);
    say!("\nThe mails are in {}", mail.display());
    let password = people::set_up(&app, ADMIN).await?;
    say!("Open {url} and sign in as {ADMIN} with {password}");
    say!("The API is described at {url}docs");
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

async fn scan_and_send(app: &App<'_>, shutdown: &Shutdown) -> Result<()> {
    metrics::start()?;
    let request = ScanRequest { scheduled_for: None, trigger: Trigger::Command, as_of: None };
    let scanned = run_once(&app.scan_rules(Uuid::new_v4()), request).await?.counts;
    say!(
        "Scanned: {} notices claimed, {} recorded as superseded, {} skipped.",
        scanned.claimed,
        scanned.superseded,
        scanned.skipped
    );
    let (report, _) = dispatch_once(app, app.dispatch_rules(None)?, shutdown).await?;
    say!("Wrote {} mails, each with its attempt on record:\n", report.accepted);
    let mut connection = app.pool.acquire().await?;
    for Shown { permit_number, expires_on, notice_type, recipient, state } in list_mailed(&mut connection).await? {
        let recipient = recipient.unwrap_or_else(|| "(a letter to post)".to_owned());
        say!("  {permit_number:<12} expires {expires_on}  {notice_type:<13} {state:<8} {recipient}");
    }
    Ok(())
}

const TYPES: [(&str, &str, i32); 3] =
    [("food", "Food premises", 0), ("tavern", "Tavern", 14), ("street-vendor", "Street vendor", 0)];

/// Days until expiry, type, holder, address, contact.
type Sample = (i64, &'static str, &'static str, Option<&'static str>, Option<&'static str>);

const SAMPLES: [Sample; 14] = [
    (90, "food", "Blue Door Bakery", Some("blue.door@example.com"), None),
    (60, "food", "Chez Zoé", Some("zoe@example.com"), Some("books@example.org")),
    (30, "tavern", "The Anchor", Some("anchor@example.com"), None),
    (27, "tavern", "The Late Riser", Some("riser@example.com"), None),
    (14, "food", "Noodle Corner", Some("noodles@example.com"), None),
    (7, "street-vendor", "Ahmet's Chestnuts", Some("ahmet@example.com"), Some("agent@example.org")),
    (1, "street-vendor", "Flower Cart No. 9", Some("flowers@example.com"), None),
    (0, "tavern", "Copper Kettle", Some("kettle@example.com"), None),
    (-1, "food", "Old Mill Café", Some("mill@example.com"), None),
    (-30, "food", "Corner Deli", Some("deli@example.com"), None),
    (30, "street-vendor", "Ice Cream Bike (no address on file)", None, None),
    (45, "food", "Between Two Steps", Some("between@example.com"), None),
    (30, "food", "Closed for Renovation (paused)", Some("paused@example.com"), None),
    (14, "tavern", "The Lost Licence (revoked)", Some("revoked@example.com"), None),
];

/// Records the samples as if a year ago, so that today's scan finds them and no change mails them at once.
async fn load(app: &App<'_>, moment: Moment) -> Result<usize> {
    let then = Moment { now: moment.now - TimeDelta::days(400), today: plus_days(moment.today, -400) };
    let mut connection = connect(&app.database.direct_url, Purpose::Bulk).await?;
    for (code, name, grace_days) in TYPES {
        create_permit_type(&mut connection, &code.parse()?, name, then.now).await?;
        let url = format!("https://permits.example.org/renew/{code}");
        let contact = Some("Licensing desk, licences@permits.example.org, 555-0142");
        describe_permit_type(&mut connection, code, Some(&url), contact, grace_days, then.now).await?;
    }
    let rules = ChangeRules::at(then, None);
    for (index, sample) in SAMPLES.iter().enumerate() {
        create(&mut connection, &permit(index, sample, moment.today)?, &rules).await?;
    }
    Ok(SAMPLES.len())
}

fn permit(index: usize, sample: &Sample, today: NaiveDate) -> Result<PermitData> {
    let (days, permit_type, holder, email, contact) = *sample;
    let contact = contact.map(|email| -> Result<Contact> {
        let (name, role) = ("Bookkeeper".to_owned(), "agent".to_owned());
        Ok(Contact { name, email: Some(email.parse()?), role, language: "en".to_owned() })
    });
    let expires_on = plus_days(today, days);
    Ok(PermitData {
        permit_number: format!("DEMO-{:04}", index + 1).parse()?,
        permit_type: permit_type.to_owned(),
        status: if holder.contains("revoked") { PermitStatus::Revoked } else { PermitStatus::Active },
        holder_name: holder.to_owned(),
        holder_email: email.map(str::parse).transpose()?,
        holder_language: "en".to_owned(),
        contacts: contact.transpose()?.into_iter().collect(),
        site_address: Some(format!("{} Market Street", 10 + index)),
        description: None,
        issued_on: Some(plus_days(expires_on, -365)),
        effective_on: Some(plus_days(expires_on, -364)),
        expires_on,
        notices_from: None,
        notices_paused_until: holder.contains("paused").then(|| plus_days(today, 10)),
        external_id: None,
        custom: serde_json::json!({}),
    })
}
