//! A database with permits, and the program that serves them.

use std::{
    fs::File,
    net::SocketAddr,
    path::Path,
    process::{Child, Command},
    time::Duration,
};

use permit_notifier::{
    auth::Token,
    domain::scope::Scope,
    store::{
        connect::{Purpose, connect},
        migrate::migrate,
        tokens::{NewToken, insert_token},
    },
};
use sqlx::{AssertSqlSafe, Executor};

use crate::Error;

/// Permits that are there.
pub const PERMITS: usize = 100_000;
/// What the id of a permit is made of: this, and its number in 12 decimal digits.
pub const ID_START: &str = "00000000-0000-7000-8000-";

/// The program as it serves; ends when dropped.
pub struct Office {
    pub address: SocketAddr,
    pub token: String,
    serve: Child,
}

impl Office {
    /// Fills the database, starts the program on it, and waits until it listens.
    pub async fn open(url: &str, folder: &Path) -> Result<Self, Error> {
        migrate(url).await?;
        let mut connection = connect(url, Purpose::Bulk).await?;
        connection.execute(TYPE).await?;
        let fill = FILL.replace("$all", &PERMITS.to_string()).replace("$start", ID_START);
        connection.execute(AssertSqlSafe(fill)).await?;
        connection.execute("VACUUM ANALYZE").await?;
        let token = Token::generate()?;
        let (hash, hint) = (token.hash(), token.hint());
        let new = NewToken { name: "bench", scope: Scope::Write, hash, hint, expires_on: None, by: "bench" };
        insert_token(&mut connection, &new, "2026-01-01T00:00:00Z".parse()?).await?;
        let (serve, address) = serve(url, folder)?;
        Ok(Self { address, token: token.reveal().to_owned(), serve })
    }
}

impl Drop for Office {
    fn drop(&mut self) {
        let _ = self.serve.kill();
        let _ = self.serve.wait();
    }
}

fn serve(url: &str, folder: &Path) -> Result<(Child, SocketAddr), Error> {
    let errors = folder.join("serve.err");
    let mut serve = Command::new(env!("CARGO_BIN_EXE_permit-notifier"))
        .args(["serve", "--roles", "web"])
        .current_dir(folder)
        .env_clear()
        .envs([("DATABASE_URL", url), ("LISTEN_ADDR", "127.0.0.1:0"), ("API_RATE_PER_MINUTE", "0")])
        .envs([("LOG_FORMAT", "json"), ("RUST_LOG", "warn")])
        .stderr(File::create(&errors)?)
        .spawn()?;
    while serve.try_wait()?.is_none() {
        let said = std::fs::read_to_string(&errors)?;
        if let Some((address, _)) = said.split_once("Listening on http://").and_then(|(_, rest)| rest.split_once('\n'))
        {
            return Ok((serve, address.trim_end_matches('/').parse()?));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Err(format!("the program does not serve: {}", std::fs::read_to_string(&errors)?).into())
}

const TYPE: &str = "
    INSERT INTO permit_types (code, name, grace_days, created_at, updated_at) VALUES ('food', 'Food', 30, now(), now());
    INSERT INTO schedule_steps (permit_type, position, notice_type, offset_days, class)
    SELECT 'food', row_number() OVER (ORDER BY days) - 1, name, days, 'statutory'
    FROM (VALUES ('expires-90d', -90), ('expires-60d', -60), ('expires-30d', -30), ('expires-14d', -14),
                 ('expires-7d', -7), ('expires-1d', -1), ('expires-today', 0), ('expired-1d', 1),
                 ('expired-30d', 30)) AS step (name, days)";

/// Permits with one term and one contact each, none of which expires soon.
const FILL: &str = "
    INSERT INTO permits (id, permit_number, number_key, permit_type, status, holder_name, holder_email, site_address,
                         description, expires_on, period_since, created_at, updated_at)
    SELECT ('$start' || lpad(i::text, 12, '0'))::uuid, 'P-' || i, 'p-' || i, 'food', 'active', 'Holder ' || i,
           'holder-' || i || '@example.com', i || ' Market Street, Maple', 'Bakery with a counter and twelve seats',
           '2035-01-01'::date + i % 3000, '2020-01-01', now(), now()
    FROM generate_series(1, $all) AS i;
    INSERT INTO terms (permit_id, number, expires_on, recorded_at) SELECT id, 1, expires_on, now() FROM permits;
    INSERT INTO contacts (id, permit_id, position, name, email, role, language)
    SELECT gen_random_uuid(), id, 0, 'Bo Agent', 'bo@example.org', 'agent', 'en' FROM permits";
