//! The storm: processes that are killed, stopped and ended, a mail server that fails in every way, a database that
//! drops its connections and loses answers, scans of all processes at once, and people who change permits and a permit
//! type, import files and act on notices meanwhile. Then everything is well again, and what the server took must be what the database says.
//!
//! It runs alone, by `cargo test --test it storm:: -- --ignored --nocapture`. `STORM_SEED=7` or `STORM_SEEDS=1..50` say
//! which storms, `STORM_NOTICES` (600), `STORM_SECONDS` and `STORM_REPLY_MILLIS` how large. `STORM_WITHOUT` takes a
//! protection away ([`without`]): then it must turn red.

mod fleet;
mod people;
mod settings;
mod truth;
mod weather;
mod without;

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use chrono::TimeDelta;
use fastrand::Rng;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::support::{
    postbox::{Postbox, in_days},
    smtp_server::{Behaviour, SmtpServer},
};
use fleet::Fleet;
use settings::Settings;
use truth::Class;

/// The permits that those look like which turn up during a storm. Nobody changes them.
const PATTERN: &str = "pattern@x.example";
/// The same of the type [`STAGE`].
const STAGE_PATTERN: &str = "stage-pattern@x.example";

/// The permit type that people change; every third permit is of it.
const STAGE: &str = "stage";

#[ignore = "wants the machine for itself"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_and_nothing_goes_twice() {
    let settings = Settings::read();
    // By seed, what is wrong: the last words say it, whatever becomes of the stories.
    let mut red = Vec::new();
    for seed in &settings.seeds {
        let differences = Box::pin(storm(*seed, &settings)).await;
        // At once: the next storm may take long.
        for difference in differences.iter().take(6) {
            println!("{}", difference.story);
        }
        if !differences.is_empty() {
            let what: BTreeSet<_> =
                differences.iter().filter_map(|difference| difference.story.lines().next()).collect();
            red.push(format!("{seed}: {what:?}"));
        }
    }
    assert!(red.is_empty(), "red, each by STORM_SEED: {}", red.join("; "));
}

/// One storm and its one line; gives back what is wrong in the end. The seconds in the line are those at the end of the
/// preparations, the storm, the draining and the comparing.
async fn storm(seed: u64, settings: &Settings) -> Vec<truth::Difference> {
    let began = Instant::now();
    let post = Postbox::open().await;
    post.execute(truth::LOG).await;
    post.execute(people::TABLE).await;
    for without in &settings.without {
        without.apply(&post).await;
    }
    let to_come = settings.notices / 5;
    let permits = due(&post, settings.notices - to_come).await;
    // As autovacuum would have done long ago in an office of that size.
    post.execute("ANALYZE").await;
    let server = SmtpServer::start(Behaviour { final_reply: settings.reply, ..Behaviour::default() });

    let mut spent = vec![began.elapsed()];
    let mut random = Rng::with_seed(seed);
    let mut peoples_luck = random.fork();
    let stop = CancellationToken::new();
    let mut fleet = Fleet::start(&post, &server, settings, to_come, random).await;
    let (people, ()) = tokio::join!(people::run(&post, settings, &permits, &mut peoples_luck, &stop), async {
        let end = Instant::now() + settings.length;
        while Instant::now() < end {
            fleet.tick().await;
        }
        stop.cancel();
    });
    let mut count = fleet.end().await;
    spent.push(began.elapsed());
    server.hurry();
    let passes = drain(&post, &server).await;

    spent.push(began.elapsed());
    let faults = std::mem::take(&mut count.faults).into_iter().map(truth::Difference::unexplained);
    let differences: Vec<_> = faults.chain(truth::differences(&post, &server).await).collect();
    let of = |class| differences.iter().filter(|difference| difference.class == class).count();
    spent.push(began.elapsed());
    let spent: Vec<String> = spent.iter().map(|spent| spent.as_secs().to_string()).collect();
    let people::Count { changes, schedules, imports, actions } = people;
    println!(
        "storm {seed}: {} notices, {count}, {changes} changes, {schedules} schedules, {imports} imports, {actions} actions, {} scans, \
         {} accepted, {} ambiguous, {} deadlocks, {passes} passes, {} s; {} duplicates, {} lost, {} unexplained",
        post.count("SELECT count(*) FROM notices WHERE notice_type = 'expires-30d'").await,
        post.count("SELECT count(*) FROM scans WHERE outcome = 'completed'").await,
        server.accepted().len(),
        post.count("SELECT count(*) FROM attempts WHERE outcome = 'ambiguous'").await,
        post.count("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").await,
        spent.join(" "),
        of(Class::Duplicate),
        of(Class::Lost),
        of(Class::Unexplained),
    );
    differences
}

