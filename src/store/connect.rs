//! Connections and pools, each kind with its own limits.

use std::time::Duration;

use sqlx::{
    ConnectOptions, Connection, Executor, PgConnection, PgPool, Row,
    postgres::{PgConnectOptions, PgPoolOptions},
};

/// What a connection is for; decides its limits in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Short transactions: pages, dispatch.
    Work,
    /// Looking up what is asked for; nothing can be written.
    Reading,
    /// Gates and settlements: statements that find a few rows by their keys, on a connection of its own.
    Rounds,
    /// The scan on its dedicated connection: a stopped holder must give its lock back.
    Scan,
    /// Looking for alarms, every few seconds: short statements, and none waits long for anybody.
    Watch,
    /// Migrations and imports: long statements, short waits for locks.
    Bulk,
    /// Removing what is old: batches that give way to whoever waits for the same rows.
    Purge,
    /// Hearing notifications: it says nothing by itself.
    Listen,
}

impl Purpose {
    fn settings(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Work => &[
                ("application_name", "permit-notifier"),
                // Rolling back what is rolled back already is worth no line in the log.
                ("client_min_messages", "error"),
                ("statement_timeout", "30s"),
                ("lock_timeout", "10s"),
                ("idle_in_transaction_session_timeout", "15s"),
            ],
            Self::Reading => &[
                ("application_name", "permit-notifier reading"),
                ("default_transaction_read_only", "on"),
                ("statement_timeout", "30s"),
                ("lock_timeout", "10s"),
                ("idle_in_transaction_session_timeout", "15s"),
            ],
            Self::Rounds => &[
                ("application_name", "permit-notifier rounds"),
                ("statement_timeout", "20s"),
                ("lock_timeout", "10s"),
                ("idle_in_transaction_session_timeout", "15s"),
                // A few rows by their keys, always: one plan, made once, that no statistics can turn into reading a
                // whole table (on one that was filled a moment ago they say that it is empty).
                ("plan_cache_mode", "force_generic_plan"),
                ("enable_seqscan", "off"),
                ("enable_hashjoin", "off"),
                ("enable_mergejoin", "off"),
                ("jit", "off"),
            ],
            Self::Scan => &[
                ("application_name", "permit-notifier scan"),
                ("statement_timeout", "5min"),
                ("lock_timeout", "30s"),
                ("idle_in_transaction_session_timeout", "30s"),
                ("idle_session_timeout", "60s"),
                // Plans for a batch must not hang on statistics that are not there yet.
                ("jit", "off"),
            ],
            Self::Watch => &[
                ("application_name", "permit-notifier watch"),
                ("statement_timeout", "10s"),
                ("lock_timeout", "5s"),
                ("idle_in_transaction_session_timeout", "15s"),
                ("jit", "off"),
            ],
            Self::Bulk => &[
                ("application_name", "permit-notifier bulk"),
                ("statement_timeout", "30min"),
                ("lock_timeout", "30s"),
                ("idle_in_transaction_session_timeout", "5min"),
                ("jit", "off"),
            ],
            Self::Purge => &[
                ("application_name", "permit-notifier purge"),
                ("statement_timeout", "5min"),
                ("lock_timeout", "5s"),
                ("idle_in_transaction_session_timeout", "30s"),
                ("jit", "off"),
            ],
            Self::Listen => &[
                ("application_name", "permit-notifier listen"),
                ("statement_timeout", "30s"),
                ("lock_timeout", "10s"),
                ("idle_in_transaction_session_timeout", "15s"),
            ],
        }
    }

    fn options(self, url: &str) -> Result<PgConnectOptions, sqlx::Error> {
        let keepalive = [("tcp_keepalives_idle", "30"), ("tcp_user_timeout", "30000")];
        let options: PgConnectOptions = url.parse()?;
        // What the URL itself says in `options` stands, such as another `idle_session_timeout`.
        let own = options.get_options().unwrap_or_default().to_owned();
        let settings = self.settings().iter().copied().chain(keepalive);
        let options = options.options(settings.filter(|(name, _)| !own.contains(&format!("{name}="))));
        // Its statements are long by nature, and no news when they are.
        Ok(if self == Self::Bulk { options.disable_statement_logging() } else { options })
    }
}

/// How long one connection may take to open.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Opens a connection outside every pool.
pub async fn connect(url: &str, purpose: Purpose) -> Result<PgConnection, sqlx::Error> {
    open(&purpose.options(url)?).await
}

/// The same without any setting of ours but the name, for a pooler may not take them, and without a word about waiting for it.
pub(super) async fn connect_bare(url: &str) -> Result<PgConnection, sqlx::Error> {
    let options = url.parse::<PgConnectOptions>()?.application_name("permit-notifier look");
    open(&options.extra_float_digits(None).disable_statement_logging()).await
}

async fn open(options: &PgConnectOptions) -> Result<PgConnection, sqlx::Error> {
    tokio::time::timeout(CONNECT_LIMIT, PgConnection::connect_with(options))
        .await
        .map_err(|_| sqlx::Error::Io(std::io::ErrorKind::TimedOut.into()))?
}

