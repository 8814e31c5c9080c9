//! Whom the addresses of a row belong to.

use std::collections::HashSet;

use super::Checker;
use crate::domain::recipient::EmailAddress;
use crate::domain::text;
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
    pub contacts: Vec<Contact>,
}

impl Checker<'_> {
    /// The holder's address is the first of its cell; the others, and those of the contact columns, are contacts.
    pub(super) fn people(&mut self, row: &Row<'_>) -> People {
        let mut people = People::default();
        let holder = self.addresses(row, Field::HolderEmail);
        self.addresses_missing += u64::from(holder.good.is_empty() && holder.bad.is_none());
        for (name, address) in holder.good {
            if people.holder.is_none() {
                people.holder = Some(address);
            } else {
                people.contacts.push(Contact { name, email: Some(address), role: CONTACT.to_owned(), language: None });
            }
        }
        people.contacts.extend(self.listed_contacts(row));
        let cell = |field| text::one_line(self.mapping.cell(row, field));
        let (name, role) = (cell(Field::ContactName), cell(Field::ContactRole));
        let role = some(role).unwrap_or_else(|| CONTACT.to_owned());
        let contact = self.addresses(row, Field::ContactEmail);
        if contact.good.is_empty() && !values::is_no_value(&name) {
            people.contacts.push(Contact { name: name.clone(), email: None, role: role.clone(), language: None });
        }
        let mut seen = people.keys();
        for (own, address) in contact.good {
            if seen.insert(address.key()) {
                let name = some(own).unwrap_or_else(|| name.clone());
                people.contacts.push(Contact { name, email: Some(address), role: role.clone(), language: None });
            }
        }
        people
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
    fn keys(&self) -> HashSet<String> {
        let emails = self.contacts.iter().filter_map(|contact| contact.email.as_ref());
        self.holder.iter().chain(emails).map(EmailAddress::key).collect()
    }
}
