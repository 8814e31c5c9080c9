//! The transport as all replicas know it: the breaker, its probe, and the pace. Times are the database's own,
//! for host clocks decide nothing and business time may stand still.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Result, leases::Lease, settle::Settlement};
use crate::{domain::attempt::Outcome, telemetry::mask_addresses};

/// What the breaker lets a process do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passage {
    /// Send; `since` is how long ago the breaker last closed, if it ever opened.
    Free {
        /// Seconds since the breaker closed; speed comes back gradually from there.
        since: Option<Duration>,
    },
    /// Nothing is tried until then.
    Paused {
        /// How long still; zero when the next probe is due.
        wait: Duration,
    },
}

/// Asks what the breaker lets anybody do now.
pub async fn passage(connection: &mut PgConnection) -> Result<Passage> {
    let row = sqlx::query!(
        r#"SELECT extract(epoch FROM paused_until - clock_timestamp())::float8 AS wait,
                  extract(epoch FROM clock_timestamp() - closed_at)::float8 AS since
           FROM transport"#
    )
    .fetch_one(connection)
    .await?;
    let duration = |seconds: f64| Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or_default();
    Ok(match row.wait {
        Some(wait) => Passage::Paused { wait: duration(wait) },
        None => Passage::Free { since: row.since.map(duration) },
    })
}

/// Takes the probe if it is due and nobody alive has it; one sender in all replicas gets it.
pub async fn take_probe(connection: &mut PgConnection, boot_id: Uuid) -> Result<Option<Uuid>> {
    let token = sqlx::query_scalar!(
        r#"UPDATE transport SET probe_boot_id = $1, probe_token = gen_random_uuid()
           WHERE paused_until <= clock_timestamp()
             AND (probe_boot_id IS NULL OR probe_boot_id NOT IN (SELECT boot_id FROM living_processes))
           RETURNING probe_token AS "token!""#,
        boot_id,
    );
    Ok(token.fetch_optional(connection).await?)
}

/// Gives the probe back unused; it is due again at once.
pub async fn return_probe(connection: &mut PgConnection, token: Uuid) -> Result<()> {
    sqlx::query!("UPDATE transport SET probe_boot_id = NULL, probe_token = NULL WHERE probe_token = $1", token)
        .execute(connection)
        .await?;
    Ok(())
}

/// Frees the probe in a process's own name that none of its tasks holds: it was taken, and then the database went away.
pub async fn free_unknown_probe(connection: &mut PgConnection, boot_id: Uuid, held: &[Uuid]) -> Result<bool> {
    let freed = sqlx::query!(
        "UPDATE transport SET probe_boot_id = NULL, probe_token = NULL
         WHERE probe_boot_id = $1 AND NOT (probe_token = ANY ($2))",
        boot_id,
        held,
    );
    Ok(freed.execute(connection).await?.rows_affected() == 1)
}

/// Leases the one delivery that probes: the one that met the fewest faults, so that one at which the server always
/// leaves does not keep the breaker open for the rest.
pub async fn lease_for_probe(connection: &mut PgConnection, boot_id: Uuid, now: DateTime<Utc>) -> Result<Vec<Lease>> {
    let lease = sqlx::query_as!(
        Lease,
        r#"WITH due AS (
               SELECT d.id FROM deliveries d
               WHERE state = 'pending' AND channel = 'email' AND next_attempt_at <= $2 AND lease_owner IS NULL
                 AND EXISTS (SELECT FROM living_processes WHERE boot_id = $1)
               ORDER BY (SELECT count(*) FROM attempts a WHERE a.delivery_id = d.id AND a.transport_fault), send_by, id
               LIMIT 1 FOR UPDATE SKIP LOCKED)
           UPDATE deliveries d SET lease_token = gen_random_uuid(), lease_owner = $1
           FROM due WHERE d.id = due.id
           RETURNING d.id AS delivery_id, d.lease_token AS "token!""#,
        boot_id,
        now,
    );
    Ok(lease.fetch_all(connection).await?)
}

