//! What is owed, computed a second time: naive, slow on purpose, from the rules alone. It shares no code with
//! the service: its own calendar walked day by day, words instead of enumerations, plain enumeration.

use std::collections::BTreeMap;

/// Year, month, day; compares as dates do.
pub type Day = (i32, u32, u32);

fn is_leap(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn month_length(year: i32, month: u32) -> u32 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

pub fn tomorrow((year, month, day): Day) -> Day {
    if day < month_length(year, month) {
        (year, month, day + 1)
    } else if month < 12 {
        (year, month + 1, 1)
    } else {
        (year + 1, 1, 1)
    }
}

pub fn yesterday((year, month, day): Day) -> Day {
    if day > 1 {
        (year, month, day - 1)
    } else if month > 1 {
        (year, month - 1, month_length(year, month - 1))
    } else {
        (year - 1, 12, 31)
    }
}

pub fn walk(from: Day, days: i32) -> Day {
    let step = if days < 0 { yesterday } else { tomorrow };
    (0..days.abs()).fold(from, |day, _| step(day))
}

/// Monday is 0; counted from Monday, 1 January 1900.
pub fn weekday(day: Day) -> usize {
    let mut count = 0;
    for year in 1900..day.0 {
        count += if is_leap(year) { 366 } else { 365 };
    }
    count += (1..day.1).map(|month| month_length(day.0, month)).sum::<u32>() + day.2 - 1;
    (count % 7) as usize
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub name: String,
    pub offset: Option<i32>,
    pub class: &'static str,
    pub late: i32,
    pub on: bool,
}

#[derive(Debug, Clone)]
pub struct Permit {
    pub status: &'static str,
    pub archived: bool,
    pub paused_until: Option<Day>,
    pub takes_effect: Option<Day>,
    pub expires: Day,
    pub since: Day,
    pub notices_from: Option<Day>,
}

#[derive(Debug, Clone)]
pub struct Known {
    pub name: String,
    pub period: Day,
    pub days: Days,
    pub in_advance: bool,
    pub state: &'static str,
    /// Why it was superseded, if it was.
    pub ended: Option<&'static str>,
}

/// Which weekdays have a sending window.
pub type Week = [bool; 7];

/// When a notice may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Days {
    pub due: Day,
    pub send_by: Day,
    pub brought_forward: bool,
}

/// What becomes of one notice key on one day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    Claimed(Days),
    /// A new row that goes nowhere: its state and reason.
    Recorded(Days, &'static str, &'static str),
    Revived(Days),
    /// With any of these reasons: where several hold, the rules name no order.
    Superseded(Vec<&'static str>),
    TooLate,
    Retimed(Days),
}

/// Step and period.
pub type Key = (String, Day);

/// From the due day forward, one day after the other, until the next day belongs to another step of the class,
/// or expiry, or the days of grace are used up.
fn send_by(due: Day, line: &Line, dues: &[(&Line, Day)], expires: Day) -> Day {
    let mut day = due;
    let mut grace = line.late;
    loop {
        let next_is_taken = dues.iter().any(|(other, day_of)| other.class == line.class && *day_of == tomorrow(day));
        let grace_is_over = due > expires && grace == 0;
        if next_is_taken || grace_is_over || day == expires {
            return day;
        }
        grace -= 1;
        day = tomorrow(day);
    }
}

/// The first day on which it counts as due.
pub fn first_day(due: Day, send_by: Day, week: Option<Week>) -> Day {
    let Some(week) = week else { return due };
    let mut day = due;
    while day <= send_by {
        if week[weekday(day)] {
            return due;
        }
        day = tomorrow(day);
    }
    day = yesterday(due);
    while !week[weekday(day)] {
        day = yesterday(day);
    }
    day
}

/// A dated line that is switched on, placed in one expiry period.
#[derive(Debug, Clone)]
pub struct Placed<'l> {
    pub line: &'l Line,
    pub place: usize,
    pub days: Days,
    pub first: Day,
}

