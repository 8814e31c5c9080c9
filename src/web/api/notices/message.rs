//! The exact bytes of a message.

use axum::body::Body;
use axum::extract::OriginalUri;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use uuid::Uuid;

use super::super::problem::{Kind, Problem};
use super::super::query::{Query, wrong};
use super::super::session::Db;
use super::super::shapes::Id;
use super::TAG;
use crate::domain::delivery::Channel;
use crate::store::lists::notices::{is_delivery, read_message, read_notice};
use crate::store::{PgConnection, StoreError};

/// The exact bytes that were handed over, for a notice with one copy by email; of one with several the problem lists
/// the deliveries. Before the first attempt there are none.
#[utoipa::path(get, path = "/notices/{id}/message", tag = TAG, params(("id" = Uuid, Path)),
    responses((status = 200, description = "The message", body = String, content_type = "message/rfc822"),
              (status = 409, description = "wrong-state")))]
pub(super) async fn of_notice(Id(id): Id, mut db: Db, OriginalUri(uri): OriginalUri) -> Result<Response, Problem> {
    Query::parse(uri.query())?.finish()?;
    let notice = read_notice(&mut db, id).await?;
    let mailed = notice.deliveries.iter().filter(|delivery| delivery.channel == Channel::Email.as_str());
    let mailed: Vec<_> = mailed.collect();
    match mailed[..] {
        [] => Err(StoreError::NotFound("message").into()),
        [one] => message(&mut db, one.id, None).await,
        _ => {
            let list = mailed.iter().map(|one| json!({ "id": one.id, "recipient": one.recipient, "role": one.role }));
            let detail = "the notice has several copies; ask for the message of one delivery";
            Err(Problem::new(Kind::WrongState, detail)
                .with("state", notice.state.as_str())
                .with("deliveries", list.collect::<Vec<_>>()))
        }
    }
}

/// The exact bytes that an attempt handed over; the last attempt unless `attempt` says which.
#[utoipa::path(get, path = "/deliveries/{id}/message", tag = TAG,
    params(("id" = Uuid, Path), ("attempt" = Option<i32>, Query, minimum = 1, description = "Number of the attempt")),
    responses((status = 200, description = "The message", body = String, content_type = "message/rfc822")))]
pub(super) async fn of_delivery(Id(id): Id, mut db: Db, OriginalUri(uri): OriginalUri) -> Result<Response, Problem> {
    let mut query = Query::parse(uri.query())?;
    let number = match query.text("attempt") {
        None => None,
        Some(text) => {
            let number = text.parse().ok().filter(|number: &i32| *number > 0);
            Some(number.ok_or_else(|| wrong("attempt", "must be the number of an attempt, from 1"))?)
        }
    };
    query.finish()?;
    if !is_delivery(&mut db, id).await? {
        return Err(StoreError::NotFound("delivery").into());
    }
    message(&mut db, id, number).await
}

/// The bytes of an attempt, or of the last one.
pub(in crate::web) async fn message(
    connection: &mut PgConnection,
    delivery: Uuid,
    number: Option<i32>,
) -> Result<Response, Problem> {
    let bytes = read_message(connection, delivery, number).await?;
    // A browser that is led here must not show as a page what others have written.
    let headers = [(header::CONTENT_TYPE, "message/rfc822"), (header::CONTENT_DISPOSITION, "attachment")];
    Ok((headers, Body::from(bytes)).into_response())
}
