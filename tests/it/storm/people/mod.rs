//! What people do beside the storm: they change permits and a permit type, import files, and act on notices. Since when each deed is
//! committed, and until when it lasts at least, is written down by the database's own clock.

pub mod actions;
pub mod changes;
pub mod imports;
pub mod schedules;

use std::time::Duration;

use fastrand::Rng;
use permit_notifier::store::StoreError;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::settings::Settings;
use crate::support::postbox::Postbox;

/// Of a permit or of all of a type. `expires_on` and `address` are those of the permit before, `before` is what the type
/// said; it was all `back_at` some time at the latest.
pub const TABLE: &str = "
    CREATE TABLE storm_changes (
        id uuid PRIMARY KEY, permit_id uuid, permit_type text, notice_id uuid, kind text NOT NULL, expires_on date,
        address text, before text, began_at timestamptz NOT NULL DEFAULT clock_timestamp(), committed_at timestamptz,
        undone_at timestamptz, back_at timestamptz, CHECK ((permit_id IS NULL) <> (permit_type IS NULL)));
    CREATE INDEX ON storm_changes (permit_id);
    CREATE INDEX ON storm_changes (permit_type);";

/// How often people did what.
#[derive(Debug, Default)]
pub struct Count {
    pub changes: u32,
    pub schedules: u32,
    pub imports: u32,
    pub actions: u32,
}

/// All people at work until `stop`.
pub async fn run(
    post: &Postbox,
    settings: &Settings,
    permits: &[Uuid],
    random: &mut Rng,
    stop: &CancellationToken,
) -> Count {
    let mut permits = permits.to_vec();
    random.shuffle(&mut permits);
    // A few are left alone.
    permits.truncate(permits.len() * 5 / 6);
    let for_imports = permits.split_off(permits.len() * 2 / 3);
    let pause = |often| settings.pause(often);
    let (changes, schedules, imports, actions) = tokio::join!(
        changes::run(post, permits, pause(300), random.fork(), stop),
        schedules::run(post, pause(30), random.fork(), stop),
        imports::run(post, for_imports, pause(30), random.fork(), stop),
        actions::run(post, pause(150), random.fork(), stop),
    );
    Count { changes, schedules, imports, actions }
}

async fn rest(pause: Duration, stop: &CancellationToken) {
    stop.run_until_cancelled(tokio::time::sleep(pause)).await;
}

/// Writes down that this is about to happen to a permit, or to one of its notices.
async fn begins(post: &Postbox, permit: Uuid, notice: Option<Uuid>, kind: &str) -> Uuid {
    let id = Uuid::now_v7();
    sqlx::query(
        "INSERT INTO storm_changes (id, permit_id, notice_id, kind, expires_on, address)
         SELECT $1, id, $2, $3, expires_on, holder_email FROM permits WHERE id = $4",
    )
    .bind(id)
    .bind(notice)
    .bind(kind)
    .bind(permit)
    .execute(&mut post.session().await)
    .await
    .expect("a note of it");
    id
}

async fn is_committed(post: &Postbox, ids: &[Uuid]) {
    note(post, "UPDATE storm_changes SET committed_at = clock_timestamp() WHERE id = ANY ($1)", ids).await;
}

/// Before it is taken back.
async fn lasts_no_longer(post: &Postbox, ids: &[Uuid]) {
    note(post, "UPDATE storm_changes SET undone_at = clock_timestamp() WHERE id = ANY ($1)", ids).await;
}

/// It was taken back.
async fn is_back(post: &Postbox, ids: &[Uuid]) {
    note(post, "UPDATE storm_changes SET back_at = clock_timestamp() WHERE id = ANY ($1)", ids).await;
}

async fn note(post: &Postbox, statement: &'static str, ids: &[Uuid]) {
    sqlx::query(statement).bind(ids).execute(&mut post.session().await).await.expect("a note of it");
}

/// Mostly one whose message is on its way to the gate just now: that is when a change is hard to heed.
async fn choose(post: &Postbox, untouched: &mut Vec<Uuid>, random: &mut Rng) -> Option<Uuid> {
    let leased = "SELECT n.permit_id FROM deliveries d JOIN notices n ON n.id = d.notice_id
                  WHERE d.lease_token IS NOT NULL AND d.state = 'pending' AND n.permit_id = ANY ($1)
                  ORDER BY random() LIMIT 1";
    if random.u8(0..4) > 0 {
        let found: Option<Uuid> = sqlx::query_scalar(leased)
            .bind(&*untouched)
            .fetch_optional(&mut post.session().await)
            .await
            .expect("one or none");
        if let Some(permit) = found {
            untouched.retain(|other| *other != permit);
            return Some(permit);
        }
    }
    untouched.pop()
}

/// Whether it was done. Refused is what the rules refuse; anything else would be a fault of the product.
fn was_done<T>(what: &str, result: Result<T, StoreError>) -> bool {
    match result {
        Ok(_) => true,
        Err(StoreError::WrongState { .. } | StoreError::BeingSent | StoreError::Invalid { .. }) => false,
        Err(error) => panic!("{what}: {error}"),
    }
}
