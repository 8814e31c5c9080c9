//! What good and bad rows together say about the file as a whole.

use std::collections::{BTreeSet, HashMap};

use crate::domain::permit::PermitTypeCode;
use crate::files::fault::list;
use crate::files::mapping::Mapping;
use crate::files::reading::Row;
use crate::files::remarks::{Reason, Remark, shorten};
use crate::files::term::TermRow;

/// Types of which the names are compared.
const TYPES: usize = 1_000;
/// Pairs of names that are told.
const TOLD: usize = 20;

/// What was met so far.
#[derive(Debug, Default)]
pub(super) struct Whole {
    /// Columns without a name, by position.
    unnamed: Vec<usize>,
    /// Those of them in which something stands, and in how many rows.
    filled: BTreeSet<usize>,
    filled_rows: u64,
    /// By code the name that came first.
    types: HashMap<PermitTypeCode, String>,
    /// Names that share a code.
    alike: BTreeSet<(String, String)>,
}

impl Whole {
    pub fn new(mapping: &Mapping) -> Self {
        Self { unnamed: mapping.unnamed(), ..Self::default() }
    }

    /// Takes note of a row.
    pub fn row(&mut self, row: &Row<'_>) {
        let here: Vec<usize> = self.unnamed.iter().copied().filter(|&at| !row.cell(at).trim().is_empty()).collect();
        self.filled_rows += u64::from(!here.is_empty());
        self.filled.extend(here);
    }

    /// Takes note of the type of a good row.
    pub fn term(&mut self, term: &TermRow) {
        let name = &term.permit_type_name;
        if let Some(first) = self.types.get(&term.permit_type) {
            if first != name && !same_words(first, name) && self.alike.len() < TOLD {
                self.alike.insert((first.clone(), name.clone()));
            }
        } else if self.types.len() < TYPES {
            self.types.insert(term.permit_type.clone(), name.clone());
        }
    }

    pub fn remarks(&self) -> Vec<Remark> {
        let places: Vec<String> = self.filled.iter().map(|at| (at + 1).to_string()).collect();
        let rows = match self.filled_rows {
            1 => "one row has cells".to_owned(),
            rows => format!("{rows} rows have cells"),
        };
        let unnamed = format!("{rows} in columns that have no name; they are not read: column {}", list(&places));
        let unnamed = (!places.is_empty()).then(|| Remark::whole(Reason::BesideTable, unnamed));
        let pairs: Vec<String> =
            self.alike.iter().map(|(first, other)| format!("{:?} and {:?}", shorten(first), shorten(other))).collect();
        let alike = format!(
            "types whose names differ in signs alone are one type: {}; rename one of two that are not the same",
            list(&pairs)
        );
        let alike = (!pairs.is_empty()).then(|| Remark::whole(Reason::TypesAlike, alike));
        unnamed.into_iter().chain(alike).collect()
    }
}

/// Whether two names differ in their case, their blanks, dashes and low lines alone.
fn same_words(one: &str, other: &str) -> bool {
    let plain = |text: &str| {
        let kept = text.chars().filter(|c| !c.is_whitespace() && !matches!(c, '-' | '–' | '_'));
        kept.flat_map(char::to_lowercase).collect::<String>()
    };
    plain(one) == plain(other)
}