/// Permits of which each has a notice that is due.
async fn due(post: &Postbox, count: usize) -> Vec<Uuid> {
    post.permit("holder000@x.example").await;
    // Some have copies that are sent at the same time; each is recorded by itself, which takes its time.
    let several = (count / 10).min(100);
    post.more_of_the_same(count - several).await;
    for number in 0..several {
        let contacts = [format!("agent{number}@x.example"), format!("owner{number}@x.example")];
        let contacts: Vec<&str> = contacts.iter().map(String::as_str).collect();
        post.permit_with(&format!("several{number}@x.example"), in_days(30), &contacts).await;
    }
    let permits = "SELECT id FROM permits ORDER BY holder_email";
    let permits = sqlx::query_scalar(permits).fetch_all(&mut post.session().await).await.expect("the permits");
    post.permit(PATTERN).await;
    post.permit(STAGE_PATTERN).await;
    people::schedules::put_up(post).await;
    post.execute(
        "UPDATE permits SET permit_type = 'stage' WHERE holder_email = 'stage-pattern@x.example'
             OR id IN (SELECT id FROM (SELECT id, row_number() OVER (ORDER BY id) AS place FROM permits
                                       WHERE holder_email <> 'pattern@x.example') AS all_but_it WHERE place % 3 = 0)",
    )
    .await;
    permits
}

/// So many permits that have no notice yet although one is due, as if their day had come.
async fn turning_up(post: &Postbox, like: &str, count: usize) {
    let made = "
        WITH made AS (SELECT gen_random_uuid() AS id, gen_random_uuid()::text AS name FROM generate_series(1, $2)),
             added AS (INSERT INTO permits SELECT (jsonb_populate_record(p, jsonb_build_object(
                 'id', m.id, 'permit_number', 'N-' || name, 'number_key', 'n-' || name,
                 'holder_email', name || '@x.example'))).* FROM made m, permits p WHERE p.holder_email = $1),
             termed AS (INSERT INTO terms SELECT (jsonb_populate_record(t, jsonb_build_object('permit_id', m.id))).*
                 FROM made m, terms t JOIN permits p ON p.id = t.permit_id WHERE p.holder_email = $1)
        INSERT INTO expiry_periods SELECT (jsonb_populate_record(e, jsonb_build_object('permit_id', m.id))).*
        FROM made m, expiry_periods e JOIN permits p ON p.id = e.permit_id WHERE p.holder_email = $1";
    let count = i32::try_from(count).expect("a few");
    sqlx::query(made).bind(like).bind(count).execute(&mut post.session().await).await.expect("more permits");
}

/// The server is well and nobody dies any more: scans once, and sends until nothing waits. Says in how many passes.
async fn drain(post: &Postbox, server: &SmtpServer) -> usize {
    post.scan().await;
    for pass in 0..60 {
        // Nobody lives between two passes, whatever the last one left when it took too long.
        post.age_processes().await;
        people::actions::release_all(post).await;
        post.breaker_lets_probe().await;
        post.execute("UPDATE transport SET closed_at = closed_at - interval '1 hour'").await;
        let rest = "SELECT count(*) FROM deliveries WHERE state IN ('pending', 'sending') AND channel = 'email'";
        let open = "SELECT count(*) FROM attempts WHERE outcome = 'sending'";
        if post.count(rest).await == 0 && post.count(open).await == 0 {
            return pass;
        }
        post.clock.advance(TimeDelta::hours(4));
        let mailer = crate::smtp::mailer(&server.url(), crate::smtp::limits());
        // Whatever it does not end, the rules find.
        let sending = post.dispatch_with(Arc::new(mailer));
        let _ = tokio::time::timeout(Duration::from_mins(5), sending).await;
    }
    60
}
