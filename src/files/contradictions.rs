//! Warnings about rows of one permit number that contradict each other, in words. Names of holders are not repeated:
//! the rows have them.

use super::remarks::{Reason, Remark, shorten};
use crate::domain::saying::{noun, which};
use crate::store::imports::{Contradiction, Contradictions, RowsNamed};

/// One for each permit number that is listed, and one for how many are not.
pub(super) fn remarks(found: &Contradictions, column: Option<&str>) -> Vec<Remark> {
    let mut remarks: Vec<Remark> = found.first.iter().map(|one| remark(one, column)).collect();
    let more = found.count - remarks.len() as u64;
    if more > 0 {
        let detail = format!(
            "{more} further permit {} rows that contradict each other",
            which(more, "number has", "numbers have")
        );
        remarks.push(Remark::whole(Reason::ContradictoryRows, detail));
    }
    remarks
}

fn remark(found: &Contradiction, column: Option<&str>) -> Remark {
    let sentences = [another(found), same_term(found)];
    Remark {
        row: Some(found.row),
        column: column.map(str::to_owned),
        value: column.is_some().then(|| shorten(&found.number)),
        code: Reason::ContradictoryRows,
        detail: sentences.into_iter().flatten().collect::<Vec<_>>().join("; "),
    }
}

/// Rows that may be about another permit. A permit may pass to another holder over the years, but not have two at once,
/// nor become one of another type.
fn another(found: &Contradiction) -> Option<String> {
    let what = match (found.types, found.holders) {
        (false, false) => return None,
        (true, true) => "another permit type and holder",
        (true, false) => "another permit type",
        (false, true) => "another holder",
    };
    let (rows, row) = (rows(&found.others), found.row);
    Some(if found.types || found.at_once {
        let at_once = if found.at_once { " at the same time" } else { "" };
        format!(
            "{rows} with this permit number: {what} than in row {row}, which counts{at_once}; it looks as if a number were \
             wrong and these were different permits, of which only one is recorded"
        )
    } else {
        format!("{rows} with this permit number: {what} than in row {row}, which counts; right if it was handed over")
    })
}

/// Rows of the term that counts, of which only one can be recorded.
fn same_term(found: &Contradiction) -> Option<String> {
    if found.same_term.count == 0 {
        return None;
    }
    let mut fields: Vec<&str> = found.fields.iter().flat_map(|list| list.split(' ')).collect();
    fields.sort_unstable();
    fields.dedup();
    Some(format!(
        "{} rows say different things of the term that ends {} ({}): {} and row {}, which counts as the last",
        found.same_term.count + 1,
        found.expires_on,
        fields.join(", "),
        rows(&found.same_term),
        found.row
    ))
}

/// As `row 2` or `rows 2, 5, 7 and 12 more`.
fn rows(named: &RowsNamed) -> String {
    let first: Vec<String> = named.first.iter().map(u64::to_string).collect();
    let noun = noun(named.count, "row");
    match named.count - first.len() as u64 {
        0 => format!("{noun} {}", first.join(", ")),
        more => format!("{noun} {} and {more} more", first.join(", ")),
    }
}
