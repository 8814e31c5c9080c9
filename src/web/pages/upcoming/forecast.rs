//! What goes on which day.
//!
//! 1. Most permits are plain: what becomes of a step of theirs that has no notice follows from the schedule and the last
//!    valid day alone, so these are counted in the database, slot by slot ([`Outline::slots`]).
//! 2. Permits whose notices are paused, and those with a notice that could be owed again, are judged one by one by
//!    [`crate::domain::outlook`]; there are few.
//! 3. Notices that are recorded and wait go on their day.
//!
//! Whatever the database finds for a day is judged again, one by one, before it is shown with a name.

use std::collections::HashMap;

use chrono::NaiveDate;
use uuid::Uuid;

use super::super::Pages;
use crate::domain::calendar::plus_days;
use crate::domain::copies::{Owed, copies};
use crate::domain::notice::{NoticeClass, NoticeState, NoticeType};
use crate::domain::outlook::{Prospect, outlook};
use crate::domain::schedule::Schedule;
use crate::domain::timetable::{Slot, timetable};
use crate::domain::window::SendWindow;
use crate::store::PgConnection;
use crate::store::cases::{Case, Hold, Suppressed, load_cases, load_suppressed};
use crate::store::lists::upcoming::{
    Found, NewSlot, Slots, count_upcoming, count_waiting_notices, find_paused, find_upcoming, find_waiting,
    list_holders,
};
use crate::store::owing::find_revivable;
use crate::store::permit_types::{Schedules, load_schedules};
use crate::web::api::problem::Problem;

/// Permits that are judged one by one for an overview, at most; of each kind.
const JUDGED: usize = 2000;
const BATCH: usize = 500;
/// A step goes at most so many days before it is due: the last window day before it is within a week.
const FORWARD: i64 = 7;

/// How many notices of one step go on one day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    pub day: NaiveDate,
    pub notice_type: String,
    pub class: NoticeClass,
    pub count: i64,
    /// They are recorded already, and wait.
    pub is_recorded: bool,
}

/// One notice that goes, with all that a person wants to know of it beforehand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Going {
    pub permit_id: Uuid,
    pub permit_number: String,
    pub holder_name: String,
    pub notice_type: String,
    pub class: NoticeClass,
    pub due_on: Option<NaiveDate>,
    /// Addresses; none for a letter.
    pub to: Vec<String>,
    pub why: String,
    /// The notice, if it is recorded already.
    pub notice_id: Option<Uuid>,
    /// Somebody may still keep it back here: it is recorded and waits, or its day has not come.
    pub can_wait: bool,
}

impl Going {
    /// Tells its fields from those of another.
    pub fn field(&self) -> String {
        field_of(self.permit_id, &self.notice_type)
    }
}

/// Tells the fields of one step of a permit from those of another.
pub fn field_of(permit: Uuid, step: &str) -> String {
    format!("{}-{step}", permit.simple())
}

/// What has to be judged one by one, as it is on one day.
pub struct Outline<'p> {
    pages: &'p Pages,
    today: NaiveDate,
    schedules: Schedules,
    /// Steps of single permits and the day on which each goes.
    special: Vec<Special>,
    is_rough: bool,
}

struct Special {
    permit: Uuid,
    day: NaiveDate,
    notice_type: NoticeType,
    class: NoticeClass,
}

impl<'p> Outline<'p> {
    pub async fn read(pages: &'p Pages, connection: &mut PgConnection, today: NaiveDate) -> Result<Self, Problem> {
        let schedules = load_schedules(&mut *connection).await?;
        let mut due = find_revivable(connection, today, None).await?;
        let paused = find_paused(connection, today, JUDGED as i64 + 1).await?;
        let is_rough = due.len() > JUDGED || paused.len() > JUDGED;
        due.truncate(JUDGED);
        due.extend(paused.into_iter().take(JUDGED));
        due.sort_unstable();
        due.dedup();
        let mut outline = Self { pages, today, schedules, special: Vec::new(), is_rough };
        for batch in due.chunks(BATCH) {
            let cases = load_cases(connection, batch, Hold::Look).await?;
            let suppressed = load_suppressed(connection, &cases).await?;
            let special: Vec<Special> = cases.iter().flat_map(|case| outline.special_of(case, &suppressed)).collect();
            outline.special.extend(special);
        }
        Ok(outline)
    }

