//! What a zone's clocks do, worked out from nothing but the offset at an instant.

use std::ops::Range;

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Offset as _, TimeDelta, TimeZone as _, Utc};
use chrono_tz::Tz;

/// A time without a change of the clocks: from, until, and local time minus UTC.
#[derive(Debug, Clone, Copy)]
pub struct Stretch {
    pub from: DateTime<Utc>,
    pub until: DateTime<Utc>,
    pub offset: TimeDelta,
}

fn offset(zone: Tz, instant: DateTime<Utc>) -> i32 {
    zone.offset_from_utc_datetime(&instant.naive_utc()).fix().local_minus_utc()
}

/// The stretches that make up a time. Changes that are undone within the hour are not seen; there are none.
pub fn stretches(zone: Tz, time: Range<DateTime<Utc>>) -> Vec<Stretch> {
    let mut found = Vec::new();
    let (mut from, mut at) = (time.start, time.start);
    while at < time.end {
        let next = (at + TimeDelta::hours(1)).min(time.end);
        let before = offset(zone, at);
        if before != offset(zone, next) {
            let (mut low, mut high) = (at, next);
            while high - low > TimeDelta::seconds(1) {
                let middle = low + TimeDelta::seconds((high - low).num_seconds() / 2);
                if offset(zone, middle) == before { low = middle } else { high = middle }
            }
            found.push(Stretch { from, until: high, offset: TimeDelta::seconds(before.into()) });
            from = high;
        }
        at = next;
    }
    found.push(Stretch { from, until: time.end, offset: TimeDelta::seconds(offset(zone, from).into()) });
    found
}

/// The next change of the clocks within some 400 days, else the instant itself.
pub fn next_change(zone: Tz, after: DateTime<Utc>) -> DateTime<Utc> {
    let quarter_days = (0..1600).map(|n| after + TimeDelta::hours(6 * n));
    let begins = offset(zone, after);
    let Some(changed) = quarter_days.into_iter().find(|at| offset(zone, *at) != begins) else { return after };
    stretches(zone, changed - TimeDelta::hours(6)..changed).last().map_or(after, |last| last.from)
}

/// The first instant at which clocks show a wall time; where none ever does, the change that passed it over.
pub fn first_shown(stretches: &[Stretch], wall: NaiveDateTime) -> Option<DateTime<Utc>> {
    let shown = |stretch: &&Stretch| {
        let instant = wall.and_utc() - stretch.offset;
        stretch.from <= instant && instant < stretch.until
    };
    if let Some(stretch) = stretches.iter().find(shown) {
        return Some(wall.and_utc() - stretch.offset);
    }
    let passed = |two: &&[Stretch]| {
        let change = two[1].from.naive_utc();
        change + two[0].offset <= wall && wall < change + two[1].offset
    };
    stretches.windows(2).find(passed).map(|two| two[1].from)
}

/// The first instant whose local day is `day`; where no instant has it, the first of the next day.
pub fn first_of_day(stretches: &[Stretch], day: NaiveDate) -> Option<DateTime<Utc>> {
    let midnight = day.and_time(NaiveTime::MIN).and_utc();
    let reaches = |stretch: &Stretch| {
        let first = stretch.from.max(midnight - stretch.offset);
        (first < stretch.until).then_some(first)
    };
    stretches.iter().find_map(reaches)
}
