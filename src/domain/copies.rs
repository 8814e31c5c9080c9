//! Which copies of a notice are owed: one to the holder, one to each contact, each address once; a letter when
//! a statutory notice can be mailed to nobody.

use std::collections::HashSet;

use super::{delivery::Channel, notice::NoticeClass, recipient::Recipient};

/// One copy to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owed<'r> {
    /// To be mailed.
    Mail(&'r Recipient),
    /// Would be mailed, if the address were not suppressed.
    Suppressed(&'r Recipient),
    /// To be posted to the holder.
    Letter,
}

impl Owed<'_> {
    /// How it goes.
    pub fn channel(&self) -> Channel {
        match self {
            Self::Mail(_) | Self::Suppressed(_) => Channel::Email,
            Self::Letter => Channel::Letter,
        }
    }

    /// What tells one copy from another within a notice.
    pub fn recipient_key(&self) -> String {
        match self {
            Self::Mail(recipient) | Self::Suppressed(recipient) => recipient.address.key(),
            Self::Letter => LETTER_KEY.to_owned(),
        }
    }
}

/// Stands for the address of a letter.
pub const LETTER_KEY: &str = "letter";

/// The copies owed of a notice of `class` to `recipients` (the holder first). Empty only for a courtesy of which
/// no copy may be mailed.
pub fn copies(
    class: NoticeClass,
    recipients: &[Recipient],
    is_suppressed: impl Fn(&Recipient) -> bool,
) -> Vec<Owed<'_>> {
    let mut seen = HashSet::new();
    let mut owed: Vec<_> = recipients
        .iter()
        .filter(|recipient| seen.insert(recipient.address.key()))
        .map(|r| if is_suppressed(r) { Owed::Suppressed(r) } else { Owed::Mail(r) })
        .collect();
    if !owed.iter().any(|copy| matches!(copy, Owed::Mail(_))) {
        match class {
            NoticeClass::Statutory => owed.push(Owed::Letter),
            NoticeClass::Courtesy => owed.clear(),
        }
    }
    owed
}
