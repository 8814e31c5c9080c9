//! The rules of the office, against examples and against a second computation that shares no code.

mod against_oracle;
mod cases;
mod days;
mod lives;
mod moments;
mod oracle;
mod saying;
mod values;
