//! Which column carries which field: by the names of the contract, by usual names, by those of BLDS and of
//! licence registers; case, spaces, underscores and punctuation do not matter. `--map` overrides.

use super::fault::{FileFault, quoted};
use super::fields::{AFTER_STREET, Field};
use super::formula::unguard;
use super::options::{ColumnChoice, ImportOptions};
use super::reading::Row;
use super::remarks::{Reason, Remark};
use super::values::squash;
use crate::domain::saying::noun;

/// Columns by which our own export is known. No file can set them; not worth a warning when they come back to us.
const OUR_OWN: [&str; 6] = ["id", "phase", "version", "createdat", "updatedat", "archivedat"];
/// Further columns of it that an import leaves alone.
const LEFT_ALONE: [&str; 3] = ["noticesfrom", "noticespauseduntil", "custom"];

/// Which columns a field comes from.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct MappedColumn {
    /// The field.
    pub field: Field,
    /// Headers of the columns, in the order in which they are put together; mostly one.
    pub columns: Vec<String>,
}

/// The columns of one file.
#[derive(Debug)]
pub(super) struct Mapping {
    header: Vec<String>,
    /// By field.
    places: [Option<usize>; Field::ALL.len()],
    /// By part of [`AFTER_STREET`].
    after_street: [Option<usize>; AFTER_STREET.len()],
    /// Whether the columns are those of our own export.
    is_export: bool,
}

impl Mapping {
    /// Finds a column for every field that has one, and refuses the file if a needed one has none.
    pub fn resolve(header: &[String], options: &ImportOptions) -> Result<Self, FileFault> {
        let (mapping, fault) = Self::find(header, options);
        if let Some(fault) = fault {
            return Err(fault);
        }
        let missing: Vec<Field> = Self::needed(options).filter(|&field| mapping.place(field).is_none()).collect();
        if missing.is_empty() {
            Ok(mapping)
        } else {
            let taken = missing.iter().filter_map(|&field| mapping.taken_from(field, options)).collect();
            Err(FileFault::MissingFields { fields: missing, columns: mapping.header, taken })
        }
    }

    /// Of a field that has no column, the choice that took the one which bears its name.
    fn taken_from(&self, field: Field, options: &ImportOptions) -> Option<ColumnChoice> {
        let own = squash(field.as_str());
        let is_its_name = |name: &str| name == own || field.names().any(|known| known == name);
        let took =
            |choice: &&ColumnChoice| self.column(choice.field).is_some_and(|column| is_its_name(&squash(column)));
        options.map().iter().find(took).cloned()
    }

    /// Whether a row names all that is needed, if it is the header; and how many fields it names.
    pub fn understands(row: &[String], options: &ImportOptions) -> (bool, usize) {
        let (mapping, fault) = Self::find(row, options);
        let whole = fault.is_none() && Self::needed(options).all(|field| mapping.has(field));
        (whole, mapping.places.iter().flatten().count())
    }

    /// The fields without which there is no permit; and the status, if somebody says what its words mean: read as no words
    /// at all, permits that are not in force would be.
    pub fn needed(options: &ImportOptions) -> impl Iterator<Item = Field> {
        let typed = options.permit_type().is_some();
        let told = options.explains_status() && !options.leaves_out(Field::Status);
        let needed = [Field::PermitNumber, Field::PermitType, Field::Status, Field::HolderName, Field::ExpiresOn];
        needed.into_iter().filter(move |&field| match field {
            Field::PermitType => !typed,
            Field::Status => told,
            _ => true,
        })
    }

    /// The columns that can be told, and the first of what cannot.
    pub fn find(header: &[String], options: &ImportOptions) -> (Self, Option<FileFault>) {
        let squashed: Vec<String> = header.iter().map(|name| squash(name)).collect();
        let mut mapping = Self {
            header: header.to_vec(),
            places: [None; Field::ALL.len()],
            after_street: [None; AFTER_STREET.len()],
            is_export: is_ours(&squashed),
        };
        let mut first = None;
        for choice in options.map() {
            match chosen(header, &squashed, choice.field, &choice.column) {
                Ok(at) => mapping.places[choice.field as usize] = Some(at),
                Err(FileFault::NoSuchColumn { field, column, columns, .. }) => {
                    let saved = options.saved_as(choice).map(str::to_owned);
                    first = first.or(Some(FileFault::NoSuchColumn { field, column, columns, saved }));
                }
                Err(fault) => first = first.or(Some(fault)),
            }
        }
        for &field in Field::ALL {
            if mapping.place(field).is_none()
                && mapping.may_guess(field, options)
                && let Err(fault) = mapping.guess(field, &squashed)
            {
                first = first.or(Some(fault));
            }
        }
        if !options.map().iter().any(|choice| choice.field == Field::SiteAddress) {
            mapping.guess_after_street(&squashed);
        }
        (mapping, first)
    }

    /// A name or role without its address is no contact, `--permit-type` leaves no question about the type, and what
    /// others call contacts is free text.
    fn may_guess(&self, field: Field, options: &ImportOptions) -> bool {
        let is_chosen = options.map().iter().any(|choice| choice.field == field);
        match field {
            _ if is_chosen || options.leaves_out(field) => false,
            Field::Contacts => self.is_export,
            Field::PermitType => options.permit_type().is_none(),
            Field::ContactName | Field::ContactRole => self.place(Field::ContactEmail).is_some(),
            _ => true,
        }
    }

