//! What can be done with a notice, as callers ask for it.

use chrono::NaiveDate;
use serde_json::{Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

use super::super::fields::{self, Fault, Fields, boolean, date, line, parsed};
use super::super::problem::Problem;
use super::super::shapes::words;
use crate::domain::attempt::Resolution;
use crate::domain::words;
use crate::store::actions::{
    ActionRules, Posting, Resolving, cancel, give_up, hold, posted, release, resolve, retry, send_copy,
};
use crate::store::lists::notices::name_notice;
use crate::store::office_log::{Deed, Subject, record};
use crate::store::{PgConnection, Result as StoreResult, unit};

words! {
    /// What can be done with a notice.
    "action" Verb {
        /// A failed, bounced or suppressed copy goes again.
        Retry = "retry",
        /// It is not sent.
        Cancel = "cancel",
        /// It is kept back.
        Hold = "hold",
        /// What was kept back goes.
        Release = "release",
        /// Somebody found out whether an ambiguous copy had arrived.
        Resolve = "resolve",
        /// One more copy.
        Copies = "copies",
        /// A letter was posted.
        Posted = "posted",
    }
}

/// What is wanted, with everything it takes.
#[derive(Debug, Clone)]
pub enum Action {
    Retry,
    Cancel { reason: String, failed_only: bool },
    Hold { reason: String },
    Release { reason: Option<String> },
    Resolve { delivery: Option<Uuid>, outcome: Resolution, reason: String },
    Copies { recipient: Option<String>, reason: String },
    Posted { delivery: Option<Uuid>, posted_on: NaiveDate, tracking: Option<String> },
}

/// Longest reason, and longest tracking number, in characters.
pub const REASON_MAX: usize = 1000;
const TRACKING_MAX: usize = 200;

fn uuid(value: &Value) -> Result<Uuid, Fault> {
    parsed("malformed_id")(value)
}

impl Action {
    /// Reads what `verb` takes from the fields.
    pub fn read(verb: Verb, fields: &mut Fields<'_>) -> Option<Self> {
        let reason = line(REASON_MAX);
        Some(match verb {
            Verb::Retry => Self::Retry,
            Verb::Cancel => {
                let failed_only = fields.optional("failed_only", boolean).unwrap_or_default();
                Self::Cancel { reason: fields.required("reason", reason)?, failed_only }
            }
            Verb::Hold => Self::Hold { reason: fields.required("reason", reason)? },
            Verb::Release => Self::Release { reason: fields.optional("reason", reason) },
            Verb::Resolve => {
                let delivery = fields.optional("delivery_id", uuid);
                let outcome = fields.required("outcome", parsed("not_allowed"));
                let reason = fields.required("reason", reason);
                Self::Resolve { delivery, outcome: outcome?, reason: reason? }
            }
            Verb::Copies => {
                let recipient = fields.optional("recipient", line(TRACKING_MAX + 100));
                Self::Copies { recipient, reason: fields.required("reason", reason)? }
            }
            Verb::Posted => {
                let delivery = fields.optional("delivery_id", uuid);
                let posted_on = fields.required("posted_on", date);
                let tracking = fields.optional("tracking", line(TRACKING_MAX));
                Self::Posted { delivery, posted_on: posted_on?, tracking }
            }
        })
    }

    /// Reads a whole body.
    pub fn of(verb: Verb, body: Value) -> Result<Self, Problem> {
        fields::read_object(body, |fields| Self::read(verb, fields))
    }

    /// The same verb with something that is allowed, to find out whether the state allows it at all.
    pub fn plain(verb: Verb, today: NaiveDate) -> Self {
        let reason = "-".to_owned();
        match verb {
            Verb::Retry => Self::Retry,
            Verb::Cancel => Self::Cancel { reason, failed_only: false },
            Verb::Hold => Self::Hold { reason },
            Verb::Release => Self::Release { reason: None },
            Verb::Resolve => Self::Resolve { delivery: None, outcome: Resolution::Delivered, reason },
            Verb::Copies => Self::Copies { recipient: None, reason },
            Verb::Posted => Self::Posted { delivery: None, posted_on: today, tracking: None },
        }
    }

    /// Does it.
    pub async fn perform(
        &self,
        connection: &mut PgConnection,
        notice: Uuid,
        by: &str,
        rules: &ActionRules<'_>,
    ) -> StoreResult<()> {
        match self {
            Self::Retry => retry(connection, notice, rules).await.map(drop),
            Self::Cancel { reason, failed_only: false } => cancel(connection, notice, reason, rules).await.map(drop),
            Self::Cancel { reason, failed_only: true } => give_up(connection, notice, reason, rules).await.map(drop),
            Self::Hold { reason } => hold(connection, notice, reason, rules).await.map(drop),
            Self::Release { reason } => release(connection, notice, reason.as_deref(), rules).await.map(drop),
            Self::Resolve { delivery, outcome, reason } => {
                let resolving = Resolving { delivery: *delivery, outcome: *outcome, reason, by };
                resolve(connection, notice, resolving, rules).await.map(drop)
            }
            Self::Copies { recipient, reason } => {
                send_copy(connection, notice, recipient.as_deref(), reason, rules).await.map(drop)
            }
            Self::Posted { delivery, posted_on, tracking } => {
                let posting = Posting { delivery: *delivery, posted_on: *posted_on, tracking: tracking.as_deref(), by };
                posted(connection, notice, posting, rules).await.map(drop)
            }
        }
    }
}

impl Action {
    /// What was done, as a word for the audit.
    fn deed(&self) -> &'static str {
        match self {
            Self::Retry => "retried",
            Self::Cancel { failed_only: false, .. } => "cancelled",
            Self::Cancel { failed_only: true, .. } => "given-up",
            Self::Hold { .. } => "held",
            Self::Release { .. } => "released",
            Self::Resolve { .. } => "resolved",
            Self::Copies { .. } => "copied",
            Self::Posted { .. } => "posted",
        }
    }

    /// What was said with it.
    fn said(&self) -> Value {
        match self {
            Self::Retry => json!({}),
            Self::Cancel { reason, .. } | Self::Hold { reason } => json!({ "reason": reason }),
            Self::Release { reason } => json!({ "reason": reason }),
            Self::Resolve { delivery, outcome, reason } => {
                json!({ "delivery": delivery, "outcome": outcome, "reason": reason })
            }
            Self::Copies { recipient, reason } => json!({ "recipient": recipient, "reason": reason }),
            Self::Posted { delivery, posted_on, tracking } => {
                json!({ "delivery": delivery, "posted_on": posted_on, "tracking": tracking })
            }
        }
    }

    /// Does it, and records who did.
    pub async fn perform_recorded(
        &self,
        connection: &mut PgConnection,
        notice: Uuid,
        by: &str,
        rules: &ActionRules<'_>,
    ) -> StoreResult<()> {
        let mut work = unit::begin(connection).await?;
        let (_, before) = name_notice(&mut *work, notice).await?;
        self.perform(&mut work, notice, by, rules).await?;
        let (label, after) = name_notice(&mut *work, notice).await?;
        let mut said = self.said();
        said["state"] = after.into();
        let deed = Deed {
            by,
            action: self.deed(),
            subject: Subject::Notice,
            subject_id: Some(notice),
            label: &label,
            before: Some(json!({ "state": before })),
            after: Some(said),
        };
        record(&mut *work, deed, rules.moment.now).await?;
        Ok(work.commit().await?)
    }
}

