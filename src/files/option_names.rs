//! What the options of an import are called where somebody reads of them.

/// An option that a sentence can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportOption {
    /// Which column a field comes from.
    Map,
    /// What a status word means.
    Status,
    /// The type of every row.
    PermitType,
    /// How dates are written.
    DateFormat,
    /// The sheet of a workbook.
    Sheet,
    /// Under which name to save what was chosen.
    SaveMapping,
}

/// Where somebody reads of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    /// At a terminal.
    CommandLine,
    /// In an answer of the API.
    Api,
}

impl ImportOption {
    /// The query parameter.
    pub fn parameter(self) -> &'static str {
        match self {
            Self::Map => "map",
            Self::Status => "status",
            Self::PermitType => "permit_type",
            Self::DateFormat => "date_format",
            Self::Sheet => "sheet",
            Self::SaveMapping => "save_mapping",
        }
    }

    /// Its bare name.
    pub fn on(self, surface: Surface) -> String {
        match surface {
            Surface::CommandLine => format!("--{}", self.parameter().replace('_', "-")),
            Surface::Api => self.parameter().to_owned(),
        }
    }
}

impl Surface {
    /// An option in the midst of a sentence.
    pub(super) fn option(self, option: ImportOption) -> String {
        match self {
            Self::CommandLine => option.on(self),
            Self::Api => format!("the query parameter {}", option.on(self)),
        }
    }

    /// The same with what to say there.
    pub(super) fn option_with(self, option: ImportOption, value: &str) -> String {
        let between = match self {
            Self::CommandLine => ' ',
            Self::Api => '=',
        };
        format!("{}{between}{value}", self.option(option))
    }
}
