//! Work on a pooled connection that is dropped while it waits.

use permit_notifier::store::connect;
use sqlx::PgPool;

use crate::support::{dropped::dropped_after, postbox::Postbox};

async fn change(pool: &PgPool) -> Result<(), sqlx::Error> {
    let mut transaction = pool.begin().await?;
    sqlx::query("INSERT INTO saved VALUES (NULL)").execute(&mut *transaction).await?;
    transaction.commit().await
}

#[tokio::test]
async fn work_dropped_at_any_moment_takes_no_saved_change_with_it() {
    const ROUNDS: usize = 150;
    let post = Postbox::open().await;
    post.execute("CREATE TABLE saved (number bigint)").await;
    let pool = connect::pool(&post.url, 2).expect("a pool");
    let mut whole = 0;
    for round in 0..ROUNDS {
        // BEGIN is among what it waits for.
        whole += usize::from(dropped_after(round % 15, change(&pool)).await.is_some());
        let saved = sqlx::query("INSERT INTO saved VALUES ($1)").bind(round as i64).execute(&pool).await;
        saved.expect("a change that is saved");
    }
    assert!(whole > 0 && whole < ROUNDS, "{whole} came to their end");
    assert_eq!(post.count("SELECT count(DISTINCT number) FROM saved").await, ROUNDS as i64);
    pool.close().await;
}

#[tokio::test]
async fn connections_for_reading_refuse_every_change() {
    let post = Postbox::open().await;
    post.execute("CREATE TABLE saved (number bigint)").await;
    let pool = connect::reading_pool(&post.url, 1).expect("a pool");
    for _ in 0..2 {
        let refused = change(&pool).await.expect_err("no change");
        let code = refused.as_database_error().and_then(|error| error.code().map(std::borrow::Cow::into_owned));
        assert_eq!(code.as_deref(), Some("25006"), "{refused}");
        let seen: i64 = sqlx::query_scalar("SELECT count(*) FROM saved").fetch_one(&pool).await.expect("a count");
        assert_eq!(seen, 0);
    }
    pool.close().await;
}
