//! Exports: permits as files for others.

use super::words;

words! {
    /// How permits are written.
    "format" ExportFormat {
        /// A table whose header names the fields; `import` reads it.
        Csv = "csv",
        /// The same table as a workbook, with dates and texts told apart.
        Xlsx = "xlsx",
        /// A list of permits as the API shows them.
        Json = "json",
        /// What the public may see, as csv in the columns of BLDS, the Building and Land Development Specification.
        Blds = "blds",
    }
}

impl ExportFormat {
    /// Whether it is csv, which may begin with a byte order mark.
    pub const fn is_csv(self) -> bool {
        matches!(self, Self::Csv | Self::Blds)
    }

    /// What the file is called.
    pub const fn file_name(self) -> &'static str {
        match self {
            Self::Csv => "permits.csv",
            Self::Xlsx => "permits.xlsx",
            Self::Json => "permits.json",
            Self::Blds => "permits-blds.csv",
        }
    }

    /// What programs call its content.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Csv | Self::Blds => "text/csv; charset=utf-8; header=present",
            Self::Xlsx => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            Self::Json => "application/json",
        }
    }
}

/// How permits are to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportShape {
    /// The format.
    pub format: ExportFormat,
    /// Whether csv begins with a byte order mark, by which some programs know UTF-8.
    pub bom: bool,
}
