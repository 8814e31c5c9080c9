//! Text of the description, which marks names with backticks and parts paragraphs by empty lines.

/// Paragraphs.
pub struct Prose<'d>(pub Vec<Vec<Piece<'d>>>);

/// A part of a paragraph.
pub struct Piece<'d> {
    pub text: &'d str,
    /// It is a name of something.
    pub is_code: bool,
}

impl<'d> Prose<'d> {
    pub fn of(text: &'d str) -> Self {
        Self(text.split("\n\n").filter(|paragraph| !paragraph.is_empty()).map(pieces).collect())
    }
}

fn pieces(paragraph: &str) -> Vec<Piece<'_>> {
    let pieces = paragraph.split('`').enumerate().map(|(place, text)| Piece { text, is_code: place % 2 == 1 });
    pieces.filter(|piece| !piece.text.is_empty()).collect()
}