/// Opens the breaker for everybody, or lengthens its pause after a probe that failed: one second, then twice as
/// long each time, at most sixty; never shorter than the server asked for. A fault that is reported while the
/// breaker is open already, by somebody who does not hold the probe, changes nothing. The words of the server may repeat
/// an address, which is nobody's business here.
pub async fn open_breaker(
    connection: &mut PgConnection,
    fault: &str,
    asked: Option<Duration>,
    probe: Option<Uuid>,
) -> Result<()> {
    let asked = asked.map_or(0.0, |asked| asked.as_secs_f64());
    sqlx::query!(
        "UPDATE transport
         SET pause_seconds = least(60, greatest(1, CASE WHEN paused_until IS NULL THEN 1 ELSE pause_seconds * 2 END)),
             paused_until = clock_timestamp() + make_interval(secs => greatest($2, least(60, greatest(1,
                 CASE WHEN paused_until IS NULL THEN 1 ELSE pause_seconds * 2 END)) * (0.75 + random() / 4))),
             opened_at = coalesce(opened_at, clock_timestamp()), fault = $1, probe_boot_id = NULL, probe_token = NULL
         WHERE paused_until IS NULL OR probe_token = $3",
        mask_addresses(fault),
        asked,
        probe,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Closes the breaker: the transport answered like one that works.
pub async fn close_breaker(connection: &mut PgConnection, probe: Uuid) -> Result<()> {
    sqlx::query!(
        "UPDATE transport
         SET paused_until = NULL, pause_seconds = 0, fault = NULL, opened_at = NULL, closed_at = clock_timestamp(),
             probe_boot_id = NULL, probe_token = NULL
         WHERE probe_token = $1",
        probe
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// What the ends of messages say of the transport: a fault opens the breaker or lengthens its pause, anything that was
/// answered to a probe closes it, and that a mail server accepted something is noted where it is news.
pub(super) async fn hear<'s>(
    connection: &mut PgConnection,
    ended: impl Iterator<Item = (&'s Settlement, bool)>,
) -> Result<()> {
    let mut accepted = false;
    for (settlement, is_news) in ended {
        accepted |= is_news;
        match settlement.probe {
            _ if settlement.transport_fault => {
                open_breaker(connection, &settlement.fault(), settlement.retry_after, settlement.probe).await?;
            }
            // Broken off at this one recipient says nothing of the transport; anything it answered says that it works.
            Some(probe) if settlement.outcome == Outcome::NotSent => return_probe(connection, probe).await?,
            Some(probe) => close_breaker(connection, probe).await?,
            None => {}
        }
    }
    if accepted { note_accepted(connection).await } else { Ok(()) }
}

/// Notes that a message was accepted: refusals by policy before it were the recipients' own.
async fn note_accepted(connection: &mut PgConnection) -> Result<()> {
    sqlx::query!(
        "UPDATE transport SET accepted_at = clock_timestamp(), policy_refusals = '{}'
         WHERE accepted_at IS NULL OR accepted_at < clock_timestamp() - interval '1 second' OR policy_refusals <> '{}'"
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Notes that an address was refused by policy; says how many different ones were since a message was accepted.
pub async fn note_policy_refusal(connection: &mut PgConnection, recipient_key: &str) -> Result<i32> {
    let count = sqlx::query_scalar!(
        r#"UPDATE transport
           SET policy_refusals = CASE WHEN $1 = ANY (policy_refusals) THEN policy_refusals
                                      ELSE policy_refusals[1:99] || $1::text END
           RETURNING cardinality(policy_refusals) AS "count!""#,
        recipient_key,
    );
    Ok(count.fetch_one(connection).await?)
}

/// Turns are so many times further apart than the rate says. A message leaves a little after its turn, and if the
/// first of ten seconds is later than the last, there must still not be one too many in between.
const APART: f64 = 1.06;

/// Takes the next free moment at `rate` messages a second; says how long to wait for it.
pub async fn take_turn(connection: &mut PgConnection, rate: u32) -> Result<Duration> {
    let wait = sqlx::query_scalar!(
        r#"UPDATE transport
           SET next_send_at = greatest(next_send_at, clock_timestamp()) + make_interval(secs => 1.0 / $1::float8)
           RETURNING extract(epoch FROM next_send_at - clock_timestamp())::float8 - 1.0 / $1::float8 AS "wait!""#,
        f64::from(rate) / APART,
    )
    .fetch_one(connection)
    .await?;
    Ok(Duration::try_from_secs_f64(wait.max(0.0)).unwrap_or_default())
}

/// Whether this delivery was refused by policy before and a message was accepted since, which forgot that refusal. A
/// full list has pushed some out, so what is not on it need not be forgotten.
pub async fn forgot_policy_refusal(connection: &mut PgConnection, delivery: Uuid, recipient_key: &str) -> Result<bool> {
    let forgot = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM attempts WHERE delivery_id = $1 AND phase = 'rcpt' AND enhanced_code LIKE '5.7.%')
                  AND NOT EXISTS (SELECT FROM transport
                                  WHERE $2 = ANY (policy_refusals) OR cardinality(policy_refusals) >= 100) AS "forgot!""#,
        delivery,
        recipient_key,
    );
    Ok(forgot.fetch_one(connection).await?)
}

/// The reason of a fault that one delivery met again and again while others passed.
pub const BREAKS_ALONE: &str = "breaks_alone";

/// Whether the last two attempts on this delivery met a fault or broke off, and others were accepted after each of them: then a
/// third fault is its own.
pub async fn breaks_alone(connection: &mut PgConnection, delivery: Uuid) -> Result<bool> {
    let alone = sqlx::query_scalar!(
        r#"WITH last AS (
               SELECT number,
                      outcome IN ('not_sent', 'deferred')
                      AND (transport_fault OR reason IN ('breaks_alone', 'connection_lost', 'timed_out')) AS tripped, phase, finished_at,
                      lead(finished_at) OVER (ORDER BY number) AS next_at
               FROM attempts WHERE delivery_id = $1 AND outcome <> 'sending' ORDER BY number DESC LIMIT 2)
           SELECT coalesce(count(*) = 2 AND bool_and(
                      tripped AND phase IN ('rcpt', 'data', 'body', 'dot') AND EXISTS (
                          SELECT FROM attempts a
                          WHERE a.outcome = 'accepted' AND a.delivery_id <> $1 AND a.finished_at >= last.finished_at
                            AND (last.next_at IS NULL OR a.finished_at <= last.next_at))), false) AS "alone!"
           FROM last"#,
        delivery,
    );
    Ok(alone.fetch_one(connection).await?)
}