/// Body of `cancel`.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "it only describes the body")]
#[schema(example = json!({ "reason": "The holder called." }))]
pub struct CancelBody {
    /// Kept with the notice.
    #[schema(min_length = 1, max_length = 1000, example = "The holder called.")]
    reason: String,
    /// Whether only the deliveries that failed are cancelled, and those that are pending or held stay; false unless given.
    failed_only: Option<bool>,
}

/// Body of `hold`.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "it only describes the body")]
#[schema(example = json!({ "reason": "The holder called." }))]
pub struct WithReason {
    /// Kept with the notice.
    #[schema(min_length = 1, max_length = 1000, example = "The holder called.")]
    reason: String,
}

/// Body of `release`, which may be empty.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "it only describes the body")]
#[schema(example = json!({ "reason": "Looked through; it is right." }))]
pub struct MayHaveReason {
    #[schema(min_length = 1, max_length = 1000)]
    reason: Option<String>,
}

/// Body of `resolve`.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "it only describes the body")]
#[schema(example = json!({ "outcome": "delivered", "reason": "The log of the mail server has it." }))]
pub struct ResolveBody {
    /// Needed when several deliveries are ambiguous.
    delivery_id: Option<Uuid>,
    #[schema(schema_with = words::<Resolution>)]
    outcome: Resolution,
    /// How it is known.
    #[schema(min_length = 1, max_length = 1000, example = "The log of the mail server has it.")]
    reason: String,
}

/// Body of `copies`.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "it only describes the body")]
#[schema(example = json!({ "recipient": "bo@example.org", "reason": "The holder asked for it." }))]
pub struct CopiesBody {
    /// An address; the holder's unless given.
    #[schema(max_length = 300, example = "bo@example.org")]
    recipient: Option<String>,
    #[schema(min_length = 1, max_length = 1000)]
    reason: String,
}

/// Body of `posted`.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "it only describes the body")]
#[schema(example = json!({ "posted_on": "2027-03-10", "tracking": "RR 123 456 785 US" }))]
pub struct PostedBody {
    /// Needed when several letters are pending.
    delivery_id: Option<Uuid>,
    posted_on: NaiveDate,
    #[schema(min_length = 1, max_length = 200)]
    tracking: Option<String>,
}

/// Body of a request that says all in its path.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "it only describes the body")]
#[schema(example = json!({}))]
pub struct Nothing {}
