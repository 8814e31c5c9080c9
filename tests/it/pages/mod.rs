//! The office's pages over HTTP: who may see what, and what each does.

mod guard;
mod import;
mod notices;
mod office;
mod permit_types;
mod permits;
mod problems;
mod sign_in;
mod today;
mod upcoming;
mod users;

use uuid::Uuid;

use crate::support::api::TestApi;

/// A permit with this number that expires in five days, and its pending notice.
async fn pending(api: &TestApi, number: &str) -> (Uuid, Uuid) {
    let permit = api
        .office
        .create_permit(|p| (p.permit_number, p.expires_on) = (number.parse().unwrap(), api.office.in_days(5)))
        .await;
    (permit, api.office.notice(permit, "expires-7d").await.id)
}
