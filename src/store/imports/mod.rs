//! Imports: files staged outside, applied in one transaction.
//!
//! 1. [`staging`] takes the good rows, batch by batch, into tables of their own, and marks the current term of each
//!    permit number. Rows of a permit of which another row was rejected are held back. Nothing that anybody else reads
//!    is touched.
//! 2. [`apply`] opens one transaction: it waits for other imports, keeps the schedules as they are, and plans what
//!    becomes of each permit (`plan`).
//! 3. The permits that change are locked in order of id, then their notices, then their deliveries. What was changed
//!    by somebody else between the plan and the lock is planned again.
//! 4. Permit types, permits, terms and contacts are written by one statement each (`write`); then notices, as every
//!    change writes them.
//! 5. The row of the import is written with its report and the rows that were rejected, and all is committed or
//!    nothing is. What commits nothing, because of wrong rows or as a dry run, leaves the same row afterwards.

mod apply;
mod contradictions;
mod crowded;
mod foresee;
mod missing;
mod plan;
mod record;
pub mod staging;
mod write;

pub use apply::{ARCHIVED_LISTED, Applied, Commit, Job, apply, was_in_the_way};
pub use contradictions::{CONTRADICTIONS_LISTED, Contradiction, Contradictions, RowsNamed};
pub use crowded::{CONTACTS_MAX, CROWDED_LISTED, Crowded};
pub use foresee::{DAYS_AHEAD, Foreseen};
pub use missing::{MISSING_LISTED, Missing};
pub use plan::Tally;
pub use record::{
    Beginning, FileKept, FileLayout, count_rejections, is_recorded, list_rejections, read_layout, read_report,
    record_uncommitted,
};
