//! The permits of the demo.

use anyhow::Result;
use chrono::{NaiveDate, TimeDelta};

use super::troubles::{FULL, GONE, SILENT};
use crate::{
    app::App,
    domain::{calendar::plus_days, permit::PermitStatus},
    store::{
        Moment,
        changes::{ChangeRules, create},
        connect::{Purpose, connect},
        permit_types::{create_permit_type, describe_permit_type},
        permits::{Contact, PermitData},
    },
};

const TYPES: [(&str, &str, i32); 3] =
    [("food", "Food premises", 0), ("tavern", "Tavern", 14), ("street-vendor", "Street vendor", 0)];

/// Days until expiry, type, holder, address, contact.
type Sample = (i64, &'static str, &'static str, Option<&'static str>, Option<&'static str>);

const SAMPLES: [Sample; 17] = [
    (90, "food", "Blue Door Bakery", Some("blue.door@example.com"), None),
    (60, "food", "Chez Zoé", Some("zoe@example.com"), Some("books@example.org")),
    (30, "tavern", "The Anchor", Some("anchor@example.com"), None),
    (27, "tavern", "The Late Riser", Some("riser@example.com"), None),
    (14, "food", "Noodle Corner", Some("noodles@example.com"), None),
    (7, "street-vendor", "Ahmet's Chestnuts", Some("ahmet@example.com"), Some("agent@example.org")),
    (1, "street-vendor", "Flower Cart No. 9", Some("flowers@example.com"), None),
    (0, "tavern", "Copper Kettle", Some("kettle@example.com"), None),
    (-1, "food", "Old Mill Café", Some("mill@example.com"), None),
    (-30, "food", "Corner Deli", Some("deli@example.com"), None),
    (30, "street-vendor", "Ice Cream Bike (no address on file)", None, None),
    (45, "food", "Between Two Steps", Some("between@example.com"), None),
    (30, "food", "Closed for Renovation (paused)", Some("paused@example.com"), None),
    (14, "tavern", "The Lost Licence (revoked)", Some("revoked@example.com"), None),
    (30, "food", "Overflowing Bowl (mailbox full)", Some(FULL), None),
    (7, "street-vendor", "Gone Fishing (no such mailbox)", Some(GONE), None),
    (14, "tavern", "The Silent Line (no answer)", Some(SILENT), None),
];

/// Records the samples as if a year ago, so that today's scan finds them and no change mails them at once.
pub async fn load(app: &App<'_>, moment: Moment) -> Result<usize> {
    let then = Moment { now: moment.now - TimeDelta::days(400), today: plus_days(moment.today, -400) };
    let mut connection = connect(&app.database.direct_url, Purpose::Bulk).await?;
    for (code, name, grace_days) in TYPES {
        create_permit_type(&mut connection, &code.parse()?, name, then.now).await?;
        let url = format!("https://permits.example.org/renew/{code}");
        let contact = Some("Licensing desk, licences@permits.example.org, 555-0142");
        describe_permit_type(&mut connection, code, Some(&url), contact, grace_days, then.now).await?;
    }
    let rules = ChangeRules::at(then, None);
    for (index, sample) in SAMPLES.iter().enumerate() {
        create(&mut connection, &permit(index, sample, moment.today)?, &rules).await?;
    }
    Ok(SAMPLES.len())
}

fn permit(index: usize, sample: &Sample, today: NaiveDate) -> Result<PermitData> {
    let (days, permit_type, holder, email, contact) = *sample;
    let contact = contact.map(|email| -> Result<Contact> {
        let (name, role) = ("Bookkeeper".to_owned(), "agent".to_owned());
        Ok(Contact { name, email: Some(email.parse()?), role, language: "en".to_owned() })
    });
    let expires_on = plus_days(today, days);
    Ok(PermitData {
        permit_number: format!("DEMO-{:04}", index + 1).parse()?,
        permit_type: permit_type.to_owned(),
        status: if holder.contains("revoked") { PermitStatus::Revoked } else { PermitStatus::Active },
        holder_name: holder.to_owned(),
        holder_email: email.map(str::parse).transpose()?,
        holder_language: "en".to_owned(),
        contacts: contact.transpose()?.into_iter().collect(),
        site_address: Some(format!("{} Market Street", 10 + index)),
        description: None,
        issued_on: Some(plus_days(expires_on, -365)),
        effective_on: Some(plus_days(expires_on, -364)),
        expires_on,
        notices_from: None,
        notices_paused_until: holder.contains("paused").then(|| plus_days(today, 10)),
        external_id: None,
        custom: serde_json::json!({}),
    })
}
