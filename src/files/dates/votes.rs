//! What the values of a column say about its format.

use chrono::Datelike;

use super::guesses::{GUESSES, ISO, parse_guess, rival};
use super::{ColumnDates, DateFormat, without_midnight};
use crate::files::fault::FileFault;
use crate::files::fields::Field;
use crate::files::mapping::Mapping;
use crate::files::reading::Row;

/// What the values of one column say.
#[derive(Debug, Default)]
struct ColumnVotes {
    /// Values that fit each format.
    fit: [u64; GUESSES.len()],
    /// Values that fit each format and not its rival.
    only: [u64; GUESSES.len()],
    /// A value that means one day by a format and another by its rival.
    example: Option<String>,
    /// Values that are written in the format that somebody named.
    named: u64,
    /// Cells that hold a day by their format, and how many of them could be none with day and month swapped.
    days: u64,
    days_beyond_12: u64,
}

impl ColumnVotes {
    fn count(&mut self, value: &str, is_day: bool, named: Option<&DateFormat>) {
        let Ok(value) = without_midnight(value) else { return };
        self.named += u64::from(named.is_some_and(|format| format.fits(value)));
        if let Some(date) = parse_guess(ISO, value) {
            self.fit[ISO] += 1;
            self.days += u64::from(is_day);
            self.days_beyond_12 += u64::from(is_day && date.day() > 12);
            return;
        }
        for guess in 1..GUESSES.len() {
            let Some(date) = parse_guess(guess, value) else { continue };
            self.fit[guess] += 1;
            match rival(guess).map(|rival| parse_guess(rival, value)) {
                Some(None) => self.only[guess] += 1,
                Some(Some(other)) if other != date && self.example.is_none() => {
                    self.example = Some(value.to_owned());
                }
                _ => {}
            }
        }
    }

    /// The format of the column; none if no value is a date in any.
    fn decide(&self, column: &str) -> Result<Option<usize>, Undecided> {
        let mut best = ISO;
        for guess in 1..GUESSES.len() {
            if self.fit[guess] > self.fit[best] || (best == ISO && self.fit[guess] > 0) {
                best = guess;
            }
        }
        if self.fit[best] == 0 {
            return Ok(None);
        }
        if let (Some(rival), Some(example)) = (rival(best), &self.example) {
            let (for_it, against) = (self.only[best], self.only[rival]);
            if for_it == 0 {
                let column = format!("{column:?} (such as {example})");
                return Err(Undecided::Ambiguous { column, guesses: [best, rival] });
            }
            // A few impossible dates among many good ones are typing errors, and are reported by row.
            if against > 0 && for_it < 20 * against {
                let (counts, formats) = ([for_it, against], [GUESSES[best].0, GUESSES[rival].0]);
                return Err(Undecided::Mixed(FileFault::MixedDates { column: column.to_owned(), formats, counts }));
            }
        }
        Ok(Some(best))
    }

    /// The column's own format beside one that somebody named, which none of its values is written in. Of two that it may
    /// have it has the one with day and month in the same order.
    fn decide_beside(&self, named: &DateFormat) -> Option<usize> {
        if self.named > 0 {
            return None;
        }
        match self.decide("") {
            // Named formats say themselves whether ISO dates can be told from theirs.
            Ok(guess) => guess.filter(|&guess| guess != ISO),
            Err(Undecided::Ambiguous { guesses, .. }) => {
                guesses.into_iter().find(|&guess| day_first(GUESSES[guess].0) == day_first(&named.to_string()))
            }
            Err(Undecided::Mixed(_)) => None,
        }
    }

    /// A program that reads days where months stand takes `12/01/2026` for 1 December and leaves `31/12/2026` as it is:
    /// then all its days could be months, and no text could be two days.
    fn look_swapped(&self, guess: Option<usize>) -> bool {
        const FEW: u64 = 5;
        let has_rival = guess.is_some_and(|guess| rival(guess).is_some() && self.only[guess] > 0);
        has_rival && self.example.is_none() && self.days >= FEW && self.days_beyond_12 == 0
    }
}

enum Undecided {
    Ambiguous { column: String, guesses: [usize; 2] },
    Mixed(FileFault),
}

/// Whether the day stands before the month.
fn day_first(format: &str) -> bool {
    let place = |parts: &[&str]| parts.iter().filter_map(|part| format.find(part)).min();
    place(&["%d", "%e", "%-d"]) < place(&["%m", "%-m", "%b", "%B", "%h"])
}

/// The votes of all date columns of a file.
pub(in crate::files) struct Votes<'m> {
    mapping: &'m Mapping,
    /// The format that somebody named.
    named: Option<&'m DateFormat>,
    columns: [ColumnVotes; Field::DATES.len()],
}

impl<'m> Votes<'m> {
    pub fn new(mapping: &'m Mapping, named: Option<&'m DateFormat>) -> Self {
        Self { mapping, named, columns: Default::default() }
    }

    pub fn count(&mut self, row: &Row<'_>) {
        for (votes, field) in self.columns.iter_mut().zip(Field::DATES) {
            votes.count(self.mapping.cell(row, field), self.mapping.is_day(row, field), self.named);
        }
    }

    /// Decides every column; all ambiguous ones are named at once. A format that somebody named is that of each column in
    /// which something is written so, and of those that have none of their own.
    pub fn decide(self) -> Result<ColumnDates, FileFault> {
        if let Some(named) = self.named {
            let guessed = std::array::from_fn(|at| self.columns[at].decide_beside(named));
            return Ok(ColumnDates { given: Some(named.clone()), guessed, swapped: [false; Field::DATES.len()] });
        }
        let mut guessed = [None; Field::DATES.len()];
        let (mut ambiguous, mut both) = (Vec::new(), [""; 2]);
        for (at, (votes, field)) in self.columns.iter().zip(Field::DATES).enumerate() {
            match votes.decide(self.mapping.column(field).unwrap_or_default()) {
                Ok(guess) => guessed[at] = guess,
                Err(Undecided::Ambiguous { column, guesses }) => {
                    ambiguous.push(column);
                    both = guesses.map(|guess| GUESSES[guess].0);
                }
                Err(Undecided::Mixed(fault)) => return Err(fault),
            }
        }
        if ambiguous.is_empty() {
            let swapped = std::array::from_fn(|at| self.columns[at].look_swapped(guessed[at]));
            Ok(ColumnDates { given: None, guessed, swapped })
        } else {
            Err(FileFault::AmbiguousDates { columns: ambiguous, formats: both })
        }
    }
}
