//! Exports: permits as files for others.

use super::words;

words! {
    /// How permits are written.
    "format" ExportFormat {
        /// A table whose header names the fields; `import` reads it.
        Csv = "csv",
        /// A list of permits as the API shows them.
        Json = "json",
    }
}
