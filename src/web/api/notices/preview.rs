//! What the mails of a notice say, before they are sent.

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::super::Api;
use super::super::access::Caller;
use super::super::answer::Answer;
use super::super::body::OptionalJson;
use super::super::fields::read_object;
use super::super::problem::Problem;
use super::super::session::Db;
use super::super::shapes::Id;
use super::TAG;
use super::action::Nothing;
use crate::store::leases::{Leased, read_copies};
use crate::store::lists::notices::read_notice;

/// What the mails of a notice say.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Previews {
    /// One for each copy by email; a letter has none.
    previews: Vec<PreviewView>,
}

/// What one copy says.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Preview)]
struct PreviewView {
    delivery_id: Uuid,
    recipient: String,
    /// Null when the message cannot be made; then `fault` says why.
    subject: Option<String>,
    text: Option<String>,
    html: Option<String>,
    fault: Option<String>,
}

/// What the mails of a notice would say today, or on its due day if that is later. Nothing is written.
#[utoipa::path(post, path = "/notices/{id}/preview", tag = TAG, params(("id" = Uuid, Path)), request_body = Nothing,
    responses((status = 200, description = "The mails", body = Previews)))]
pub(super) async fn preview(
    State(api): State<Api>,
    _caller: Caller,
    Id(id): Id,
    mut db: Db,
    OptionalJson(body): OptionalJson,
) -> Result<Answer, Problem> {
    let notice = read_notice(&mut db, id).await?;
    read_object(body, |_| Some(()))?;
    let today = api.moment(&mut db).await?.today.max(notice.due_on);
    let mut previews = Vec::new();
    for copy in read_copies(&mut db, id).await? {
        match copy {
            Ok(copy) => {
                let made = api.mails.preview(&copy, today);
                previews.push(view(&copy, made));
            }
            Err(unreadable) => return Err(unreadable.fault.into()),
        }
    }
    Ok(Answer::ok(&Previews { previews }))
}

fn view(copy: &Leased, made: Result<crate::mail::Preview, String>) -> PreviewView {
    let (delivery_id, recipient) = (copy.delivery_id, copy.recipient.address.to_string());
    match made {
        Ok(made) => PreviewView {
            delivery_id,
            recipient,
            subject: Some(made.subject),
            text: Some(made.text),
            html: Some(made.html),
            fault: None,
        },
        Err(fault) => PreviewView { delivery_id, recipient, subject: None, text: None, html: None, fault: Some(fault) },
    }
}
