//! A clerk and the permits.

use serde_json::json;
use thirtyfour::prelude::*;

use super::{CLERK, office};
use crate::support::{api::TestApi, browser::Browser};

#[ignore = "wants a browser"]
#[tokio::test]
async fn a_permit_is_created_found_edited_renewed_and_paused() {
    let api = office().await;
    for number in 0..60 {
        api.create_permit(&format!("X-{number}")).await;
    }
    let browser = Browser::open(&api.url).await;
    a_day_with_a_permit(&api, &browser).await;
    let log = browser.driver.browser_log().await.map(|log| format!("{log:?}")).unwrap_or_default();
    assert!(!log.contains("Content Security Policy"), "{log}");
    browser.close().await;
    api.close().await;
}

#[ignore = "wants a browser"]
#[tokio::test]
async fn the_same_without_script() {
    let api = office().await;
    let browser = Browser::without_script(&api.url).await;
    a_day_with_a_permit(&api, &browser).await;
    browser.close().await;
    api.close().await;
}

/// Everything that happens to a permit, by its labels and buttons alone.
async fn a_day_with_a_permit(api: &TestApi, browser: &Browser) {
    let expires = api.office.in_days(200).to_string();
    browser.goto("/permits").await;
    browser.fill("Email address", CLERK).await;
    browser.fill("Password", "not the right password").await;
    browser.press("Sign in").await;
    browser.see("The email address or the password is not right.").await;
    browser.fill("Password", crate::support::pages::PASSWORD).await;
    browser.press("Sign in").await;
    // Where the clerk wanted to go.
    browser.press("New permit").await;

    browser.fill("Permit number", "B-42").await;
    browser.press("Record the permit").await;
    browser.see("There is a problem").await;
    browser.see("Last valid day is needed.").await;
    browser.choose("Permit type", "Food").await;
    browser.fill("Last valid day", &expires).await;
    browser.fill("Name", "Grace O'Holder").await;
    browser.press("Record the permit").await;
    browser.see("The permit is recorded.").await;
    browser.see("none on file").await;

    browser.press("Permits").await;
    browser.fill("Search", "o'holder b-42").await;
    browser.press("Find").await;
    browser.see("1 permit").await;
    browser.press("B-42").await;
    browser.press("Edit").await;
    browser.fill("Email address", "grace@example.org").await;
    browser.press("Save the changes").await;
    browser.see("The changes are saved.").await;
    browser.see("Email address of the holder: nothing → grace@example.org").await;

    browser.fill("Renew until (last valid day)", &api.office.in_days(565).to_string()).await;
    browser.press("Renew").await;
    browser.see("The permit is renewed.").await;
    let until = api.office.in_days(9).to_string();
    browser.fill("Pause notices until (last day)", &until).await;
    browser.press("Pause").await;
    browser.see(&format!("notices paused until {until}")).await;
    browser.press("Sign out").await;
    browser.see("You are signed out.").await;
}

#[ignore = "wants a browser"]
#[tokio::test]
async fn the_keyboard_alone_is_enough() {
    let api = office().await;
    let browser = Browser::open(&api.url).await;
    browser.goto("/permits").await;
    // The cursor stands in the first field.
    assert_eq!(browser.focused().await, "Email address");
    browser.key(CLERK).await;
    browser.tab_to("Password").await;
    browser.key(crate::support::pages::PASSWORD).await;
    browser.key(Key::Enter + "").await;
    browser.see("There are no permits yet.").await;
    browser.key(Key::Tab + "").await;
    assert_eq!(browser.focused().await, "Skip to the content");
    browser.key(Key::Enter + "").await;
    browser.tab_to("New permit").await;
    browser.key(Key::Enter + "").await;
    browser.tab_to("Permit number").await;
    browser.key("K-1").await;
    browser.tab_to("Record the permit").await;
    browser.key(Key::Enter + "").await;
    browser.see("There is a problem").await;
    // What went wrong is read first, and leads to the fields.
    browser.tab_to("Last valid day is needed.").await;
    browser.key(Key::Enter + "").await;
    assert_eq!(browser.focused().await, "Last valid day");
    browser.key("06302031").await;
    browser.tab_to("Name").await;
    browser.key("Ada Holder").await;
    browser.tab_to("Record the permit").await;
    browser.key(Key::Enter + "").await;
    browser.tab_to("Permit type is needed.").await;
    browser.key(Key::Enter + "").await;
    browser.key("Food").await;
    browser.tab_to("Record the permit").await;
    browser.key(Key::Enter + "").await;
    browser.see("The permit is recorded.").await;
    browser.close().await;
    api.close().await;
}

#[ignore = "wants a browser"]
#[tokio::test]
async fn a_second_user_meets_a_conflict_and_loses_nothing() {
    let api = office().await;
    let made = api.create_permit("F-1").await;
    let path = made.path().to_owned();
    let browser = Browser::open(&api.url).await;
    browser.sign_in(CLERK).await;
    browser.goto(&format!("{path}/edit")).await;
    let changed = api.patch(&path, made.etag(), &json!({ "holder_name": "Theirs" })).await;
    assert_eq!(changed.status, 200);
    browser.fill("Name", "Mine").await;
    browser.press("Save the changes").await;
    browser.see("Somebody else changed this permit meanwhile").await;
    browser.see("Theirs").await;
    assert_eq!(browser.field("Name").await.prop("value").await.unwrap().as_deref(), Some("Mine"));
    browser.press("Save the changes").await;
    browser.see("Holder: Theirs → Mine").await;
    browser.close().await;
    api.close().await;
}
