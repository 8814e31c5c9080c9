//! A letter: a leased delivery with its message as it will be sent.

use std::panic::{AssertUnwindSafe, catch_unwind};

use chrono::NaiveDate;
use tokio::time::Instant;
use uuid::Uuid;

use super::{DispatchRules, feeder::Work, membership::Held};
use crate::{
    mail::{self, Composed, Ended, NoticeMail, Office, Preview, compose},
    store::{
        gate::GateRequest,
        leases::{Lease, Leased},
        settle::Settlement,
    },
};

#[derive(Debug)]
pub(super) struct Letter {
    pub(super) work: Work,
    pub(super) message: Composed,
    /// The id that its attempt has, or will have.
    pub(super) attempt_id: Uuid,
    /// How often it was made anew because the permit or the day changed under it.
    pub(super) remakes: usize,
    /// When the transport first heard of it.
    pub(super) started: Instant,
}

impl Letter {
    pub(super) fn new(work: Work, message: Composed, remakes: usize) -> Self {
        Self { work, message, attempt_id: Uuid::now_v7(), remakes, started: Instant::now() }
    }

    pub(super) fn request(&self, rules: &DispatchRules) -> GateRequest {
        let leased = &self.work.leased;
        GateRequest {
            delivery_id: leased.delivery_id,
            token: leased.token,
            permit_id: leased.key.permit_id,
            version: leased.version,
            type_version: leased.type_version,
            today: self.work.moment.today,
            attempt_id: self.attempt_id,
            transport: rules.mailer.transport(),
            message_id: self.message.message_id.clone(),
            payload_sha256: self.message.sha256.to_vec(),
            content: self.message.bytes.clone(),
            probe: self.work.probe_token(),
        }
    }

    /// How its attempt ended, as the store takes it.
    pub(super) fn settlement(&self, ended: &Ended) -> Settlement {
        Settlement {
            attempt_id: self.attempt_id,
            delivery_id: self.work.leased.delivery_id,
            outcome: ended.outcome,
            transport_fault: ended.transport_fault,
            reason: ended.reason.as_deref().map(storable),
            phase: ended.phase,
            smtp_code: ended.smtp_code.map(i32::from),
            enhanced_code: ended.enhanced_code.as_deref().map(storable),
            response: ended.response.as_deref().map(storable),
            retry_after: ended.retry_after,
            probe: self.work.probe_token(),
        }
    }
}

impl Work {
    /// What names the probe that it is.
    pub(super) fn probe_token(&self) -> Option<Uuid> {
        self.probe.as_ref().map(Held::token)
    }

    pub(super) fn lease(&self) -> Lease {
        Lease { delivery_id: self.leased.delivery_id, token: self.leased.token }
    }
}

/// Composes the message; an error or a panic there is this delivery's own.
pub(super) fn make(rules: &DispatchRules, work: &Work) -> Result<Composed, String> {
    let Work { leased, moment, .. } = work;
    let mail = mail_of(leased, moment.today);
    catch_unwind(AssertUnwindSafe(|| compose(&rules.office, &mail, moment.now)))
        .map_err(|panic| format!("composing panicked: {}", crate::shutdown::panic_message(panic.as_ref())))?
        .map_err(|error| error.to_string())
}

/// What a copy would say on `today`.
pub fn preview(office: &Office, leased: &Leased, today: NaiveDate) -> Result<Preview, String> {
    catch_unwind(AssertUnwindSafe(|| mail::preview(office, &mail_of(leased, today))))
        .map_err(|panic| format!("composing panicked: {}", crate::shutdown::panic_message(panic.as_ref())))?
        .map_err(|error| error.to_string())
}

fn mail_of(leased: &Leased, today: NaiveDate) -> NoticeMail<'_> {
    NoticeMail {
        key: &leased.key,
        class: leased.class,
        today,
        due_on: leased.due_on,
        permit_number: &leased.permit_number,
        permit_type: &leased.permit_type,
        holder_name: &leased.holder_name,
        site_address: leased.site_address.as_deref().unwrap_or_default(),
        description: leased.description.as_deref().unwrap_or_default(),
        renewal_url: leased.renewal_url.as_deref(),
        office_contact: leased.office_contact.as_deref(),
        grace_days: leased.grace_days,
        recipient: &leased.recipient,
        copy: u32::try_from(leased.copy).unwrap_or(1),
        message_id: leased.message_id.as_deref(),
    }
}

/// Longest text of a server that is kept, in characters.
const WORDS_MAX: usize = 2000;

/// What a server said, as the database takes it: without NUL, and not without end.
fn storable(words: &str) -> String {
    words.chars().filter(|c| *c != '\0').take(WORDS_MAX).collect()
}
