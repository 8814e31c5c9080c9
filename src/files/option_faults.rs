//! What is wrong with the options of an import, in words.

use super::option_names::{ImportOption, Surface};
use crate::domain::UnknownWord;
use crate::domain::permit::TYPE_NAME_MAX;

/// What is wrong with an option; nothing of the file was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionError {
    /// Not of the form `A=B`.
    Form {
        /// The option.
        option: ImportOption,
        /// Its form.
        form: &'static str,
        /// What was given.
        found: String,
    },
    /// A field or status that does not exist.
    Word {
        /// The option.
        option: ImportOption,
        /// The word, and what is allowed.
        word: UnknownWord,
    },
    /// Two answers to one question.
    Twice {
        /// The option.
        option: ImportOption,
        /// The field or word.
        what: String,
    },
    /// One type for all rows, and a column of types.
    TwoTypes,
    /// A name of which no code can be made.
    PermitType(String),
    /// A name that is longer than any type's.
    PermitTypeTooLong,
    /// A word of the file that has neither letters nor digits, by which words are compared.
    NoWord(String),
    /// Nothing was chosen.
    NothingToSave,
    /// Not a format of dates.
    DateFormat(String),
}

impl OptionError {
    /// The option.
    pub fn option(&self) -> ImportOption {
        match self {
            Self::Form { option, .. } | Self::Word { option, .. } | Self::Twice { option, .. } => *option,
            Self::TwoTypes | Self::PermitType(_) | Self::PermitTypeTooLong => ImportOption::PermitType,
            Self::NoWord(_) => ImportOption::Status,
            Self::NothingToSave => ImportOption::SaveMapping,
            Self::DateFormat(_) => ImportOption::DateFormat,
        }
    }

    /// What is wrong and what is allowed, with the options' names for those who read it there.
    pub fn told(&self, surface: Surface) -> String {
        let option = self.option().on(surface);
        match self {
            Self::Form { form, found, .. } => format!("{option} needs {form}, not {found:?}"),
            Self::Word { word, .. } => format!("{option}: {word}"),
            Self::Twice { what, .. } => format!("{option} is given twice for {what:?}"),
            Self::TwoTypes => {
                format!("{option} and {} permit_type=… exclude each other", ImportOption::Map.on(surface))
            }
            Self::PermitType(name) => {
                format!("{option} {name:?} has no letters and no digits, so it can have no code")
            }
            Self::PermitTypeTooLong => {
                format!("{option}: the name of a permit type has at most {TYPE_NAME_MAX} characters")
            }
            Self::NoWord(word) => format!(
                "{option}: {word:?} has no letters and no digits, so it is no status word; an empty cell is active for \
                 a new permit and leaves a known one"
            ),
            Self::NothingToSave => format!(
                "{option} has nothing to save: nothing is said about columns, status words, permit type or dates"
            ),
            Self::DateFormat(format) => format!(
                "{option} {format:?} is no strftime format of a date; it needs day, month and year and no time of day, \
                 such as %d.%m.%Y"
            ),
        }
    }
}

impl std::fmt::Display for OptionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.told(Surface::CommandLine))
    }
}

impl std::error::Error for OptionError {}
