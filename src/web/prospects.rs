//! What will become of each step of a permit, as things are now, and why: for the API and for the pages.

use std::collections::{HashMap, HashSet};
use std::slice;

use chrono::NaiveDate;
use uuid::Uuid;

use crate::domain::copies::copies;
use crate::domain::delivery::Channel;
use crate::domain::notice::{NoticeClass, NoticeState, NoticeType, ReasonCode};
use crate::domain::outlook::{Prospect, outlook};
use crate::domain::owed::Row;
use crate::domain::schedule::Step;
use crate::domain::window::SendWindow;
use crate::store::cases::{Case, Hold, Suppressed, load_case, load_suppressed};
use crate::store::lists::notices::{find_letters, read_reasons};
use crate::store::permit_types::load_schedules;
use crate::store::{PgConnection, StoreError, unit};

/// What will become of one step.
#[derive(Debug)]
pub struct StepAhead {
    pub notice_type: NoticeType,
    pub due_on: Option<NaiveDate>,
    /// Last day on which it may go.
    pub send_by: Option<NaiveDate>,
    /// Its notice, if it has one.
    pub notice: Option<(Uuid, NoticeState)>,
    /// The day from which it will be sent if nothing changes; none if it will not.
    pub goes_on: Option<NaiveDate>,
    /// It goes by letter alone.
    pub is_letter: bool,
    /// In a plain sentence.
    pub why: String,
}

/// Every step of the permit's schedule, in its order, as it looks on `today`.
pub async fn read_ahead(
    connection: &mut PgConnection,
    permit: Uuid,
    today: NaiveDate,
    window: Option<&SendWindow>,
) -> Result<Vec<StepAhead>, StoreError> {
    let mut snapshot = unit::snapshot(connection).await?;
    let circumstances = Circumstances::read(&mut snapshot, permit).await?;
    let schedules = load_schedules(&mut *snapshot).await?;
    snapshot.rollback().await?;
    let case = &circumstances.case;
    let schedule = schedules.get(&case.permit_type).cloned().unwrap_or_default();
    let prospects = outlook(&case.standing, &schedule, &case.rows, today, window);
    let steps = schedule.steps().iter().zip(prospects);
    Ok(steps.map(|(step, prospect)| circumstances.tell(step, prospect)).collect())
}

/// A permit with what its steps depend on besides its dates.
struct Circumstances {
    case: Case,
    suppressed: Suppressed,
    /// Why notices are what they are.
    reasons: HashMap<Uuid, String>,
    /// Notices of which only letters are still to go.
    letters: HashSet<Uuid>,
}

impl Circumstances {
    async fn read(connection: &mut PgConnection, permit: Uuid) -> Result<Self, StoreError> {
        let case = load_case(connection, permit, Hold::Look).await?;
        let suppressed = load_suppressed(connection, slice::from_ref(&case)).await?;
        let notices: Vec<Uuid> = case.rows.iter().map(|row| row.id).collect();
        let reasons = read_reasons(connection, &notices).await?;
        let letters = find_letters(connection, &notices).await?;
        Ok(Self { case, suppressed, reasons, letters })
    }

    fn tell(&self, step: &Step, prospect: Prospect) -> StepAhead {
        let Prospect { notice_type, due_on, send_by, row, goes_on, why, stays } = prospect;
        let row = row.map(|row| &self.case.rows[row]);
        let is_letter = goes_on.is_some() && self.goes_by_letter(row.filter(|_| stays), step.class);
        let (goes_on, why) = match row {
            None if goes_on.is_some() && self.reaches_nobody(step.class) => {
                (None, ReasonCode::NoAddress.sentence().to_owned())
            }
            Some(row) if stays && goes_on.is_none() => (None, self.with_reason(row, why)),
            Some(_) if stays && is_letter => {
                (goes_on, "A letter waits to be posted: nobody on the permit can be mailed.".to_owned())
            }
            None if is_letter => (goes_on, format!("{why} By letter: nobody on the permit can be mailed.")),
            _ => (goes_on, why),
        };
        StepAhead { notice_type, due_on, send_by, notice: row.map(|row| (row.id, row.state)), goes_on, is_letter, why }
    }

    /// Whether what is still to go, or would be made, is a letter and no mail.
    fn goes_by_letter(&self, row: Option<&Row>, class: NoticeClass) -> bool {
        match row {
            Some(row) => self.letters.contains(&row.id),
            None => copies(class, &self.case.recipients, |one| self.suppressed.forbids(class, &one.address))
                .iter()
                .any(|copy| copy.channel() == Channel::Letter),
        }
    }

    /// A scan would record that it is not sent.
    fn reaches_nobody(&self, class: NoticeClass) -> bool {
        copies(class, &self.case.recipients, |one| self.suppressed.forbids(class, &one.address)).is_empty()
    }

    fn with_reason(&self, row: &Row, why: String) -> String {
        use NoticeState as S;
        match self.reasons.get(&row.id) {
            Some(reason) if matches!(row.state, S::Superseded | S::Skipped | S::Cancelled | S::Held | S::Failed) => {
                format!("{}: {reason}", why.trim_end_matches('.'))
            }
            _ => why,
        }
    }
}
