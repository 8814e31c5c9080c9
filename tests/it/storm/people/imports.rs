//! Files that are imported meanwhile: each renews some permits and gives others a new address.

use std::{fmt::Write as _, time::Duration};

use fastrand::Rng;
use permit_notifier::files::{self, ImportError, ImportOptions, ImportRules};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{begins, choose, is_committed, rest};
use crate::support::postbox::{Postbox, in_days};

/// Imports one file after another until `stop`, each permit once. Says how many.
pub async fn run(
    post: &Postbox,
    mut untouched: Vec<Uuid>,
    pause: Duration,
    mut random: Rng,
    stop: &CancellationToken,
) -> u32 {
    let folder = tempfile::tempdir().expect("a folder");
    let mut count = 0;
    while !stop.is_cancelled() && !untouched.is_empty() {
        let mut permits = Vec::new();
        for _ in 0..random.usize(1..10) {
            permits.extend(choose(post, &mut untouched, &mut random).await);
        }
        import(post, &folder, &permits, count, &mut random).await;
        count += 1;
        rest(pause, stop).await;
    }
    count
}

async fn import(post: &Postbox, folder: &TempDir, permits: &[Uuid], number: u32, random: &mut Rng) {
    let known = "SELECT permit_number, permit_type, holder_name, coalesce(holder_email, ''), expires_on::text
                 FROM permits WHERE id = $1";
    let mut text = "permit_number,permit_type,holder_name,holder_email,expires_on\n".to_owned();
    let mut changes = Vec::new();
    for (row, permit) in permits.iter().enumerate() {
        let (permit_number, permit_type, holder, email, expires_on): (String, String, String, String, String) =
            sqlx::query_as(known).bind(permit).fetch_one(&mut post.session().await).await.expect("the permit");
        let renews = random.bool();
        let kind = if renews { "Renew" } else { "Readdress" };
        changes.push(begins(post, *permit, None, kind).await);
        let (email, expires_on) = if renews {
            (email, in_days(395).to_string())
        } else {
            (format!("import{number}-{row}@x.example"), expires_on)
        };
        writeln!(text, "{permit_number},{permit_type},{holder},{email},{expires_on}").expect("a line");
    }
    let path = folder.path().join("permits.csv");
    std::fs::write(&path, text).expect("the file");
    let catch_up = random.bool();
    let (moment, zone, by) = (post.moment(), chrono_tz::UTC, "import");
    let rules =
        ImportRules { moment, zone, window: None, claim_limit: 0, catch_up, complete: false, dry_run: false, by };
    match files::import(&post.url, files::Input::Path(path.clone()), &ImportOptions::default(), &rules, |_| {}).await {
        Ok(report) => {
            assert_eq!(report.permits_renewed + report.permits_updated, permits.len() as u64, "{report:?}");
            is_committed(post, &changes).await;
        }
        // Its connection was cut: all or nothing of it is there, and the permits are not used again.
        Err(ImportError::Away(_) | ImportError::Unknown(_) | ImportError::InTheWay(_)) => {}
        Err(error) => panic!("an import: {error}"),
    }
}