pub fn place(lines: &[Line], expires: Day, week: Option<Week>) -> Vec<Placed<'_>> {
    let mut dues = Vec::new();
    for line in lines.iter().filter(|line| line.on) {
        if let Some(offset) = line.offset {
            dues.push((line, walk(expires, offset)));
        }
    }
    let mut placed = Vec::new();
    for (place, (line, due)) in dues.iter().enumerate() {
        let send_by = send_by(*due, line, &dues, expires);
        let first = first_day(*due, send_by, week);
        placed.push(Placed { line, place, first, days: Days { due: *due, send_by, brought_forward: first != *due } });
    }
    placed
}

/// Why the permit is sent nothing at all today: every reason that holds.
pub fn barred(permit: &Permit, today: Day) -> Vec<&'static str> {
    let mut reasons = Vec::new();
    if permit.status != "active" {
        reasons.push("not_active");
    }
    if permit.archived {
        reasons.push("archived");
    }
    if permit.paused_until.is_some_and(|last| last >= today) {
        reasons.push("paused");
    }
    reasons
}

/// Why a step is not owed, whatever the day: every reason that holds.
pub fn not_owed(permit: &Permit, due: Day) -> Vec<&'static str> {
    let mut reasons = Vec::new();
    if permit.takes_effect.is_some_and(|day| due <= day) {
        reasons.push("term not begun");
    }
    if permit.notices_from.is_some_and(|day| due < day) {
        reasons.push("before notices_from");
    }
    if due > permit.expires && due < permit.since {
        reasons.push("before this date");
    }
    reasons
}

/// The steps of one class that are owed and whose first day has come, the most urgent last.
pub fn owed_and_due<'l>(permit: &Permit, steps: &[Placed<'l>], class: &str, today: Day) -> Vec<Placed<'l>> {
    if !barred(permit, today).is_empty() {
        return Vec::new();
    }
    let mut found: Vec<Placed<'l>> = steps
        .iter()
        .filter(|step| step.line.class == class && step.first <= today)
        .filter(|step| not_owed(permit, step.days.due).is_empty())
        .cloned()
        .collect();
    found.sort_by_key(|step| (step.first, step.days.due, step.place));
    found
}

fn is_open(row: &Known) -> bool {
    (row.state == "pending" || row.state == "held") && row.ended.is_none()
}

/// Superseded because the permit changed, and nothing decided about it.
fn may_be_revived(row: &Known) -> bool {
    let can_end = ["period_changed", "not_active", "paused", "archived", "step_removed", "not_owed"];
    let undecided = ["superseded", "pending", "held", "ambiguous", "sent", "failed"].contains(&row.state);
    undecided && row.ended.is_some_and(|reason| can_end.contains(&reason))
}

/// What becomes of one open row because the permit, the schedule or the day changed.
fn upkeep(permit: &Permit, lines: &[Line], steps: &[Placed], row: &Known, today: Day) -> Option<Fate> {
    let mut reasons = barred(permit, today);
    if row.period != permit.expires {
        reasons.push("period_changed");
    }
    if !reasons.is_empty() {
        return Some(Fate::Superseded(reasons));
    }
    if !lines.iter().any(|line| line.name == row.name && line.on) {
        return Some(Fate::Superseded(vec!["step_removed"]));
    }
    let Some(step) = steps.iter().find(|step| step.line.name == row.name) else {
        // The confirmation keeps the days it was written with.
        return (today > row.days.send_by).then_some(Fate::TooLate);
    };
    let too_early = step.first > today && !row.in_advance;
    if too_early || !not_owed(permit, step.days.due).is_empty() {
        return Some(Fate::Superseded(vec!["not_owed"]));
    }
    if today > step.days.send_by {
        return Some(Fate::TooLate);
    }
    (step.days != row.days).then_some(Fate::Retimed(step.days))
}

