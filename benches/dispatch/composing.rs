//! How long the making of a message takes by itself.

use std::{hint::black_box, time::Instant};

use chrono::{DateTime, Utc};
use permit_notifier::{
    domain::{
        notice::{NoticeClass, NoticeKey},
        recipient::{HOLDER, Recipient},
    },
    mail::{NoticeMail, compose},
};
use uuid::Uuid;

use crate::{Error, office};

const TIMES: u32 = 5000;

pub fn measure() -> Result<(), Error> {
    let now: DateTime<Utc> = office::now();
    let key = NoticeKey {
        permit_id: Uuid::new_v4(),
        notice_type: office::NOTICE_TYPE.parse()?,
        expires_on: office::today() + chrono::TimeDelta::days(30),
    };
    let recipient = Recipient {
        address: "holder-1@example.com".parse()?,
        name: "Holder 1".to_owned(),
        role: HOLDER.to_owned(),
        language: "en".to_owned(),
    };
    let notice = NoticeMail {
        key: &key,
        class: NoticeClass::Statutory,
        today: office::today(),
        due_on: office::today(),
        permit_number: "P-1",
        permit_type: "Food premises",
        holder_name: "Holder 1",
        site_address: "1 Market Street, Maple",
        description: "Bakery with a counter and twelve seats",
        renewal_url: Some("https://maple.example/renew"),
        office_contact: Some("Permits office, 1 Main Street, Maple\n+1 555 0100, Monday to Friday"),
        grace_days: 30,
        recipient: &recipient,
        copy: 1,
        message_id: None,
    };
    let office = office::letterhead()?;
    let bytes = compose(&office, &notice, now)?.bytes.len();
    let started = Instant::now();
    for _ in 0..TIMES {
        black_box(compose(&office, black_box(&notice), now)?);
    }
    let each = started.elapsed() / TIMES;
    println!("\ncomposing alone: {} µs a message of {bytes} bytes", each.as_micros());
    Ok(())
}
