//! Small bar charts, drawn on the server. What they show stands in a table beneath them too.

use chrono::NaiveDate;

/// Size of a drawing, in its own units, and its margin at both sides: names of weeks are wider than bars.
const WIDTH: i64 = 360;
const MARGIN: i64 = 9;
const HEIGHT: i64 = 150;
/// The line on which the bars stand.
const FLOOR: i64 = 126;
/// Room for the number above the tallest bar.
const ABOVE: i64 = 16;

/// A number for each of some weeks.
#[derive(Debug)]
pub struct Chart {
    /// Name of the drawing within the page.
    pub id: &'static str,
    pub title: String,
    /// Head of the column of numbers.
    pub what: &'static str,
    pub bars: Vec<Bar>,
    pub view_box: String,
    pub width: i64,
    /// Where the bars stand, and the names of weeks.
    pub floor: i64,
    pub names: i64,
}

/// One week.
#[derive(Debug, PartialEq, Eq)]
pub struct Bar {
    /// Its first day.
    pub week: NaiveDate,
    pub value: i64,
    /// The number in short.
    pub short: String,
    pub x: i64,
    pub y: i64,
    pub width: i64,
    pub height: i64,
    /// Middle of the bar, and where its number stands.
    pub middle: i64,
    pub above: i64,
    /// There is room for the name of every other week.
    pub is_named: bool,
}

impl Chart {
    pub fn new(id: &'static str, title: impl Into<String>, what: &'static str, weeks: &[(NaiveDate, i64)]) -> Self {
        let most = weeks.iter().map(|(_, value)| *value).max().unwrap_or_default().max(1);
        let step = (WIDTH - 2 * MARGIN) / i64::try_from(weeks.len().max(1)).unwrap_or(1);
        let bars = weeks.iter().zip(0..).map(|(&(week, value), place)| {
            // What is there at all is seen.
            let height = ((FLOOR - ABOVE) * value / most).max(i64::from(value > 0));
            Bar {
                week,
                value,
                short: short(value),
                x: MARGIN + place * step + 3,
                y: FLOOR - height,
                width: step - 6,
                height,
                middle: MARGIN + place * step + step / 2,
                above: FLOOR - height - 4,
                is_named: place % 2 == 0,
            }
        });
        let view_box = format!("0 0 {WIDTH} {HEIGHT}");
        let (title, bars) = (title.into(), bars.collect());
        Self { id, title, what, bars, view_box, width: WIDTH, floor: FLOOR, names: HEIGHT - 8 }
    }

    /// Whether there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        self.bars.iter().all(|bar| bar.value == 0)
    }
}

fn short(value: i64) -> String {
    match value {
        ..10_000 => value.to_string(),
        10_000..10_000_000 => format!("{}k", value / 1000),
        _ => format!("{}M", value / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_stand_on_the_floor_and_the_greatest_reaches_the_top() {
        let monday = NaiveDate::default();
        let chart = Chart::new("x", "x", "x", &[(monday, 0), (monday, 1), (monday, 100_000)]);
        let seen: Vec<_> = chart.bars.iter().map(|bar| (bar.y + bar.height, bar.height, bar.short.as_str())).collect();
        assert_eq!(seen, [(FLOOR, 0, "0"), (FLOOR, 1, "1"), (FLOOR, FLOOR - ABOVE, "100k")]);
        assert!(!chart.is_empty());
        assert!(Chart::new("x", "x", "x", &[(monday, 0)]).is_empty());
        assert!(Chart::new("x", "x", "x", &[]).is_empty());
    }
}
