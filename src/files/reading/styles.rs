//! The formats of numbers in an Excel workbook, by the style that a cell names.

use std::collections::HashMap;

use super::super::fault::FileFault;
use super::archive::Archive;
use super::numbers::NumberFormat;
use super::xml::attribute;

/// Most styles of a workbook; Excel allows 65,490.
const STYLES_MAX: usize = 100_000;

/// By style.
#[derive(Debug, Default)]
pub(super) struct Styles(Vec<NumberFormat>);

impl Styles {
    pub fn read(archive: &mut Archive, part: &str) -> Result<Self, FileFault> {
        let mut styles = Self::default();
        let mut own: HashMap<String, NumberFormat> = HashMap::new();
        let mut of_cells = false;
        archive.each_element(part, |element| {
            match element.local_name().as_ref() {
                "numFmt" => {
                    let format = NumberFormat::of_code(&attribute(element, "formatCode"));
                    own.insert(attribute(element, "numFmtId").into_owned(), format);
                }
                "cellXfs" => of_cells = true,
                "cellStyles" | "cellStyleXfs" | "dxfs" => of_cells = false,
                "xf" if of_cells && styles.0.len() < STYLES_MAX => {
                    let id = attribute(element, "numFmtId");
                    let built_in = || id.parse().map_or(NumberFormat::Plain, NumberFormat::built_in);
                    styles.0.push(own.get(id.as_ref()).cloned().unwrap_or_else(built_in));
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(styles)
    }

    /// The format of a cell with this style.
    pub fn format(&self, style: usize) -> &NumberFormat {
        self.0.get(style).unwrap_or(&NumberFormat::Plain)
    }
}
