//! Nobody is forgotten: whatever is done to a permit while some of its copies are in flight and it is not owed for a
//! while, in the end each one on it has the notice, and nobody has it twice.

use std::{collections::HashSet, sync::LazyLock};

use chrono::TimeDelta;
use permit_notifier::{domain::permit::PermitStatus, store::permits::PermitData};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::check;
use crate::support::postbox::{
    Postbox, in_days,
    mailer::{Point, Reply, deferred, lost, rejected},
    verbs::address,
};

/// Those of the holder, the agent and the owner first, then others.
const ADDRESSES: [&str; 5] =
    ["holder@x.example", "agent@x.example", "owner@x.example", "new-1@x.example", "new-2@x.example"];

/// What becomes of a copy that is on its way when it is barred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Fate {
    /// It has not passed the gate, and does not.
    Waits,
    Taken,
    TakenAndLost,
    Lost,
    Rejected,
    Deferred,
}

/// Why nothing is owed for a while.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Bar {
    Paused,
    /// Until a day that comes.
    PausedUntil,
    Suspended,
    Archived,
    StepOff,
    OtherDate,
    /// It is owed all the time.
    Nothing,
}

/// Done to the permit meanwhile; addresses are named by their place.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Change {
    Holder(Option<usize>),
    Contact(usize, Option<usize>),
    Suppress(usize),
    Scan,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Case {
    fates: [Fate; 3],
    bar: Bar,
    /// Before what was in flight came to its end.
    during: Vec<Change>,
    after: Vec<Change>,
    /// Once it is owed again.
    later: Vec<Change>,
}

fn cases() -> impl Strategy<Value = Case> {
    let fate = prop::sample::select(vec![
        Fate::Waits,
        Fate::Waits,
        Fate::Taken,
        Fate::TakenAndLost,
        Fate::Lost,
        Fate::Rejected,
        Fate::Deferred,
    ]);
    let bar = prop::sample::select(vec![
        Bar::Paused,
        Bar::PausedUntil,
        Bar::Suspended,
        Bar::Archived,
        Bar::StepOff,
        Bar::OtherDate,
        Bar::Nothing,
    ]);
    let (some, one) = (prop::option::weighted(0.85, 0..ADDRESSES.len()), 0..ADDRESSES.len());
    let change = prop_oneof![
        3 => some.clone().prop_map(Change::Holder),
        3 => (0..2_usize, some).prop_map(|(contact, to)| Change::Contact(contact, to)),
        1 => one.prop_map(Change::Suppress),
        1 => Just(Change::Scan),
    ];
    let changes = prop::collection::vec(change, 0..3);
    let parts = ([fate.clone(), fate.clone(), fate], bar, changes.clone(), changes.clone(), changes);
    parts.prop_map(|(fates, bar, during, after, later)| Case { fates, bar, during, after, later })
}

async fn change(post: &Postbox, permit: Uuid, change: Change) {
    let named = |to: Option<usize>| to.map(|place| address(ADDRESSES[place]));
    match change {
        Change::Holder(to) => post.correct(permit, |p| p.holder_email = named(to)).await,
        Change::Contact(contact, to) => post.correct(permit, |p| p.contacts[contact].email = named(to)).await,
        Change::Suppress(which) => {
            if !suppressed(post).await.contains(ADDRESSES[which]) {
                post.suppress(ADDRESSES[which]).await;
            }
        }
        Change::Scan => post.scan().await,
    }
}

async fn bar(post: &Postbox, permit: Uuid, bar: Bar, on: bool) {
    let correct = async |edit: fn(&mut PermitData, bool)| post.correct(permit, |p| edit(p, on)).await;
    match bar {
        Bar::Paused => correct(|p, on| p.notices_paused_until = on.then(|| in_days(60))).await,
        Bar::PausedUntil if on => correct(|p, _| p.notices_paused_until = Some(in_days(5))).await,
        Bar::PausedUntil => post.clock.advance(TimeDelta::days(6)),
        Bar::Suspended => {
            correct(|p, on| p.status = if on { PermitStatus::Suspended } else { PermitStatus::Active }).await;
        }
        Bar::Archived if on => post.archive(permit).await,
        Bar::Archived => post.restore(permit).await,
        Bar::StepOff if on => post.remove_step().await,
        Bar::StepOff => post.bring_step_back().await,
        Bar::OtherDate => correct(|p, on| p.expires_on = in_days(if on { 300 } else { 30 })).await,
        Bar::Nothing => {}
    }
}

