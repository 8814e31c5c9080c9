//! What people and programs look at: rows as they are shown, page by page, in the order of a key.

pub mod counts;
pub mod imports;
pub mod notices;
pub mod pages;
pub mod permit_types;
pub mod permits;
pub mod problems;
pub mod scans;
pub mod step_effects;
pub mod timeline;
pub mod upcoming;

use sqlx::{Postgres, QueryBuilder};

/// Joins conditions: the first begins with `WHERE`, the others with `AND`.
#[derive(Debug, Default)]
struct Conditions {
    begun: bool,
}

impl Conditions {
    /// Begins the next condition.
    fn and<'q>(&mut self, query: &'q mut QueryBuilder<Postgres>) -> &'q mut QueryBuilder<Postgres> {
        query.push(if std::mem::replace(&mut self.begun, true) { " AND " } else { " WHERE " })
    }
}

/// A pattern for LIKE that finds `text` anywhere, its own wildcards taken as they stand.
pub(in crate::store) fn containing(text: &str) -> String {
    let mut pattern = String::from("%");
    for c in text.chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push('%');
    pattern
}
