//! `SEND_WINDOW`, and that the scan schedule leaves no window day without a scan in time.

use chrono::NaiveDate;

use crate::domain::window::SendWindow;
use crate::scan::schedule::ScanSchedule;

use super::reader::Reader;

/// Four years hold every pattern of weekdays, months and leap days that a schedule can name. They
/// are fixed, because whether a service starts must not depend on the day on which it does.
const SAMPLE_START: NaiveDate = NaiveDate::from_ymd_opt(2025, 1, 1).unwrap();
const SAMPLE_DAYS: usize = 1461;

pub(super) fn read(reader: &mut Reader<'_>, schedule: &ScanSchedule) -> Option<SendWindow> {
    let text = reader.text("SEND_WINDOW")?;
    let window: SendWindow = match text.parse() {
        Ok(window) => window,
        Err(error) => {
            reader.fault("SEND_WINDOW", format!("is refused: {error}"));
            return None;
        }
    };
    // A schedule that was itself refused has been replaced by the default, which proves nothing.
    if !reader.has_fault_in(&["TIME_ZONE", "SCAN_SCHEDULE"])
        && let Some(day) = first_day_without_scan(&window, schedule)
    {
        let weekday = day.format("%A");
        reader.fault(
            "SEND_WINDOW",
            format!(
                "does not fit SCAN_SCHEDULE: every day of the window needs a scan before the \
                 window ends, and {weekday} {day} would have none, so what is due then would go \
                 too late"
            ),
        );
    }
    Some(window)
}

fn first_day_without_scan(window: &SendWindow, schedule: &ScanSchedule) -> Option<NaiveDate> {
    SAMPLE_START
        .iter_days()
        .take(SAMPLE_DAYS)
        .filter(|day| window.is_window_day(*day))
        .find(|day| !has_scan_in_time(*day, window, schedule))
}

fn has_scan_in_time(day: NaiveDate, window: &SendWindow, schedule: &ScanSchedule) -> bool {
    schedule.first_on(day).is_some_and(|expected| window.is_before_end(expected.with_timezone(&schedule.zone()).time()))
}
