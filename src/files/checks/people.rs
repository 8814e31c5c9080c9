//! Whom the addresses of a row belong to.

use std::collections::HashSet;

use super::Checker;
use crate::domain::recipient::EmailAddress;
use crate::domain::text;
use crate::files::contacts::CONTACTS_MAX;
use crate::files::fields::Field;
use crate::files::reading::Row;
use crate::files::remarks::Reason;
use crate::files::term::{CONTACT, Contact};
use crate::files::values::{self, some};
use crate::files::{addresses, contacts};

/// The addresses of a row.
#[derive(Default)]
pub(super) struct People {
    pub holder: Option<EmailAddress>,
    /// Whether the holder's cell has an address that is none.
    pub holder_unusable: bool,
    pub contacts: Vec<Contact>,
    /// Whether the contact columns have one.
    pub contacts_unusable: bool,
}

impl Checker<'_> {
    /// The holder's address is the first of its cell; the others, and those of the contact columns, are contacts. They stay
    /// so if the first one is none: who comes second in a cell is not the holder.
    pub(super) fn people(&mut self, row: &Row<'_>) -> People {
        let mut people = People::default();
        let holder = self.addresses(row, Field::HolderEmail);
        people.holder_unusable = holder.bad.is_some();
        for (name, address) in holder.good {
            if people.holder.is_none() && !holder.bad_first {
                people.holder = Some(address);
            } else {
                people.add(name, Some(address), CONTACT, true);
            }
        }
        // Where a malformed address is an error, it is listed as one instead.
        let is_missing = people.holder.is_none() && (holder.bad.is_none() || self.options.keep_good_rows());
        self.addresses_missing += u64::from(is_missing);
        people.contacts.extend(self.listed_contacts(row));
        let cell = |field| text::one_line(self.mapping.cell(row, field));
        let (name, role) = (cell(Field::ContactName), cell(Field::ContactRole));
        let role = some(role).unwrap_or_else(|| CONTACT.to_owned());
        let contact = self.addresses(row, Field::ContactEmail);
        people.contacts_unusable = contact.bad.is_some();
        if contact.good.is_empty() && !values::is_no_value(&name) {
            people.add(name.clone(), None, &role, false);
        }
        let mut seen = people.keys();
        for (own, address) in contact.good {
            if seen.insert(address.key()) {
                let name = some(own).unwrap_or_else(|| name.clone());
                people.add(name, Some(address), &role, false);
            }
        }
        self.limit(row, &people);
        people
    }

    /// Nobody could record more by hand, nor import again what is exported of them.
    fn limit(&mut self, row: &Row<'_>, people: &People) {
        let found = people.contacts.len();
        if found <= CONTACTS_MAX {
            return;
        }
        let from_holder = people.contacts.iter().filter(|contact| contact.from_holder).count();
        let field = if from_holder * 2 > found { Field::HolderEmail } else { Field::ContactEmail };
        let detail = format!("a permit has at most {CONTACTS_MAX} contacts besides its holder, and these are {found}");
        self.fault(row, field, Reason::InvalidContacts, detail);
    }

    /// Those of the column in which our own export writes all of them.
    fn listed_contacts(&mut self, row: &Row<'_>) -> Vec<Contact> {
        let cell = self.mapping.cell(row, Field::Contacts);
        if cell.trim().is_empty() {
            return Vec::new();
        }
        contacts::parse(cell).unwrap_or_else(|fault| {
            self.fault(row, Field::Contacts, Reason::InvalidContacts, fault);
            Vec::new()
        })
    }

    fn addresses(&mut self, row: &Row<'_>, field: Field) -> addresses::Addresses {
        let found = addresses::parse(self.mapping.cell(row, field));
        self.addresses_cleaned += u64::from(found.cleaned);
        // The whole cell, once: what its parts are is a guess of ours.
        if let Some(error) = &found.bad {
            let remark = self.remark(row, field, Reason::MalformedAddress, error.to_string());
            if self.options.keep_good_rows() {
                self.unusable.push(remark);
            } else {
                self.faults.push(remark);
            }
        }
        found
    }
}

impl People {
    fn add(&mut self, name: String, email: Option<EmailAddress>, role: &str, from_holder: bool) {
        self.contacts.push(Contact { name, email, role: role.to_owned(), language: None, from_holder });
    }

    fn keys(&self) -> HashSet<String> {
        let emails = self.contacts.iter().filter_map(|contact| contact.email.as_ref());
        self.holder.iter().chain(emails).map(EmailAddress::key).collect()
    }
}
