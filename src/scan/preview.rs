//! A scan that only looks: what would be written for each permit, and why.

use chrono::NaiveDate;
use serde::Serialize;
use uuid::Uuid;

use super::{
    ScanReport, ScanRequest, ScanRules,
    pass::{BATCH, decide, sight},
};
use crate::{
    domain::{
        notice::{NoticeKey, NoticeType, ReasonCode},
        owed::{Action, Timing, Unsent},
        words,
    },
    store::{
        Result,
        cases::{Case, Hold, load_cases, load_suppressed},
        claims::Counts,
        clock::database_now,
        connect::{Purpose, connect},
        memory::went_back,
        owing::find_candidates,
        permit_types::load_schedules,
        scans::{NewScan, ScanOutcome},
    },
};

words! {
    /// What a scan would do with a step.
    "intent" Would {
        /// Make it pending.
        Claim = "claim",
        /// Make a superseded one pending again.
        Revive = "revive",
        /// Record or turn it superseded.
        Supersede = "supersede",
        /// Record or turn it skipped.
        Skip = "skip",
    }
}

/// What would become of one notice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Item {
    /// Its key.
    pub notice_key: String,
    /// The permit, for people.
    pub permit_number: String,
    /// The step.
    pub notice_type: String,
    /// Its due day.
    pub due_on: NaiveDate,
    /// What would be done.
    pub would: Would,
    /// Why, in a plain sentence.
    pub why: String,
    /// It was held before it was superseded, and is held again.
    #[serde(skip)]
    pub comes_back_held: bool,
}

/// Says what a scan would do now, and writes nothing.
pub async fn dry_run(rules: &ScanRules, request: ScanRequest) -> Result<ScanReport> {
    let mut connection = connect(&rules.direct_url, Purpose::Scan).await?;
    let moment = rules.moment(database_now(&mut connection).await?, request.as_of);
    let scan = NewScan {
        id: Uuid::nil(),
        scheduled_for: None,
        trigger: request.trigger,
        moment,
        own_day: false,
        boot_id: rules.boot_id,
    };
    let sight = sight(rules, &scan, &mut connection).await?;
    let candidates = find_candidates(&mut connection, sight).await?;
    let schedules = load_schedules(&mut connection).await?;
    let mut items = Vec::new();
    for batch in candidates.permits.chunks(BATCH) {
        let cases = load_cases(&mut connection, batch, Hold::Look).await?;
        let suppressed = load_suppressed(&mut connection, &cases).await?;
        for case in &cases {
            let verdict = decide(rules, &scan, case, &schedules, &suppressed);
            items.extend(verdict.actions.iter().filter_map(|action| item(case, action)));
        }
    }
    let counts = count(&items, candidates.already, rules.claim_limit, went_back(&mut connection).await?);
    let as_of = moment.today;
    Ok(ScanReport { id: None, outcome: ScanOutcome::Completed, as_of, counts, dry_run: true, items: Some(items) })
}

fn count(items: &[Item], already: u64, limit: u64, doubted: bool) -> Counts {
    let of = |would| items.iter().filter(|item| item.would == would).count() as u64;
    let (claimed, revived) = (of(Would::Claim), of(Would::Revive));
    let held_again = items.iter().filter(|item| item.comes_back_held).count() as u64;
    let holds = doubted || (limit > 0 && claimed + revived - held_again > limit);
    Counts {
        claimed,
        already_claimed: already,
        revived,
        superseded: of(Would::Supersede),
        skipped: of(Would::Skip),
        held: if holds { claimed + revived } else { held_again },
    }
}

fn item(case: &Case, action: &Action) -> Option<Item> {
    let of_row = |id: &Uuid| case.rows.iter().find(|row| row.id == *id);
    let (notice_type, expires_on, due_on, would, why) = match action {
        Action::Claim(notice_type, _, timing) => {
            (notice_type, case.standing.expires_on, timing.due_on, Would::Claim, going(*timing))
        }
        Action::Revive(_, notice_type, timing) => {
            let why = format!("It is owed again: what kept it back has ended. {}", going(*timing));
            (notice_type, case.standing.expires_on, timing.due_on, Would::Revive, why)
        }
        Action::Record(notice_type, _, timing, unsent) => {
            let would =
                if matches!(unsent, Unsent::TooLate | Unsent::NoAddress) { Would::Skip } else { Would::Supersede };
            let why = unsent.state().1.sentence().to_owned();
            (notice_type, case.standing.expires_on, timing.due_on, would, why)
        }
        Action::Supersede(id, notice_type, reason) => {
            let row = of_row(id)?;
            (notice_type, row.expires_on, row.due_on, Would::Supersede, reason.sentence().to_owned())
        }
        Action::TooLate(id, notice_type) => {
            let row = of_row(id)?;
            (notice_type, row.expires_on, row.due_on, Would::Skip, ReasonCode::TooLate.sentence().to_owned())
        }
        Action::Retime(..) => return None,
    };
    Some(Item {
        notice_key: key(case, notice_type, expires_on),
        permit_number: case.permit_number.clone(),
        notice_type: notice_type.to_string(),
        due_on,
        would,
        why,
        comes_back_held: matches!(action, Action::Revive(id, ..) if of_row(id).is_some_and(|row| row.held)),
    })
}

fn key(case: &Case, notice_type: &NoticeType, expires_on: NaiveDate) -> String {
    NoticeKey { permit_id: case.permit_id, notice_type: notice_type.clone(), expires_on }.to_string()
}

fn going(timing: Timing) -> String {
    let Timing { due_on, send_by, .. } = timing;
    if timing.brought_forward {
        format!("Due on {due_on}; no sending window is left until {send_by}, so it goes before that day.")
    } else {
        format!("Due on {due_on}; it may go until {send_by}.")
    }
}
