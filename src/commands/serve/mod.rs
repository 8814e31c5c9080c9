//! `serve`: the service, until it is told to stop.

mod health;

use std::{collections::BTreeSet, convert::Infallible, net::SocketAddr, process::ExitCode, str::FromStr, sync::Arc};

use anyhow::{Context, Result};
use clap::Args;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::{net::TcpListener, sync::Notify};
use tokio_util::sync::CancellationToken;

use health::ServiceHealth;

use crate::{
    app::{App, Database, people},
    config::{Config, listening_url},
    dispatch::{Dispatcher, Membership},
    domain::{alarm::AlarmSurface, words},
    purge::{self, PurgeRules},
    scan::{ScanRules, supervisor, ticker::Ticker},
    shutdown::Shutdown,
    store,
    telemetry::metrics,
    watch::Watch,
    web::{self, Web, api::Api},
};

words! {
    /// What a process does.
    "role" Role {
        /// Pages, API, health.
        Web = "web",
        /// Finding what is owed.
        Scan = "scan",
        /// Sending it.
        Dispatch = "dispatch",
    }
}

/// Which roles a process has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roles(BTreeSet<Role>);

impl Default for Roles {
    fn default() -> Self {
        Self(Role::ALL.iter().copied().collect())
    }
}

impl FromStr for Roles {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let roles = text.split(',').map(|word| word.trim().parse::<Role>().map_err(|error| error.to_string()));
        Ok(Self(roles.collect::<Result<_, _>>()?))
    }
}

impl Roles {
    fn has(&self, role: Role) -> bool {
        self.0.contains(&role)
    }

    fn text(&self) -> String {
        self.0.iter().map(|role| role.as_str()).collect::<Vec<_>>().join(",")
    }
}

#[derive(Debug, Clone, Default, Args)]
pub struct Arguments {
    /// Which of web, scan and dispatch this process does, comma-separated
    #[arg(long, value_name = "ROLES", default_value = "web,scan,dispatch")]
    roles: Roles,
}

pub async fn run(arguments: Arguments, config: Config, database: &Database) -> Result<ExitCode> {
    let shutdown = Shutdown::new();
    shutdown.listen_for_signals()?;
    let app = App::open(config, database).await?;
    let listener = if arguments.roles.has(Role::Web) { Some(listen(&app.config).await?) } else { None };
    serve(&app, &arguments.roles, listener, &shutdown).await
}

/// Opens the port.
pub(super) async fn listen(config: &Config) -> Result<TcpListener> {
    let address = config.listen_addr;
    TcpListener::bind(address).await.with_context(|| format!("LISTEN_ADDR: {address} cannot be listened on"))
}

/// Runs the roles until the stop, then finishes what is in flight.
pub(super) async fn serve(
    app: &App<'_>,
    roles: &Roles,
    listener: Option<TcpListener>,
    shutdown: &Shutdown,
) -> Result<ExitCode> {
    // Before the loops, whose first scan and mails would else not be counted.
    let web = match listener {
        Some(listener) => Some((listener, metrics::start()?)),
        None => None,
    };
    let bound = web.as_ref().map(|(listener, _)| listener.local_addr()).transpose()?;
    let membership = Membership::join(app.member(&roles.text())).await?;
    let alive = CancellationToken::new();
    keep_alive(shutdown, &membership, &alive);
    if let Some(bound) = bound {
        invite_first_admin(app, bound).await?;
    }
    start_watch(app, roles, bound, &membership, shutdown)?;
    if roles.has(Role::Scan) {
        start_scans(app, &membership, shutdown).await?;
    }
    start_purges(app, roles.has(Role::Scan), shutdown)?;
    if roles.has(Role::Dispatch) {
        start_dispatch(app, &membership, shutdown)?;
    }
    if let Some((listener, metrics)) = web {
        let api = app.api(membership.boot_id(), roles.has(Role::Scan), shutdown)?;
        start_web(app, listener, metrics, api, shutdown)?;
    }
    tokio::select! {
        () = shutdown.soft().cancelled() => {}
        why = app.database.ended() => {
            tracing::error!("{why}");
            shutdown.fail();
        }
        why = membership.outdated() => {
            tracing::error!("{why}; this process stops");
            shutdown.fail();
        }
    }
    let drained = shutdown.drain(app.config.shutdown_limit).await;
    tracing::info!(?drained, "stopped");
    alive.cancel();
    if let Err(error) = membership.leave().await {
        tracing::warn!("the end of this process could not be recorded: {error}");
    }
    Ok(shutdown.exit_code())
}

/// Renews the process row until everything else has ended.
fn keep_alive(shutdown: &Shutdown, membership: &Arc<Membership>, alive: &CancellationToken) {
    let (membership, alive, shutdown) = (Arc::clone(membership), alive.clone(), shutdown.clone());
    #[expect(clippy::disallowed_methods, reason = "it must outlive the drain, which waits for tracked tasks")]
    tokio::spawn(async move {
        let kept = tokio::task::JoinSet::from_iter([membership.keep_alive(alive)]).join_all();
        if futures_util::FutureExt::catch_unwind(std::panic::AssertUnwindSafe(kept)).await.is_err() {
            tracing::error!("the renewal of the process row panicked and stops the service");
            shutdown.fail();
        }
    });
}