    /// A column taken for one field is not guessed for another; so `contact_email` is the holder's address in a
    /// file that has no other, and a contact's in a file that has.
    fn guess(&mut self, field: Field, squashed: &[String]) -> Result<(), FileFault> {
        let own = squash(field.as_str());
        for name in std::iter::once(own.as_str()).chain(field.names()) {
            let places: Vec<usize> =
                (0..squashed.len()).filter(|&at| squashed[at] == name && !self.takes(at)).collect();
            match places[..] {
                [] => {}
                [at] => {
                    self.places[field as usize] = Some(at);
                    return Ok(());
                }
                _ => return Err(duplicate(field, &self.header, &places)),
            }
        }
        Ok(())
    }

    fn guess_after_street(&mut self, squashed: &[String]) {
        if self.place(Field::SiteAddress).is_none() {
            return;
        }
        for (part, names) in AFTER_STREET.iter().enumerate() {
            let found = (0..squashed.len()).find(|&at| names.contains(&squashed[at].as_str()) && !self.takes(at));
            self.after_street[part] = found;
        }
    }

    fn takes(&self, at: usize) -> bool {
        self.places.contains(&Some(at)) || self.after_street.contains(&Some(at))
    }

    fn place(&self, field: Field) -> Option<usize> {
        self.places[field as usize]
    }

    /// Whether the file says anything about `field`.
    pub fn has(&self, field: Field) -> bool {
        self.place(field).is_some()
    }

    /// The cell of `field` as it is meant; empty when the file has no such column.
    pub fn cell<'r>(&self, row: &Row<'r>, field: Field) -> &'r str {
        self.place(field).map_or("", |at| unguard(row.cell(at)))
    }

    /// Whether the cell of `field` holds a day by its format.
    pub fn is_day(&self, row: &Row<'_>, field: Field) -> bool {
        self.place(field).is_some_and(|at| row.is_day(at))
    }

    /// Whether the columns are those of our own export, whose cells are as permits have them.
    pub fn is_export(&self) -> bool {
        self.is_export
    }

    /// Whether anything is read from the column at `at`.
    pub fn reads(&self, at: usize) -> bool {
        self.takes(at)
    }

    /// The header of the column of `field`.
    pub fn column(&self, field: Field) -> Option<&str> {
        self.place(field).map(|at| self.header[at].as_str())
    }

    /// The header of the column at `at`.
    pub fn header(&self, at: usize) -> &str {
        &self.header[at]
    }

    /// Positions of the columns of `field`, in the order in which they are put together.
    pub fn places_of(&self, field: Field) -> Vec<usize> {
        let rest = self.after_street.iter().flatten().copied().filter(|_| field == Field::SiteAddress);
        self.place(field).into_iter().chain(rest).collect()
    }

    /// Street, second line and city apart by commas; state and postcode together.
    pub fn site_address(&self, row: &Row<'_>) -> String {
        let part = |at: Option<usize>| at.map_or("", |at| unguard(row.cell(at)).trim());
        let [second, city, state, postcode] = self.after_street.map(part);
        let region = [state, postcode].join(" ");
        let parts = [self.cell(row, Field::SiteAddress).trim(), second, city, region.trim()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }

    /// What came from where.
    pub fn mapped(&self) -> Vec<MappedColumn> {
        let columns = |field| self.places_of(field).into_iter().map(|at| self.header[at].clone()).collect();
        let mapped = Field::ALL.iter().filter(|&&field| self.has(field));
        mapped.map(|&field| MappedColumn { field, columns: columns(field) }).collect()
    }

    /// Positions of the columns without a name from which nothing is read.
    pub fn unnamed(&self) -> Vec<usize> {
        (0..self.header.len()).filter(|&at| self.header[at].trim().is_empty() && !self.takes(at)).collect()
    }

    /// One warning that names every column from which nothing is read.
    pub fn unused(&self) -> Option<Remark> {
        let known = |name: &str| OUR_OWN.contains(&name) || LEFT_ALONE.contains(&name);
        let ignored = |name: &str| name.is_empty() || (self.is_export && known(&squash(name)));
        let unused = |&at: &usize| !self.takes(at) && !ignored(&self.header[at]);
        let names: Vec<&str> = (0..self.header.len()).filter(unused).map(|at| self.header[at].as_str()).collect();
        (!names.is_empty()).then(|| Remark {
            row: None,
            column: None,
            value: None,
            code: Reason::UnusedColumns,
            detail: format!("nothing is read from the {} {}", noun(names.len(), "column"), quoted(&names)),
        })
    }
}

/// Whether the columns are those of our own export.
fn is_ours(squashed: &[String]) -> bool {
    OUR_OWN.iter().all(|own| squashed.iter().any(|name| name == own))
}

/// The one column that `--map` means: by its exact name, else regardless of case and punctuation.
fn chosen(header: &[String], squashed: &[String], field: Field, column: &str) -> Result<usize, FileFault> {
    let wanted = squash(column);
    let exact: Vec<usize> = (0..header.len()).filter(|&at| header[at] == column).collect();
    let alike = || (0..header.len()).filter(|&at| !wanted.is_empty() && squashed[at] == wanted).collect();
    let places = if exact.is_empty() { alike() } else { exact };
    match places[..] {
        [] => Err(FileFault::NoSuchColumn { field, column: column.to_owned(), columns: header.to_vec(), saved: None }),
        [at] => Ok(at),
        _ => Err(duplicate(field, header, &places)),
    }
}

fn duplicate(field: Field, header: &[String], places: &[usize]) -> FileFault {
    FileFault::DuplicateColumn {
        field,
        places: places.iter().map(|at| at + 1).collect(),
        names: places.iter().map(|at| header[*at].clone()).collect(),
    }
}
