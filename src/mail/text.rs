//! Text of others made fit for a line of ours, and paragraphs wrapped.

use crate::domain::text::is_unfit;

/// Widest line of the plain text, in characters. Two short of the 76 that are promised: lettre leaves text of
/// such lines as it is, and wider lines make it encode the whole part.
const WIDTH: usize = 74;

/// `text` as one line of at most `max` characters, ending in an ellipsis if it was cut: every run of white space
/// one space, none outside, no control characters, and nothing invisible that could reorder or hide what is shown.
pub(super) fn one_line(text: &str, max: usize) -> String {
    let mut line = String::with_capacity(text.len().min(4 * max));
    let mut length = 0;
    let mut gap = false;
    for c in text.chars() {
        if c.is_whitespace() {
            gap = length > 0;
            continue;
        }
        if is_unfit(c) {
            continue;
        }
        if length + usize::from(gap) >= max {
            while line.chars().count() >= max {
                line.pop();
            }
            line.push('…');
            break;
        }
        if gap {
            line.push(' ');
            length += 1;
        }
        gap = false;
        line.push(c);
        length += 1;
    }
    line
}

/// The text with each line wrapped, continued at its own indentation, and no more than one empty line in a row.
/// A word wider than a line (a link, a number) stays whole: broken it could not be used.
pub(super) fn wrap(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    let mut blank = true;
    for line in text.lines() {
        if line.trim().is_empty() {
            if !blank {
                out.push('\n');
            }
            blank = true;
        } else {
            wrap_line(line, &mut out);
            blank = false;
        }
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

fn wrap_line(line: &str, out: &mut String) {
    let indent = &line[..line.len() - line.trim_start().len()];
    let mut column = 0;
    for word in line.split_whitespace() {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > WIDTH {
            out.push('\n');
            column = 0;
        }
        if column == 0 {
            out.push_str(indent);
            column = indent.chars().count();
        } else {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += width;
    }
    out.push('\n');
}