/// Every process watches, whatever it does besides: a role that no process has must be noticed too.
fn start_watch(
    app: &App<'_>,
    roles: &Roles,
    bound: Option<SocketAddr>,
    membership: &Arc<Membership>,
    shutdown: &Shutdown,
) -> Result<()> {
    let pages = app.config.public_url(bound.unwrap_or(app.config.listen_addr));
    let mut pokes = Vec::new();
    for (name, surface) in [("alarms by mail", AlarmSurface::Email), ("alarms by webhook", AlarmSurface::Webhook)] {
        let poke = Arc::new(Notify::new());
        let Some(messenger) = app.messenger(surface, roles.has(Role::Dispatch), &pages, &poke)? else { continue };
        pokes.push(poke);
        let (soft, hard) = (shutdown.soft().clone(), shutdown.hard().clone());
        shutdown.spawn(name, async move {
            messenger.run(soft, hard).await;
            Ok::<_, Infallible>(())
        });
    }
    let watch = Watch::new(app.watch_rules(Some(&pages)), membership.boot_id(), pokes);
    let stop = shutdown.soft().clone();
    shutdown.spawn("watch", async move {
        watch.run(stop).await;
        Ok::<_, Infallible>(())
    });
    Ok(())
}

async fn start_scans(app: &App<'_>, membership: &Arc<Membership>, shutdown: &Shutdown) -> Result<()> {
    let poke = Arc::new(Notify::new());
    let ticker = Ticker::start(Arc::clone(&poke)).await?;
    let stop = shutdown.soft().clone();
    let rules = ScanRules { stop: stop.clone(), ..app.scan_rules(membership.boot_id()) };
    let (schedule, pool) = (app.config.scan_schedule.clone(), app.pool.clone());
    shutdown.spawn("scan", async move {
        supervisor::run(rules, schedule, pool, poke, stop).await;
        ticker.stop().await;
        Ok::<_, Infallible>(())
    });
    Ok(())
}

/// Old data goes once a day: from the database by whichever of the processes that scan comes first, and from each
/// machine's disk by the process that has it.
fn start_purges(app: &App<'_>, scans: bool, shutdown: &Shutdown) -> Result<()> {
    let rules = PurgeRules { stop: shutdown.soft().clone(), ..app.purge_rules()? };
    let pool = app.pool.clone();
    shutdown.spawn("purge", async move {
        purge::daily::run(rules, pool, scans).await;
        Ok::<_, Infallible>(())
    });
    Ok(())
}

fn start_dispatch(app: &App<'_>, membership: &Arc<Membership>, shutdown: &Shutdown) -> Result<()> {
    let dispatcher = Dispatcher::new(app.dispatch_rules(None)?, Arc::clone(membership));
    let wake = dispatcher.wake();
    let (soft, hard) = (shutdown.soft().clone(), shutdown.hard().clone());
    shutdown.spawn("dispatch", async move {
        dispatcher.run(soft, hard).await;
        Ok::<_, Infallible>(())
    });
    let (url, stop) = (app.database.direct_url.clone(), shutdown.soft().clone());
    shutdown.spawn("notifications", async move {
        store::notify::wake_on_notify(&url, &wake, &stop).await;
        Ok::<_, Infallible>(())
    });
    if app.config.smtp_url.is_none() {
        tracing::warn!(folder = %app.mail_folder()?.display(), "mail is kept on disk; nothing is really sent");
    }
    Ok(())
}

/// Prints the link by which somebody becomes the first administrator, while nobody can sign in.
async fn invite_first_admin(app: &App<'_>, bound: SocketAddr) -> Result<()> {
    if let Some(link) = people::first_admin(app, &app.config.public_url(bound)).await? {
        eprintln!("Nobody can sign in yet. Become the first administrator, within three days: {link}");
    }
    Ok(())
}

fn start_web(
    app: &App<'_>,
    listener: TcpListener,
    metrics: PrometheusHandle,
    api: Api,
    shutdown: &Shutdown,
) -> Result<()> {
    let health = Arc::new(ServiceHealth { pool: app.pool.clone(), rules: app.watch_rules(None) });
    let address = listener.local_addr()?;
    let pages = Some(app.pages(api.clone(), address));
    let router = web::router(&Web { health, metrics: metrics.clone(), api: Some(api.clone()), pages });
    let (here, people) = (listening_url(address), app.config.public_url(address));
    if here == people {
        eprintln!("Listening on {here}");
    } else {
        eprintln!("Listening on {here}, people reach it at {people}");
    }
    tracing::info!(%address, "listening");
    let stop = shutdown.soft().clone();
    let served = web::serve(listener, router, web::Limits::default(), stop.clone());
    shutdown.spawn("web", async move {
        served.await;
        api.finish().await;
        Ok::<_, Infallible>(())
    });
    shutdown.spawn("metrics", async move {
        metrics::keep_small(metrics, stop).await;
        Ok::<_, Infallible>(())
    });
    Ok(())
}