/// What becomes of every key on `today`; a key that is missing is left as it is.
pub fn judge(permit: &Permit, lines: &[Line], rows: &[Known], today: Day, week: Option<Week>) -> BTreeMap<Key, Fate> {
    let steps = place(lines, permit.expires, week);
    let mut fates = BTreeMap::new();
    for row in rows {
        // What may have been sent is never ended as too late or moved, only told that it is not owed any more.
        let unknown = row.state == "ambiguous" && row.ended.is_none();
        match upkeep(permit, lines, &steps, row, today) {
            Some(fate) if is_open(row) || (unknown && matches!(fate, Fate::Superseded(_))) => {
                fates.insert((row.name.clone(), row.period), fate);
            }
            _ => {}
        }
    }
    for class in ["statutory", "courtesy"] {
        let due = owed_and_due(permit, &steps, class, today);
        judge_class(permit, &due, rows, today, &mut fates);
    }
    // A confirmation stands outside the rule of the latest step; it comes back by itself, within its days.
    let confirmed = lines.iter().any(|line| line.offset.is_none() && line.on);
    for row in rows.iter().filter(|row| row.name == "renewed" && row.period == permit.expires) {
        if confirmed && may_be_revived(row) && barred(permit, today).is_empty() && today <= row.days.send_by {
            fates.insert((row.name.clone(), row.period), Fate::Revived(row.days));
        }
    }
    fates
}

/// `due` are the steps of one class that are owed and due, the most urgent last.
fn judge_class(permit: &Permit, due: &[Placed], rows: &[Known], today: Day, fates: &mut BTreeMap<Key, Fate>) {
    // From the most urgent to the least; once one is on its way, what is open of the others gives way.
    let mut one_goes = false;
    for (after, step) in due.iter().rev().enumerate() {
        let is_latest = after == 0;
        let key = (step.line.name.clone(), permit.expires);
        let in_time = today <= step.days.send_by;
        match rows.iter().find(|row| row.name == step.line.name && row.period == permit.expires) {
            None if is_latest && in_time => {
                fates.insert(key, Fate::Claimed(step.days));
                one_goes = true;
            }
            None if is_latest => {
                fates.insert(key, Fate::Recorded(step.days, "skipped", "too_late"));
            }
            None => {
                fates.insert(key, Fate::Recorded(step.days, "superseded", "more_urgent_step"));
            }
            Some(row) if may_be_revived(row) => {
                if is_latest && in_time {
                    fates.insert(key, Fate::Revived(step.days));
                    one_goes = true;
                }
            }
            Some(row) if is_open(row) && in_time => {
                if one_goes {
                    fates.insert(key, Fate::Superseded(vec!["more_urgent_step"]));
                }
                one_goes = true;
            }
            Some(_) => {}
        }
    }
}

/// How many steps are owed and due and keep the row they have.
pub fn already(permit: &Permit, lines: &[Line], rows: &[Known], today: Day, week: Option<Week>) -> usize {
    let (fates, steps) = (judge(permit, lines, rows, today, week), place(lines, permit.expires, week));
    let mut count = 0;
    for class in ["statutory", "courtesy"] {
        for step in owed_and_due(permit, &steps, class, today) {
            let key = (step.line.name.clone(), permit.expires);
            let has_row = rows.iter().any(|row| row.name == key.0 && row.period == key.1);
            if has_row && !matches!(fates.get(&key), Some(Fate::Revived(_))) {
                count += 1;
            }
        }
    }
    count
}

/// What a renewal on `today` writes, for a period of which nothing is written yet.
pub fn confirm_renewal(
    permit: &Permit,
    lines: &[Line],
    may_be_mailed: bool,
    today: Day,
    week: Option<Week>,
) -> BTreeMap<Key, Fate> {
    let mut fates = BTreeMap::new();
    let Some(confirmation) = lines.iter().find(|line| line.name == "renewed" && line.on) else { return fates };
    if permit.expires < today || !barred(permit, today).is_empty() {
        return fates;
    }
    let mut send_by = today;
    for _ in 0..7 {
        if send_by < permit.expires {
            send_by = tomorrow(send_by);
        }
    }
    let told = Days { due: today, send_by, brought_forward: false };
    let key = (confirmation.name.clone(), permit.expires);
    if !may_be_mailed {
        fates.insert(key, Fate::Recorded(told, "skipped", "no_address"));
        return fates;
    }
    fates.insert(key, Fate::Claimed(told));
    let steps = place(lines, permit.expires, week);
    for class in ["statutory", "courtesy"] {
        for step in owed_and_due(permit, &steps, class, today) {
            let key = (step.line.name.clone(), permit.expires);
            fates.insert(key, Fate::Recorded(step.days, "superseded", "renewed"));
        }
    }
    fates
}
