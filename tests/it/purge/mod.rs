//! What is old is removed, and the memory of what was sent is not.

mod again;
mod kinds;
mod parts;
mod passing;
mod trouble;

use std::path::PathBuf;
use std::sync::Arc;

use chrono::TimeDelta;
use permit_notifier::config::Retention;
use permit_notifier::purge::{PurgeRules, Purged, Removed, run_once};
use permit_notifier::store::purge::PurgeTrigger;
use tokio_util::sync::CancellationToken;

use crate::support::postbox::Postbox;

/// Two years of everything.
fn two_years() -> Retention {
    Retention { content: Some(TimeDelta::days(730)), personal: Some(TimeDelta::days(730)) }
}

fn rules(post: &Postbox) -> PurgeRules {
    PurgeRules {
        direct_url: post.url.clone(),
        clock: Arc::clone(&post.clock) as _,
        zone: chrono_tz::UTC,
        keep: two_years(),
        mail_folder: PathBuf::from("/nonexistent"),
        stop: CancellationToken::new(),
    }
}

async fn purge_with(rules: &PurgeRules, dry_run: bool) -> Removed {
    match run_once(rules, PurgeTrigger::Command, dry_run).await.expect("a purge") {
        Purged::Done(removed) => removed,
        Purged::HeldElsewhere => panic!("nobody else purges"),
    }
}

async fn purge(post: &Postbox) -> Removed {
    purge_with(&rules(post), false).await
}

/// Every row of every table in which one of these texts stands, but suppressions.
async fn rows_with(post: &Postbox, texts: &[&str]) -> Vec<String> {
    let mut session = post.session().await;
    let tables: Vec<String> = sqlx::query_scalar(
        "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'suppressions' ORDER BY 1",
    )
    .fetch_all(&mut session)
    .await
    .expect("the tables");
    let mut found = Vec::new();
    for table in tables {
        // Bytes are shown as their text.
        let query = match table.as_str() {
            "idempotency_keys" => "SELECT key || ' ' || encode(body, 'escape') FROM idempotency_keys".to_owned(),
            "attempt_messages" => "SELECT convert_from(content, 'UTF8') FROM attempt_messages".to_owned(),
            _ => format!("SELECT row_to_json(t)::text FROM {table} t"),
        };
        let rows: Vec<String> =
            sqlx::query_scalar(sqlx::AssertSqlSafe(query)).fetch_all(&mut session).await.expect("rows");
        let told = rows.into_iter().filter(|row| texts.iter().any(|text| row.contains(text)));
        found.extend(told.map(|row| format!("{table}: {row}")));
    }
    found
}
