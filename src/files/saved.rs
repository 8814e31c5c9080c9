//! Options of an import that were saved under a name.

use super::option_faults::OptionError;
use super::option_names::Surface;
use super::options::ImportOptions;
use crate::domain::mapping::{MappingName, MappingWords};
use crate::store::mappings::{find_mapping, list_mappings, save_mapping};
use crate::store::{Moment, PgConnection, StoreError};

/// Why a saved mapping cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SavedError {
    /// Nobody saved one of this name.
    #[error("no mapping is saved as {name:?}; saved are: {}", none_or(known))]
    Unknown {
        /// The name.
        name: String,
        /// What they are called.
        known: Vec<String>,
    },
    /// It says what this program does not understand.
    #[error("{}", unusable(name, error, Surface::CommandLine))]
    Unusable {
        /// The name.
        name: String,
        /// What is wrong with it.
        error: OptionError,
    },
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SavedError {
    /// The same, with the options' names for those who read it there.
    pub fn told(&self, surface: Surface) -> String {
        match self {
            Self::Unusable { name, error } => unusable(name, error, surface),
            other => other.to_string(),
        }
    }
}

fn unusable(name: &str, error: &OptionError, surface: Surface) -> String {
    format!("the saved mapping {name:?} cannot be used: {}", error.told(surface))
}

fn none_or(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// The options, and where they say nothing what is saved under `name`.
pub async fn with_saved(
    connection: &mut PgConnection,
    options: ImportOptions,
    name: &MappingName,
) -> Result<ImportOptions, SavedError> {
    let Some(saved) = find_mapping(&mut *connection, name).await? else {
        let known = list_mappings(connection).await?.into_iter().map(|mapping| mapping.name).collect();
        return Err(SavedError::Unknown { name: name.as_str().to_owned(), known });
    };
    // A word that a later program saved means nothing to this one.
    let words: MappingWords = serde_json::from_value(saved.words).unwrap_or_default();
    let name = saved.name;
    match ImportOptions::of_words(&words) {
        Ok(known) => Ok(options.over(known, &name)),
        Err(error) => Err(SavedError::Unusable { name, error }),
    }
}

/// Saves what the options say about reading a file.
pub async fn save(
    connection: &mut PgConnection,
    name: &MappingName,
    options: &ImportOptions,
    by: &str,
    moment: Moment,
) -> Result<(), StoreError> {
    let words = serde_json::to_value(options.words()).unwrap_or_default();
    save_mapping(connection, name, &words, by, moment.now).await
}