/// Whether this session may write: not on a standby, nor where an administrator or a full disk forbids it.
pub async fn may_write(connection: &mut PgConnection) -> super::Result<bool> {
    let may = sqlx::query_scalar!(
        r#"SELECT NOT pg_is_in_recovery() AND current_setting('default_transaction_read_only') = 'off' AS "may!""#
    );
    Ok(may.fetch_one(connection).await?)
}

/// How long a connection that is given back may take to say that it is clean.
pub(super) const RELEASE_LIMIT: Duration = Duration::from_secs(5);
/// Longest time for a few short statements: a connection that says nothing for so long is dead.
const ANSWER_LIMIT: Duration = Duration::from_secs(15);

/// Does `work`, a few short statements, or gives it up with its connection when nothing is answered: no connection may
/// hold its user up for ever.
pub fn in_time<T>(work: impl Future<Output = super::Result<T>>) -> impl Future<Output = super::Result<T>> {
    within(ANSWER_LIMIT, work)
}

/// The same for work that may take longer.
pub fn within<T>(
    limit: Duration,
    work: impl Future<Output = super::Result<T>>,
) -> impl Future<Output = super::Result<T>> {
    // Boxed at once: callers would else carry it as many times as it is passed on.
    let work = Box::pin(work);
    async move {
        let done = tokio::time::timeout(limit, work).await;
        done.map_err(|_| sqlx::Error::Io(std::io::ErrorKind::TimedOut.into()))?
    }
}

/// A pool of `size` connections for short transactions; connects when first used.
///
/// A cancelled `begin()` leaves a transaction open on its connection, and the next user's acknowledged writes
/// would vanish with it; so what comes back is rolled back and unlocked. One that began while the database took no
/// writing would go on so for as long as it lasts: it is closed.
pub fn pool(url: &str, size: u32) -> Result<PgPool, sqlx::Error> {
    let options = Purpose::Work.options(url)?;
    Ok(PgPoolOptions::new()
        .max_connections(size)
        .acquire_timeout(Duration::from_secs(5))
        .after_release(|connection, _| {
            Box::pin(async move {
                // One that says nothing any more is closed.
                tokio::time::timeout(RELEASE_LIMIT, clean(connection)).await.unwrap_or(Ok(false))
            })
        })
        .connect_lazy_with(options))
}

/// Takes back what is open on a connection; whether it may write.
async fn clean(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    // BEGIN first: a ROLLBACK outside a transaction is a warning in the server's log, each time.
    let row = connection
        .fetch_one("BEGIN; ROLLBACK; SELECT pg_advisory_unlock_all(), current_setting('default_transaction_read_only')")
        .await?;
    Ok(row.try_get::<&str, _>(1)? == "off")
}

/// How long a connection that was just good is taken for good.
const FRESH: Duration = Duration::from_secs(1);

/// A pool of `size` connections that only read; connects when first used.
///
/// No saved change can be lost here, so a connection is not cleaned when it comes back, and one that was used a moment
/// ago is not tried first: each would take as long as the reading itself. It is for work that runs to its end, as every
/// request of the API does: a `begin()` that is cancelled would show the next user the past.
pub fn reading_pool(url: &str, size: u32) -> Result<PgPool, sqlx::Error> {
    let options = Purpose::Reading.options(url)?;
    Ok(PgPoolOptions::new()
        .max_connections(size)
        .acquire_timeout(Duration::from_secs(5))
        .test_before_acquire(false)
        .before_acquire(|connection, seen| {
            Box::pin(async move {
                if seen.idle_for < FRESH {
                    return Ok(true);
                }
                Ok(tokio::time::timeout(RELEASE_LIMIT, connection.ping()).await.is_ok_and(|said| said.is_ok()))
            })
        })
        .connect_lazy_with(options))
}

/// A pool of the one connection on which notifications are heard, for as long as it lasts.
pub(super) fn listening_pool(url: &str) -> Result<PgPool, sqlx::Error> {
    let options = Purpose::Listen.options(url)?;
    Ok(PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(CONNECT_LIMIT)
        .max_lifetime(None)
        .idle_timeout(None)
        .connect_lazy_with(options))
}

/// What an error says, with its causes. That the database raised it in line 3312 of its own source is nobody's business.
pub fn said(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(error) => format!("error returned from database: {}", error.message()),
        error => error.to_string(),
    }
}

/// Whether trying again may help: the database was away, cut us off, or wanted another order of locks.
pub fn is_transient(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::WorkerCrashed | sqlx::Error::Protocol(_) => true,
        sqlx::Error::Database(error) => error.code().is_some_and(|code| {
            // Connection trouble, out of resources, operator intervention; serialization and deadlock; lock timeout; a
            // session that may not write.
            ["08", "53", "57"].iter().any(|class| code.starts_with(class))
                || matches!(code.as_ref(), "40001" | "40P01" | "55P03" | "25P02" | "25P03" | "25006")
        }),
        _ => false,
    }
}

/// Whether the database looked at the data and said no: a value or a constraint.
pub fn is_refusal(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    code.is_some_and(|code| ["22", "23"].iter().any(|class| code.starts_with(class)))
}

/// Name of the constraint that refused, if one did.
pub fn violated(error: &sqlx::Error) -> Option<&str> {
    error.as_database_error().and_then(sqlx::error::DatabaseError::constraint)
}
