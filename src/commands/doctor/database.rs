//! The database: how it is reached, whether it keeps what it promises, and whether it is ours.

use chrono::{DateTime, Utc};

use super::{Check, account, alarms, fault, ok, purges, warning, zone};
use crate::{
    app::{Database, Ways},
    clock::{Clock, SystemClock},
    config::Config,
    store::{
        DatabaseError, PgConnection, StoreError,
        clock::database_now,
        connect::{Purpose, connect, said},
        facts::{ServerFacts, server_facts},
        memory::{compare_marks, difference, present_marks},
        migrate::{altered, is_up_to_date, outdated},
    },
};

const AWAY: &str = "start it, or correct DATABASE_URL";

/// Every check that asks the database; `is_time_known` unless a setting that says which time it is could not be read.
pub(super) async fn check(config: &Config, database: &Database, is_time_known: bool, checks: &mut Vec<Check>) {
    match database.ways().await {
        Ok(ways) => checks.push(check_ways(ways)),
        Err(error) => {
            let both = database.url != database.direct_url;
            let advice = if both { "start it, or correct DATABASE_URL or DATABASE_DIRECT_URL" } else { AWAY };
            // What is wrong, without the same advice in the error's own words.
            let of_store = error.chain().find_map(|cause| cause.downcast_ref::<StoreError>().map(ToString::to_string));
            let of_database = || error.chain().find_map(|cause| cause.downcast_ref::<DatabaseError>().map(said));
            let found = of_store.or_else(of_database).unwrap_or_else(|| error.root_cause().to_string());
            checks.push(fault("database", found, advice));
            return;
        }
    }
    let mut connection = match connect(&database.direct_url, Purpose::Work).await {
        Ok(connection) => connection,
        Err(error) => {
            checks.push(fault("database", said(&error), AWAY));
            return;
        }
    };
    match server_facts(&mut connection).await {
        Ok(facts) => checks.extend([check_version(&facts), check_durability(&facts), check_encoding(&facts)]),
        Err(error) => checks.push(fault("database", error.to_string(), "look at its log")),
    }
    checks.push(check_migrations(&mut connection).await);
    checks.extend(account::check(&mut connection).await);
    checks.extend(check_memory(&mut connection).await);
    checks.extend(check_both_urls(database, &mut connection).await);
    if let Ok(now) = database_now(&mut connection).await {
        checks.push(check_clock(now));
        if is_time_known {
            checks.push(zone::check(&mut connection, config.time_zone, now).await);
            checks.push(check_schedule(config, now));
        }
        checks.extend(purges::check(&mut connection, config, now).await);
    }
    checks.extend(alarms::check_standing(&mut connection).await);
}

fn check_ways(ways: Ways) -> Check {
    ok(
        "connections",
        match ways {
            Ways::Direct => "they lead through no transaction pooler",
            Ways::AroundPooler => {
                "DATABASE_URL leads through a transaction pooler; DATABASE_DIRECT_URL is used for everything"
            }
        },
    )
}

/// Two URLs that lead to different databases: a scan would claim in one what the other never sends.
async fn check_both_urls(database: &Database, direct: &mut PgConnection) -> Option<Check> {
    const NAME: &str = "connections";
    let advice = "let both lead to the same database";
    if database.url == database.direct_url {
        return None;
    }
    let Ok(ours) = present_marks(direct).await else { return None };
    let other = match connect(&database.url, Purpose::Work).await {
        Ok(mut connection) => present_marks(&mut connection).await.ok(),
        // A pooler may take none of our settings; that the ways are sound has been seen.
        Err(_) => return None,
    };
    (other != Some(ours))
        .then(|| fault(NAME, "DATABASE_URL and DATABASE_DIRECT_URL lead to different databases", advice))
}

fn check_version(facts: &ServerFacts) -> Check {
    let found = format!("PostgreSQL {}", facts.version);
    if facts.version_number >= 140_000 {
        ok("database", found)
    } else {
        fault("database", found, "use version 14 or newer")
    }
}

