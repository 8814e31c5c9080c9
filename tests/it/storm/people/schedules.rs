//! A permit type that is changed: its step that is due is switched off, removed or moved and comes back, and what its
//! mails say is reworded.

use std::time::Duration;

use fastrand::Rng;
use permit_notifier::{
    domain::schedule::{Schedule, Step},
    store::{
        changes::ChangeRules,
        lists::permit_types::{Expected, TypeData, write_type},
    },
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{is_committed, lasts_no_longer, rest};
use crate::{storm::STAGE, support::postbox::Postbox};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    StepOff,
    StepGone,
    /// It is not due any more.
    StepLater,
    /// It is due, and has been for longer.
    StepEarlier,
    /// As it was in the beginning.
    StepUsual,
    /// The schedule stays as it is.
    Reword,
}

/// As often one under which the step is owed as one under which it is not.
const KINDS: [Kind; 8] = [
    Kind::StepOff,
    Kind::StepGone,
    Kind::StepLater,
    Kind::StepEarlier,
    Kind::StepUsual,
    Kind::StepUsual,
    Kind::Reword,
    Kind::Reword,
];

impl Kind {
    /// The schedule that it puts in the place of the present one.
    fn schedule(self) -> Option<Schedule> {
        let usual = Schedule::usual();
        let changed = |step: &Step| {
            let step = step.clone();
            if step.notice_type.as_str() != "expires-30d" {
                return Some(step);
            }
            match self {
                Self::StepOff => Some(Step { enabled: false, ..step }),
                Self::StepGone => None,
                Self::StepLater => Some(Step { offset_days: Some(-9), ..step }),
                Self::StepEarlier => Some(Step { offset_days: Some(-40), ..step }),
                Self::StepUsual | Self::Reword => Some(step),
            }
        };
        let steps = usual.steps().iter().filter_map(changed).collect();
        (self != Self::Reword).then(|| Schedule::new(steps).expect("a schedule"))
    }
}

/// Changes the type again and again until `stop`, and leaves it as it then is. Says how often.
pub async fn run(post: &Postbox, pause: Duration, mut random: Rng, stop: &CancellationToken) -> u32 {
    let (mut schedule, mut put_by) = (Schedule::usual(), Uuid::nil());
    let (mut count, mut reworded) = (0, 0);
    while !stop.is_cancelled() {
        let kind = *random.choice(&KINDS).expect("some");
        let note = begins_for_all(post, kind, &words(reworded)).await;
        match kind.schedule() {
            Some(next) => {
                lasts_no_longer(post, &[put_by]).await;
                (schedule, put_by) = (next, note);
            }
            None => reworded += 1,
        }
        write(post, Expected::Any, schedule.clone(), &words(reworded)).await;
        is_committed(post, &[note]).await;
        count += 1;
        rest(pause, stop).await;
    }
    count
}

/// What it says after so many changes, which it never said before.
fn words(number: u32) -> String {
    format!("https://permits.example/{number:05}")
}

/// Makes the type.
pub async fn put_up(post: &Postbox) {
    write(post, Expected::None, Schedule::usual(), &words(0)).await;
}

async fn write(post: &Postbox, expected: Expected, schedule: Schedule, words: &str) {
    let (code, data) = (STAGE.parse().expect("a code"), data(schedule, words));
    let rules = ChangeRules::at(post.moment(), None);
    write_type(&mut post.session().await, &code, expected, &data, &rules).await.expect("a permit type");
}

fn data(schedule: Schedule, words: &str) -> TypeData {
    let (name, renewal_url) = ("Stages and stands".to_owned(), Some(words.to_owned()));
    TypeData { name, renewal_url, office_contact: None, grace_days: 0, schedule }
}

/// Writes down that this is about to happen to the type, which says `before`.
async fn begins_for_all(post: &Postbox, kind: Kind, before: &str) -> Uuid {
    let id = Uuid::now_v7();
    sqlx::query("INSERT INTO storm_changes (id, permit_type, kind, before) VALUES ($1, $2, $3, $4)")
        .bind(id)
        .bind(STAGE)
        .bind(format!("{kind:?}"))
        .bind(before)
        .execute(&mut post.session().await)
        .await
        .expect("a note of it");
    id
}
