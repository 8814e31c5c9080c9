//! Cells that a spreadsheet would take for a formula, and so would run what a stranger wrote.
//!
//! Such a cell is written with an apostrophe before it, and read without it. A cell that has apostrophes there
//! already gets one more, so that what is written is read back as it was.

use std::borrow::Cow;

/// Whether `cell`, after any number of apostrophes, begins as a formula does.
fn looks_like_formula(cell: &str) -> bool {
    cell.trim_start_matches('\'').starts_with(['=', '+', '-', '@', '\t', '\r'])
}

/// The cell as it is written.
pub(super) fn guard(cell: &str) -> Cow<'_, str> {
    if looks_like_formula(cell) { Cow::Owned(format!("'{cell}")) } else { Cow::Borrowed(cell) }
}

/// The cell as it is meant.
pub(super) fn unguard(cell: &str) -> &str {
    cell.strip_prefix('\'').filter(|rest| looks_like_formula(rest)).unwrap_or(cell)
}