fn check_durability(facts: &ServerFacts) -> Check {
    let off: Vec<&str> = facts.durability.iter().filter(|(_, on)| !on).map(|(name, _)| *name).collect();
    if off.is_empty() {
        ok("durability", "fsync, full_page_writes and synchronous_commit are on")
    } else {
        let advice = "switch them on: after a crash the memory of what was sent could be wrong";
        fault("durability", format!("off: {}", off.join(", ")), advice)
    }
}

/// In another encoding names that people have cannot be kept, and letters are counted wrong.
fn check_encoding(facts: &ServerFacts) -> Check {
    const NAME: &str = "encoding";
    if facts.encoding == "UTF8" {
        return ok(NAME, "the database keeps every character (UTF8)");
    }
    let found = format!("the database keeps texts as {}", facts.encoding);
    fault(NAME, found, "CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0, and let DATABASE_URL lead to that")
}

async fn check_migrations(connection: &mut PgConnection) -> Check {
    const NAME: &str = "migrations";
    if let Ok(Some(newer)) = outdated(connection).await {
        return fault(NAME, newer.to_string(), "install that version or a newer one");
    }
    match is_up_to_date(connection).await {
        Ok(true) => match altered(connection).await {
            Ok(None) => ok(NAME, "the database is up to date"),
            Ok(Some(version)) => {
                let found = format!("migration {version} was applied with another text than this program has");
                fault(NAME, found, "install the release that the database is of, or restore a backup of before")
            }
            Err(error) => fault(NAME, said(&error), "look at the database's log"),
        },
        Ok(false) => warning(NAME, "the database is not up to date", "run permit-notifier migrate"),
        Err(error) => fault(NAME, said(&error), "look at the database's log"),
    }
}

/// Whether this is the database that wrote the memory of what was sent; nothing to say before the first start.
async fn check_memory(connection: &mut PgConnection) -> Option<Check> {
    let marks = compare_marks(connection).await.ok().filter(|marks| !marks.is_empty())?;
    if let Some(differs) = difference(&marks) {
        let found =
            format!("this is not the database that wrote it, or an older state of it: {differs}; nothing is sent");
        let advice = "compare it with the mail server's log (audit), then run permit-notifier resume --reason TEXT";
        return Some(fault("memory", found, advice));
    }
    let hidden: Vec<&str> = marks.iter().filter(|mark| mark.present.is_none()).map(|mark| mark.name.as_str()).collect();
    if hidden.is_empty() {
        return Some(ok("memory", "this is the database that wrote it"));
    }
    let found = format!("this account may not read the {}; the other marks guard it", hidden.join(" and the "));
    let advice = "grant execute on pg_control_system(), pg_current_wal_lsn() and pg_walfile_name(pg_lsn)";
    Some(warning("memory", found, advice))
}

#[expect(clippy::disallowed_methods, reason = "comparing the host's clock with the database's is the point")]
fn check_clock(database: DateTime<Utc>) -> Check {
    let difference = (Utc::now() - database).num_milliseconds().abs();
    let found = format!("this host and the database differ by {difference} ms");
    if difference < 5_000 {
        ok("clock", found)
    } else {
        warning("clock", found, "the database's clock decides; set both by NTP")
    }
}

fn check_schedule(config: &Config, now: DateTime<Utc>) -> Check {
    let offset = config.clock.map(|starts_at| starts_at - now).unwrap_or_default();
    let now = SystemClock { offset }.business(now);
    let zone = config.time_zone;
    let next: Vec<String> = config
        .scan_schedule
        .upcoming(now, 5)
        .iter()
        .map(|at| at.with_timezone(&zone).format("%a %Y-%m-%d %H:%M:%S %Z").to_string())
        .collect();
    ok("schedule", format!("{} in {zone}; next {}", config.scan_schedule.expression(), next.join(", ")))
}
