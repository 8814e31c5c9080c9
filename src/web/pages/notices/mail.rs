//! What a mail says: before it goes, and the very bytes that went.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use askama::Template;
use axum::extract::{OriginalUri, State};
use axum::http::header;
use axum::response::{Html, IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::NaiveDate;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::super::Pages;
use super::super::access::User;
use super::super::frame::{self, Frame};
use super::super::listing::Asked;
use super::super::path::Path;
use crate::mail::Preview;
use crate::store::leases::{Leased, read_copies};
use crate::store::lists::notices::read_notice;
use crate::store::{PgConnection, StoreError};
use crate::web::api::notices::message::message;
use crate::web::api::problem::Problem;
use crate::web::api::query::wrong;

/// Mails as they will look.
#[derive(Template)]
#[template(path = "pages/watch/preview.html")]
pub struct PreviewPage {
    pub frame: Frame,
    /// The day on which they say this.
    pub day: NaiveDate,
    pub mails: Vec<MailView>,
    /// Where the reader came from.
    pub back: String,
    pub back_name: String,
}

/// One mail.
pub struct MailView {
    pub to: String,
    pub role: String,
    pub made: Result<Preview, String>,
    /// Where its HTML is shown.
    pub html_at: String,
}

impl MailView {
    pub fn of(pages: &Pages, copy: &Leased, day: NaiveDate, html_at: String) -> Self {
        let name = &copy.recipient.name;
        let address = copy.recipient.address.to_string();
        Self {
            to: if name.is_empty() { address } else { format!("{name} <{address}>") },
            role: copy.recipient.role.clone(),
            made: pages.api.mails.preview(copy, day),
            html_at,
        }
    }
}

/// `GET /notices/{id}/preview`.
pub(super) async fn preview(State(pages): State<Pages>, user: User, Path(id): Path<Uuid>) -> Result<Response, Problem> {
    let mut connection = pages.api.connection().await?;
    let (copies, day) = copies_of(&pages, &mut connection, id).await?;
    let notice = read_notice(&mut connection, id).await?;
    let mails = copies
        .iter()
        .map(|copy| MailView::of(&pages, copy, day, format!("/notices/{id}/preview/{}", copy.delivery_id)));
    let name = super::act::label_of(&notice);
    let page = PreviewPage {
        frame: Frame::of(&pages, &user, "/notices", format!("What the mails of {name} say")),
        day,
        mails: mails.collect(),
        back: format!("/notices/{id}"),
        back_name: name,
    };
    Ok(frame::shown(&page))
}

/// The copies of a notice by mail, and the day on which they would go.
async fn copies_of(
    pages: &Pages,
    connection: &mut PgConnection,
    id: Uuid,
) -> Result<(Vec<Leased>, NaiveDate), Problem> {
    let notice = read_notice(connection, id).await?;
    let today = pages.api.moment(connection).await?.today;
    let copies = read_copies(connection, id).await?.into_iter();
    let copies: Result<Vec<_>, StoreError> = copies.map(|copy| copy.map_err(|unreadable| unreadable.fault)).collect();
    let day = if notice.brought_forward { today } else { today.max(notice.due_on) };
    Ok((copies?, day))
}

/// `GET /notices/{id}/preview/{delivery}`: its HTML alone.
pub(super) async fn html(
    State(pages): State<Pages>,
    _user: User,
    Path((id, delivery)): Path<(Uuid, Uuid)>,
) -> Result<Response, Problem> {
    let mut connection = pages.api.connection().await?;
    let (copies, day) = copies_of(&pages, &mut connection, id).await?;
    let copy = copies.iter().find(|copy| copy.delivery_id == delivery).ok_or(StoreError::NotFound("mail"))?;
    html_of(pages.api.mails.preview(copy, day))
}

/// A mail's HTML as a document of its own, in which nothing runs and nothing is loaded.
pub fn html_of(made: Result<Preview, String>) -> Result<Response, Problem> {
    let html = made.map_err(|_| StoreError::NotFound("mail"))?.html;
    Ok(([(header::CONTENT_SECURITY_POLICY, policy(&html))], Html(html)).into_response())
}

/// Allows the styles that stand in this very mail, each by its hash, and nothing else.
fn policy(html: &str) -> String {
    let mut policy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox; \
                      style-src 'unsafe-hashes'"
        .to_owned();
    for style in styles(html) {
        let _ = write!(policy, " 'sha256-{}'", STANDARD.encode(Sha256::digest(style)));
    }
    policy
}

/// The contents of style elements and style attributes. Whatever people wrote is escaped, so that none of it can end a
/// text or an attribute and begin a style.
fn styles(html: &str) -> BTreeSet<&str> {
    let between = |begin, end| html.split(begin).skip(1).filter_map(move |rest: &str| Some(rest.split_once(end)?.0));
    between("<style>", "</style>").chain(between(" style=\"", "\"")).collect()
}

/// `GET /notices/{id}/message/{delivery}`: the bytes of its last attempt, or of `?attempt=`.
pub(super) async fn bytes(
    State(pages): State<Pages>,
    _user: User,
    Path((id, delivery)): Path<(Uuid, Uuid)>,
    OriginalUri(uri): OriginalUri,
) -> Result<Response, Problem> {
    let mut asked = Asked::of(&uri)?;
    let number = asked.query.text("attempt").map(|text| text.parse::<i32>()).transpose();
    let number = number.map_err(|_| wrong("attempt", "must be the number of an attempt, from 1"))?;
    asked.query.finish()?;
    let mut connection = pages.api.connection().await?;
    let notice = read_notice(&mut connection, id).await?;
    if !notice.deliveries.iter().any(|copy| copy.id == delivery) {
        return Err(StoreError::NotFound("delivery").into());
    }
    message(&mut connection, delivery, number).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_allows_the_mails_own_styles_and_nothing_else() {
        let html = "<style>a</style><p style=\"b\">&#34; style=&#34;c&#34;</p><p style=\"b\">";
        assert_eq!(styles(html).into_iter().collect::<Vec<_>>(), ["a", "b"]);
        let policy = policy(html);
        assert_eq!(policy.matches("sha256-").count(), 2);
        assert!(!policy.contains("unsafe-inline"));
        // The hash of "a".
        assert!(policy.contains("'sha256-ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs='"), "{policy}");
    }
}
