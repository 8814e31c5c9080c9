//! How long a delivery waits after a failed attempt.

use std::time::Duration;

const FIRST: Duration = Duration::from_mins(1);
const LONGEST: Duration = Duration::from_hours(6);

/// The wait after the `failures`th failure in a row (from 1): one minute, then three times as long each time,
/// at most six hours; half of it fixed and half random, so that what failed together does not come back
/// together. `random` is in `0.0..1.0`.
pub fn delay(failures: u32, random: f64) -> Duration {
    let factor = 3u32.checked_pow(failures.saturating_sub(1)).unwrap_or(u32::MAX);
    let full = FIRST.checked_mul(factor).unwrap_or(LONGEST).min(LONGEST);
    full / 2 + (full / 2).mul_f64(random.clamp(0.0, 1.0))
}