    /// Some permits were too many to judge one by one; what is counted is the least.
    pub fn is_rough(&self) -> bool {
        self.is_rough
    }

    fn window(&self) -> Option<&SendWindow> {
        self.pages.api.window.as_ref()
    }

    fn prospects(&self, case: &Case) -> Vec<Prospect> {
        let nothing = Schedule::default();
        let schedule = self.schedules.get(&case.permit_type).unwrap_or(&nothing);
        outlook(&case.standing, schedule, &case.rows, self.today, self.window())
    }

    fn class_of(&self, case: &Case, prospect: &Prospect) -> NoticeClass {
        let step = self.schedules.get(&case.permit_type).and_then(|schedule| schedule.step(&prospect.notice_type));
        let of_row = prospect.row.map(|row| case.rows[row].class);
        of_row.or_else(|| step.map(|step| step.class)).unwrap_or(NoticeClass::Statutory)
    }

    /// What goes of a permit that the database does not count: what is owed again, or anything if its notices are
    /// paused.
    fn special_of<'c>(&'c self, case: &'c Case, suppressed: &'c Suppressed) -> impl Iterator<Item = Special> + 'c {
        let is_paused = case.standing.notices_paused_until.is_some_and(|until| until >= self.today);
        self.prospects(case).into_iter().filter_map(move |prospect| {
            let day = prospect.goes_on?;
            let class = self.class_of(case, &prospect);
            let is_counted = match prospect.row {
                Some(row) => case.rows[row].state == NoticeState::Pending && case.rows[row].superseded.is_none(),
                None => !is_paused,
            };
            let reaches = || !copies(class, &case.recipients, |r| suppressed.forbids(class, &r.address)).is_empty();
            let goes = !is_counted && reaches();
            goes.then_some(Special { permit: case.permit_id, day, notice_type: prospect.notice_type, class })
        })
    }

    /// How many notices of each step go on each day from `from` to `to`, in order.
    pub async fn tally(
        &self,
        connection: &mut PgConnection,
        from: NaiveDate,
        to: NaiveDate,
    ) -> Result<Vec<Tally>, Problem> {
        let mut counts: HashMap<(NaiveDate, bool, String, NoticeClass), i64> = HashMap::new();
        let (slots, names) = self.slots(from, to);
        for ((day, notice_type, class), count) in
            names.into_iter().zip(count_upcoming(connection, &slots, self.today).await?)
        {
            *counts.entry((day, false, notice_type, class)).or_default() += count;
        }
        for special in self.special.iter().filter(|special| (from..=to).contains(&special.day)) {
            let key = (special.day, false, special.notice_type.to_string(), special.class);
            *counts.entry(key).or_default() += 1;
        }
        for row in count_waiting_notices(connection, self.today).await? {
            if (from..=to).contains(&row.day) {
                let class = row.class.parse().map_err(crate::store::StoreError::from)?;
                *counts.entry((row.day, true, row.notice_type, class)).or_default() += row.count;
            }
        }
        let tallies = counts.into_iter().filter(|(_, count)| *count > 0);
        let mut tallies: Vec<Tally> = tallies
            .map(|((day, is_recorded, notice_type, class), count)| Tally {
                day,
                notice_type,
                class,
                count,
                is_recorded,
            })
            .collect();
        tallies.sort_by(|a, b| {
            (a.day, a.is_recorded, &a.notice_type, a.class).cmp(&(b.day, b.is_recorded, &b.notice_type, b.class))
        });
        Ok(tallies)
    }

    /// Permits of which something may go on `day`, by number.
    pub async fn find(
        &self,
        connection: &mut PgConnection,
        day: NaiveDate,
        after: Option<&str>,
        limit: i64,
    ) -> Result<Vec<Found>, Problem> {
        let (slots, _) = self.slots(day, day);
        let mut others: Vec<Uuid> =
            self.special.iter().filter(|special| special.day == day).map(|special| special.permit).collect();
        others.extend(find_waiting(connection, day, self.today, 100_000).await?);
        Ok(find_upcoming(connection, &slots, &others, self.today, after, limit).await?)
    }

    /// What goes of these permits on `day`, judged one by one, in their order.
    pub async fn going(
        &self,
        connection: &mut PgConnection,
        permits: &[Uuid],
        day: NaiveDate,
    ) -> Result<Vec<Going>, Problem> {
        let cases = load_cases(connection, permits, Hold::Look).await?;
        let suppressed = load_suppressed(connection, &cases).await?;
        let holders: HashMap<Uuid, String> = list_holders(connection, permits).await?.into_iter().collect();
        let mut going = Vec::new();
        for permit in permits {
            let Some(case) = cases.iter().find(|case| case.permit_id == *permit) else { continue };
            let holder = holders.get(permit).map_or("", String::as_str);
            let of_day = self.prospects(case).into_iter().filter(|prospect| prospect.goes_on == Some(day));
            going.extend(of_day.filter_map(|prospect| self.one(case, holder, &suppressed, prospect)));
        }
        Ok(going)
    }

    fn one(&self, case: &Case, holder: &str, suppressed: &Suppressed, prospect: Prospect) -> Option<Going> {
        let class = self.class_of(case, &prospect);
        let owed = copies(class, &case.recipients, |r| suppressed.forbids(class, &r.address));
        let row = prospect.row.map(|row| &case.rows[row]);
        let waits = row.is_some_and(|row| row.state == NoticeState::Pending);
        if owed.is_empty() && !waits {
            return None;
        }
        let to = owed.iter().filter_map(|copy| match copy {
            Owed::Mail(recipient) => Some(recipient.address.to_string()),
            Owed::Suppressed(_) | Owed::Letter => None,
        });
        Some(Going {
            permit_id: case.permit_id,
            permit_number: case.permit_number.clone(),
            holder_name: holder.to_owned(),
            class,
            due_on: prospect.due_on,
            to: to.collect(),
            notice_id: row.map(|row| row.id),
            can_wait: waits || row.is_none() && self.is_ahead(case, &prospect),
            notice_type: prospect.notice_type.to_string(),
            why: prospect.why,
        })
    }

    /// Whether the day of the step has not come, so that somebody can decide about it in advance.
    fn is_ahead(&self, case: &Case, prospect: &Prospect) -> bool {
        let Some(schedule) = self.schedules.get(&case.permit_type) else { return false };
        let slots = timetable(schedule, case.standing.expires_on, self.window());
        slots.iter().any(|slot| slot.step.notice_type == prospect.notice_type && slot.first_day > self.today)
    }

    /// The slots that go from `from` to `to`, and for each its day, step and class.
    fn slots(&self, from: NaiveDate, to: NaiveDate) -> (Slots, Vec<(NaiveDate, String, NoticeClass)>) {
        let (mut slots, mut names) = (Slots::default(), Vec::new());
        for (permit_type, schedule) in &self.schedules {
            let dated = schedule.steps().iter().filter(|step| step.enabled);
            for (step, offset) in dated.filter_map(|step| Some((step, step.offset_days?))) {
                // One that goes today may have been due as long ago as it may be late.
                let late = if from <= self.today { (-offset).max(step.late_by_days) } else { 0 };
                let mut due_on = plus_days(from, -i64::from(late));
                let last = plus_days(to, if self.window().is_some() { FORWARD } else { 0 });
                while due_on <= last {
                    let expires_on = plus_days(due_on, -i64::from(offset));
                    let table = timetable(schedule, expires_on, self.window());
                    let slot = table.iter().find(|slot| slot.step.notice_type == step.notice_type);
                    if let Some(day) =
                        slot.and_then(|slot| self.day_of(slot, &table)).filter(|day| (from..=to).contains(day))
                    {
                        let notice_type = step.notice_type.as_str();
                        slots.push(NewSlot { permit_type, expires_on, notice_type, class: step.class, due_on });
                        names.push((day, notice_type.to_owned(), step.class));
                    }
                    due_on = plus_days(due_on, 1);
                }
            }
        }
        (slots, names)
    }

    /// The day on which a slot goes, if it may still go and no other of its class goes then in its place. Such another
    /// one is owed if the slot itself is: it is due no earlier, and after the last valid day only if the slot is.
    fn day_of(&self, slot: &Slot<'_>, table: &[Slot<'_>]) -> Option<NaiveDate> {
        let day = slot.first_day.max(self.today);
        let gives_way = table.iter().any(|other| {
            other.step.class == slot.step.class && other.first_day <= day && other.urgency() > slot.urgency()
        });
        (day <= slot.send_by && !gives_way).then_some(day)
    }
}