/// Lets it all happen, and sends what is owed then.
async fn live(post: &Postbox, case: &Case) -> Uuid {
    let permit = post.permit_with(ADDRESSES[0], in_days(30), &ADDRESSES[1..3]).await;
    let mut stops = Vec::new();
    for (fate, to) in case.fates.iter().zip(ADDRESSES) {
        let point = if *fate == Fate::Waits { Point::Offered } else { Point::BeforeFinal };
        stops.push(post.mailer.stop(to, point));
        match fate {
            Fate::Waits | Fate::Taken => {}
            Fate::TakenAndLost => post.mailer.reply(to, Reply::TakeAndLose),
            Fate::Lost => post.mailer.reply(to, lost()),
            Fate::Rejected => post.mailer.reply(to, rejected()),
            Fate::Deferred => post.mailer.reply(to, deferred()),
        }
    }
    let replica = post.replica(3).await;
    let pass = replica.begin_once();
    for stop in &mut stops {
        stop.arrived().await;
    }
    bar(post, permit, case.bar, true).await;
    for one in &case.during {
        change(post, permit, *one).await;
    }
    stops.into_iter().for_each(crate::support::postbox::mailer::Stop::release);
    pass.done().await;
    replica.leave().await;
    for one in &case.after {
        change(post, permit, *one).await;
    }
    bar(post, permit, case.bar, false).await;
    post.scan().await;
    for one in &case.later {
        change(post, permit, *one).await;
    }
    post.scan().await;
    for _ in 0..4 {
        post.clock.advance(TimeDelta::hours(4));
        post.breaker_lets_probe().await;
        post.dispatch().await;
    }
    permit
}

async fn suppressed(post: &Postbox) -> HashSet<String> {
    let all = sqlx::query_scalar("SELECT address FROM suppressions");
    all.fetch_all(&mut post.session().await).await.expect("the suppressions").into_iter().collect()
}

/// Role and address of everybody on the permit who may be mailed and was not: not under this address, nor, when it was
/// handed over before the move, under a former one.
const FORGOTTEN: &str = "
    SELECT who.role || ' ' || who.email FROM permits p
    CROSS JOIN LATERAL (SELECT p.holder_email AS email, 'holder' AS role WHERE p.holder_email IS NOT NULL
                        UNION SELECT c.email, c.role FROM contacts c
                        WHERE c.permit_id = p.id AND c.email IS NOT NULL) AS who
    WHERE NOT EXISTS (SELECT FROM suppressions s WHERE s.address = who.email)
      AND NOT EXISTS (SELECT FROM notices n JOIN deliveries d ON d.notice_id = n.id
                      WHERE n.permit_id = p.id AND n.notice_type = 'expires-30d' AND n.expires_on = p.expires_on
                        AND (d.recipient = who.email AND d.state IN ('sent', 'ambiguous', 'failed')
                             OR d.role = who.role AND d.state IN ('sent', 'ambiguous')))";

/// Whether nobody can be mailed, the holder was never told, and no letter is owed.
const NO_LETTER: &str = "
    SELECT count(*) FROM permits p
    WHERE NOT EXISTS (SELECT FROM (SELECT p.holder_email AS email UNION ALL
                                   SELECT c.email FROM contacts c WHERE c.permit_id = p.id) AS who
                      WHERE who.email IS NOT NULL AND NOT EXISTS (SELECT FROM suppressions s WHERE s.address = who.email))
      AND NOT EXISTS (SELECT FROM notices n JOIN deliveries d ON d.notice_id = n.id
                      WHERE n.permit_id = p.id AND n.notice_type = 'expires-30d'
                        AND (d.role = 'holder' AND d.state IN ('sent', 'ambiguous', 'failed')
                             OR d.channel = 'letter' AND d.state = 'pending'))";

async fn is_served(case: &Case) -> Result<(), TestCaseError> {
    let post = Postbox::open().await;
    live(&post, case).await;
    post.check().await;
    let forgotten: Vec<String> =
        sqlx::query_scalar(FORGOTTEN).fetch_all(&mut post.session().await).await.expect("who was forgotten");
    prop_assert!(forgotten.is_empty(), "forgotten: {forgotten:?}, told: {:?}", post.mailer.taken_by());
    prop_assert_eq!(post.count(NO_LETTER).await, 0, "nobody can be mailed, and there is no letter");
    let waiting = "SELECT count(*) FROM deliveries WHERE state IN ('pending', 'sending', 'held') AND channel = 'email'
                   AND next_attempt_at < '2027-03-20'";
    prop_assert_eq!(post.count(waiting).await, 0, "it still waits");
    let told = post.mailer.taken_by();
    let addresses: HashSet<&String> = told.iter().collect();
    prop_assert_eq!(addresses.len(), told.len(), "told twice: {:?}", told);
    Ok(())
}

#[test]
fn nobody_is_forgotten_and_nobody_told_twice() {
    static RUNTIME: LazyLock<tokio::runtime::Runtime> =
        LazyLock::new(|| tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime"));
    check("served", 24, cases(), |case| RUNTIME.block_on(is_served(case)));
}
