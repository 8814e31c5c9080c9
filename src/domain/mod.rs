//! The rules of the office, pure: no clock, no database, no I/O. `now` and `today` are parameters.

pub mod alarm;
pub mod attempt;
pub mod backoff;
pub mod calendar;
pub mod copies;
pub mod delivery;
pub mod export;
pub mod fingerprint;
pub mod mapping;
pub mod notice;
pub mod outlook;
pub mod owed;
pub mod permit;
pub mod phase;
pub mod recipient;
pub mod role;
pub mod saying;
pub mod schedule;
pub mod scope;
pub mod text;
pub mod timetable;
pub mod window;

/// A word from outside that is none of the allowed ones.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not a known {what}; allowed are {allowed}")]
pub struct UnknownWord {
    /// What was being named, such as `status`.
    pub what: &'static str,
    /// The word as it came.
    pub found: String,
    /// The allowed words, comma-separated.
    pub allowed: String,
}

/// What all enumerations of words have in common.
pub trait Words: Copy + 'static {
    /// Every member, in order.
    const ALL: &'static [Self];

    /// The member's word.
    fn word(self) -> &'static str;
}

/// An enumeration whose members have one word each, in the database, the API and files alike.
macro_rules! words {
    ($(#[$doc:meta])* $what:literal $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $word)] $variant),+ }

        impl $name {
            /// Every member, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The member's word.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl $crate::domain::Words for $name {
            const ALL: &'static [Self] = Self::ALL;

            fn word(self) -> &'static str {
                self.as_str()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::domain::UnknownWord;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                match word {
                    $($word => Ok(Self::$variant),)+
                    _ => Err($crate::domain::UnknownWord {
                        what: $what,
                        found: word.to_owned(),
                        allowed: [$($word),+].join(", "),
                    }),
                }
            }
        }
    };
}
pub(crate) use words;
