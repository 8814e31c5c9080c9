//! How a permit stands with its notices, in a few plain sentences above everything else.

use chrono::NaiveDate;

use super::show::Step;
use crate::domain::notice::NoticeState;
use crate::store::lists::notices::NoticeRow;

/// One sentence, and where it leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sentence {
    pub text: String,
    /// Where more is said, or something can be done.
    pub link: Option<String>,
}

fn sentence(text: impl Into<String>, link: Option<String>) -> Sentence {
    Sentence { text: text.into(), link }
}

/// As in the tables.
fn written(day: NaiveDate) -> String {
    day.format("%-d %b %Y").to_string()
}

/// What was sent in the present term, what waits for a person, and what comes next. `notices` are those of the term.
pub fn in_short(steps: &[Step], notices: &[&NoticeRow]) -> Vec<Sentence> {
    let of = |notice: &NoticeRow| Some(format!("/notices/{}", notice.id));
    let last = notices.iter().filter(|one| one.state == NoticeState::Sent.as_str()).max_by_key(|one| one.due_on);
    let mut said = vec![last.map_or_else(
        || sentence("Nothing has been sent for the present term.", None),
        |notice| sentence(format!("Sent last: {}, due on {}.", notice.notice_type, written(notice.due_on)), of(notice)),
    )];
    for notice in notices {
        let name = &notice.notice_type;
        let needs = match notice.state.parse() {
            Ok(NoticeState::Ambiguous) => format!("{name} may or may not have arrived: somebody has to find out."),
            Ok(NoticeState::Failed) => format!("{name} could not be sent: send it again, or give it up."),
            Ok(NoticeState::Held) => format!("{name} is held until somebody releases or cancels it."),
            _ => continue,
        };
        said.push(sentence(needs, of(notice)));
    }
    for step in steps.iter().filter(|step| step.is_letter && step.notice.is_some()) {
        let until = step.send_by.map(|day| format!(" until {}", written(day))).unwrap_or_default();
        let text = format!("{} goes by letter: somebody has to post it{until}.", step.notice_type);
        said.push(sentence(text, Some("/problems?kind=letters".to_owned())));
    }
    let next = steps.iter().filter(|step| !(step.is_letter && step.notice.is_some()));
    let next = next.filter_map(|step| Some((step.goes_on?, step))).min_by_key(|(day, _)| *day);
    said.push(match next {
        Some((day, step)) if step.is_letter => {
            sentence(format!("Next: {} on {}, by letter.", step.notice_type, written(day)), None)
        }
        Some((day, step)) => sentence(format!("Next: {} on {}.", step.notice_type, written(day)), None),
        None => sentence("Nothing more is planned for the present term; the table below says why.", None),
    });
    said
}
