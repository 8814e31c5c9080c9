//! The pages in a real browser: `cargo test --test it browser:: -- --ignored`, with Debian's chromium and
//! chromium-driver.
//!
//! What people do is told once, by labels and buttons, and done in each [`Way`]: with a pointer, on a narrow screen
//! without script, and by the keyboard alone.

mod import;
mod office;
mod permits;
mod problems;
mod upcoming;
mod widths;

use permit_notifier::domain::role::Role;
use uuid::Uuid;

use crate::support::{
    api::{Options, TestApi},
    browser::{Browser, Way},
};

const CLERK: &str = "clerk@office.example";

/// An office with a clerk.
async fn office() -> TestApi {
    office_with(Options::default()).await
}

async fn office_with(options: Options) -> TestApi {
    let api = TestApi::with(options).await;
    api.add_user(CLERK, Role::Clerk).await;
    api
}

/// A clerk who is signed in, in a browser used in this way.
async fn clerk(api: &TestApi, way: Way) -> Browser {
    let browser = Browser::used(way, &api.url).await;
    browser.sign_in(CLERK).await;
    browser
}

/// A permit with this number that expires in so many days; what is due of it at once is sent if `is_told`.
async fn permit(api: &TestApi, number: &str, days: i64, is_told: bool) -> Uuid {
    let (number, expires_on) = (number.parse().expect("a number"), api.office.in_days(days));
    let permit = api.office.create_permit(|p| (p.permit_number, p.expires_on) = (number, expires_on)).await;
    if is_told {
        api.office.transport(permit, "accepted").await;
    }
    permit
}
